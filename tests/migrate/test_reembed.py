"""Another embedding model: every memory is embedded anew, and one version switches."""

from __future__ import annotations

import signal
import threading

import lance
import numpy as np
import pytest
from migrate_kit import Model, rows, words_8, words_16

from lance_memory import (
    ConflictError,
    ConsolidateOptions,
    EmbeddingError,
    InvalidInputError,
    MemoryStore,
    ScopeError,
    StoreFormatError,
)
from lance_memory.storage import Table
from lance_memory.storage.vector.index import build_by_engine, install

RED = "the red kettle was broken, and then lost"


def opened(place, embedder=None, **options):
    return MemoryStore.open(place, embedder=embedder or words_16(), **options)


def side_tables(place):
    return sorted(path.name for path in place.iterdir() if path.name.startswith("reembed-"))


def vectors(store):
    return {i: np.array(row["embedding"]) for i, row in rows(store).items()}


def expected(store, model):
    """What each memory's vector has to be."""
    return {m.id: model.embed([m.content])[0] for m in store.list(states="any")}


def all_close(found, wanted):
    return found.keys() == wanted.keys() and all(
        np.allclose(found[i], wanted[i], atol=1e-4) for i in wanted
    )


# -- the switch -----------------------------------------------------------------------------


def test_c38_another_model_is_one_version_and_nothing_is_doubled(store, place):
    """C38."""
    before, version, log = rows(store, embeddings=False), store.version, len(store.log())
    fragments = store.stats().fragments
    model, seen = words_16(), []
    done = store.reembed(model, reason="better", progress=lambda *at: seen.append(at), index=None)
    assert (done.version, done.former_version, done.rows) == (version + 1, version, 36)
    assert sorted(model.texts) == sorted({row["content"] for row in before.values()})
    assert (done.embedded, done.taken) == (len(model.texts), 0)
    assert (seen[-1], sorted(seen)) == ((36, 36), seen)
    again = opened(place)
    assert rows(again, embeddings=False) == before
    assert all_close(vectors(again), expected(again, words_16()))
    (entry, *rest) = again.log()
    assert (entry.operation, entry.version, entry.reason) == ("reembed", done.version, "better")
    assert len(rest) == log
    assert entry.manifest == {
        "rows": 36,
        "from": {"model": "words-8", "dimension": 8},
        "to": {"model": "words-16", "dimension": 16},
    }
    stats = again.stats()
    assert (stats.embedding_model, stats.dimension, stats.fragments) == ("words-16", 16, fragments)
    assert side_tables(place) == []


def test_after_the_switch_both_legs_find(store, place):
    done = store.reembed(words_16())
    again = opened(place)
    (hit,) = again.search(RED, mode="vector", k=1)
    assert (hit.memory.content, round(hit.similarity, 5)) == (RED, 1.0)
    assert again.search("列車", mode="text").hits[0].memory.content == "列車は九時に出ます"
    assert (done.indices, again.index().coverage) == (("embedding_idx",), 1.0)
    assert again.count(metadata={"n": 7}) == 1
    stored = again.add("an after thought", user="ann")
    assert again.search("an after thought", k=1).hits[0].memory.id == stored.id
    again.optimize()
    assert all_close(vectors(again), expected(again, words_16()))
    assert again.search(RED, mode="vector", k=1).hits[0].memory.content == RED


def test_a_plan_says_what_it_takes_and_embeds_nothing(store, place):
    model, version = words_16(), store.version
    plan = store.reembed(model, dry_run=True)
    assert (plan.version, plan.rows, plan.contents, plan.made, plan.kept) == (version, 36, 34, 0, 0)
    assert (plan.former_model, plan.model, plan.to_embed) == ("words-8", "words-16", 34)
    assert (model.texts, store.version, side_tables(place)) == ([], version, [])


def test_the_model_that_is_there_is_nothing_to_do(store):
    model, version = words_8(), store.version
    assert not store.reembed(model, dry_run=True)
    done = store.reembed(model)
    assert (done.version, done.former_version, done.embedded, done.tag) == (version, version, 0, "")
    assert (model.texts, store.tags()) == ([], {"start": 3})
    assert store.add("this handle goes on").outcome == "stored"


