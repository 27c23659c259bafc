"""What a domain adds to memories once they are committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from lance_memory.record.intake import Fields
from lance_memory.record.memory import Memory

__all__ = ["Additions", "Overlay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Additions:
    """What an overlay adds; all of it becomes one version.

    Attributes:
        metadata: memory id → members to add to its metadata; one of the same name is replaced.
        rows: memories beside them, in the scope that they name. An id of their own makes a
            repeated overlay find them there.
    """

    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rows: Sequence[Fields | Mapping[str, Any]] = ()


class Overlay(Protocol):
    """Adds what a domain knows. Run after the commit: whatever it raises undoes nothing.

    A job that is run again runs it again, so the same memories must give the same additions.
    """

    @property
    def name(self) -> str:
        """One word, for decisions and figures."""
        ...

    def additions(self, memories: Sequence[Memory], *, now: datetime) -> Additions:
        """What to add to the memories that one job made."""
        ...
