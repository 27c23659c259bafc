"""Every encoder gives what the definition gives, and what Lance's own encoder gives."""

from __future__ import annotations

import lance
import numpy as np
import pyarrow as pa
import pytest
from index_kit import clustered, oracle, stored_codes

from lance_memory import InvalidInputError
from lance_memory.index import IvfPqModel, IvfPqSpec, pick
from lance_memory.index.encode import encode
from lance_memory.storage import Snapshot

TRAINERS = [
    "lance",
    "torch:cpu",
    pytest.param("torch:cuda", marks=pytest.mark.gpu),
    pytest.param("cuvs", marks=pytest.mark.gpu),
]


def some_model(metric, dimension=32, seed=3):
    """Not trained: rows as centroids, and small random codes."""
    rng = np.random.default_rng(seed)
    spec = IvfPqSpec(partitions=8, sub_vectors=8, metric=metric)
    return IvfPqModel(
        spec=spec,
        centroids=clustered(8, dimension, seed),
        codebook=(0.2 * rng.standard_normal((8, 256, dimension // 8))).astype(np.float32),
    ).validate()


@pytest.mark.parametrize("name", TRAINERS)
@pytest.mark.parametrize("metric", ["cosine", "l2", "dot"])
def test_every_encoder_agrees_with_the_definition(name, metric):
    if name == "cuvs" and metric == "dot":
        pytest.skip("cuVS refuses dot")
    rows = clustered(3_000, seed=7, lengths=True)
    model = some_model(metric)
    partitions, codes = pick(name).trainer.encode(model, rows)
    expected_partitions, expected_codes = oracle(model, rows)
    assert (partitions.dtype, codes.dtype) == (np.uint32, np.uint8)
    same = partitions == expected_partitions
    assert same.mean() >= 0.999
    assert (codes[same] == expected_codes[same]).mean() >= 0.999


@pytest.mark.parametrize("metric", ["cosine", "l2", "dot"])
def test_lances_own_encoder_stores_what_ours_gives(metric, tmp_path):
    rows, model = clustered(2_000, seed=5, lengths=True), some_model(metric)
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 32)
    dataset = lance.write_dataset(pa.table({"embedding": column}), tmp_path / "t.lance")
    dataset.create_index(
        "embedding",
        "IVF_PQ",
        name="embedding_idx",
        metric=metric,
        num_partitions=8,
        num_sub_vectors=8,
        ivf_centroids=model.centroids,
        pq_codebook=model.codebook,
    )
    ids, partitions, codes = stored_codes(Snapshot(dataset))
    ours, our_codes = encode(model, rows[ids.astype(int)])
    same = partitions == ours
    assert len(ids) == len(rows)
    assert same.mean() >= 0.999
    assert (codes[same] == our_codes[same]).mean() >= 0.999


@pytest.mark.parametrize("rows", [np.ones((3, 31), np.float32), np.ones((3, 32)), np.ones(32)])
@pytest.mark.parametrize("name", ["lance", "torch:cpu"])
def test_rows_that_the_model_is_not_for_are_refused(name, rows):
    with pytest.raises(InvalidInputError, match=r"this model encodes float32 \[n, 32\]"):
        pick(name).trainer.encode(some_model("l2"), rows)


def test_no_rows_have_no_codes():
    for name in ("lance", "torch:cpu"):
        partitions, codes = pick(name).trainer.encode(
            some_model("cosine"), np.empty((0, 32), np.float32)
        )
        assert (partitions.shape, codes.shape) == ((0,), (0, 8))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"partitions": 0}, "partitions=0; it takes a whole number from 1 on"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(InvalidInputError, match=message):
        IvfPqSpec(**{"partitions": 8, "sub_vectors": 8, **wrong})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"centroids": np.zeros((7, 32), np.float32)}, "centroids is float32"),
        ({"centroids": np.zeros((8, 32))}, "centroids is float64"),
        ({"codebook": np.zeros((8, 255, 4), np.float32)}, "codebook is float32"),
        ({"codebook": np.full((8, 256, 4), np.nan, np.float32)}, "not finite"),
    ],
)
def test_a_model_that_lance_would_not_take_is_refused(change, message):
    good = some_model("l2")
    parts = {"spec": good.spec, "centroids": good.centroids, "codebook": good.codebook, **change}
    with pytest.raises(InvalidInputError, match=message):
        IvfPqModel(**parts).validate()
