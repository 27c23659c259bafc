"""Keep a vector index where there should be one: what upkeep calls."""

from __future__ import annotations

from lance_memory.errors import ConflictError, NotFoundError, StorageError
from lance_memory.index.build import IndexKind, build_index
from lance_memory.index.proof import prove
from lance_memory.storage.described import VECTOR_INDEX
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.table import Table
from lance_memory.storage.vector.facts import has_vector_index
from lance_memory.storage.vector.former import former_index
from lance_memory.storage.vector.index import install
from lance_memory.storage.vector.rows import count_vectors

__all__ = ["FROM_ROWS", "ensure_index", "wanted_index"]

FROM_ROWS = 5_000
"""Below as many vectors an exact scan is as fast as an index, and exact."""


def ensure_index(
    table: Table, *, kind: IndexKind | None = IndexKind.AUTO, from_rows: int = FROM_ROWS
) -> list[str]:
    """Make sure that there is a vector index once it pays.

    Where another tool's restore took it away, the old one is adopted again if its files are
    there and it still has every row; else one is built, of the kind asked for.

    Args:
        table: the table.
        kind: see `build_index`; one that is named is built, not adopted. None: none is wanted.
        from_rows: how many vectors it takes.

    Returns:
        The name of the index that was made or adopted, or nothing.

    Raises:
        InvalidInputError, ConflictError, StorageError: see `build_index`.
    """
    snapshot = table.own()
    if kind is None or not _wanted(snapshot, from_rows):
        return []
    if kind is not IndexKind.AUTO or not _adopted(table, snapshot):
        build_index(table, kind=kind)
    return [VECTOR_INDEX]


def wanted_index(table: Table, *, kind: IndexKind | None, from_rows: int) -> list[str]:
    """The name of the index that `ensure_index` would make or adopt, or nothing."""
    return [VECTOR_INDEX] if kind is not None and _wanted(table.own(), from_rows) else []


def _wanted(snapshot: Snapshot, from_rows: int) -> bool:
    return not has_vector_index(snapshot) and count_vectors(snapshot) >= max(1, from_rows)


def _adopted(table: Table, snapshot: Snapshot) -> bool:
    """Whether a former index could be installed; whatever is wrong with it, one is built."""
    segments = former_index(table, snapshot)
    if not segments:
        return False
    try:
        install(table, snapshot, segments, check=prove, notes={})
    except (StorageError, NotFoundError, ConflictError):
        return False
    return True
