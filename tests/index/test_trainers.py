"""Trained models are as good as the engine's own; who trains is decided in the open."""

from __future__ import annotations

import lance
import numpy as np
import pyarrow as pa
import pytest
from index_kit import clustered

from lance_memory import InvalidInputError, MissingExtraError
from lance_memory.index import TRAINERS, IvfPqSpec, pick
from lance_memory.index.encode import encode
from lance_memory.index.sizes import partitions_for, sample_rows, spec_for, sub_vectors_for

GPU = [pytest.param(name, marks=pytest.mark.gpu) for name in ("torch:cuda", "cuvs")]


def dataset_of(rows, path):
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
    return lance.write_dataset(pa.table({"vector": column}), path)


def recall(dataset, rows, metric, queries):
    """Recall@10 without refining, so that it is the codes that are judged."""
    found = 0
    for query in queries:
        scores = {
            "l2": lambda q: -((rows - q) ** 2).sum(1),
            "dot": lambda q: rows @ q,
            "cosine": lambda q: rows @ q / np.linalg.norm(rows, axis=1),
        }[metric](query)
        true = set(np.argsort(-scores, kind="stable")[:10].tolist())
        nearest = {"column": "vector", "q": query, "k": 10, "nprobes": 99, "metric": metric}
        answer = dataset.to_table(columns=["_distance"], with_row_id=True, nearest=nearest)
        found += len(true & set(answer["_rowid"].to_pylist()))
    return found / len(queries) / 10


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """Metric → rows, queries, and the recall of an index that the engine trains itself.

    The engine takes no seed, and one training recalls .62, the next .65: so the mean of three.
    """
    found = {}
    for metric in ("cosine", "l2", "dot"):
        rows = clustered(6_000, seed=11, lengths=metric != "dot")
        queries = rows[::30] + 0.05 * clustered(200, seed=12)
        recalls = []
        for _ in range(3):
            dataset = dataset_of(rows, tmp_path_factory.mktemp("native") / "t.lance")
            dataset.create_index(
                "vector", "IVF_PQ", metric=metric, num_partitions=8, num_sub_vectors=8
            )
            recalls.append(recall(dataset, rows, metric, queries))
        found[metric] = rows, queries, float(np.mean(recalls))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["cosine", "l2", "dot"])
@pytest.mark.parametrize("name", ["lance", "torch:cpu", *GPU])
def test_a_trained_model_recalls_as_the_engines_own(name, metric, native, tmp_path):
    if name == "cuvs" and metric == "dot":
        pytest.skip("cuVS refuses dot")
    rows, queries, expected = native[metric]
    steps = 50 if name == "lance" else 15  # the engine's own default is 50
    spec = IvfPqSpec(partitions=8, sub_vectors=8, metric=metric, iterations=steps)
    model = pick(name).trainer.train(rows, spec)
    dataset = dataset_of(rows, tmp_path / "t.lance")
    dataset.create_index(
        "vector",
        "IVF_PQ",
        metric=metric,
        num_partitions=8,
        num_sub_vectors=8,
        ivf_centroids=model.centroids,
        pq_codebook=model.codebook,
    )
    assert recall(dataset, rows, metric, queries) >= expected - 0.04  # three standard deviations


def test_the_same_seed_trains_the_same_model():
    rows, spec = clustered(2_000), IvfPqSpec(partitions=4, sub_vectors=4, seed=5)
    one, two = (pick("torch:cpu").trainer.train(rows, spec) for _ in range(2))
    assert np.array_equal(one.centroids, two.centroids)
    assert np.array_equal(one.codebook, two.codebook)


def test_a_cell_that_runs_empty_starts_again():
    """Three points, many times each, and eight cells: no centroid is a made-up zero."""
    points = np.eye(3, 8, dtype=np.float32)
    rows = np.repeat(points, 200, axis=0)
    spec = IvfPqSpec(partitions=8, sub_vectors=2, metric="l2")
    model = pick("torch:cpu").trainer.train(rows, spec)
    distances = ((model.centroids[:, None] - points) ** 2).sum(2).min(1)
    assert np.allclose(distances, 0, atol=1e-6)
    partitions, _ = encode(model, rows)
    assert np.allclose(model.centroids[partitions], rows, atol=1e-6)


@pytest.mark.parametrize("name", ["lance", "torch:cpu"])
@pytest.mark.parametrize(
    ("rows", "spec", "message"),
    [
        (clustered(300), {"sub_vectors": 5}, "does not divide the dimension 32"),
        (clustered(255), {}, "255 vectors are too few"),
        (clustered(300), {"partitions": 301}, "IVF_PQ needs 301"),
        (clustered(300).astype(float), {}, "it takes float32"),
    ],
)
def test_a_sample_that_cannot_be_trained_on_is_refused(name, rows, spec, message):
    with pytest.raises(InvalidInputError, match=message):
        pick(name).trainer.train(rows, IvfPqSpec(**{"partitions": 2, "sub_vectors": 4, **spec}))


@pytest.mark.parametrize("name", ["lance", "torch:cpu"])
def test_the_smallest_sample_trains(name):
    model = pick(name).trainer.train(clustered(256), IvfPqSpec(partitions=2, sub_vectors=4))
    assert (model.centroids.shape, model.codebook.shape) == ((2, 32), (4, 256, 8))


def test_a_named_trainer_is_taken_or_refused_and_never_changed():
    for name in TRAINERS:
        try:
            choice = pick(name)
        except (InvalidInputError, MissingExtraError) as error:
            assert name in ("torch:cuda", "cuvs")
            assert "install" in str(error) or "answers" in str(error)  # noqa: PT017
        else:
            assert choice.trainer.name.startswith(name)
            assert choice.reason == "it was asked for"
    with pytest.raises(InvalidInputError, match="there are: lance, torch"):
        pick("faiss")


def test_without_a_name_the_best_that_works_is_taken_and_the_reason_told():
    choice = pick()
    if choice.trainer.name == "lance":
        assert choice.reason.startswith("no GPU trainer works here: cuvs: ")
        assert "torch:cuda: " in choice.reason
    else:
        assert choice.on_gpu
        assert choice.reason == f"{choice.trainer.name} works here"


@pytest.mark.gpu
def test_on_a_gpu_a_gpu_trainer_is_taken():
    assert pick().trainer.name in ("cuvs", "torch:cuda")


def test_what_is_trained_on_is_bounded_in_bytes_and_never_too_few_rows():
    large = IvfPqSpec(partitions=9_999, sub_vectors=48)
    assert [sample_rows(large, d) for d in (384, 3_072)] == [262_144, 32_768]
    assert sample_rows(IvfPqSpec(partitions=50_000, sub_vectors=48), 3_072) == 50_000


def test_sizes_follow_from_rows_and_dimension():
    assert [partitions_for(n) for n in (1, 5_000, 100_000, 1_000_000)] == [1, 1, 24, 244]
    assert [sub_vectors_for(d) for d in (384, 100, 30, 7, 8)] == [48, 25, 30, 7, 1]
    assert sample_rows(IvfPqSpec(partitions=24, sub_vectors=48), 384) == 65_536
    spec = spec_for(100_000, 384, partitions=7)
    assert (spec.partitions, spec.sub_vectors) == (7, 48)
