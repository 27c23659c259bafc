"""Every vector of a version, a block at a time: what trainers, probes and exact searches read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lance_memory.record.filters import all_of, present
from lance_memory.record.rows import EMBEDDING
from lance_memory.storage.engine import translated

if TYPE_CHECKING:
    from lance_memory.storage.snapshot import Snapshot

__all__ = ["VectorBatch", "count_vectors", "vectors"]

VectorBatch = tuple[NDArray[np.uint64], NDArray[np.float32]]
"""Row addresses uint64 [n], which are the row ids of an index too, and vectors float32 [n, d]."""


def count_vectors(snapshot: Snapshot, predicate: str | None = None) -> int:
    """How many rows pass and have an embedding."""
    return snapshot.count(all_of(predicate, present(EMBEDDING)))


def vectors(
    snapshot: Snapshot, predicate: str | None = None, *, batch_size: int = 8_192
) -> Iterator[VectorBatch]:
    """The rows that pass and have an embedding, in storage order, as they are stored."""
    with translated("read the vectors"):
        batches = snapshot.dataset.to_batches(
            columns=[EMBEDDING],
            filter=all_of(predicate, present(EMBEDDING)),
            batch_size=batch_size,
            with_row_address=True,
        )
        for batch in batches:
            rows = batch[EMBEDDING].flatten().to_numpy(zero_copy_only=False)
            yield batch["_rowaddr"].to_numpy(), rows.reshape(-1, snapshot.dimension)
