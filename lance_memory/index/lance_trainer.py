"""IVF_PQ trained by Lance's own k-means, on the CPU."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_memory.index.encode import Codes, encode
from lance_memory.index.model import IvfPqModel, IvfPqSpec
from lance_memory.storage.vector.training import train_ivf_pq

__all__ = ["LanceTrainer"]


class LanceTrainer:
    """Needs nothing but the engine. It takes no seed: two trainings differ a little."""

    name = "lance"

    def train(self, sample: NDArray[np.float32], spec: IvfPqSpec) -> IvfPqModel:
        """See `Trainer.train`."""
        spec.check(sample)
        centroids, codebook = train_ivf_pq(
            sample,
            metric=spec.metric.value,
            partitions=spec.partitions,
            sub_vectors=spec.sub_vectors,
            iterations=spec.iterations,
        )
        return IvfPqModel(spec=spec, centroids=centroids, codebook=codebook).validate()

    def encode(self, model: IvfPqModel, rows: NDArray[np.float32]) -> Codes:
        """See `encode.encode`, which gives what Lance's own encoder gives."""
        return encode(model, rows)
