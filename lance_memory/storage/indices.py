"""The indices of the table: which there are, and how they are made and folded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lance_memory.record.filters import present
from lance_memory.record.rows import EMBEDDING
from lance_memory.storage.engine import CommitConflictError, lance, translated
from lance_memory.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from lance import Index

__all__ = ["create_missing", "create_text_index", "has_text_index", "unindexed_rows"]

TEXT_INDEX = "content_idx"
VECTOR_INDEX = "embedding_idx"

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
    "tags": "LABEL_LIST",
}

VECTOR_INDEX_FROM_ROWS = 5_000
"""Below as many vectors an exact scan is as fast as an index, and exact."""


def has_text_index(snapshot: Snapshot) -> bool:
    """Whether words can be searched."""
    return TEXT_INDEX in _names(snapshot)


def create_text_index(snapshot: Snapshot) -> None:
    """Build the inverted index over `content`; another process may do so at the same time."""
    with translated("build the text index"):
        try:
            snapshot.dataset.create_scalar_index(
                "content", "INVERTED", name=TEXT_INDEX, replace=False, **_TEXT_PARAMETERS
            )
        except CommitConflictError:
            return  # the other one has built it


def create_missing(snapshot: Snapshot, *, vector_index_from: int) -> list[str]:
    """Build the scalar indices that are missing, and the vector index once it pays.

    Returns:
        The names of the indices built, committed together as one version.
    """
    names = _names(snapshot)
    dataset = snapshot.dataset
    fragments = sorted(snapshot.fragment_ids)
    if not fragments:
        return []
    built: list[Index] = []
    with translated("build indices"):
        for column, kind in _SCALAR_INDICES.items():
            if f"{column}_idx" not in names:
                built.append(
                    dataset.create_index_uncommitted(
                        column, kind, name=f"{column}_idx", fragment_ids=fragments
                    )
                )
        vectors = dataset.count_rows(present(EMBEDDING))
        if VECTOR_INDEX not in names and vectors >= vector_index_from:
            built.append(_vector_index(snapshot, fragments, vectors))
        if built:
            _commit_indices(snapshot, built)
    return [index.name for index in built]


def _vector_index(snapshot: Snapshot, fragments: list[int], vectors: int) -> Index:
    """IVF_PQ with about 4,096 rows a partition and 8 dimensions a sub-vector."""
    dimension = snapshot.schema.field(EMBEDDING).type.list_size
    sub_vectors = next(
        m for m in (dimension // 8, dimension // 4, dimension) if m and dimension % m == 0
    )
    return snapshot.dataset.create_index_uncommitted(
        EMBEDDING,
        "IVF_PQ",
        name=VECTOR_INDEX,
        metric="cosine",
        num_partitions=max(1, vectors // 4_096),
        num_sub_vectors=sub_vectors,
        fragment_ids=fragments,
    )


def _commit_indices(snapshot: Snapshot, built: list[Index]) -> None:
    transaction = lance.Transaction(
        read_version=snapshot.version,
        operation=lance.LanceOperation.CreateIndex(new_indices=built, removed_indices=[]),
        transaction_properties={},
    )
    lance.LanceDataset.commit(
        snapshot.dataset,
        transaction,
        storage_options=snapshot.dataset.initial_storage_options,
    )


def unindexed_rows(snapshot: Snapshot) -> dict[str, int]:
    """Index name → rows that it does not cover yet. They are found all the same, by a scan."""
    with translated("read index statistics"):
        return {
            name: int(snapshot.dataset.stats.index_stats(name)["num_unindexed_rows"])
            for name in sorted(_names(snapshot))
        }


def _names(snapshot: Snapshot) -> set[str]:
    with translated("list indices"):
        return {index.name for index in snapshot.dataset.describe_indices()}
