"""IVF_PQ trained with cuVS, on a CUDA device.

What has to hold for Lance to take what cuVS trains (parameters and layouts as documented for
cuvs 26.6 to 26.10): codebooks per sub-space, no rotation, codes in the flat layout. cuVS always
codes residuals, Lance does not for dot, so dot is refused.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_memory.errors import InvalidInputError
from lance_memory.extras import require
from lance_memory.index.device import GPU_EXTRAS, driver_devices
from lance_memory.index.encode import Codes, check_rows, prepared
from lance_memory.index.model import IvfPqModel, IvfPqSpec, Metric

__all__ = ["CuvsTrainer"]

_BLOCK = 262_144
"""Rows encoded at a time: 400 MB at 384 dimensions."""


class CuvsTrainer:
    """Trains through `cuvs.neighbors.ivf_pq`; cuVS fixes the seed of its k-means itself."""

    name = "cuvs"

    def __init__(self, *, ivf_pq: Any = None, arrays: Any = None) -> None:
        """Find cuVS and a device, and prove both with a tiny build.

        Args:
            ivf_pq: what stands for `cuvs.neighbors.ivf_pq`.
            arrays: what stands for `cupy`: puts arrays on the device.

        Raises:
            MissingExtraError: one of them is not installed, or cannot be loaded.
            InvalidInputError: no CUDA device answers, or the tiny build fails.
        """
        if ivf_pq is None and not driver_devices() and _installed():
            raise InvalidInputError("no CUDA device answers here, and cuVS works on nothing else")
        self._ivf_pq = (
            ivf_pq if ivf_pq is not None else require("cuvs.neighbors.ivf_pq", *GPU_EXTRAS)
        )
        self._arrays = arrays if arrays is not None else require("cupy", *GPU_EXTRAS)
        self._prove()

    def train(self, sample: NDArray[np.float32], spec: IvfPqSpec) -> IvfPqModel:
        """See `Trainer.train`.

        Raises:
            InvalidInputError: metric dot, or a dimension that would need a rotation.
        """
        spec.check(sample)
        _refuse_dot(spec)
        index = self._built(prepared(sample, spec.metric), spec)
        _refuse_rotation(index)
        # `centers` would do, but its strides are wrong for cupy; the padded ones are right
        centers = index.centers_padded.copy_to_host()[:, : sample.shape[1]]
        books = index.pq_centers.copy_to_host().transpose(0, 2, 1)  # [M, w, codes] there
        return IvfPqModel(
            spec=spec,
            centroids=np.ascontiguousarray(centers, dtype=np.float32),
            codebook=np.ascontiguousarray(books, dtype=np.float32),
        ).validate()

    def encode(self, model: IvfPqModel, rows: NDArray[np.float32]) -> Codes:
        """See `Trainer.encode`. Any model will do, also one that another trainer made.

        Raises:
            InvalidInputError: metric dot, or rows of another shape or dtype.
        """
        check_rows(model, rows)
        _refuse_dot(model.spec)
        index, held = self._loaded(model)
        partitions = np.empty(len(rows), np.uint32)
        codes = np.empty((len(rows), model.spec.sub_vectors), np.uint8)
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            ready = self._arrays.asarray(prepared(rows[block], model.spec.metric))
            labels, coded = self._ivf_pq.transform(index, ready)
            partitions[block], codes[block] = _host(labels), _host(coded)
        del held  # cuVS only points into these arrays: they had to live until here
        return partitions, codes

    def _built(self, rows: NDArray[np.float32], spec: IvfPqSpec) -> Any:
        return self._ivf_pq.build(self._parameters(spec), self._arrays.asarray(rows))

    def _parameters(self, spec: IvfPqSpec) -> Any:
        return self._ivf_pq.IndexParams(
            n_lists=spec.partitions,
            pq_dim=spec.sub_vectors,
            pq_bits=8,
            metric="sqeuclidean",  # cosine too: the rows have length 1 by then
            codebook_kind="subspace",
            force_random_rotation=False,
            kmeans_n_iters=spec.iterations,
            kmeans_trainset_fraction=1.0,  # the sample was drawn before
            max_train_points_per_pq_code=256,
            add_data_on_build=False,
            codes_layout="flat",
        )

    def _loaded(self, model: IvfPqModel) -> tuple[Any, tuple[Any, ...]]:
        """The model as an index of cuVS, and the arrays that it points into."""
        put = self._arrays.asarray
        centers = put(_padded(model.centroids))
        turned = put(model.centroids)  # by no rotation at all
        books = put(np.ascontiguousarray(model.codebook.transpose(0, 2, 1)))
        rotation = put(np.eye(model.dimension, dtype=np.float32))
        index = self._ivf_pq.build_precomputed(
            self._parameters(model.spec), model.dimension, books, centers, turned, rotation
        )
        return index, (centers, turned, books, rotation)

    def _prove(self) -> None:
        spec = IvfPqSpec(partitions=2, sub_vectors=2, metric=Metric.L2, iterations=2)
        rows = np.random.default_rng(0).standard_normal((512, 8), dtype=np.float32)
        try:
            self.encode(self.train(rows, spec), rows[:4])
        except (RuntimeError, MemoryError) as error:  # CuvsException is a RuntimeError or bare
            raise _unusable(error) from error
        except Exception as error:
            if type(error).__module__.split(".")[0] not in ("cuvs", "cupy", "cupy_backends"):
                raise
            raise _unusable(error) from error


def _unusable(error: Exception) -> InvalidInputError:
    return InvalidInputError(
        f"cuVS is installed and a tiny build fails ({error}); install the extra that is as the "
        f"driver's CUDA: {' or '.join(GPU_EXTRAS)}"
    )


def _installed() -> bool:
    return importlib.util.find_spec("cuvs") is not None


def _refuse_dot(spec: IvfPqSpec) -> None:
    if spec.metric is Metric.DOT:
        raise InvalidInputError(
            'metric="dot": cuVS codes residuals, which Lance does not for dot; '
            'take the trainer "torch:cuda" or "lance"'
        )


def _refuse_rotation(index: Any) -> None:
    """An index that turned the vectors has codes of vectors that Lance never sees."""
    rotation = index.rotation_matrix.copy_to_host()
    if not np.array_equal(rotation, np.eye(*rotation.shape, dtype=rotation.dtype)):
        raise InvalidInputError(
            "cuVS rotated the vectors, which Lance has no form for; give sub_vectors that "
            "divide the dimension"
        )


def _padded(centroids: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32 [K, d rounded up from d + 1 to a multiple of 8]; column d holds |c|²."""
    count, dimension = centroids.shape
    wide = np.zeros((count, -(-(dimension + 1) // 8) * 8), np.float32)
    wide[:, :dimension] = centroids
    wide[:, dimension] = np.einsum("kd,kd->k", centroids, centroids)
    return wide


def _host(array: Any) -> NDArray[Any]:
    """A device array of cuVS, or of cupy, in this process's memory."""
    copied: NDArray[Any] = array.copy_to_host() if hasattr(array, "copy_to_host") else array.get()
    return copied
