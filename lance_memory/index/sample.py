"""Stored vectors at random: what a trainer learns from, and the queries that judge an index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.vector.rows import count_vectors, vectors

__all__ = ["drawn"]


def drawn(
    snapshot: Snapshot, size: int, *, seed: int, predicate: str | None = None
) -> NDArray[np.float32]:
    """So many of the vectors that pass, each once and in storage order; all where there are few.

    Memory is that of the answer, float32 [size, d], and of one block of rows.
    """
    count = count_vectors(snapshot, predicate)
    size = min(size, count)
    places = np.sort(np.random.default_rng(seed).choice(count, size, replace=False))
    sample = np.empty((size, snapshot.dimension), np.float32)
    start = 0
    for _, rows in vectors(snapshot, predicate):
        first, last = np.searchsorted(places, (start, start + len(rows)))
        sample[first:last] = rows[places[first:last] - start]
        start += len(rows)
    return sample
