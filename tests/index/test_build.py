"""An index is built beside the table, proved, and only then part of it."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pytest
from index_kit import WIDTH, clustered, identifier, items, stored_codes

from lance_memory import ConflictError, InvalidInputError, MemoryStore, ScopeError, StorageError
from lance_memory.index import IvfPqSpec, pick
from lance_memory.index.build import IndexKind, build_index
from lance_memory.index.encode import encode
from lance_memory.index.proof import prove
from lance_memory.storage.upkeep import steps
from lance_memory.storage.vector.facts import describe, row_ids_of, segments_of
from lance_memory.storage.vector.index import build_from_codes, install
from lance_memory.storage.vector.rows import vectors

KINDS = ["ivf_pq", "ivf_rq", "ivf_flat", "ivf_sq", "ivf_hnsw_sq"]


def found(store, query, k=5, **where):
    hits = store.search(vector=query, mode="vector", k=k, **where)
    return [hit.memory.id for hit in hits]


def home(store):
    return Path(store._table.home)


def detached_versions(store):
    return list((home(store) / "_versions").glob("d*.manifest"))


def index_folders(store):
    folder = home(store) / "_indices"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


@pytest.fixture(scope="module")
def model():
    """A model of the vectors that most tests here store."""
    return pick("torch:cpu").trainer.train(
        clustered(2_000), IvfPqSpec(partitions=4, sub_vectors=8, seed=1)
    )


def coded(snapshot, model):
    for ids, rows in vectors(snapshot):
        yield ids, *encode(model, rows)


def index_of(snapshot, model, batches):
    return build_from_codes(
        snapshot, centroids=model.centroids, codebook=model.codebook, coded=batches
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_built_proved_and_reported(kind, filled):
    rows = clustered(2_000)
    store = filled(rows)
    before = store.version
    report = store.build_index(kind=kind, trainer="torch:cpu" if kind == "ivf_pq" else None)
    info = store.index()
    assert (report.kind, report.rows, report.coverage) == (kind.upper(), 2_000, 1.0)
    assert (report.version, store.version) == (before + 1, before + 1)
    assert report.recall.recall >= 0.95
    assert report.trainer == info.trainer == ("torch:cpu" if kind == "ivf_pq" else "lance")
    assert report.reason == info.reason == "it was asked for"
    assert report.bytes == info.bytes > 0
    assert report.seconds.keys() >= {"write", "check"}
    assert (info.metric, info.partitions, info.unindexed_rows, info.segments) == ("cosine", 1, 0, 1)
    assert found(store, rows[7], k=1) == [identifier(7)]
    assert detached_versions(store) == []
    assert len(store.log()) == 1  # to the log of memories nothing happened


def test_auto_takes_rabitq_without_a_gpu_and_says_why(filled):
    report = filled(clustered(600)).build_index()
    if report.trainer == "lance":
        assert report.kind == "IVF_RQ"
        assert report.reason.startswith("no GPU trainer works here: ")
    else:
        assert report.kind == "IVF_PQ"


def test_auto_takes_scalar_codes_where_rabitq_cannot(store):
    """RaBitQ needs a dimension that 8 divides."""
    from lance_memory import FunctionEmbedder

    odd = FunctionEmbedder(lambda t: np.ones((len(t), 12)), name="odd", dimension=12)
    other = MemoryStore.open(store.uri + "-odd", embedder=odd)
    other.add_many(items(clustered(300, 12)))
    report = other.build_index()
    assert report.kind in ("IVF_SQ", "IVF_PQ")
    if report.kind == "IVF_SQ":
        assert "it is 12" in report.reason


def test_a_named_trainer_means_ivf_pq(filled):
    report = filled(clustered(600)).build_index(trainer="lance", partitions=3, sub_vectors=4)
    assert (report.kind, report.trainer) == ("IVF_PQ", "lance")
    assert (report.partitions, report.sub_vectors) == (3, 4)
    assert report.seconds.keys() == {"train", "encode", "write", "check"}


def test_progress_is_told_step_by_step(filled):
    told = []
    filled(clustered(600)).build_index(
        trainer="torch:cpu", progress=lambda *step: told.append(step)
    )
    assert list(dict.fromkeys(name for name, _, _ in told)) == ["train", "encode", "check"]
    assert ("encode", 600, 600) in told


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "hnsw"}, "there are: auto, ivf_pq"),
        ({"kind": "ivf_flat", "trainer": "lance"}, "only ivf_pq has"),
        ({"kind": "ivf_rq", "sub_vectors": 4}, "only ivf_pq has"),
        ({"kind": "ivf_rq", "partitions": 0}, "it is from 1 to as many"),
        ({"kind": "ivf_rq", "partitions": 301}, "it is from 1 to as many"),
        ({"trainer": "torch:cpu", "partitions": 301}, "IVF_PQ needs 301"),
        ({"trainer": "torch:cpu", "sub_vectors": 5}, "does not divide"),
        ({"trainer": "nobody"}, "there are: lance"),
    ],
)
def test_what_cannot_be_built_is_refused_and_changes_nothing(wrong, message, filled):
    store = filled(clustered(300))
    before = store.version
    with pytest.raises(InvalidInputError, match=message):
        store.build_index(**wrong)
    assert (store.version, store.index()) == (before, None)


def test_there_must_be_vectors(store):
    with pytest.raises(InvalidInputError, match="no vectors to index"):
        store.build_index()


def test_an_index_is_the_whole_stores(filled):
    with pytest.raises(ScopeError, match="whole store"):
        filled(clustered(10)).scoped(user="u1").build_index()


def test_stored_codes_are_those_that_were_given(filled, model):
    store = filled(clustered(2_000))
    snapshot = store._table.own()
    given = list(coded(snapshot, model))
    install(store._table, snapshot, [index_of(snapshot, model, given)], check=prove, notes={})
    ids, partitions, codes = (np.concatenate(column) for column in zip(*given, strict=True))
    stored_ids, stored_partitions, stored = stored_codes(store._table.latest())
    order, other = np.argsort(ids), np.argsort(stored_ids)
    assert np.array_equal(ids[order], stored_ids[other])
    assert np.array_equal(partitions[order], stored_partitions[other])
    assert np.array_equal(codes[order], stored[other])


def test_missing_codes_are_refused(filled, model):
    """The engine takes half of the codes, and still counts every row as indexed."""
    store = filled(clustered(2_000))
    snapshot, before, folders = store._table.own(), store.version, index_folders(store)
    half = [(i[::2], p[::2], c[::2]) for i, p, c in coded(snapshot, model)]
    with pytest.raises(StorageError, match="of 2,000 rows it lacks 1,000, has 0 twice"):
        install(store._table, snapshot, [index_of(snapshot, model, half)], check=prove, notes={})
    assert (store.version, store.index(), index_folders(store)) == (before, None, folders)


def test_codes_given_twice_are_refused(filled, model):
    store = filled(clustered(500))
    snapshot = store._table.own()
    twice = [*coded(snapshot, model), *coded(snapshot, model)]
    with pytest.raises(StorageError, match="lacks 0, has 500 twice"):
        install(store._table, snapshot, [index_of(snapshot, model, twice)], check=prove, notes={})


def test_row_ids_of_before_a_compaction_are_refused(filled, model):
    """On a fresh handle the engine takes them, and every answer would be wrong."""
    store = filled(clustered(500))
    store.add_many(items(clustered(500, seed=2), start=500))
    pinned = store._table.own()
    stale = list(coded(pinned, model))
    store.optimize()
    fresh = store._table.own()
    with pytest.raises(StorageError, match="of 1,000 rows it lacks 1,000"):
        install(store._table, fresh, [index_of(fresh, model, stale)], check=prove, notes={})
    with pytest.raises(ConflictError, match="build it again"):
        install(store._table, pinned, [index_of(pinned, model, stale)], check=prove, notes={})
    assert (store.index(), detached_versions(store)) == (None, [])


def test_a_fresh_index_has_no_row_that_is_gone(filled, model):
    """Its fragment is still there, so the number of the fragment does not give it away."""
    store = filled(clustered(500))
    old = list(coded(store._table.own(), model))
    store.delete(identifier(3))
    snapshot = store._table.own()
    with pytest.raises(StorageError, match="of 499 rows it lacks 0, has 0 twice, and has 1 that"):
        install(store._table, snapshot, [index_of(snapshot, model, old)], check=prove, notes={})


def test_the_version_of_an_index_is_its_own_also_where_others_write(filled, model):
    store = filled(clustered(500))
    snapshot, before = store._table.own(), store.version

    def check(seen):
        store.add("meanwhile", embedding=clustered(1)[0])
        return seen.count()

    segment = index_of(snapshot, model, coded(snapshot, model))
    version, count = install(store._table, snapshot, [segment], check=check, notes={})
    store.add("afterwards", embedding=clustered(1)[0])
    assert (version, count, store.version) == (before + 2, 500, before + 3)
    assert [store.at(v).index() is None for v in (version - 1, version)] == [True, False]


def test_an_index_that_finds_too_little_is_not_installed(filled, model):
    """Every row is there once, with the codes of another: only searching it can tell."""
    store = filled(clustered(2_000))
    store.build_index(kind="ivf_flat")
    snapshot, before, folders = store._table.own(), store.version, index_folders(store)
    ((ids, partitions, codes),) = coded(snapshot, model)
    mixed = np.random.default_rng(0).permutation(len(ids))
    wrong = index_of(snapshot, model, [(ids, partitions, codes[mixed])])
    with pytest.raises(StorageError, match="of the true neighbours"):
        install(store._table, snapshot, [wrong], check=prove, notes={})
    assert (store.version, store.index().kind) == (before, "IVF_FLAT")
    assert (index_folders(store), detached_versions(store)) == (folders, [])


def test_writes_during_a_build_are_kept_and_found(filled):
    rows = clustered(2_000)
    store = filled(rows)
    late = clustered(1, seed=99)[0]

    def meanwhile(step, done, total):
        if step == "encode" and not store.find("late"):
            store.add("a late one", key="late", embedding=late)
            store.delete(identifier(7))

    report = store.build_index(trainer="torch:cpu", progress=meanwhile)
    assert report.rows == 2_000
    assert (store.index().rows, store.index().unindexed_rows) == (1_999, 1)
    assert found(store, late, k=1) == [store.get("late").id]
    assert identifier(7) not in found(store, rows[7], k=20)


def test_a_compaction_during_a_build_makes_it_start_over(filled):
    store = filled(clustered(600))
    store.add_many(items(clustered(600, seed=2), start=600))
    compactions = []

    def meanwhile(step, done, total):
        if step == "check" and not compactions:
            steps.compact(store._table)
            compactions.append(store.stats().fragments)

    report = store.build_index(trainer="torch:cpu", progress=meanwhile)
    assert compactions == [1]
    assert (report.rows, report.coverage) == (1_200, 1.0)
    assert report.recall.recall >= 0.95


def test_a_build_that_others_always_overtake_gives_up_and_changes_nothing(filled):
    store = filled(clustered(300))

    def meanwhile(step, done, total):
        if step == "check":  # elsewhere, where the lock of upkeep does not reach
            build_index(store._table, kind=IndexKind.IVF_FLAT)

    with pytest.raises(ConflictError, match=r"indexed by somebody else, 4 times"):
        store.build_index(kind="ivf_sq", progress=meanwhile)
    assert (store.index().kind, store.index().segments) == ("IVF_FLAT", 1)


def test_memories_without_a_vector_are_skipped(filled):
    """Another tool may write rows whose embedding is NULL."""
    rows = clustered(1_000)
    store = filled(rows)
    dataset = lance.dataset(store._table.own().dataset.uri)
    dataset.update({"embedding": "NULL"}, where="user = 'u3'")
    for kind in ("ivf_rq", "ivf_pq"):
        report = store.build_index(kind=kind)
        assert (report.rows, report.unindexed_rows, report.coverage) == (900, 0, 1.0)
        assert len(stored_rows(store)) == 900
        assert found(store, rows[3], k=1) != [identifier(3)]


def test_vectors_of_no_direction_are_not_missed(filled):
    """The engine leaves zeros out of a cosine index; only another tool can have written them."""
    store = filled(clustered(600))
    dataset = lance.dataset(store._table.own().dataset.uri)
    zeros = f"arrow_cast({[0.0] * WIDTH}, 'FixedSizeList({WIDTH}, Float32)')"
    dataset.update({"embedding": zeros}, where=f"id = '{identifier(5)}'")
    assert store.build_index(kind="ivf_sq").recall.recall >= 0.95


def stored_rows(store):
    snapshot = store._table.latest()
    folders = [home(store) / "_indices" / segment.uuid for segment in segments_of(snapshot)]
    return np.concatenate([row_ids_of(snapshot, str(folder)) for folder in folders])


def test_the_column_is_float32_and_so_is_the_model(filled, model):
    store = filled(clustered(100))
    assert str(store._table.schema.field("embedding").type.value_type) == "float"
    assert {model.centroids.dtype, model.codebook.dtype} == {np.dtype(np.float32)}


def test_new_rows_are_folded_with_the_model_that_is_there(filled):
    """The engine joins partitions of less than about 2,000 rows; these are larger."""
    rows = clustered(8_000)
    store = filled(rows)
    spec = IvfPqSpec(partitions=2, sub_vectors=8, iterations=3)
    model = pick("torch:cpu").trainer.train(rows[:3_000], spec)
    snapshot = store._table.own()
    segment = index_of(snapshot, model, coded(snapshot, model))
    install(
        store._table,
        snapshot,
        [segment],
        check=prove,
        notes={"trainer": "torch:cpu", "reason": "a test"},
    )
    store.add_many(items(clustered(500, seed=5), start=8_000))
    assert store.index().unindexed_rows == 500
    store.optimize()
    info = store.index()
    assert (info.rows, info.unindexed_rows, info.trainer) == (8_500, 0, "torch:cpu")
    order, rows = (np.concatenate(c) for c in zip(*vectors(store._table.latest()), strict=True))
    ids, partitions, codes = stored_codes(store._table.latest())
    ours, our_codes = encode(model, rows[np.searchsorted(order, ids)])
    assert (partitions == ours).mean() >= 0.999
    assert (codes == our_codes).mean() >= 0.999


def test_a_rebuilt_index_takes_the_place_of_the_old_one(filled):
    store = filled(clustered(600))
    for kind in KINDS:
        store.build_index(kind=kind)
        assert (store.index().kind, store.index().segments) == (kind.upper(), 1)
        assert describe(store._table.latest()).rows == 600


def test_an_index_on_a_branch_is_the_branchs_own(filled):
    store = filled(clustered(600))
    side = store.branch("side")
    side.build_index(kind="ivf_sq")
    assert (side.index().kind, store.index()) == ("IVF_SQ", None)
    assert detached_versions(side) == []


def test_a_store_that_was_checked_out_builds_its_own(filled, tmp_path):
    rows = clustered(600)
    store = filled(rows)
    store.build_index(kind="ivf_sq")
    copy = store.checkout(store.version, tmp_path / "copy")
    assert copy.index().kind == "IVF_SQ"
    assert copy.build_index(kind="ivf_rq").rows == 600
    assert (copy.index().kind, store.index().kind) == ("IVF_RQ", "IVF_SQ")
    assert found(copy, rows[3], k=1) == [identifier(3)]


def test_the_past_keeps_the_index_it_had(filled):
    store = filled(clustered(600))
    bare = store.version
    store.build_index(kind="ivf_sq")
    first = store.version
    store.build_index(kind="ivf_flat")
    assert store.at(bare).index() is None
    assert store.at(first).index().kind == "IVF_SQ"
    assert store.index().kind == "IVF_FLAT"
