"""The vector index that the table had, where another tool's restore took it away.

This package goes back by change sets, which keep the indices. The engine's own restore brings
back the index set of the version restored: none, where that version is older than the index.
The files are still there, and so long as the rows that the index covers are too, it is adopted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lance_memory.errors import LanceMemoryError
from lance_memory.storage.described import VECTOR_INDEX
from lance_memory.storage.engine import translated
from lance_memory.storage.history import versions
from lance_memory.storage.vector.facts import segments_of

if TYPE_CHECKING:
    from lance import Index

    from lance_memory.storage.snapshot import Snapshot
    from lance_memory.storage.table import Table

__all__ = ["former_index"]

_VERSIONS = 200
"""How far back is looked: each version costs a read, and building anew costs seconds."""


def former_index(table: Table, snapshot: Snapshot) -> list[Index]:
    """The segments of the newest former index that covers rows of `snapshot`, or none.

    Whether they cover every row of their fragments is for `install` to see: a row that was gone
    when the index was built, and is back, is not in it.
    """
    made = dict(_commits(table, snapshot))
    known = {segment.uuid: segment for new in made.values() for segment in new}
    for version in made:
        there = [str(segment.uuid) for segment in segments_of(table.at(version))]
        segments = [known[i] for i in there if i in known and known[i].base_id is None]
        covers = any(_fragments(segment) & snapshot.fragment_ids for segment in segments)
        if covers and len(segments) == len(there):
            return segments
    return []


def _commits(table: Table, snapshot: Snapshot) -> Iterator[tuple[int, list[Index]]]:
    """Version → the segments over the present vectors that it brought, newest first."""
    older = [version for version in versions(table) if version <= snapshot.version]
    column = snapshot.vector_field
    for version in older[: -_VERSIONS - 1 : -1]:
        brought = [i for i in _new_indices(table, version) if i.name == VECTOR_INDEX]
        segments = [i for i in brought if list(i.fields) == [column]]
        if segments:
            yield version, segments


def _new_indices(table: Table, version: int) -> list[Any]:
    try:
        with translated(f"read the transaction of version {version}"):
            transaction = table.at(version).dataset.read_transaction(version)
    except (TypeError, LanceMemoryError):
        return []  # a compaction, which pylance 14.0.2 cannot give back, or cleaned up
    return getattr(transaction.operation, "new_indices", []) if transaction else []


def _fragments(segment: Index) -> set[int]:
    return {int(i) for i in segment.fragment_ids}
