"""The scalar and text indices of the table: which there are, and how they are made.

The vector index is made in `vector_index`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from lance_memory.storage.described import TEXT_INDEX, described, left_over
from lance_memory.storage.engine import CommitConflictError, lance, translated
from lance_memory.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from lance import Index

__all__ = [
    "commit_indices",
    "create_missing",
    "create_text_index",
    "drop_left_over",
    "has_text_index",
    "missing",
    "scalar_indices",
    "text_index_anew",
    "unindexed_rows",
]

# Words: ICU finds Chinese and Japanese words where the default tokenizer finds none, and
# costs English nothing that was measured; folding finds `autenticação` by `autenticacao`.
_TEXT_PARAMETERS: dict[str, Any] = {
    "base_tokenizer": "icu",
    "language": "English",
    "stem": True,
    "remove_stop_words": True,
    "ascii_folding": True,
    "lower_case": True,
    "with_position": False,
}

_SCALAR_INDICES = {
    "id": "BTREE",
    "key": "BTREE",
    "content_hash": "BTREE",
    "state": "BITMAP",
    "kind": "BITMAP",
    "tenant": "BTREE",
    "user": "BTREE",
    "session": "BTREE",
    "agent": "BTREE",
    "run": "BTREE",
    "tags": "LABEL_LIST",
}


def has_text_index(snapshot: Snapshot) -> bool:
    """Whether words can be searched."""
    return TEXT_INDEX in described(snapshot.dataset)


def create_text_index(snapshot: Snapshot) -> None:
    """Build the inverted index over `content`; another process may do so at the same time."""
    with translated("build the text index"):
        try:
            snapshot.dataset.create_scalar_index(
                "content", "INVERTED", name=TEXT_INDEX, replace=False, **_TEXT_PARAMETERS
            )
        except CommitConflictError:
            return  # the other one has built it


def text_index_anew(snapshot: Snapshot) -> None:
    """Build the inverted index from the rows alone, in the place of the one that is there."""
    with translated("build the text index again"):
        snapshot.dataset.create_scalar_index(
            "content", "INVERTED", name=TEXT_INDEX, replace=True, **_TEXT_PARAMETERS
        )


def scalar_indices(snapshot: Snapshot, *, names: Collection[str]) -> list[Index]:
    """Those of our scalar indices that are named, built from the rows alone; not committed."""
    fragments = sorted(snapshot.fragment_ids)
    return [
        snapshot.dataset.create_index_uncommitted(
            column, kind, name=f"{column}_idx", fragment_ids=fragments, replace=True
        )
        for column, kind in _SCALAR_INDICES.items()
        if fragments and f"{column}_idx" in names
    ]


def create_missing(snapshot: Snapshot) -> list[str]:
    """Build the scalar indices that are missing, and remove those over a column that is gone.

    Returns:
        The names of the indices built, committed together as one version.
    """
    fragments = sorted(snapshot.fragment_ids)
    absent = _missing(snapshot)
    gone = left_over(snapshot.dataset)
    if not fragments or not (absent or gone):
        return []
    with translated("build indices"):
        built = [
            snapshot.dataset.create_index_uncommitted(
                column, kind, name=name, fragment_ids=fragments
            )
            for name, (column, kind) in absent.items()
        ]
        commit_indices(snapshot, built, removed=gone)
    return list(absent)


def missing(snapshot: Snapshot) -> list[str]:
    """The names of the scalar indices that `create_missing` would build."""
    return list(_missing(snapshot)) if snapshot.fragment_ids else []


def _missing(snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """Index name → the column that it should be over, and its kind."""
    names = described(snapshot.dataset)
    return {
        f"{column}_idx": (column, kind)
        for column, kind in _SCALAR_INDICES.items()
        if f"{column}_idx" not in names
    }


def drop_left_over(snapshot: Snapshot) -> bool:
    """Remove indices over a column that is gone: with one, the engine fails at every filter."""
    gone = left_over(snapshot.dataset)
    if gone:
        with translated("remove an index"):
            commit_indices(snapshot, [], removed=gone)
    return bool(gone)


def commit_indices(
    snapshot: Snapshot,
    built: Sequence[Index],
    *,
    removed: Sequence[Index] = (),
    detached: bool = False,
) -> lance.LanceDataset:
    """Make indices part of the table, and others no longer, as one version.

    Args:
        snapshot: what they were built on; a compaction since is a conflict.
        built: the new ones.
        removed: those that they replace.
        detached: as a version of its own beside the table's, for a look.

    Raises:
        CommitConflictError: the rows, or the indices, were changed since.
    """
    transaction = lance.Transaction(
        read_version=snapshot.version,
        operation=lance.LanceOperation.CreateIndex(
            new_indices=list(built), removed_indices=list(removed)
        ),
        transaction_properties={},
    )
    return lance.LanceDataset.commit(
        snapshot.dataset,
        transaction,
        storage_options=snapshot.dataset.initial_storage_options,
        detached=detached,
    )


def unindexed_rows(snapshot: Snapshot) -> dict[str, int]:
    """Index name → rows that it does not cover yet. They are found all the same, by a scan."""
    names = sorted(described(snapshot.dataset))
    with snapshot.naming("read index statistics"):
        return {
            name: int(snapshot.dataset.stats.index_stats(name)["num_unindexed_rows"])
            for name in names
        }
