"""What must hold of every store at every version: for your own tests, and for ours."""

from lance_memory.testing.invariants import check, violations

__all__ = ["check", "violations"]
