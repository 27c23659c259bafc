"""Forget: the text is in no version, tag, branch, index or log, and everything else is as it was."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from lance_memory import (
    AmbiguousError,
    ConflictError,
    ConsolidateOptions,
    FunctionEmbedder,
    InvalidInputError,
    MemoryStore,
    NotFoundError,
    ScopeError,
    migrate_store,
)

STORES = Path(__file__).parents[1] / "data" / "stores"
SECRET = "the zanzibarine recipe of quxomatic personage"


def files_with(store, *needles):
    """The files of the store whose bytes hold one of the texts."""
    raw = [needle.encode() for needle in needles]
    found = []
    for path in sorted(Path(store.uri).rglob("*")):
        if path.is_file() and any(needle in path.read_bytes() for needle in raw):
            found.append(path.relative_to(store.uri).as_posix())
    return found


def everything(view):
    return {m.id: m.content for m in view.list(states="any")}


@pytest.fixture
def kept(store):
    """Memories of others, older than the ones that are forgotten."""
    store.add_many([{"content": f"note {i} of bob", "user": "bob"} for i in range(8)])
    store.optimize()
    return everything(store)


def test_c39_a_forgotten_text_is_in_no_version_tag_branch_or_index(store, kept):
    clean = store.version
    one = store.add(SECRET, user="ann", key="recipe", tags=["quxomatic"])
    store.tag("held")
    held = store.version
    branch = store.branch("trial")
    branch.add("a note of bob on the branch", user="bob")
    store.update(one.id, content=f"{SECRET}, revised")
    store.optimize()
    store.retire(one.id)

    plan = store.forget(one.id, dry_run=True)
    done = store.forget(one.id, reason="she asked")

    assert files_with(store, one.id, "zanzibarine", "quxomatic", "recipe") == []
    assert (plan.ids, plan.tags, plan.branches) == ((one.id,), {"held": held}, ("trial",))
    assert (done.plan.ids, done.plan.versions, done.proof.found) == (plan.ids, plan.versions, ())
    assert store.tags() == {"held": held}
    for view in (store, store.at("held"), store.at(held), store.at(clean)):
        assert everything(view) == kept
        assert view.find(one.id) is None
        assert not view.search("zanzibarine recipe", mode="text", states="any").hits
    assert len(branch.list(user="bob")) == len(kept) + 1
    assert branch.find(one.id) is None
    with pytest.raises(NotFoundError, match="cleaned up"):
        store.at(held + 1)


@pytest.mark.slow
def test_numbers_tags_log_and_rollback_work_after_a_tagged_version_was_rewritten(store, kept):
    one = store.add(SECRET, user="ann")
    store.tag("held", store.version)
    held = store.version
    store.add("a later note of bob", user="bob")
    store.forget(one.id)

    again = MemoryStore.open(store.uri, create=False, embedder=store.embedder)
    assert again.at("held").version == held
    assert again.diff("held").inserted[0].content == "a later note of bob"
    assert {e.version: (e.operation, e.readable) for e in again.log()}[held] == ("add", True)
    branch = again.branch("from-held", "held")
    assert [(b.parent, b.parent_version) for b in again.branches()] == [("main", held)]
    assert everything(branch) == kept
    again.rollback("held")
    assert everything(again) == kept
    again.delete_branch("from-held")
    assert again.untag("held") == held
    with pytest.raises(NotFoundError):
        again.at(held)


def test_a_version_that_never_held_it_stays_as_it_was(store, kept):
    before = store.version
    state = {e.version: e for e in store.log(upkeep=True)}
    one = store.add(SECRET, user="ann")
    done = store.forget(one.id)
    after = {e.version: e for e in store.log(upkeep=True)}
    assert {v: after[v] for v in state} == state
    assert done.plan.versions == {"main": (before + 1,)}


def test_the_log_keeps_who_and_when_and_a_tombstone_without_content(store, kept):
    one = store.add(SECRET, user="ann", tenant="acme")
    added = store.log(limit=1)[0]
    store.update(one.id, importance=0.9, reason=f"about {one.id}: {SECRET}")
    done = store.forget(one.id, reason="she asked")
    log = {e.operation: e for e in store.log()}
    stone = log["forget"]
    assert stone.manifest == {"forgotten": 1, "sha256": [sha256(one.id.encode()).hexdigest()]}
    assert (stone.op_id, stone.reason, stone.deleted) == (done.op_id, "she asked", 1)
    assert stone.version == done.logged < done.version == store.version
    assert str(done).startswith(f"version {done.version} (log: {done.logged}): forgot 1 ")
    assert stone.scopes is None
    assert (log["update"].reason, log["update"].scopes) == ("(forgotten)", ())
    entry = next(e for e in store.log() if e.version == added.version)
    assert (entry.at, entry.op_id, entry.readable) == (added.at, added.op_id, False)


@pytest.mark.parametrize("name", ["id", "beginning", "key"])
def test_c39_it_is_found_by_id_beginning_or_key_also_when_it_was_deleted_long_ago(store, name):
    one = store.add(SECRET, user="ann", key="recipe")
    store.add("a note", user="bob")
    store.delete(one.id)
    store.optimize()
    ref = {"id": one.id, "beginning": one.id[:-3], "key": "recipe"}[name]
    assert store.forget(ref).plan.ids == (one.id,)
    assert files_with(store, one.id, "zanzibarine") == []


def test_a_name_of_several_or_of_none_is_told(store):
    ids = [store.add(f"note {i}", user=f"u{i}", key="same").id for i in range(2)]
    with pytest.raises(AmbiguousError) as caught:
        store.forget("same")
    assert caught.value.candidates == tuple(ids)
    with pytest.raises(NotFoundError):
        store.forget("nothing")
    with pytest.raises(NotFoundError):
        store.forget(user="nobody")


def test_c12_no_name_and_no_scope_is_an_error(store):
    store.add("a note")
    version = store.version
    for wrong, arguments in (
        (ScopeError, {}),
        (ScopeError, {"tags": ["x"]}),
        (InvalidInputError, {"refs": []}),
        (InvalidInputError, {"refs": "x", "user": "ann"}),
    ):
        with pytest.raises(wrong):
            store.forget(**arguments)
    assert store.version == version


def test_c12_forgetting_everything_of_one_user_touches_nothing_of_another(store, kept):
    store.add_many([{"content": f"note {i} of bob", "user": "ann"} for i in range(8)])
    bobs = {m.id: m for m in store.list(user="bob", states="any")}
    done = store.forget(user="ann")
    assert len(done.plan.ids) == 8
    assert {m.id: m for m in store.list(states="any")} == bobs
    assert store.count(user="ann", states="any") == 0


def test_a_scoped_handle_forgets_within_its_scope_alone(store, kept):
    mine = store.add("a note of ann", user="ann")
    other = next(iter(kept))
    handle = store.scoped(user="ann")
    with pytest.raises(NotFoundError):
        handle.forget(other)
    with pytest.raises(ScopeError):
        handle.forget(user="bob")
    assert handle.forget(mine.id).plan.ids == (mine.id,)
    assert everything(store) == kept


def test_a_stretch_of_a_session_can_be_forgotten(store):
    start = datetime(2025, 3, 1, tzinfo=UTC)
    for day in range(4):
        moment = start + timedelta(days=day)
        store.add(f"day {day}", session="s", event_at=moment)
    first, last = start + timedelta(days=1), start + timedelta(days=3)
    done = store.forget(session="s", since=first, until=last)
    assert sorted(everything(store).values()) == ["day 0", "day 3"]
    assert len(done.plan.ids) == 2


def test_successors_are_listed_and_go_along_when_asked(store):
    one, two = (store.add(f"{SECRET} {i}", user="ann") for i in range(2))
    made = store.supersede([one.id, two.id], f"summary: {SECRET}").ids[0]
    last = store.supersede(made, "the last word").ids[0]

    plan = store.forget([one.id], dry_run=True)
    assert (plan.ids, plan.successors) == ((one.id,), (made, last))

    done = store.forget(one.id)
    kept = store.get(made)
    assert [e.target for e in kept.relationships] == [two.id]
    assert (kept.state, kept.superseded_by) == ("superseded", last)
    assert set(done.proof.mentioned) <= {made, two.id}

    store.forget(two.id, successors=True)
    assert everything(store) == {}
    assert files_with(store, "zanzibarine", one.id, two.id, made, last) == []


def test_what_a_forgotten_memory_had_superseded_is_retired_and_can_come_back(store):
    one = store.add("a fact", user="ann", key="fact")
    made = store.supersede(one.id, f"a lie: {SECRET}").ids[0]
    store.forget(made)
    source = store.get(one.id)
    assert (source.state, source.superseded_by) == ("retired", None)
    assert source.state_reason == "the memory that took its place was forgotten"
    assert source.revision == 3
    store.unretire(one.id)
    assert [m.content for m in store.list()] == ["a fact"]


def test_c39_the_id_and_the_scope_can_be_used_again(store, kept):
    one = store.add(SECRET, user="ann", key="recipe")
    store.forget(user="ann")
    again = store.add(SECRET, user="ann", key="recipe", id=one.id)
    assert (again.id, store.get("recipe").content) == (one.id, SECRET)
    assert [h.memory.id for h in store.search("zanzibarine", user="ann").hits] == [one.id]
    store.forget(one.id)
    assert everything(store) == kept


@pytest.mark.slow
def test_forgetting_twice_rewrites_a_rewritten_version_again(store):
    ids = [store.add(f"{SECRET} {i}", user=f"u{i}").id for i in range(3)]
    store.tag("held")
    held = store.version
    store.forget(ids[0])
    store.forget(ids[1])
    assert list(everything(store.at("held"))) == [ids[2]]
    assert store.tags() == {"held": held}
    assert files_with(store, ids[0], ids[1]) == []


@pytest.mark.slow
def test_tags_within_a_branch_and_branches_of_branches_are_rewritten(store, kept):
    one = store.add(SECRET, user="ann")
    first = store.branch("first")
    first.tag("inner")
    inner = first.version
    second = first.branch("second")
    second.add("a note of bob", user="bob")
    store.forget(one.id)
    assert first.tags() == {"inner": inner}
    assert everything(first.at("inner")) == kept == everything(first)
    assert len(everything(second)) == len(kept) + 1
    assert files_with(store, one.id, "zanzibarine") == []
    second.add("it goes on", user="bob")
    assert second.search("goes on", user="bob", k=1).hits[0].memory.content == "it goes on"


def test_a_dry_run_writes_nothing(store, kept):
    one = store.add(SECRET, user="ann")
    before = {p: p.stat().st_mtime_ns for p in Path(store.uri).rglob("*") if p.is_file()}
    plan = store.forget(one.id, dry_run=True)
    after = {p: p.stat().st_mtime_ns for p in Path(store.uri).rglob("*") if p.is_file()}
    assert after == before
    assert (plan.ids, plan.version) == ((one.id,), store.version)


def test_recorded_queries_about_them_go(reopen, tmp_path):
    store = reopen(tmp_path / "asked", record_queries=True)
    one = store.add(SECRET, user="ann")
    store.add("a note of bob", user="bob")
    store.search("note", user="bob")
    store.search("what did ann say", user="ann")
    store.search(f"is {SECRET} right?", user="bob")
    assert store.forget(one.id, dry_run=True).queries == 2
    assert store.forget(one.id).queries == 2
    assert [q.query for q in store.queries()] == ["note"]
    assert files_with(store, one.id, "zanzibarine") == []


def test_saved_plans_in_the_stores_directory_go_and_others_cannot_be_applied(store, tmp_path):
    ids = [f"memory-{i}" for i in range(2)]
    for identifier, more in zip(ids, ("now", "here"), strict=True):
        store.add(f"the kettle is broken again {more}", user="ann", id=identifier)
    options = ConsolidateOptions(min_similarity=0.5)
    plan = store.consolidate(options, user="ann", dry_run=True, guard=None)
    assert len(plan.clusters) == 1
    inside = Path(store.uri) / "plan.json"
    inside.write_text(plan.to_json())
    state = Path(store.uri) / "state.json"
    state.write_text(json.dumps({"newest": ids[0], "count": 2}))
    done = store.forget(ids[0])
    assert done.plans == ("plan.json",)
    assert not inside.exists()
    assert json.loads(state.read_text()) == {"newest": "(forgotten)", "count": 2}
    with pytest.raises(ConflictError):
        store.apply(plan)


@pytest.mark.slow
def test_files_of_a_killed_writer_that_hold_them_are_removed(store, kept):
    one = store.add(SECRET, user="ann")
    data = Path(store.uri) / "memories.lance" / "data"
    orphan = data / "00killed.lance"
    newest = max(data.iterdir(), key=lambda p: p.stat().st_mtime_ns)
    orphan.write_bytes(newest.read_bytes())
    os.utime(orphan, (1_700_000_000, 1_700_000_000))
    store.forget(one.id)
    assert not orphan.exists()
    assert files_with(store, one.id, "zanzibarine") == []


def test_a_store_made_by_checkout_keeps_its_files_and_forgetting_is_refused(store, tmp_path):
    one = store.add(SECRET, user="ann")
    clone = store.checkout(store.version, tmp_path / "clone")
    tag = f"checkout-v{store.version}"
    assert store.forget(one.id, dry_run=True).clones == (tag,)
    with pytest.raises(ConflictError, match=tag):
        store.forget(one.id)
    assert clone.get(one.id).content == SECRET
    done = clone.forget(one.id)
    assert done.plan.elsewhere == (f"{store.uri}/memories.lance",)
    assert everything(clone) == {}
    store.untag(tag)
    store.forget(one.id)
    assert everything(store) == everything(clone) == {}


@pytest.mark.slow
def test_the_vector_index_is_built_again_without_them(store):
    store.add_many([{"content": f"note {i}", "user": f"u{i % 2}"} for i in range(400)])
    store.optimize(vector_index_from=10)
    gone = store.forget(user="u1")
    info = store.index()
    assert (info.rows, info.unindexed_rows, len(gone.plan.ids)) == (200, 0, 200)
    found = store.search("note 7", mode="vector", k=50, states="any").hits
    assert {hit.memory.scope.user for hit in found} == {"u0"}


def test_a_memory_is_meant_if_it_passed_the_filter_once(store):
    one = store.add("a note", user="ann", metadata={"topic": "health"})
    store.add("another", user="ann", metadata={"topic": "work"})
    store.update(one.id, metadata={"topic": "other"})
    assert store.forget(user="ann", metadata={"topic": "health"}).plan.ids == (one.id,)


def test_an_unfinished_forgetting_is_told_and_finished(store, kept):
    one = store.add(SECRET, user="ann")
    store.tag("held")
    assert store.unfinished_forgetting() is None
    assert store.finish_forgetting() is None
    mark = {
        "op_id": "an-op",
        "at": "2025-01-01T00:00:00+00:00",
        "actor": "root",
        "reason": "she asked",
        "ids": [one.id],
        "scopes": [],
        "rebuilt": {},
        "versions": {},
        "queries": 0,
        "plans": [],
    }
    (Path(store.uri) / "forget.json").write_text(json.dumps(mark))
    begun = store.unfinished_forgetting()
    assert (begun.op_id, begun.ids) == ("an-op", (one.id,))
    assert store.finish_forgetting().proof.found == ()
    assert store.unfinished_forgetting() is None
    assert everything(store) == everything(store.at("held")) == kept
    assert next(e for e in store.log() if e.operation == "forget").actor == "root"


@pytest.mark.slow
def test_a_tagged_version_of_an_earlier_schema_is_rewritten_too(tmp_path):
    path = shutil.copytree(STORES / "schema-1", tmp_path / "store")
    migrate_store(path)
    ones = FunctionEmbedder(lambda t: np.ones((len(t), 8)), name="words-8", dimension=8)
    store = MemoryStore.open(path, embedder=ones)
    number = store.tags()["start"]
    there = {m.id for m in store.at("start").list(states="any")}
    one = next(m for m in store.list(states="any") if m.id in there)
    done = store.forget(one.id)
    assert (done.proof.found, store.tags()["start"]) == ((), number)
    assert {m.id for m in store.at("start").list(states="any")} == there - {one.id}
    assert files_with(store, one.id) == []


@pytest.mark.slow
def test_c41_a_tenant_of_10_000_memories_is_forgotten_in_one_go(store):
    texts = [f"note {i} of the tenant" for i in range(10_000)]
    vectors = np.random.default_rng(0).standard_normal((10_000, 16)).astype(np.float32)
    rows = {"content": texts, "embedding": list(vectors), "tenant": ["acme"] * len(texts)}
    store.add_many(pl.DataFrame(rows))
    store.add("a note of another", tenant="other")
    store.optimize()
    done = store.forget(tenant="acme", reason="the contract ended")
    assert (len(done.plan.ids), done.proof.found) == (10_000, ())
    assert list(everything(store).values()) == ["a note of another"]
    assert store.log(limit=1)[0].deleted == 10_000
