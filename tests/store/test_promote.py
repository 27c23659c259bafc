"""Promote: stored once under the caller's ids; working rows become what they are promoted to."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lance_memory import (
    ConflictError,
    Conversation,
    InvalidInputError,
    Message,
    RejectedError,
    Scope,
    ScopeError,
    WorkingMemory,
)
from lance_memory.testing import check


def rows(store):
    return {m.id: (m.content, m.kind, m.importance, m.revision) for m in store.list(states="any")}


def test_what_is_not_there_is_stored_once(store):
    batch = [{"id": "a", "content": "one"}, {"id": "b", "content": "two", "kind": "semantic"}]
    made = store.promote(batch)
    assert (made.operation, made.inserted, made.ids) == ("promote", 2, ("a", "b"))
    again = store.promote(batch)
    assert (again.version, again.ids) == (made.version, ())
    assert rows(store) == {"a": ("one", "episodic", 0.5, 1), "b": ("two", "semantic", 0.5, 1)}
    assert all(memory.embedding is not None for memory in map(store.get, "ab"))


def test_a_working_row_takes_over_kind_importance_and_end_alone(store, clock):
    end = clock.now + timedelta(days=1)
    asleep = {"id": "a", "content": "one", "kind": "working", "expires_at": end, "tags": ["x"]}
    assert store.promote([asleep]).operation == "hibernate"
    store.update("a", content="edited")
    made = store.promote([{"id": "a", "content": "one", "tags": ["y"], "importance": 0.75}])
    assert (made.inserted, made.updated) == (0, 1)
    found = store.get("a")
    assert (found.content, found.kind, found.importance) == ("edited", "episodic", 0.75)
    assert (found.tags, found.expires_at, found.revision) == (("x",), None, 3)
    check(store)


def test_what_is_there_otherwise_stays_as_it_is(store, clock):
    soon = clock.now + timedelta(seconds=30)
    store.promote([{"id": i, "content": i, "kind": "working"} for i in ("retired", "asleep")])
    store.promote([{"id": "over", "content": "over", "kind": "working", "expires_at": soon}])
    store.add("episode", id="episode")
    store.retire("retired")
    clock.forward(minutes=1)
    before, version = rows(store), store.version
    batch = [{"id": i, "content": "new", "importance": 1.0} for i in ("retired", "over", "episode")]
    batch.append({"id": "asleep", "content": "new", "kind": "working", "importance": 1.0})
    assert store.promote(batch).version == version
    assert rows(store) == before


def test_what_may_not_be_stored_any_more_only_changes(store):
    store.promote([{"id": "a", "content": "one", "kind": "working"}])
    batch = [{"id": i, "content": "x"} for i in "abc"]
    asked = []

    def fresh():
        asked.append(store.version)
        return ["b"]

    made = store.promote(batch, fresh=fresh)
    assert (made.ids, asked) == (("b", "a"), [made.version - 1])


def test_an_id_of_another_scope_is_refused(store):
    store.promote([{"id": "a", "content": "one", "kind": "working", "user": "bob"}])
    with pytest.raises(ConflictError, match="of another scope"):
        store.scoped(user="ana").promote([{"id": "a", "content": "one"}])
    with pytest.raises(RejectedError, match="outside the handle's scope"):
        store.scoped(user="ana").promote([{"id": "b", "content": "one", "user": "bob"}])
    with pytest.raises(InvalidInputError, match="needs an id"):
        store.promote([{"content": "one"}])
    store.add("held", key="k")
    with pytest.raises(ConflictError, match="key 'k'"):
        store.promote([{"id": "b", "content": "one", "key": "k"}])
    assert store.count(states="any") == 2


def test_cleaned_is_what_the_write_path_leaves(store):
    scope = Scope(tenant="t", user="ana", session="s")
    said = Conversation(messages=(Message(content=" my password: Zanzibar-77x "),), scope=scope)
    made = store.scoped(tenant="t").cleaned(said)
    assert (made.messages[0].content, made.scope) == ("my password: [secret]", scope)
    with pytest.raises(RejectedError, match="empty"):
        store.cleaned(Conversation(messages=(Message(content=" "),)))
    with pytest.raises(ScopeError, match="outside this handle's"):
        store.scoped(tenant="u").cleaned(said)


def test_the_ledger_is_the_one_that_the_store_was_opened_with(reopen, tmp_path):
    store = reopen(tmp_path / "store", ledger=tmp_path / "aside")
    store.ledger.put("s", "k", b"v")
    assert (tmp_path / "aside" / store.store_id / "ledger.sqlite").exists()
    with pytest.raises(ScopeError, match="the ledger concerns the whole store"):
        _ = store.scoped(user="u").ledger
    with pytest.raises(InvalidInputError, match="ledger="):
        _ = reopen(tmp_path / "store").ledger


def test_a_store_has_an_id_that_its_branches_share(store, place, tmp_path):
    assert store.branch("side").store_id == store.store_id == store.at(store.version).store_id
    assert store.checkout(store.version, place(tmp_path / "other")).store_id != store.store_id


def test_messages_go_into_the_table_wherever_it_is(store):
    """In an object store they are in this handle's memory until then."""
    mine = WorkingMemory(store.scoped(user="ana"))
    mine.append_message("s", "user", "one")
    mine.hibernate(timedelta(0))
    mine.append_message("s", "assistant", "two")
    assert [message.content for message in mine.recent("s")] == ["one", "two"]
    made = mine.flush("s")
    assert (made.inserted, made.updated, mine.recent("s")) == (1, 1, ())
    mine.append_message("s", "user", "three")
    store.forget(user="ana")
    assert (mine.recent("s"), store.count(states="any")) == ((), 0)
