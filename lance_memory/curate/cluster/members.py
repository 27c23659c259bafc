"""What is read of selected rows, no more than asked for at a time: vectors and contents."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.record.rows import EMBEDDING
from lance_memory.record.unit import unit
from lance_memory.storage import Snapshot

__all__ = ["Members", "blocks_of"]

_BIN = 128 * 2**20
"""Bytes of vectors that are held at a time, or the largest group."""

_BATCH = 2_048
"""Rows that are read by address, or scaled, at a time. For all rows of a table that takes no longer
than a scan (0.4 to 0.7 s for 100,000 vectors), which reads 200 MB ahead."""

_CELL = 2_048
_TRAINED = 64
"""Rows of a block, where the index has too few partitions to serve, and rows that each centroid of
them is trained with."""

_ENOUGH = 32
"""Partitions from which on an index's serve as blocks; a row is compared with 8."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Members:
    """Selected rows of a snapshot, by their place in a list of addresses uint64 [n]."""

    snapshot: Snapshot
    addresses: NDArray[np.uint64]

    def each(
        self, groups: Sequence[NDArray[np.int64]], *, stop: Callable[[], bool]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Each group and its unit vectors, until `stop`; those of small groups are read at once.

        No more are held than are read at once, if the caller lets go of each.
        """
        for start, end in _bins(list(map(len, groups)), self.snapshot.dimension):
            if stop():
                return
            held = self.vectors(np.concatenate(groups[start:end]))
            first = 0
            for group in groups[start:end]:
                if stop():
                    return
                yield group, held[first : first + len(group)]
                first += len(group)
            del held

    def vectors(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """Unit vectors of these rows, float32 [m, d]; zeros where there is none."""
        out = np.zeros((len(places), self.snapshot.dimension), np.float32)
        order = np.argsort(self.addresses[places])
        for start in range(0, len(order), _BATCH):
            where = order[start : start + _BATCH]
            column = self._read(places[where], EMBEDDING).combine_chunks()
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            flat = column.drop_null().flatten().to_numpy()
            out[where[valid]] = flat.reshape(-1, self.snapshot.dimension)
        for start in range(0, len(out), _BATCH):
            out[start : start + _BATCH] = unit(out[start : start + _BATCH], without=0.0)
        return out

    def contents(self, places: NDArray[np.int64]) -> list[str]:
        """The texts of these rows."""
        parts = [places[start : start + _BATCH] for start in range(0, len(places), _BATCH)]
        return [text for part in parts for text in self._read(part, "content").to_pylist()]

    def _read(self, places: NDArray[np.int64], column: str) -> pa.ChunkedArray:
        return self.snapshot.take(self.addresses[places], [column])[column]


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
    middles = unit(centroids, without=0.0)
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


def _bins(sizes: Sequence[int], dimension: int) -> Iterator[tuple[int, int]]:
    """Runs of groups [start, end) whose vectors are held at a time."""
    limit = max(max(sizes, default=0), _BIN // (4 * dimension))
    start = held = 0
    for number, size in enumerate(sizes):
        if held + size > limit:
            yield start, number
            start, held = number, 0
        held += size
    if held:
        yield start, len(sizes)
