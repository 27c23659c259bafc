"""The engine's own k-means, over a sample that is not in the table."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.storage.engine import lance, translated

__all__ = ["train_ivf_pq"]

_SAMPLE_RATE = 256
_BITS = 8


def train_ivf_pq(
    sample: NDArray[np.float32],
    *,
    metric: str,
    partitions: int,
    sub_vectors: int,
    iterations: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Centroids float32 [K, d] and codebook float32 [M, 256, d / M], trained by the engine.

    `IndicesBuilder` refuses a sample of less than two rows for each code, the functions below it
    only one of less than one: those are called, with the rate that the builder would use.

    Args:
        sample: float32 [n, d]; n is at least `partitions` and 256.
        metric: "cosine", "l2" or "dot".
        partitions: cells of the inverted file, K.
        sub_vectors: parts of a vector, M; they divide d.
        iterations: of each k-means, at most.

    Raises:
        StorageError: no room for the sample in the temporary directory.
    """
    from lance.lance import indices as engine

    dimension = sample.shape[1]
    with tempfile.TemporaryDirectory() as directory, translated("train IVF_PQ"):
        dataset: Any = lance.write_dataset(
            pa.table({"vector": _vectors(sample)}), f"{directory}/sample.lance"
        )
        centroids = engine.train_ivf_model(
            dataset._ds, "vector", dimension, partitions, metric, _SAMPLE_RATE, iterations, None
        )
        # The engine trains on residuals whatever the metric, and for dot codes the row itself.
        nothing = pa.array(np.zeros(dimension, np.float32))
        around = pa.FixedSizeListArray.from_arrays(nothing, dimension)
        codebook = engine.train_pq_model(
            dataset._ds,
            "vector",
            dimension,
            sub_vectors,
            metric,
            _SAMPLE_RATE,
            iterations,
            around if metric == "dot" else centroids,
            None,
            _BITS,
        )
    return (
        _numbers(centroids).reshape(partitions, dimension),
        _numbers(codebook).reshape(sub_vectors, 1 << _BITS, dimension // sub_vectors),
    )


def _vectors(rows: NDArray[np.float32]) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])


def _numbers(array: pa.FixedSizeListArray) -> NDArray[np.float32]:
    numbers: NDArray[np.float32] = array.flatten().to_numpy(zero_copy_only=False)
    return numbers.astype(np.float32, copy=False)
