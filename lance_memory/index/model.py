"""What a trainer is asked for, and what it gives: plain numpy, whoever trained it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import one_of, whole
from lance_memory.wording import counted, worded

__all__ = ["CODES", "IvfPqModel", "IvfPqSpec", "Metric"]


CODES = 256
"""How many codes a sub-vector can have: a byte holds one."""


class Metric(StrEnum):
    """How near two vectors are. The store searches by cosine; trainers know all three."""

    COSINE = "cosine"
    L2 = "l2"
    DOT = "dot"

    @property
    def residual(self) -> bool:
        """Whether the product quantiser codes `row - centroid`; for dot it codes the row."""
        return self is not Metric.DOT


@dataclass(frozen=True, slots=True, kw_only=True)
class IvfPqSpec:
    """What to train: an inverted file of `partitions` cells, and a product quantiser.

    Args:
        partitions: cells, K.
        sub_vectors: parts of a vector that are coded apart, M; each becomes one code.
        metric: see `Metric`.
        iterations: of each k-means, at most.
        seed: of the starting points. Lance's own k-means has none, and takes none.
    """

    partitions: int
    sub_vectors: int
    metric: Metric = Metric.COSINE
    iterations: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", Metric(one_of("metric", self.metric, Metric)))
        for name in ("partitions", "sub_vectors", "iterations"):
            whole(name, getattr(self, name), least=1)
        whole("seed", self.seed)

    @property
    def rows_needed(self) -> int:
        """The fewest rows that k-means can start from."""
        return max(self.partitions, CODES)

    def check(self, sample: NDArray[np.float32]) -> None:
        """Refuse a sample that cannot be trained on.

        Args:
            sample: float32 [n, d].

        Raises:
            InvalidInputError: d is no multiple of `sub_vectors`, or n is below `rows_needed`.
        """
        if sample.ndim != 2 or sample.dtype != np.float32:
            raise InvalidInputError(
                f"the sample is {sample.dtype} {sample.shape}; it takes float32 [n, d]"
            )
        count, dimension = sample.shape
        if dimension % self.sub_vectors:
            raise InvalidInputError(
                f"sub_vectors={self.sub_vectors} does not divide the dimension {dimension}; "
                "that would need a rotation, which Lance has no form for: give a divisor"
            )
        if count < self.rows_needed:
            raise InvalidInputError(
                f"{worded('{n} [vector is|vectors are]', count)} too few to train "
                f"{counted(self.partitions, 'partition')} and {CODES} codes; IVF_PQ needs "
                f"{self.rows_needed}: take another kind"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IvfPqModel:
    """A trained IVF_PQ: what Lance takes as `ivf_centroids` and `pq_codebook`.

    Args:
        spec: what was asked for.
        centroids: float32 [K, d].
        codebook: float32 [M, 256, d / M].
    """

    spec: IvfPqSpec
    centroids: NDArray[np.float32]
    codebook: NDArray[np.float32]

    @property
    def dimension(self) -> int:
        """Numbers of a vector, d."""
        return int(self.centroids.shape[1])

    def validate(self) -> IvfPqModel:
        """The model itself, checked.

        Raises:
            InvalidInputError: a shape, a dtype or a value that Lance would not take, or would
                take and answer wrongly from.
        """
        spec = self.spec
        width = self.dimension // spec.sub_vectors if self.centroids.ndim == 2 else 0
        expected = {
            "centroids": (self.centroids, (spec.partitions, width * spec.sub_vectors)),
            "codebook": (self.codebook, (spec.sub_vectors, CODES, width)),
        }
        for name, (array, shape) in expected.items():
            if array.shape != shape or array.dtype != np.float32 or not width:
                raise InvalidInputError(
                    f"{name} is {array.dtype} {array.shape}; this spec needs float32 {shape}"
                )
            if not np.isfinite(array).all():
                raise InvalidInputError(f"{name} has values that are not finite; train it again")
        return self
