"""Drift is noticed, and what to do about it is said."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from index_kit import clustered, identifier, items

from lance_memory import InvalidInputError
from lance_memory.index.device import cuda_in_use, driver_devices
from lance_memory.index.health import proposal
from lance_memory.index.sample import drawn
from lance_memory.storage.vector.facts import IndexFacts

GOOD = IndexFacts(
    kind="IVF_PQ",
    metric="cosine",
    partitions=4,
    sub_vectors=8,
    bits=8,
    rows=4_000,
    unindexed_rows=100,
    sizes=(1_000, 900, 1_100, 1_000),
    segments=1,
    bytes=1,
    created_at=None,
    notes={},
)


def test_a_healthy_index_needs_nothing(filled):
    assert proposal(GOOD) is None
    store = filled(clustered(2_000))
    store.build_index(kind="ivf_sq", partitions=4)
    info = store.index()
    assert (info.proposal, info.coverage) == (None, 1.0)
    assert 1 <= info.imbalance < 2
    assert store.index_recall().proposal is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unindexed_rows": 1_500}, r"fold: 27% .* `lmem optimize`"),
        ({"sizes": (4_000, *[1] * 7)}, r"retrain: the partitions are uneven \(8.0, even is 1\)"),
    ],
)
def test_drift_is_named_with_what_to_do(change, message):
    assert re.match(message, proposal(replace(GOOD, **change)))


def test_rows_that_are_not_folded_are_reported(filled):
    store = filled(clustered(600))
    store.build_index(kind="ivf_sq")
    store.add_many(items(clustered(400, seed=3), start=600))
    info = store.index()
    assert (info.rows, info.unindexed_rows, info.coverage) == (600, 400, 0.6)
    assert info.proposal.startswith("fold: 40%")
    assert store.index_recall(sample=30).recall == 1.0  # they are found all the same
    store.optimize()
    assert store.index().proposal is None


def test_codes_that_no_longer_fit_the_vectors_are_noticed(filled):
    """Two codes a vector for rows all over: the probe sees what sizes do not show."""
    rng = np.random.default_rng(4)
    store = filled(rng.standard_normal((3_000, 32)).astype(np.float32))
    report = store.build_index(trainer="torch:cpu", sub_vectors=2)
    assert report.recall.recall < 0.95
    found = store.index_recall(sample=100)
    assert found.proposal.startswith(f"retrain: recall@10 is {found.recall:.2f}")
    assert found.worst < found.recall


def test_without_an_index_nothing_is_missed(filled):
    store = filled(clustered(50))
    found = store.index_recall(sample=10)
    assert (found.recall, found.worst, found.exact) == (1.0, 1.0, True)
    assert store.index() is None


def test_equal_vectors_cost_no_recall(filled):
    """Which of twenty equal neighbours is found is nobody's business."""
    store = filled(np.repeat(clustered(60), 20, axis=0))
    store.build_index(kind="ivf_flat")
    assert store.index_recall(sample=100).recall == 1.0


def test_recall_is_measured_within_the_scope(filled):
    store = filled(clustered(1_000))
    store.build_index(kind="ivf_flat", partitions=4)
    found = store.scoped(user="u3").index_recall(sample=500)
    assert (found.sample, found.recall) == (100, 1.0)
    assert store.scoped(user="nobody").index_recall().sample == 0


def test_fewer_rows_than_neighbours_are_no_loss(filled):
    store = filled(clustered(4))
    store.build_index(kind="ivf_flat")
    assert store.index_recall(k=10, sample=200).recall == 1.0
    store.delete([identifier(i) for i in range(3)])
    assert store.index_recall().recall == 1.0


@pytest.mark.parametrize("wrong", [{"k": 0}, {"sample": 0}])
def test_a_probe_of_nothing_is_refused(wrong, filled):
    with pytest.raises(InvalidInputError, match="it takes a whole number from 1 on"):
        filled(clustered(5)).index_recall(**wrong)


def test_measuring_an_index_loads_no_torch(filled):
    """Else, where a GPU answers, this process had a context of CUDA and could not fork."""
    store = filled(clustered(600))
    store.build_index(kind="ivf_sq")
    script = f"""
import sys
from lance_memory.index.health import measure_recall
from lance_memory.index.proof import prove
from lance_memory.storage import Table
snapshot = Table.open({store.uri!r}).latest()
assert measure_recall(snapshot).recall == prove(snapshot).recall.recall
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_hidden_devices_are_none(monkeypatch):
    for hidden in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert driver_devices.__wrapped__() == 0


def test_a_process_that_works_on_no_device_is_not_made_to(monkeypatch):
    """A batch of questions takes CUDA where the process has it anyway, and loads nothing for it."""
    import torch

    assert cuda_in_use() == torch.cuda.is_initialized()
    monkeypatch.delitem(sys.modules, "torch")
    assert not cuda_in_use()


@pytest.mark.parametrize("size", [1, 7, 300, 9_999])
def test_vectors_are_drawn_each_once_and_no_more_than_there_are(size, filled):
    rows = clustered(300)
    store = filled(rows[:100])
    store.add_many(items(rows[100:], start=100))
    found = drawn(store._table.latest(), size, seed=size)
    places = [int(np.flatnonzero((rows == one).all(axis=1))[0]) for one in found]
    assert len(places) == min(size, 300)
    assert places == sorted(set(places))
