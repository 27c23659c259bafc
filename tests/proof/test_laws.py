"""Laws of the verbs, and one regression test for each rule that random programs found broken."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from proof_kit import START, Clock, contents, open_store
from proof_strategies import items, options, picks, timed

from lance_memory import ConflictError, ConsolidateOptions, ConsolidationPlan
from lance_memory.testing import violations

LAWS = settings(
    max_examples=10,
    deadline=None,
    print_blob=True,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
batches = st.lists(items, min_size=1, max_size=6)


def fresh(directory, *batches):
    """A store under a clock at START, with these batches added a second apart."""
    clock = Clock()
    store = open_store(directory, clock)
    for batch in batches:
        clock.tick()
        store.add_many([timed(START, item) for item in batch])
    clock.tick()
    return store, clock


def does(store, verb, ids, pick):
    """One write of the verb on a memory that `pick` chooses."""
    chosen = ids[pick % len(ids)]
    verbs = {
        "add": lambda: store.add(f"new {pick}"),
        "upsert": lambda: store.upsert(f"new {pick}", key="k1"),
        "update": lambda: store.update(chosen, content=f"edited {pick}", tags=["edited"]),
        "supersede": lambda: store.supersede([chosen], "successor"),
        "retire": lambda: store.retire([chosen]),
        "delete": lambda: store.delete([chosen]),
        "consolidate": lambda: store.consolidate(),
    }
    return verbs[verb]()


VERBS = ("add", "upsert", "update", "supersede", "retire", "delete", "consolidate")


@LAWS
@given(batch=batches, verbs=st.lists(st.tuples(st.sampled_from(VERBS), picks), max_size=4))
def test_rollback_after_any_writes_is_identity(batch, verbs):
    """The whole contents are back, revisions and times too; upkeep in between changes nothing."""
    with tempfile.TemporaryDirectory() as directory:
        store, clock = fresh(directory, batch)
        before, version = contents(store), store.version
        for verb, pick in verbs:
            clock.tick()
            try:
                does(store, verb, sorted(before), pick)
            except (ConflictError, KeyError):
                continue  # deleted or superseded by the step before
        store.optimize(vector_index_from=3)
        store.rollback(version)
        assert contents(store) == before
        assert not store.diff(version, store.version)


@LAWS
@given(batch=batches, verb=st.sampled_from(VERBS), pick=picks, later=batches)
def test_revert_of_a_write_is_identity_and_keeps_what_came_later(batch, verb, pick, later):
    """Later adds stay; what the reverted version did is gone."""
    with tempfile.TemporaryDirectory() as directory:
        store, clock = fresh(directory, batch)
        before, version = contents(store), store.version
        try:
            does(store, verb, sorted(before), pick)
        except ConflictError:
            return
        made = store.version
        if made == version:
            return
        clock.tick()
        unkeyed = [{k: v for k, v in item.items() if k != "key"} for item in later]
        ids = store.add_many([timed(START, {**i, "agent": "later"}) for i in unkeyed]).ids
        added = {i: row for i, row in contents(store).items() if i in ids}
        store.revert(made)
        assert contents(store) == {**before, **added}


def said(row):
    """A row without its revision, which comes after those of both where one replaced the other."""
    return row and {k: v for k, v in row.items() if k not in ("revision", "updated_at")}


@LAWS
@given(
    batch=batches,
    ours=st.lists(st.tuples(st.sampled_from(VERBS), picks), max_size=4),
    theirs=st.lists(st.tuples(st.sampled_from(VERBS), picks), max_size=4),
    prefer=st.sampled_from(["ours", "theirs"]),
)
def test_two_lines_that_merge_one_another_are_one(batch, ours, theirs, prefer):
    """What one did alone is done; nothing is left to merge, and the way back makes both equal."""
    with tempfile.TemporaryDirectory() as directory:
        store, clock = fresh(directory, batch)
        branch, base = store.branch("side"), contents(store)
        for line, steps in ((store, ours), (branch, theirs)):
            for verb, pick in steps:
                clock.tick()
                try:
                    does(line, verb, sorted(base), pick)
                except (ConflictError, KeyError):
                    continue
        here, there = contents(store), contents(branch)
        clock.tick()
        plan = store.merge("side", prefer=prefer, dry_run=True)
        store.merge("side", prefer=prefer)
        merged = contents(store)
        assert violations(store) == []
        for identifier in {*base, *here, *there} - {*plan.keys, *plan.keys.values()}:
            was, our, their = (side.get(identifier) for side in (base, here, there))
            clash = our not in (was, their) and their != was
            assert clash == (identifier in plan.clashes)
            right = (
                (our if prefer == "ours" else their) if clash else our if their == was else their
            )
            assert said(merged.get(identifier)) == said(right)
        assert not store.merge("side", prefer=prefer, dry_run=True)
        branch.merge("main", prefer="theirs")
        back = contents(branch)
        assert {i: said(row) for i, row in back.items()} == {i: said(r) for i, r in merged.items()}
        assert violations(branch) == violations(store) == []
        assert not branch.merge("main", dry_run=True)
        assert not store.merge("side", dry_run=True)


@LAWS
@given(batch=st.lists(items, max_size=8))
def test_a_batch_is_the_same_as_its_items_one_by_one(batch):
    """Under one clock: same rows, and the same answer for each item. Ids aside."""
    given = [timed(START, item) for item in batch]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        whole, single = open_store(one, Clock()), open_store(other, Clock())
        result = whole.add_many(given)
        answers = [single.add(**item) for item in given]
        places = {identifier: n for n, identifier in reversed(list(enumerate(result.ids)))}
        alone = {a.id: n for n, a in reversed(list(enumerate(answers)))}
        assert [places[i] for i in result.ids] == [alone[a.id] for a in answers]
        assert {n: a.reason for n, a in enumerate(answers) if a.reason} == result.already_there
        for identifier, row in contents(whole).items():
            twin = contents(single)[answers[places[identifier]].id]
            assert {**row, "id": ""} == {**twin, "id": ""}
        assert whole.count(states="any") == single.count(states="any")


@LAWS
@given(batch=batches, how=options)
def test_a_saved_plan_is_the_plan(batch, how):
    """to_json and back is identity, and applying what was loaded commits exactly that."""
    with tempfile.TemporaryDirectory() as directory:
        store, _ = fresh(directory, batch)
        plan = store.consolidate(how, dry_run=True)
        loaded = ConsolidationPlan.from_json(plan.to_json())
        assert loaded == plan
        assert loaded.to_json() == plan.to_json()
        result = store.apply(loaded)
        assert result.inserted == len(plan.accepted)
        assert result.updated == sum(cluster.size for cluster in plan.accepted)
        for cluster in plan.accepted:
            memory = store.get(cluster.derived["id"])
            assert memory.content == cluster.derived["content"]
            assert {r.target for r in memory.relationships} == set(cluster.sources)
            assert all(store.get(i).superseded_by == memory.id for i in cluster.sources)


# -- rules that were broken once ----------------------------------------------------------


@pytest.fixture
def kept(tmp_path):
    """A store and its clock."""
    clock = Clock()
    return open_store(tmp_path / "store", clock), clock


def later(clock, seconds=1.0):
    clock.tick(seconds)
    return clock


def test_an_upsert_under_an_id_that_is_taken_is_refused(kept):
    """By another memory, or by the one that it replaces: an id never stands twice."""
    store, clock = kept
    store.add("other", id="taken")
    store.upsert("first", key="k", id="mine")
    before = contents(store)
    for identifier in ("taken", "mine"):
        later(clock)
        with pytest.raises(ConflictError):
            store.upsert("second", key="k", id=identifier)
        assert contents(store) == before


@pytest.mark.parametrize("hidden", [{"state": "contradicted"}, {"state": "pending"}, {}])
def test_an_upsert_over_a_hidden_memory_is_stored(kept, hidden):
    """The same text again, where the old one is not visible: afterwards it is (C44)."""
    store, clock = kept
    ends = {} if hidden else {"expires_at": clock.now + timedelta(seconds=5)}
    store.add("text", key="k", **hidden, **ends)
    later(clock, 10)
    assert store.upsert("text", key="k").outcome == "stored"
    assert [m.content for m in store.list()] == ["text"]


def test_an_upsert_that_says_the_same_is_already_there(kept):
    """With metadata too, whose text the engine writes in its own way."""
    store, clock = kept
    said = {"metadata": {"b": [1, 2.5, None], "a": {"x": False}}, "tags": ["t"]}
    first = store.upsert("text", key="k", **said)
    later(clock)
    second = store.upsert("text", key="k", **said)
    assert (second.id, second.outcome, second.version) == (first.id, "already_there", first.version)


def test_an_upsert_with_another_vector_is_stored(kept):
    """What the caller gives counts, a vector too."""
    store, clock = kept
    store.upsert("text", key="k")
    later(clock)
    given = [1.0] + [0.0] * 7
    assert store.upsert("text", key="k", embedding=given).outcome == "stored"
    assert store.get("k").embedding.tolist() == given


def test_an_update_that_changes_nothing_makes_no_version(kept):
    """Also with metadata of several members."""
    store, clock = kept
    added = store.add("text", metadata={"b": 1, "a": [1, 2.5]}, importance=0.1)
    later(clock)
    result = store.update(added.id, content="text", metadata={"a": [1, 2.5], "b": 1})
    assert (result.version, result.updated) == (added.version, 0)
    assert store.get(added.id).revision == 1


def test_two_memories_of_one_key_are_not_unretired_together(kept):
    """A key has one live memory."""
    store, clock = kept
    ids = []
    for text in ("first", "second"):
        ids.append(store.add(text, key="k").id)
        later(clock)
        store.retire(ids[-1])
        later(clock)
    with pytest.raises(ConflictError):
        store.unretire(ids)
    store.unretire(ids[1])
    assert store.get("k").content == "second"


def test_a_pending_memory_holds_its_key(kept):
    """As `add` sees it, so do `unretire` and `update`."""
    store, clock = kept
    old = store.add("old", key="k").id
    store.retire(later(clock) and old)
    store.add("new", key="k", state="pending")
    plain = store.add("plain").id
    with pytest.raises(ConflictError):
        store.unretire(old)
    with pytest.raises(ConflictError):
        store.update(plain, key="k")


def test_an_expired_memory_does_not_come_back_beside_its_keys_new_holder(kept):
    """Its expiry cannot be moved while another live memory has the key (C44)."""
    store, clock = kept
    old = store.add("old", key="k", expires_at=clock.now + timedelta(seconds=5)).id
    later(clock, 10)
    store.add("new", key="k")
    with pytest.raises(ConflictError):
        store.update(old, expires_at=None)
    store.update(old, content="may be edited all the same")
    assert store.get("k").content == "new"


def test_a_revert_does_not_bring_back_a_memory_whose_key_is_taken(kept):
    """The one who has the key now stays the only one (C43)."""
    store, clock = kept
    old = store.add("old", key="k").id
    gone = store.delete(later(clock) and old).version
    new = store.add("new", key="k").id
    with pytest.raises(ConflictError) as caught:
        store.revert(gone)
    assert new in caught.value.ids
    assert store.get("k").content == "new"


def test_keyed_events_that_were_imported_are_known_for_good(kept):
    """Also those of one content under several keys, after one was consolidated away."""
    store, clock = kept
    event = datetime(2024, 1, 1, tzinfo=UTC)
    batch = [{"content": "yes", "key": key, "event_at": event} for key in "ab"]
    ids = store.add_many(batch).ids
    summary = store.supersede(later(clock) and [ids[0]], "summary").ids[0]
    later(clock)
    again = store.add_many(batch)
    assert (again.stored, again.ids) == (0, (summary, ids[1]))  # which has the key now


@pytest.mark.parametrize("texts", [[], ["alone"], ["far", "apart"]])
def test_a_consolidation_that_finds_nothing_makes_no_version(kept, texts):
    """Through the store and through a scoped handle."""
    store, _ = kept
    store.add_many([{"content": text, "user": "ann"} for text in texts])
    version = store.version
    for handle in (store, store.scoped(user="ann")):
        result = handle.consolidate()
        assert (result.version, result.plan.accepted) == (version, ())


def test_an_empty_batch_makes_no_version(kept):
    """Also on a handle that has added before."""
    store, _ = kept
    for n in range(6):
        version = store.add(f"text {n}").version
        result = store.add_many([])
        assert (result.version, result.stored, result.ids) == (version, 0, ())


def test_a_plan_whose_memory_is_there_already_is_refused(kept):
    """Going back in the sources' scopes alone leaves the summary; applying again doubles nothing."""
    store, clock = kept
    for user in ("ann", "bob"):
        store.add("the same text", user=user)
    version = store.version
    later(clock)
    plan = store.consolidate(ConsolidateOptions(across=("user",)), dry_run=True)
    store.apply(plan)
    for user in ("ann", "bob"):
        store.scoped(user=user).rollback(version)
    with pytest.raises(ConflictError):
        store.apply(plan)
    assert len(contents(store)) == 3


def test_a_successor_keeps_only_metadata_that_agrees_as_json(kept):
    """false is not 0."""
    store, clock = kept
    ids = store.add_many(
        [{"content": "a", "metadata": {"n": 0}}, {"content": "b", "metadata": {"n": False}}]
    ).ids
    later(clock)
    successor = store.get(store.supersede(list(ids), "both").ids[0])
    assert successor.metadata == {}


@pytest.mark.parametrize("how", ["update", "add"])
def test_a_revision_and_its_time_name_one_content_for_good(kept, how):
    """Under a clock that stands still: what was written, undone and written otherwise differs."""
    store, _ = kept
    first = store.add("text", id="i")
    if how == "update":
        one = store.update("i", content="one").version
        store.rollback(first.version)
        two = store.update("i", content="two").version
    else:
        one = first.version
        store.delete("i")
        two = store.add("another text", id="i").version
    found = store.diff(one, two)
    assert [c.columns[0] for c in found.updated] == ["content"]
    store.rollback(one)
    assert store.get("i").content == store.at(one).get("i").content
