"""Where memories stand in their sessions: what was said just before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.record.filters import all_of, equals, is_one_of
from lance_memory.record.memory import SCOPE_LEVELS, Scope
from lance_memory.record.rows import one_array
from lance_memory.search.candidates import Addresses
from lance_memory.storage import Snapshot

__all__ = ["Places", "places"]


@dataclass(frozen=True, slots=True)
class Places:
    """Where rows stand in their sessions; rows by ascending address. All [n]."""

    addresses: Addresses
    sessions: NDArray[np.int64]
    positions: NDArray[np.int64]

    def of(self, addresses: Addresses) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Session number, -1 for none, and position of each of these rows."""
        sessions = np.full(len(addresses), -1, dtype=np.int64)
        positions = np.zeros(len(addresses), dtype=np.int64)
        if len(self.addresses):
            found = np.searchsorted(self.addresses, addresses)
            found[found == len(self.addresses)] = 0
            known = self.addresses[found] == addresses
            sessions[known] = self.sessions[found[known]]
            positions[known] = self.positions[found[known]]
        return sessions, positions


def places(snapshot: Snapshot, names: Sequence[str], *, scope: Scope) -> Places:
    """Every row within `scope` of the sessions with these names, in whatever state.

    A session is one whole scope; its rows stand in the order of `list`: by when they happened, then
    by when they were stored, `seq`, and place in the table.
    """
    if not names:
        nothing = np.empty(0, dtype=np.int64)
        return Places(np.empty(0, dtype=np.uint64), nothing, nothing)
    fixed = scope.given()
    levels = [level for level in SCOPE_LEVELS if level not in fixed]
    predicate = all_of(
        is_one_of("session", names), *(equals(level, name) for level, name in fixed.items())
    )
    rows = snapshot.addressed(predicate, columns=[*levels, "event_at", "created_at", "seq"])
    addresses = rows["_rowaddr"].to_numpy()
    sessions = _numbered(rows, levels)
    happened = _numbers(pc.coalesce(rows["event_at"], rows["created_at"]))
    order = np.lexsort(
        (addresses, _numbers(rows["seq"]), _numbers(rows["created_at"]), happened, sessions)
    )
    first = np.flatnonzero(np.diff(sessions[order], prepend=-1))
    positions = np.empty(len(order), dtype=np.int64)
    lengths = np.diff(first, append=len(order))
    positions[order] = np.arange(len(order)) - np.repeat(first, lengths)
    by_address = np.argsort(addresses)
    return Places(addresses[by_address], sessions[by_address], positions[by_address])


def _numbered(rows: pa.Table, levels: Sequence[str]) -> NDArray[np.int64]:
    """A number >= 0 for each distinct combination of these columns, int64 [n]."""
    numbers = np.zeros(len(rows), dtype=np.int64)
    for level in levels:
        coded = one_array(rows[level]).dictionary_encode()
        numbers = numbers * len(coded.dictionary) + coded.indices.to_numpy()
        if len(coded.dictionary) > 1:
            _, numbers = np.unique(numbers, return_inverse=True)
    return numbers


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = column.cast(pa.int64()).fill_null(-1).to_numpy()
    return numbers
