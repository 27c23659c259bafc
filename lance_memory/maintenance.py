"""Maintenance: what keeps a store healthy for years. No verb here changes what a memory says."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from lance_memory.errors import InvalidInputError
from lance_memory.index.build import (
    IndexKind,
    IndexProgress,
    IndexReport,
    build_index,
    known_kind,
)
from lance_memory.index.ensure import FROM_ROWS, ensure_index
from lance_memory.storage import UpkeepResult, upkeep
from lance_memory.writing import Writing

__all__ = ["Maintenance"]


class Maintenance(Writing):
    """The verbs of whoever operates a store. They concern the whole store, not one scope."""

    def optimize(
        self,
        *,
        clean_older_than: timedelta | None = None,
        index: IndexKind | str | None = IndexKind.AUTO,
        vector_index_from: int = FROM_ROWS,
    ) -> UpkeepResult:
        """Compact, build and fold the indices, and remove old versions if asked.

        No memory changes, and tagged versions stay. What a vector search finds is exact below
        `vector_index_from` vectors; with the index (see `build_index`) it is approximate, and
        BM25 weighs words by the rows that are folded. A vector index that fails its check is not
        installed: the rest is done all the same, and `UpkeepResult.index_refused` says why.

        Args:
            clean_older_than: remove the versions older than this; None removes none.
            index: the kind of vector index to build where there is none, as for `build_index`.
                "auto" trains on a GPU where one works, in this process; name a kind such as
                "ivf_rq" for one that the engine makes on the CPU, or None to build none.
            vector_index_from: how many vectors it takes to build the vector index.

        Raises:
            InvalidInputError: a negative age, or an unknown kind of index.
            ConflictError: writers were faster several times; nothing is lost, run it again.
            StorageError: the disk is full, or a file is damaged.

        Danger: versions older than `clean_older_than` can no longer be read or rolled back to.
        """
        self._whole_store("upkeep")
        if clean_older_than is not None and clean_older_than < timedelta(0):
            raise InvalidInputError(f"clean_older_than={clean_older_than}; it cannot be negative")
        kind = None if index is None else known_kind(index, argument="index")
        return upkeep.optimize(
            self._table,
            clean_older_than=clean_older_than,
            ensure_index=partial(ensure_index, kind=kind, from_rows=vector_index_from),
        )

    def build_index(
        self,
        *,
        kind: IndexKind | str = IndexKind.AUTO,
        trainer: str | None = None,
        partitions: int | None = None,
        sub_vectors: int | None = None,
        seed: int = 0,
        progress: IndexProgress | None = None,
    ) -> IndexReport:
        """Build the vector index anew, over all vectors; `optimize` does so by itself when it pays.

        No memory changes. The index takes the place of the old one only after every vector was
        found in it once, and a sample of queries found their neighbours; until then, and when
        anything fails, searches go on as before. Vectors written meanwhile are found by a scan.

        Args:
            kind: "ivf_pq", "ivf_rq", "ivf_flat", "ivf_sq" or "ivf_hnsw_sq"; "auto" takes IVF_PQ
                where a GPU trains it or a trainer is named, and IVF_RQ on a CPU.
            trainer: of IVF_PQ: "lance", "torch", "torch:cpu", "torch:cuda" or "cuvs"; by default
                the first GPU trainer that works here, else "lance".
            partitions: cells that the vectors are sorted into; by default one for 4,096 vectors.
            sub_vectors: of IVF_PQ: bytes that a vector is coded in, which divide its dimension;
                by default one for 8 dimensions.
            seed: of the sample and of the training.
            progress: called with (step, done, in all), 0 where that is not known.

        Raises:
            InvalidInputError: an unknown kind or trainer, one that does not work here, sizes that
                do not fit, or too few vectors.
            MissingExtraError: the trainer is not installed.
            ConflictError: compactions, or other builds, came between several times.
            StorageError: the index failed its check, or the disk is full; nothing was changed.
        """
        self._whole_store("building the index")
        return build_index(
            self._table,
            kind=kind,
            trainer=trainer,
            partitions=partitions,
            sub_vectors=sub_vectors,
            seed=seed,
            progress=progress,
        )
