"""What is read of selected rows, no more than asked for at a time: vectors and contents."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.record.rows import EMBEDDING
from lance_memory.storage import Snapshot

__all__ = ["Members", "bins", "blocks_of"]

_BIN = 128 * 2**20
"""Bytes of vectors that are held at a time, or the largest group."""

_BATCH = 8_192
_SPARSE = 8
"""A vector read by address costs some 5 times one that a scan comes by: rows that are as rare in
their table are read by address."""

_CELL = 2_048
_TRAINED = 256
"""Rows of a block, where the index has too few partitions to serve, and rows that each centroid of
them is trained with."""

_ENOUGH = 16
"""Partitions from which on an index's serve as blocks; a row is compared with 8."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Members:
    """Selected rows of a snapshot, by their place in a list of addresses uint64 [n]."""

    snapshot: Snapshot
    predicate: str | None
    addresses: NDArray[np.uint64]

    def vectors(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """Unit vectors of these rows, float32 [m, d]; zeros where there is none."""
        out = np.zeros((len(places), self.snapshot.dimension), np.float32)
        order = np.argsort(self.addresses[places])
        wanted = self.addresses[places][order]
        few = len(places) * _SPARSE < self.snapshot.count()
        for where, column in (self._taken if few else self._scanned)(wanted):
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            flat = column.drop_null().flatten().to_numpy()
            out[order[where[valid]]] = flat.reshape(-1, self.snapshot.dimension)
        for start in range(0, len(out), _BATCH):
            _scale(out[start : start + _BATCH])
        return out

    def contents(self, places: NDArray[np.int64]) -> list[str]:
        """The texts of these rows."""
        texts: list[str] = []
        for start in range(0, len(places), _BATCH):
            part = self.addresses[places[start : start + _BATCH]]
            texts += self.snapshot.take(part, ["content"])["content"].to_pylist()
        return texts

    def _taken(
        self, wanted: NDArray[np.uint64]
    ) -> Iterator[tuple[NDArray[np.int64], pa.FixedSizeListArray]]:
        for start in range(0, len(wanted), _BATCH):
            part = wanted[start : start + _BATCH]
            column = self.snapshot.take(part, [EMBEDDING])[EMBEDDING].combine_chunks()
            yield np.arange(start, start + len(part)), column

    def _scanned(
        self, wanted: NDArray[np.uint64]
    ) -> Iterator[tuple[NDArray[np.int64], pa.FixedSizeListArray]]:
        columns = [EMBEDDING, "_rowaddr"]
        for batch in self.snapshot.batches(self.predicate, columns=columns, batch_size=_BATCH):
            here = batch["_rowaddr"].to_numpy()
            where = np.minimum(np.searchsorted(wanted, here), len(wanted) - 1)
            hit = wanted[where] == here
            yield where[hit], batch[EMBEDDING].filter(pa.array(hit))


def bins(
    sizes: Sequence[int], dimension: int, *, stop: Callable[[], bool]
) -> Iterator[tuple[int, int]]:
    """Runs of groups [start, end) whose vectors are held at a time."""
    limit = max(max(sizes, default=0), _BIN // (4 * dimension))
    start = held = 0
    for number, size in enumerate(sizes):
        if held + size > limit:
            if stop():
                return
            yield start, number
            start, held = number, 0
        held += size
    if held and not stop():
        yield start, len(sizes)


def blocks_of(
    vectors: NDArray[np.float32], centroids: NDArray[np.float32] | None
) -> NDArray[np.int64]:
    """The block of each unit row, int64 [n]: its partition in the index, or a cell of its own.

    Args:
        vectors: float32 [n, d].
        centroids: of the partitions, float32 [K, d]; too few of them, or None: k-means makes
            blocks of some 2,048 rows.
    """
    if centroids is None or len(centroids) < _ENOUGH:
        centroids = _trained(vectors, len(vectors) // _CELL + 1)
    middles = centroids.copy()
    _scale(middles)
    nearest = [
        np.argmax(vectors[start : start + _BATCH] @ middles.T, axis=1)
        for start in range(0, len(vectors), _BATCH)
    ]
    return np.concatenate(nearest).astype(np.int64)


def _trained(vectors: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """So many centroids of a sample of the rows; the same ones each time."""
    from scipy.cluster.vq import kmeans2

    size = min(len(vectors), _TRAINED * count)
    chosen = np.random.default_rng(0).choice(len(vectors), size, replace=False)
    sample = vectors[chosen]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty cell, as of copies, does no harm
        centroids: NDArray[np.float32] = kmeans2(sample, sample[:count], iter=8, minit="matrix")[0]
    return centroids.astype(np.float32, copy=False)


def _scale(rows: NDArray[np.float32]) -> None:
    """To length one, in place; what has no direction becomes zeros."""
    squares = np.einsum("ij,ij->i", rows, rows)
    without = (squares == 0) | ~np.isfinite(squares)
    rows[without], squares[without] = 0.0, 1.0
    rows /= np.sqrt(squares)[:, None]