def test_the_same_dimension_is_another_model_all_the_same(store, place):
    store.reembed(Model("other", 8), index=None)
    with pytest.raises(StoreFormatError, match="'other' since version"):
        store.add("a")
    again = opened(place, Model("other", 8))
    assert all_close(vectors(again), expected(again, Model("other", 8)))
    assert again.search(RED, mode="vector", k=1).hits[0].memory.content == RED


def test_a_memory_without_a_vector_gets_one(tmp_path):
    store = opened(tmp_path / "store", words_8())
    store.add("with one")
    dataset = lance.dataset(f"{store.uri}/memories.lance")
    dataset.update({"embedding": "NULL"}, where="content = 'with one'")
    assert store.stats().without_embedding == 1
    store.reembed(words_16())
    again = opened(tmp_path / "store")
    assert (again.stats().without_embedding, again.count()) == (0, 1)
    assert again.search("with one", mode="vector", k=1).hits[0].similarity > 0.999


def test_an_empty_store_changes_its_model(tmp_path):
    store = opened(tmp_path / "store", words_8())
    assert store.reembed(words_16()).rows == 0
    again = opened(tmp_path / "store")
    again.add("the first")
    assert again.search("the first", mode="vector", k=1).hits[0].memory.content == "the first"


def test_deleted_rows_take_no_vector(store, place):
    store.delete("00000001")
    store.delete("00000400")
    model = words_16()
    store.reembed(model)
    assert len(model.texts) == 32
    again = opened(place)
    assert all_close(vectors(again), expected(again, words_16()))


def test_the_error_of_another_model_names_reembed(store, place):
    with pytest.raises(StoreFormatError, match=r"'words-8' .*'words-16' .*`lmem reembed"):
        opened(place, words_16())


@pytest.mark.parametrize("dimensions", [(8, 16), (16, 8)])
def test_the_dimension_grows_and_shrinks(dimensions, tmp_path):
    first, second = (Model(f"words of {d}", d) for d in dimensions)
    store = opened(tmp_path / "store", first)
    store.add_many([f"memory number {i}" for i in range(20)])
    for model in (second, first, second):
        opened(tmp_path / "store", first if model is second else second).reembed(model, keep=False)
    again = opened(tmp_path / "store", second)
    assert all_close(vectors(again), expected(again, second))
    assert again.tags() == {}


# -- refusals -------------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused_before_anything_is_embedded(store):
    model, version = words_16(), store.version
    with pytest.raises(InvalidInputError, match="batch_size=0"):
        store.reembed(model, batch_size=0)
    with pytest.raises(InvalidInputError, match="index='ivf_nothing'"):
        store.reembed(model, index="ivf_nothing")
    with pytest.raises(InvalidInputError, match="a callable is needed; found str"):
        store.reembed("minilm")
    with pytest.raises(ScopeError, match="re-embedding concerns the whole store"):
        store.scoped(user="ann").reembed(model)
    assert (model.texts, store.version) == ([], version)


def test_an_embedder_that_fails_changes_nothing_and_loses_nothing(store, place):
    def fails(texts):
        if "note 20: the red kettle is on the shelf" in texts:
            raise RuntimeError("out of order")

    before, version = rows(store), store.version
    broken = words_16(before=fails)
    with pytest.raises(EmbeddingError, match=r"'words-16' failed on .*out of order"):
        store.reembed(broken, batch_size=5)
    assert (rows(store), store.version, store.tags()) == (before, version, {"start": 3})
    assert store.add("it goes on").outcome == "stored"
    model = words_16()
    assert store.reembed(model, dry_run=True).made == len(broken.texts) > 0
    done = store.reembed(model, batch_size=5)
    assert (done.taken, set(model.texts) & set(broken.texts)) == (len(broken.texts), set())
    assert side_tables(place) == []


def test_what_was_made_for_another_model_is_not_taken(store, place):
    calls = []

    def third(texts):
        calls.append(texts)
        if len(calls) == 3:
            raise RuntimeError("enough")

    with pytest.raises(EmbeddingError):
        store.reembed(words_16(before=third), batch_size=4)
    assert len(side_tables(place)) > 0
    model = Model("third", 16)
    assert store.reembed(model).embedded == 34
    assert side_tables(place) == []
    again = opened(place, Model("third", 16))
    assert all_close(vectors(again), expected(again, Model("third", 16)))


