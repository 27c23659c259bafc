"""Which actors a scope knows, remembered by one handle."""

from __future__ import annotations

import threading

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.record.memory import SCOPE_LEVELS, Scope
from lance_memory.search.names import Names
from lance_memory.storage import Snapshot

__all__ = ["KnownActors"]

_COLUMNS = [*SCOPE_LEVELS, "actor"]
_FRAGMENT = "fragment"
_SCHEMA = pa.schema([*((name, pa.string()) for name in _COLUMNS), (_FRAGMENT, pa.int64())])
_KEPT = 64
_SPARE_FRAGMENTS = 1_000


class KnownActors:
    """The actors in each scope of a table, at any version. Safe to share between threads.

    Reads the scope and actor columns of each fragment once: fragments never change, they only lose
    rows. An actor whose rows were deleted since stays known to this handle, within the scope.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: set[int] = set()
        self._known = _SCHEMA.empty_table()
        self._names: dict[tuple[frozenset[int], Scope], Names] = {}

    def names(self, snapshot: Snapshot, scope: Scope) -> Names:
        """What the actors of `scope` go by at this version."""
        asked = snapshot.fragment_ids, scope
        with self._lock:
            found = self._names.get(asked)
            if found is None:
                self._refresh(snapshot)
                found = Names.of(self._actors(*asked))
                if len(self._names) >= _KEPT:
                    self._names.clear()
                self._names[asked] = found
            return found

    def _refresh(self, snapshot: Snapshot) -> None:
        """Read the fragments that are new; forget those of other versions once they are many."""
        present = snapshot.fragment_ids
        if len(self._read) > 2 * len(present) + _SPARE_FRAGMENTS:
            kept = pc.is_in(self._known[_FRAGMENT], pa.array(present, pa.int64()))
            self._known = self._known.filter(kept)
            self._read &= present
        new = present - self._read
        if new:
            read = [_distinct(snapshot, fragment) for fragment in sorted(new)]
            self._known = pa.concat_tables([self._known, *read]).combine_chunks()
            self._read |= new

    def _actors(self, fragments: frozenset[int], scope: Scope) -> list[str]:
        known = self._known
        for level, name in scope.given().items():
            known = known.filter(pc.equal(known[level], name))
        known = known.filter(pc.is_in(known[_FRAGMENT], pa.array(fragments, pa.int64())))
        actors: list[str] = pc.unique(known["actor"]).to_pylist()
        return actors


def _distinct(snapshot: Snapshot, fragment: int) -> pa.Table:
    rows = snapshot.of_fragments([fragment], columns=_COLUMNS)
    named = rows.filter(pc.not_equal(rows["actor"], ""))
    distinct = named.group_by(_COLUMNS).aggregate([]).select(_COLUMNS)
    number = pa.array([fragment] * len(distinct), pa.int64())
    return distinct.append_column(_FRAGMENT, number).cast(_SCHEMA)
