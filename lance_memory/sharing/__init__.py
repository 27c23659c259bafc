"""What one scope lets another see: grants, as values and as rows of the workspace."""

from lance_memory.sharing.grant import (
    Grant,
    GrantState,
    Rights,
    SharedHit,
    SharedMemory,
    SharedResult,
)
from lance_memory.sharing.looked import may_receive
from lance_memory.sharing.reach import Reach
from lance_memory.sharing.rows import (
    check_changes,
    grants,
    grants_in,
    grants_to,
    received_by,
    row_of,
)
from lance_memory.sharing.terms import Terms

__all__ = [
    "Grant",
    "GrantState",
    "Reach",
    "Rights",
    "SharedHit",
    "SharedMemory",
    "SharedResult",
    "Terms",
    "check_changes",
    "grants",
    "grants_in",
    "grants_to",
    "may_receive",
    "received_by",
    "row_of",
]
