"""What a person can type for a memory: its key, or a short form of its id.

The short form is the beginning of the id, or, where ids begin alike because they were made
together, its end behind two dots: `..5f3a09c1`. It names one memory among all of the table.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from lance_memory import MemoryView

__all__ = ["Named", "Names", "resolved"]

_SHORTEST = 8
_LONGEST_HEAD = 12
_LONGEST_KEY = 24
_END = ".."
_SHORTEST_END = 4


class Named(Protocol):
    """A memory, or what is known of one."""

    @property
    def id(self) -> str: ...

    @property
    def key(self) -> str | None: ...


class Names:
    """Short names, of one length in one list, that any command takes with or without a scope."""

    def __init__(self, shown: Sequence[Named], *views: MemoryView) -> None:
        """Names for the memories of one list, told from all others in the unscoped `views`.

        Args:
            shown: the list.
            views: the store, and the past that is looked at.
        """
        others = {i for view in views for i in view.to_arrow(columns=["id"])["id"].to_pylist()}
        store, columns = views[0], ["id", "key"]
        held = store.to_arrow(columns=columns, states=["active", "pending"])["key"].to_pylist()
        visible = store.to_arrow(columns=columns, states="visible").to_pylist()
        holders = Counter(key for key in held if key is not None)
        named = {(row["id"], row["key"]) for row in visible if holders[row["key"]] == 1}
        self._keys = {m.id: m.key for m in shown if (m.id, m.key) in named and _typable(m.key)}
        ids = [m.id for m in shown if m.id not in self._keys and len(m.id) > _LONGEST_HEAD]
        self._head = _telling(ids, others.union(ids))
        self._end = _telling(map(_reversed, ids), set(map(_reversed, others.union(ids))))

    def __call__(self, memory: Named) -> str:
        return self._keys.get(memory.id) or self._short(memory.id)

    def _short(self, identifier: str) -> str:
        """The beginning or the end of an id that no other id has."""
        if len(identifier) <= _LONGEST_HEAD:
            return identifier
        from_end = self._head > max(_LONGEST_HEAD, self._end + len(_END))
        return _END + identifier[-self._end :] if from_end else identifier[: self._head]


def resolved(view: MemoryView, ref: str) -> str:
    """`ref`, or the id that it is the end of.

    Raises:
        AmbiguousError: several ids end so.
    """
    from lance_memory import AmbiguousError

    end = ref.removeprefix(_END)
    if end == ref or len(end) < _SHORTEST_END or view.find(ref):
        return ref
    found = [i for i in view.to_arrow(columns=["id"])["id"].to_pylist() if i.endswith(end)]
    if len(found) > 1:
        raise AmbiguousError(f"{len(found)} ids end in {end!r}; give more of it", candidates=found)
    return found[0] if found else ref


def _telling(some: Iterable[str], among: set[str]) -> int:
    """The least length at which the beginnings of `some` fit no other text `among` these."""
    ordered = sorted(among)
    longest = _SHORTEST
    for text in some:
        place = bisect_left(ordered, text)
        beside = ordered[max(place - 1, 0) : place + 2]
        longest = max([longest, *(_shared(o, text) + 1 for o in beside if o != text)])
    return longest


def _typable(key: str | None) -> bool:
    """Whether a key can be typed as it is, and is not too long for a table."""
    if not key or len(key) > _LONGEST_KEY or " " in key:
        return False
    return key.isprintable() and not key.startswith("-")


def _reversed(text: str) -> str:
    return text[::-1]


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