def test_two_runs_at_once_are_a_conflict(store, place):
    inside, told = threading.Event(), threading.Event()

    def waits(texts):
        inside.set()
        assert told.wait(60)

    running = threading.Thread(target=store.reembed, args=(words_16(before=waits),))
    running.start()
    assert inside.wait(60)
    with pytest.raises(ConflictError, match="another process re-embeds"):
        opened(place, words_8()).reembed(words_16())
    told.set()
    running.join()
    assert opened(place).stats().embedding_model == "words-16"


# -- what others write ----------------------------------------------------------------------


def test_what_is_written_meanwhile_is_embedded_too(store, place):
    other = opened(place, words_8())
    moves = iter(
        [
            lambda: other.add("came in between", user="ann"),
            lambda: other.update("00000001", content="changed in between"),
            lambda: other.delete("00000002"),
            other.optimize,
        ]
    )

    def meanwhile(texts):
        next(moves, lambda: None)()

    store.reembed(words_16(before=meanwhile), batch_size=10)
    again = opened(place)
    assert {"came in between", "changed in between"} <= {m.content for m in again.list()}
    assert again.find("00000002") is None
    assert all_close(vectors(again), expected(again, words_16()))
    with pytest.raises(StoreFormatError, match="open it again with an embedder"):
        other.add("too late")


def test_a_vector_of_the_former_model_is_never_written_after_the_switch(store, place):
    """The embedder of an add is slow, and the switch comes before its commit."""

    def slowly(texts):
        if "slow" in texts[0] and store.version == before:
            store.reembed(Model("other", 8))

    before = store.version
    late = opened(place, words_8(before=slowly))
    for write in (
        lambda: late.add("slow and late"),
        lambda: late.upsert("slow and late", key="k5", user="ann", agent="scribe", session="s0"),
        lambda: late.update("00000001", content="slow and late"),
        lambda: late.supersede("00000001", "slow and late"),
    ):
        with pytest.raises(StoreFormatError, match="nothing was written"):
            write()
    assert all_close(vectors(opened(place, Model("other", 8))), expected(store, Model("other", 8)))


def test_a_plan_from_before_the_switch_is_not_applied(store, place):
    for text in ("tea is good in the evening", "tea is so good in the evening"):
        store.add(text, user="eve", session="kitchen")
    options = ConsolidateOptions(min_similarity=0.8)
    plan = store.consolidate(options, guard=None, user="eve", dry_run=True)
    assert plan.accepted
    store.reembed(Model("other", 8))
    with pytest.raises(ConflictError, match="vectors are of another model; nothing was written"):
        opened(place, Model("other", 8)).apply(plan)


def test_an_index_of_the_former_vectors_that_comes_after_the_switch_is_removed(store, place):
    """To the engine it is no conflict, and with it every filter fails."""
    table = Table.open(str(place))
    snapshot = table.own()
    segment = build_by_engine(snapshot, "IVF_FLAT", partitions=1, options={})
    store.reembed(words_16(), index=None)
    with pytest.raises(ConflictError, match="switched to another model while their index"):
        install(table, snapshot, [segment], check=lambda _: None, notes={})
    again = opened(place)
    assert again.index() is None
    assert again.search(RED, mode="vector", k=1).hits[0].similarity > 0.999
    again.optimize(vector_index_from=1)
    assert again.index().coverage == 1.0
    assert again.search(RED, mode="vector", k=1).hits[0].similarity > 0.999


def test_upkeep_removes_an_index_of_the_former_vectors_of_another_program(store, place):
    uri = f"{place}/memories.lance"
    former = lance.dataset(uri)
    store.reembed(words_16(), index=None)
    former.optimize.optimize_indices()
    assert "<unknown>" in str([i.field_names for i in lance.dataset(uri).describe_indices()])
    again = opened(place)
    again.optimize(vector_index_from=1)
    assert (again.index().coverage, again.count(user="ann")) == (1.0, 17)
    names = [i.name for i in lance.dataset(uri).describe_indices()]
    assert len(names) == len(set(names)) == 13


