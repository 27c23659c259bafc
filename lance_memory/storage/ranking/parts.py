"""The narrow columns of one fragment, in memory, as ranking asks for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.record.memory import CONSOLIDATED, SCOPE_LEVELS, State
from lance_memory.record.rows import one_array

__all__ = ["NO_TIME", "PART_COLUMNS", "Integers", "Part", "number_of"]

Integers: TypeAlias = NDArray[np.int64]

_GROUP = [*SCOPE_LEVELS, "actor"]
_TIMES = ["event_at", "created_at", "expires_at"]
PART_COLUMNS = [*_GROUP, *_TIMES, "seq", "importance", "state", "source", "superseded_by"]
"""What is read of each row to make a part."""

NO_TIME = np.iinfo(np.int64).max
"""Microseconds where there is no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The physical rows of one fragment, in order; arrays are [n] where nothing else is said.

    Rows of one scope and actor are a group: `groups` has these names, [g]; `session` a number for
    each group's whole scope, 0 where it names no session, [g]. `by_group` has the rows by group,
    those of group i from `starts[i]` to `starts[i + 1]`. Times are microseconds since 1970.
    `derived` says which rows consolidation made; `replaced` has the superseded rows, ordered by the
    number of their successor's id, which stands in `successors`, [m].
    """

    groups: pa.Table
    session: NDArray[np.uint64]
    group: NDArray[np.int32]
    by_group: NDArray[np.uint32]
    starts: Integers
    happened: Integers
    created: Integers
    seq: Integers
    importance: NDArray[np.float32]
    expires: Integers | None
    derived: NDArray[np.bool_] | None
    successors: NDArray[np.uint64]
    replaced: NDArray[np.uint32]

    @classmethod
    def of(cls, rows: pa.Table) -> Part:
        """Of the rows with these columns."""
        groups, group = _grouped(rows)
        by_group = np.argsort(group, kind="stable").astype(np.uint32)
        created = _microseconds(rows["created_at"])
        event = _microseconds(rows["event_at"])
        ends = _microseconds(rows["expires_at"])
        recallable = pc.is_in(rows["state"], pa.array([State.ACTIVE, State.PENDING])).to_numpy()
        ends[~recallable] = NO_TIME
        derived = pc.equal(rows["source"], CONSOLIDATED).fill_null(False).to_numpy()
        successors, replaced = _replaced(rows["superseded_by"])
        return cls(
            groups=groups,
            session=_sessions(groups),
            group=group,
            by_group=by_group,
            starts=np.searchsorted(group[by_group], np.arange(len(groups) + 1)),
            happened=np.where(event == NO_TIME, created, event),
            created=created,
            seq=rows["seq"].fill_null(-1).to_numpy().astype(np.int64),
            importance=rows["importance"].to_numpy().astype(np.float32),
            expires=ends if (ends != NO_TIME).any() else None,
            derived=derived if derived.any() else None,
            successors=successors,
            replaced=replaced,
        )


def number_of(identifier: str) -> int:
    """Python's hash of an id: two of a million are one with p < 1e-7."""
    return hash(identifier) % 2**64


def _replaced(column: pa.ChunkedArray) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """The numbers of the successors, ascending, and the rows that have them."""
    rows = np.flatnonzero(column.is_valid().to_numpy()).astype(np.uint32)
    ids = column.drop_null().to_pylist()
    numbers = np.fromiter(map(number_of, ids), dtype=np.uint64, count=len(ids))
    order = np.argsort(numbers, kind="stable")
    return numbers[order], rows[order]


def _grouped(rows: pa.Table) -> tuple[pa.Table, NDArray[np.int32]]:
    """The distinct combinations of scope and actor [g], and which of them each row has [n]."""
    numbers = np.zeros(len(rows), dtype=np.int64)
    first = np.zeros(min(1, len(rows)), dtype=np.int64)
    for name in _GROUP:
        coded = one_array(rows[name]).dictionary_encode()
        numbers = numbers * len(coded.dictionary) + coded.indices.to_numpy()
        if len(coded.dictionary) > 1:
            _, first, numbers = np.unique(numbers, return_index=True, return_inverse=True)
    groups = rows.select(_GROUP).take(pa.array(first)).combine_chunks()
    return groups, numbers.astype(np.int32)


def _sessions(groups: pa.Table) -> NDArray[np.uint64]:
    """Python's hash of the whole scope: two of a million sessions are one with p < 1e-7."""
    levels: Iterable[tuple[str, ...]] = zip(
        *(groups[level].to_pylist() for level in SCOPE_LEVELS), strict=True
    )
    place = SCOPE_LEVELS.index("session")
    numbers = (hash(names) % 2**64 if names[place] else 0 for names in levels)
    return np.fromiter(numbers, dtype=np.uint64, count=len(groups))


def _microseconds(column: pa.ChunkedArray) -> Integers:
    """Since 1970, int64 [n]; where there is no time, the largest number."""
    filled = column.cast(pa.int64()).fill_null(NO_TIME).to_numpy()
    return np.array(filled, dtype=np.int64)
