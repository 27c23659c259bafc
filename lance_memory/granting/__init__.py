"""Sharing: what a scope lets others of its tenant see, and what they let it see."""

from lance_memory.granting.giving import Sharing
from lance_memory.granting.receiving import SharedFields

__all__ = ["SharedFields", "Sharing"]
