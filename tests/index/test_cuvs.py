"""CuvsTrainer against a stand-in for cuVS with the layouts and refusals that cuVS documents.

`pick("cuvs")` runs the same assertions on the real one where a device answers (test_encode,
test_trainers).
"""

from __future__ import annotations

import numpy as np
import pytest
from index_kit import clustered, oracle

from lance_memory import InvalidInputError
from lance_memory.index import IvfPqSpec
from lance_memory.index.cuvs_trainer import CuvsTrainer


class Device:
    """An array on the device: numpy cannot read it without a copy."""

    def __init__(self, array):
        self.array = array

    def copy_to_host(self):
        return self.array.copy()


class Cupy:
    """`cupy.asarray` alone; what it gives is copied back with `.get()`."""

    class ndarray:
        def __init__(self, array):
            self.array = array

        def get(self):
            return self.array.copy()

    def asarray(self, array):
        assert isinstance(array, np.ndarray)
        return self.ndarray(np.ascontiguousarray(array))


class Index:
    def __init__(self, parameters, dimension, books, centers, rotation):
        self.parameters, self.dim = parameters, dimension
        self._centers, self._books, self._rotation = centers, books, rotation

    @property
    def centers_padded(self):
        wide = np.zeros((len(self._centers), -(-(self.dim + 1) // 8) * 8), np.float32)
        wide[:, : self.dim] = self._centers
        wide[:, self.dim] = (self._centers**2).sum(1)
        return Device(wide)

    @property
    def centers(self):
        raise AssertionError("its strides are wrong for cupy")

    @property
    def pq_centers(self):
        return Device(self._books)  # [pq_dim, pq_len, 2**pq_bits]

    @property
    def rotation_matrix(self):
        return Device(self._rotation)


class IvfPq:
    """`cuvs.neighbors.ivf_pq`: Lloyd is left out, random rows will do."""

    def __init__(self, *, rotates=False, fails=None):
        self.rotates, self.fails, self.asked = rotates, fails, []

    def IndexParams(self, **given):
        known = {
            "n_lists", "metric", "metric_arg", "kmeans_n_iters", "kmeans_trainset_fraction",
            "pq_bits", "pq_dim", "codebook_kind", "force_random_rotation", "add_data_on_build",
            "conservative_memory_allocation", "max_train_points_per_pq_code", "codes_layout",
        }  # fmt: skip
        assert given.keys() <= known
        assert 4 <= given["pq_bits"] <= 8
        self.asked.append(given)
        return given

    def build(self, parameters, dataset):
        if self.fails:
            raise self.fails
        rows = dataset.array
        assert rows.dtype == np.float32
        assert len(rows) >= parameters["n_lists"]
        assert parameters["codebook_kind"] == "subspace"
        assert parameters["codes_layout"] == "flat"
        assert parameters["metric"] == "sqeuclidean"
        assert not parameters["add_data_on_build"]
        rng, width = np.random.default_rng(137), rows.shape[1] // parameters["pq_dim"]
        centers = rows[rng.choice(len(rows), parameters["n_lists"], replace=False)]
        picked = rows[rng.choice(len(rows), 2 ** parameters["pq_bits"])]
        parts = (picked - centers[0]).reshape(len(picked), parameters["pq_dim"], width)
        rotation = np.eye(rows.shape[1], dtype=np.float32)
        if self.rotates and rows.shape[1] != 8:  # not the tiny build
            rotation = rotation[::-1]
        books = np.ascontiguousarray(parts.transpose(1, 2, 0))
        return Index(parameters, rows.shape[1], books, centers, rotation)

    def build_precomputed(self, parameters, dimension, books, centers, turned, rotation):
        padded = centers.array
        assert padded.shape[1] == -(-(dimension + 1) // 8) * 8
        assert np.allclose(padded[:, dimension], (padded[:, :dimension] ** 2).sum(1))
        assert np.array_equal(turned.array, padded[:, :dimension])
        width = dimension // parameters["pq_dim"]
        assert books.array.shape == (parameters["pq_dim"], width, 2 ** parameters["pq_bits"])
        return Index(parameters, dimension, books.array, turned.array, rotation.array)

    def transform(self, index, rows):
        model = type("Model", (), {})()
        model.spec = type("Spec", (), {"metric": "l2", "sub_vectors": index.parameters["pq_dim"]})
        model.centroids, model.codebook = index._centers, index._books.transpose(0, 2, 1)
        partitions, codes = oracle(model, rows.array)
        return Device(partitions.astype(np.uint32)), Device(codes.astype(np.uint8))


def trainer(**options):
    return CuvsTrainer(ivf_pq=IvfPq(**options), arrays=Cupy())


@pytest.mark.parametrize("metric", ["cosine", "l2"])
def test_what_cuvs_trains_comes_back_in_lances_layout(metric):
    rows = clustered(1_000, lengths=True)
    model = trainer().train(rows, IvfPqSpec(partitions=8, sub_vectors=4, metric=metric))
    assert (model.centroids.shape, model.codebook.shape) == ((8, 32), (4, 256, 8))
    lengths = np.linalg.norm(model.centroids, axis=1)
    assert np.allclose(lengths, 1, atol=1e-5) == (metric == "cosine")


@pytest.mark.parametrize("metric", ["cosine", "l2"])
def test_what_cuvs_encodes_is_what_the_definition_gives(metric):
    rows = clustered(1_000, lengths=True)
    cuvs = trainer()
    model = cuvs.train(rows, IvfPqSpec(partitions=8, sub_vectors=4, metric=metric))
    partitions, codes = cuvs.encode(model, rows)
    expected, expected_codes = oracle(model, rows)
    assert (partitions.dtype, codes.dtype) == (np.uint32, np.uint8)
    assert (partitions == expected).mean() >= 0.999
    assert (codes == expected_codes).mean() >= 0.999


def test_dot_is_refused_because_lance_codes_no_residuals_for_it():
    spec = IvfPqSpec(partitions=8, sub_vectors=4, metric="dot")
    with pytest.raises(InvalidInputError, match="cuVS codes residuals"):
        trainer().train(clustered(500), spec)


def test_a_rotation_is_refused_because_lance_has_no_form_for_it():
    with pytest.raises(InvalidInputError, match="cuVS rotated the vectors"):
        trainer(rotates=True).train(clustered(500), IvfPqSpec(partitions=8, sub_vectors=4))
    with pytest.raises(InvalidInputError, match="would need a rotation"):
        trainer().train(clustered(500), IvfPqSpec(partitions=8, sub_vectors=5))


def test_the_sample_is_trained_on_whole_and_nothing_is_added():
    module = IvfPq()
    spec = IvfPqSpec(partitions=8, sub_vectors=4, iterations=7)
    CuvsTrainer(ivf_pq=module, arrays=Cupy()).train(clustered(500), spec)
    assert module.asked[-1] == {
        "n_lists": 8, "pq_dim": 4, "pq_bits": 8, "metric": "sqeuclidean",
        "codebook_kind": "subspace", "force_random_rotation": False, "kmeans_n_iters": 7,
        "kmeans_trainset_fraction": 1.0, "max_train_points_per_pq_code": 256,
        "add_data_on_build": False, "codes_layout": "flat",
    }  # fmt: skip


def test_a_cuvs_that_can_be_imported_and_cannot_build_is_refused():
    """Without a driver the import works and the build says cudaErrorInsufficientDriver."""
    failure = RuntimeError("cudaErrorInsufficientDriver")
    with pytest.raises(InvalidInputError, match=r"tiny build fails \(cudaErrorInsufficientDriver"):
        trainer(fails=failure)


def test_a_bug_of_ours_in_the_tiny_build_is_not_taken_for_a_missing_device():
    with pytest.raises(TypeError, match="ours"):
        trainer(fails=TypeError("ours"))