# -- the past -------------------------------------------------------------------------------


def test_a_handle_from_before_the_switch_finds_by_words_and_says_why(store):
    store.reembed(words_16())
    found = store.search("red kettle", k=3)
    assert "'words-16' (16 numbers)" in found.degraded["vector"]
    assert {h.similarity for h in found} == {None}
    with pytest.raises(EmbeddingError, match="is to be opened again"):
        store.search("red kettle", mode="vector")


def test_a_version_of_the_former_model_is_searched_by_words_or_by_its_vectors(store, place):
    done = store.reembed(words_16())
    past = opened(place).at(done.former_version)
    assert all_close(vectors(past), expected(past, words_8()))
    assert past.stats().embedding_model == "words-8"
    assert "vector" in past.search("red kettle").degraded
    vector = words_8().embed([RED])[0]
    assert past.search(vector=vector, k=1).hits[0].memory.content == RED
    with pytest.raises(InvalidInputError, match="the store's have 8 numbers"):
        past.search(vector=np.ones(16))
    again = opened(place)
    assert again.search(RED, mode="vector", k=1).hits[0].memory.content == RED
    assert again.search(vector=words_16().embed([RED])[0], k=1).hits[0].memory.content == RED


def test_diff_get_and_lineage_go_across_the_switch(store, place):
    done = store.reembed(words_16())
    again = opened(place)
    same = again.diff(done.former_version)
    assert (same.inserted, same.updated, same.removed) == ((), (), ())
    again.update("00000001", importance=0.9)
    (change,) = again.diff(done.former_version).updated
    assert change.columns == ("importance", "embedding")
    assert again.lineage("00000012").successors == store.lineage("00000012").successors
    assert again.at("start").get("00000001").embedding.shape == (8,)


def test_c31_rolling_back_past_another_model_works(store, place):
    """C31: memories that come back are embedded anew; the model stays what it is."""
    store.reembed(words_16())
    again = opened(place)
    before = rows(again.at("start"), embeddings=False)
    again.rollback("start")
    assert rows(again, embeddings=False) == before
    assert all_close(vectors(again), expected(again, words_16()))
    again.optimize()
    assert all_close(vectors(again), expected(again, words_16()))


def test_c31_without_the_model_it_is_refused_before_anything_is_touched(store, place):
    """C31."""
    store.reembed(words_16())
    blind = MemoryStore.open(place)
    version = blind.version
    for dry_run in (True, False):
        with pytest.raises(EmbeddingError, match="from the model 'words-16'"):
            blind.rollback("start", dry_run=dry_run)
    assert blind.version == version
    assert blind.rollback(version - 1, dry_run=True).change == ()


def test_a_revert_past_another_model_works(store, place):
    (change,) = (e.version for e in store.log() if e.operation == "delete")
    store.reembed(words_16())
    again = opened(place)
    again.revert(change)
    assert again.get("00000008").embedding.shape == (16,)
    assert all_close(vectors(again), expected(again, words_16()))


def test_going_back_takes_the_vectors_that_were_kept(store, place):
    before = vectors(store)
    done = store.reembed(words_16())
    assert done.tag == f"before-reembed-v{done.former_version}"
    again = opened(place)
    again.add("since then", user="ann")
    again.optimize(clean_older_than=None)
    model = words_8()
    assert again.reembed(model, dry_run=True).kept == 34
    back = again.reembed(model)
    assert (model.texts, back.embedded, back.taken) == (["since then"], 1, 34)
    home = opened(place, words_8())
    after = vectors(home)
    assert all_close({i: after[i] for i in before}, before)
    assert sorted(home.tags()) == sorted(["start", done.tag, back.tag])


def test_former_vectors_that_are_not_kept_can_be_cleaned_away(store, place):
    from datetime import timedelta

    done = store.reembed(words_16(), keep=False)
    assert (done.tag, store.tags()) == ("", {"start": 3})
    again = opened(place)
    again.optimize(clean_older_than=timedelta(0))
    assert done.former_version not in [e.version for e in again.log() if e.readable]
    assert all_close(vectors(again), expected(again, words_16()))


