"""What a person can type for a memory: its key, or the shortest beginning of its id."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_memory import Memory, MemoryView

__all__ = ["Names"]

_SHORTEST = 8
_LONGEST_KEY = 24


class Names:
    """Short names that the view's own verbs accept."""

    def __init__(self, view: MemoryView) -> None:
        ids = view.to_arrow(columns=["id"])["id"].to_pylist()
        visible = view.to_arrow(columns=["id", "key"], states="visible").to_pylist()
        holders = Counter(row["key"] for row in visible if row["key"] is not None)
        self._ids: list[str] = sorted(ids)
        self._keys: dict[str, str] = {
            row["id"]: row["key"] for row in visible if holders[row["key"]] == 1
        }

    def __call__(self, memory: Memory) -> str:
        key = self._keys.get(memory.id, "")
        typed = key.isprintable() and not key.startswith("-") and " " not in key
        return key if typed and 0 < len(key) <= _LONGEST_KEY else self.prefix(memory.id)

    def prefix(self, identifier: str) -> str:
        """The shortest beginning that no other id has."""
        place = bisect_left(self._ids, identifier)
        others = self._ids[max(place - 1, 0) : place + 2]
        shared = [_shared(o, identifier) for o in others if o != identifier]
        return identifier[: max([_SHORTEST, *(n + 1 for n in shared)])]


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
