"""Where an index should be there is one: kept, adopted again, or built."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import numpy as np
import pytest
from index_kit import clustered, identifier, items

from lance_memory import InvalidInputError
from lance_memory.index.ensure import ensure_index
from lance_memory.storage.vector.facts import segments_of

NAME = ["embedding_idx"]


def uuids(store):
    return {segment.uuid for segment in segments_of(store._table.latest())}


def restore(store, version):
    """What another tool does: the engine's restore, which brings back that version's indices."""
    lance.dataset(str(home(store)), version=version).restore()


def home(store):
    return Path(store._table.home)


def test_few_vectors_need_no_index(filled):
    store = filled(clustered(300))
    assert ensure_index(store._table) == []
    assert ensure_index(store._table, from_rows=301) == []
    assert ensure_index(store._table, from_rows=300) == NAME
    assert ensure_index(store._table, from_rows=300) == []


def test_the_kind_that_upkeep_builds_is_chosen_or_none(filled):
    store = filled(clustered(300))
    with pytest.raises(InvalidInputError, match="index='hnsw'; there are: auto, ivf_pq"):
        store.optimize(index="hnsw")
    assert store.optimize(index=None, vector_index_from=300).indices_built[-1:] != tuple(NAME)
    assert store.index() is None
    assert store.optimize(index="ivf_flat", vector_index_from=300).indices_built == tuple(NAME)
    assert store.index().kind == "IVF_FLAT"
    assert store.optimize(index="ivf_sq", vector_index_from=300).indices_built == ()


def test_a_kind_that_was_asked_for_is_built_and_no_other_is_adopted(filled):
    store = filled(clustered(600))
    start = store.version
    store.build_index(kind="ivf_sq")
    restore(store, start)
    store.optimize(index="ivf_flat", vector_index_from=500)
    assert store.index().kind == "IVF_FLAT"


def test_an_empty_store_has_nothing_to_index(store):
    assert ensure_index(store._table, from_rows=0) == []


def test_our_own_rollback_and_revert_keep_the_index(filled):
    rows = clustered(600)
    store = filled(rows)
    start = store.version
    store.build_index(kind="ivf_sq")
    built = uuids(store)
    store.retire([identifier(3)])
    store.add_many(items(clustered(10, seed=9), start=600))
    store.rollback(start)
    assert uuids(store) == built
    assert ensure_index(store._table, from_rows=1) == []
    hits = store.search(vector=rows[3], mode="vector", k=1)
    assert [hit.memory.id for hit in hits] == [identifier(3)]


def test_after_the_engines_restore_the_old_index_is_adopted(filled):
    rows = clustered(600)
    store = filled(rows)
    start = store.version
    store.build_index(kind="ivf_pq", trainer="torch:cpu")
    built, size = uuids(store), store.index().bytes
    store.add_many(items(clustered(10, seed=9), start=600))
    restore(store, start)
    assert store.index() is None
    assert store.optimize(vector_index_from=500).indices_built[-1:] == tuple(NAME)
    info = store.index()
    assert (uuids(store), info.bytes, info.trainer) == (built, size, "torch:cpu")
    assert (info.rows, info.unindexed_rows) == (600, 0)
    assert store.index_recall(sample=50).recall >= 0.95


def test_an_index_folded_since_is_adopted_with_the_rows_it_still_has(filled):
    store = filled(clustered(600))
    start = store.version
    store.build_index(kind="ivf_sq")
    store.add_many(items(clustered(100, seed=9), start=600))
    dataset = lance.dataset(str(home(store)))
    dataset.optimize.optimize_indices(num_indices_to_merge=0)  # a second segment
    assert store.index().segments == 2
    restore(store, start)
    assert ensure_index(store._table, from_rows=1) == NAME
    assert store.index().rows == store.count() == 600
    assert store.index_recall(sample=50).recall == 1.0


def test_an_index_that_lacks_rows_which_came_back_is_not_adopted(filled):
    """It was built while memory 3 was gone: adopted, it would hide it for good."""
    rows = clustered(600)
    store = filled(rows)
    start = store.version
    store.delete(identifier(3))
    store.build_index(kind="ivf_sq")
    old = uuids(store)
    restore(store, start)
    assert ensure_index(store._table, from_rows=1) == NAME
    assert uuids(store).isdisjoint(old)
    hits = store.search(vector=rows[3], mode="vector", k=1)
    assert [hit.memory.id for hit in hits] == [identifier(3)]


def test_an_index_whose_files_are_gone_is_built_anew(filled):
    store = filled(clustered(600))
    start = store.version
    store.build_index(kind="ivf_sq")
    old = uuids(store)
    restore(store, start)
    shutil.rmtree(home(store) / "_indices" / next(iter(old)))
    assert ensure_index(store._table, from_rows=1) == NAME
    assert uuids(store).isdisjoint(old)


def test_an_index_of_rows_that_were_compacted_away_is_built_anew(filled):
    store = filled(clustered(300))
    store.add_many(items(clustered(300, seed=4), start=300))
    start = store.version
    store.optimize()
    store.build_index(kind="ivf_sq")
    old = uuids(store)
    restore(store, start)
    assert ensure_index(store._table, from_rows=1) == NAME
    assert uuids(store).isdisjoint(old)
    assert store.index_recall(sample=50).recall >= 0.95


def test_a_dropped_index_is_adopted_too(filled):
    store = filled(clustered(600))
    store.build_index(kind="ivf_sq")
    old = uuids(store)
    lance.dataset(str(home(store))).drop_index("embedding_idx")
    assert store.index() is None
    assert ensure_index(store._table, from_rows=1) == NAME
    assert uuids(store) == old


def test_a_branch_from_before_the_index_gets_its_own(filled):
    store = filled(clustered(600))
    start = store.version
    store.build_index(kind="ivf_sq")
    side = store.branch("side", start)
    assert side.index() is None
    assert "embedding_idx" in side.optimize(vector_index_from=500).indices_built
    assert (side.index().rows, store.index().rows) == (600, 600)


@pytest.mark.parametrize("kind", ["ivf_flat", "ivf_rq", "ivf_pq"])
def test_hidden_and_filtered_answers_are_those_without_an_index(kind, filled):
    """Enough rows are visible for the index to be asked, and few enough for it to be exact."""
    rows = clustered(3_000)
    store = filled(rows)
    store.retire([identifier(i) for i in range(0, 3_000, 7)])
    store.delete([identifier(i) for i in range(1, 3_000, 11)])
    queries = clustered(15, seed=8)
    wheres = [{}, {"user": "u2"}, {"states": "any"}, {"states": "retired"}]

    def answers():
        return [
            [hit.memory.id for hit in store.search(vector=q, mode="vector", k=10, **where)]
            for q in queries
            for where in wheres
        ]

    exact = answers()
    sizes = {"trainer": "torch:cpu", "sub_vectors": 16} if kind == "ivf_pq" else {}
    store.build_index(kind=kind, partitions=4, **sizes)
    shares = [len(set(a) & set(b)) / len(b) for a, b in zip(answers(), exact, strict=True)]
    allowed = {
        "user": {m.id for m in store.iter(user="u2")},
        "retired": {m.id for m in store.iter(states="retired")},
        "visible": {m.id for m in store.iter()},
    }
    found = answers()
    assert all(set(a) <= allowed["visible"] for a in found[0::4])
    assert all(set(a) <= allowed["user"] for a in found[1::4])
    assert all(set(a) <= allowed["retired"] for a in found[3::4])
    assert np.mean(shares) == 1.0 if kind == "ivf_flat" else np.mean(shares) >= 0.99