# -- branches and checkouts -----------------------------------------------------------------


def test_a_branch_has_a_model_of_its_own(store, place):
    side = store.branch("side")
    side.add("on the branch")
    done = side.reembed(words_16())
    assert done.tag == f"before-reembed-side-v{done.former_version}"
    assert opened(place, words_8()).add("main goes on").outcome == "stored"
    beside = opened(place, branch="side")
    assert all_close(vectors(beside), expected(beside, words_16()))
    beside.optimize()
    assert beside.search("on the branch", mode="vector", k=1).hits[0].similarity > 0.999
    with pytest.raises(StoreFormatError, match="'words-8'"):
        opened(place)


def test_a_branch_of_a_former_version_asks_for_its_model(store, place):
    done = store.reembed(words_16())
    again = opened(place)
    early = again.branch("early", done.former_version)
    with pytest.raises(EmbeddingError, match="'words-8'"):
        early.add("a")
    assert opened(place, words_8(), branch="early").add("a").outcome == "stored"


def test_a_checkout_changes_its_model_alone(store, place, tmp_path):
    copy = store.checkout(store.version, tmp_path / "copy")
    copy.reembed(words_16())
    mine, its = opened(place, words_8()), opened(tmp_path / "copy")
    for view, model in ((mine, words_8()), (its, words_16())):
        assert all_close(vectors(view), expected(view, model))
    its.optimize()
    assert all_close(vectors(its), expected(its, words_16()))


def test_the_id_of_the_store_stays(store, place):
    before = Table.open(str(place)).format
    done = store.reembed(words_16())
    after = Table.open(str(place)).format
    assert (before.vectors_since, after.vectors_since) == (0, done.version)
    assert (after.store_id, after.schema_version) == (before.store_id, before.schema_version)


# -- kills ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(store, place, child):
    before, version = rows(store), store.version
    with child("reembed", place, 3, 0) as process:
        process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert (rows(store), store.version) == (before, version)
    store.add("it goes on", user="ann")
    with child("reembed", place, 0, 0) as process:
        out, err = process.communicate(timeout=120)
    texts = place.with_name("store.log").read_text(encoding="utf-8").splitlines()
    again = opened(place)
    assert (out, err) == ("23 12\n", "")
    assert sorted(texts) == sorted({m.content for m in again.list(states="any")})
    assert all_close(vectors(again), expected(again, words_16()))
    assert side_tables(place) == []


@pytest.mark.slow
def test_a_run_that_is_killed_right_before_its_switch_embeds_nothing_again(store, place, child):
    version = store.version
    with child("reembed", place, 0, 1) as process:
        process.communicate(timeout=120)
    assert (process.returncode, store.version) == (-signal.SIGKILL, version)
    model = words_16()
    done = store.reembed(model)
    assert (model.texts, done.embedded, done.taken, done.version) == ([], 0, 34, version + 1)
    again = opened(place)
    assert all_close(vectors(again), expected(again, words_16()))


@pytest.mark.slow
def test_two_writers_meanwhile_lose_nothing_and_are_told(store, place, child):
    with child("write", place, 1) as one, child("write", place, 2) as two:
        for process in (one, two):
            assert process.stdout.readline() == "ready\n"
        store.reembed(words_16(), batch_size=2)
        # Not by communicate(): it would miss what readline() has read ahead.
        said = [(process.stdout.read(), process.stderr.read()) for process in (one, two)]
    assert [err for _, err in said] == ["", ""]
    told = [out.split() for out, _ in said]
    assert [words[-1] for words in told] == ["StoreFormatError"] * 2
    again = opened(place)
    acknowledged = [i for words in told for i in words[:-1]]
    assert set(acknowledged) <= {m.id for m in again.list()}
    assert len(again.list(states="any")) == 36 + len(acknowledged)
    assert all_close(vectors(again), expected(again, words_16()))


def test_an_embedder_may_be_any_callable(store, place):
    def constant(texts):
        return np.ones((len(texts), 3))

    assert store.reembed(constant).dimension == 3
    assert opened(place, constant).stats().embedding_model == "constant"
