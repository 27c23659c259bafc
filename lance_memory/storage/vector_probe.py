"""One query through the index itself, for the probes that judge it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_memory.record.rows import EMBEDDING
from lance_memory.storage.depth import depth
from lance_memory.storage.engine import translated
from lance_memory.storage.snapshot import Snapshot

__all__ = ["similarities"]


def similarities(
    snapshot: Snapshot,
    vector: NDArray[np.float32],
    *,
    k: int,
    predicate: str | None,
    share: float,
) -> NDArray[np.float32]:
    """The cosines of the k rows that the index finds nearest, float32 [k or fewer], best first.

    As deep as a search looks, and through the index also where a search would compare every
    vector, because few rows pass. Rows that the index does not cover are scanned.

    Args:
        snapshot: has a vector index.
        vector: float32 [d].
        k: how many.
        predicate: only these rows.
        share: how much of all rows passes it; decides the depth.
    """
    deep = depth(k, share=share)
    with translated("search by vector"):
        found = snapshot.dataset.to_table(
            columns=["_distance"],
            nearest={
                "column": EMBEDDING,
                "q": vector,
                "k": k,
                "metric": "cosine",
                "minimum_nprobes": deep.probes,
                "refine_factor": deep.refine,
            },
            filter=predicate,
            prefilter=True,
        )
    distances: NDArray[np.float32] = found["_distance"].to_numpy()
    return 1 - distances
