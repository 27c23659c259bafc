"""Indices made anew from the rows that are there: nothing of the old ones is taken over.

Folding and remapping keep what a row left behind, as a word in the dictionary of the text index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_memory.storage.described import (
    TEXT_INDEX,
    VECTOR_INDEX,
    described,
    left_over,
    segments,
)
from lance_memory.storage.engine import translated
from lance_memory.storage.indices import commit_indices, scalar_indices, text_index_anew
from lance_memory.storage.upkeep.races import undisturbed

if TYPE_CHECKING:
    from lance_memory.storage.table import Table

__all__ = ["drop_vector_index", "renew"]

_SYSTEM = "__"
"""The engine's own indices begin so; they hold no content."""


def renew(table: Table) -> None:
    """Build all indices but the vector index again; those that another tool made are dropped.

    Raises:
        ConflictError: writers were faster too often; the old ones may be there still.
        StorageError: the disk is full.
    """
    undisturbed(table, lambda: _scalars(table))
    undisturbed(table, lambda: text_index_anew(table.own()))


def drop_vector_index(table: Table) -> None:
    """Search exactly from now on."""

    def drop() -> None:
        with translated("drop the vector index"):
            snapshot = table.own()
            old = described(snapshot.dataset).get(VECTOR_INDEX)
            commit_indices(snapshot, [], removed=segments(old) if old else [])

    undisturbed(table, drop)


def _scalars(table: Table) -> None:
    snapshot = table.own()
    there = described(snapshot.dataset)
    others = [
        index
        for name, index in there.items()
        if name not in (TEXT_INDEX, VECTOR_INDEX) and not name.startswith(_SYSTEM)
    ]
    old = [*left_over(snapshot.dataset), *(s for index in others for s in segments(index))]
    if not old:
        return
    with translated("build indices again"):
        commit_indices(snapshot, scalar_indices(snapshot, names=set(there)), removed=old)
