"""Many upserts, and what goes with them, as one version."""

from __future__ import annotations

import pytest

from lance_memory import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RejectedError,
    ScopeError,
    State,
)
from lance_memory.testing import check


def test_many_upserts_are_one_version_and_each_replaces_its_own(store):
    first = store.upsert_many([{"key": "a", "content": "A 1"}, {"key": "b", "content": "B 1"}])
    second = store.upsert_many(
        [{"key": "b", "content": "B 2"}, {"key": "c", "content": "C 1"}], reason="more"
    )
    assert (second.version, second.stored) == (first.version + 1, 2)
    assert {m.key: m.content for m in store.list()} == {"a": "A 1", "b": "B 2", "c": "C 1"}
    assert store.get(first.ids[1]).superseded_by == second.ids[0]
    assert [e.target for e in store.get("b").relationships] == [first.ids[1]]
    (entry, *_) = store.log()
    assert (entry.operation, entry.reason, entry.inserted, entry.updated) == (
        "upsert",
        "more",
        2,
        1,
    )
    check(store)


def test_a_text_without_a_key_is_no_memory_for_many_upserts(store):
    version = store.version
    with pytest.raises(InvalidInputError, match="a mapping with its key and content"):
        store.upsert_many(["Ann lives in Bern"])
    assert store.version == version


def test_what_says_the_same_is_not_stored_again(store):
    said = [{"key": "a", "content": "A", "tags": ["t"]}, {"key": "b", "content": "B"}]
    first = store.upsert_many(said)
    again = store.upsert_many(said)
    assert (again.version, again.stored, again.ids) == (first.version, 0, first.ids)
    mixed = store.upsert_many([said[0], {"key": "b", "content": "B", "importance": 0.9}])
    assert (mixed.stored, list(mixed.already_there), mixed.ids[0]) == (1, [0], first.ids[0])


def test_one_stale_expectation_writes_nothing_of_the_batch(store):
    read = store.upsert("A 1", key="a").id
    store.upsert("A 2", key="a")
    before = store.version
    batch = [{"key": "b", "content": "B"}, {"key": "a", "content": "A 3"}]
    for expected in ([None, read], ["", ""], [None, ""], ["x", None]):
        with pytest.raises(ConflictError, match="live memory of the key"):
            store.upsert_many(batch, expected=expected)
    assert store.version == before
    now = store.get("a").id
    assert store.upsert_many(batch, expected=["", now]).version == before + 1


def test_what_goes_goes_in_the_same_version(store):
    a, b = store.upsert_many([{"key": k, "content": k} for k in "ab"]).ids
    done = store.upsert_many([{"key": "c", "content": "C"}], retire=["a"], reason="moved")
    assert [m.key for m in store.list()] == ["b", "c"]
    assert (store.get(a).state, store.get(a).state_reason) == (State.RETIRED, "moved")
    store.revert(done.version)
    assert sorted(m.key for m in store.list()) == ["a", "b"]
    assert store.upsert_many([], retire=[a, b]).version == store.version
    assert store.list() == []
    check(store)


def test_what_is_replaced_cannot_be_retired_as_well(store):
    store.upsert("A 1", key="a")
    before = store.version
    with pytest.raises(ConflictError, match="leave out one of the two"):
        store.upsert_many([{"key": "a", "content": "A 2"}], retire=["a"])
    with pytest.raises(NotFoundError):
        store.upsert_many([{"key": "b", "content": "B"}], retire=["nobody"])
    assert store.version == before


def test_what_others_have_retired_since_is_a_conflict_though_nothing_is_left_to_do(store):
    """Guards the check of what was read, which a change set without rows did not come to."""
    one = store.add("the kettle is red", key="kettle")
    read, version = store.get(one.id), store.retire(one.id).version
    with pytest.raises(ConflictError) as error:
        store.upsert_many([], retire=[read.id], made_from=[read])
    assert (error.value.ids, store.version) == ((read.id,), version)
    assert store.upsert_many([], retire=[read.id]).version == version


def test_nothing_is_made_from_what_has_changed_since(store):
    store.add("the kettle is red", key="kettle")
    read = store.get("kettle")
    made = [{"key": "summary", "content": "a red kettle"}]
    store.update("kettle", content="the kettle is blue")
    before = store.version
    with pytest.raises(ConflictError) as caught:
        store.upsert_many(made, made_from=[read])
    assert (caught.value.ids, store.version) == ((read.id,), before)
    store.upsert_many(made, made_from=[store.get("kettle")])
    store.delete("kettle")
    with pytest.raises(ConflictError):
        store.upsert_many([{"key": "s", "content": "s"}], made_from=[read])


@pytest.mark.parametrize(
    ("batch", "error", "words"),
    [
        ([{"key": "a", "content": "1"}, {"key": "a", "content": "2"}], RejectedError, "both have"),
        ([{"key": "a", "content": "1"}, {"content": "2"}], RejectedError, "row 1: key is ''"),
        ([{"key": "a", "content": " "}], RejectedError, "content"),
        ([{"key": "a", "content": "1", "state": "gone"}], RejectedError, "state"),
    ],
)
def test_a_batch_with_a_fault_stores_none_of_it(store, batch, error, words):
    with pytest.raises(error, match=words):
        store.upsert_many(batch)
    assert store.count(states="any") == 0


def test_expectations_are_one_for_each(store):
    with pytest.raises(InvalidInputError, match="1 ids for 2 memories"):
        store.upsert_many([{"key": k, "content": k} for k in "ab"], expected=[None])


def test_one_key_in_two_scopes_is_two_keys(store):
    both = [{"key": "k", "content": f"of {u}", "user": u} for u in ("ana", "bob")]
    store.upsert_many(both)
    store.upsert_many([{"key": "k", "content": "new", "user": "bob"}])
    assert [m.content for m in store.list()] == ["of ana", "new"]
    with pytest.raises((ScopeError, RejectedError)):
        store.scoped(user="ana").upsert_many(both)
    with pytest.raises(NotFoundError):
        store.scoped(user="ana").upsert_many([], retire=[store.scoped(user="bob").get("k").id])
