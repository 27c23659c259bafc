from __future__ import annotations

import numpy as np
import pytest

from lance_memory import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RejectedError,
    Relationship,
    State,
    WriteResult,
)


def test_an_update_keeps_the_id_and_is_the_next_revision(store):
    stored = store.add("Tea at four.", importance=0.2, tags=["tea"])
    before = store.get(stored.id)
    result = store.update(stored.id, content="Tea at five.", importance=0.9)
    after = store.get(stored.id)
    assert result == WriteResult(
        uri=store.uri, version=store.version, operation="update", ids=(stored.id,), updated=1
    )
    assert (after.id, after.revision, after.content, after.importance) == (
        (stored.id, 2, "Tea at five.", pytest.approx(0.9))
    )
    assert (after.tags, after.created_at, after.state_at) == (
        (before.tags, before.created_at, before.state_at)
    )
    assert after.updated_at > before.updated_at
    assert after.content_hash != before.content_hash
    assert store.count(states="any") == 1


def test_an_updated_text_is_found_by_its_new_meaning_and_words_only(store, embedder):
    """C21."""
    stored = store.add("apples pears")
    store.update(stored.id, content="hammer nails")
    np.testing.assert_array_equal(
        store.get(stored.id).embedding, embedder.embed(["hammer nails"])[0]
    )
    assert [h.memory.id for h in store.search("hammer", mode="text")] == [stored.id]
    assert list(store.search("apples", mode="text")) == []
    assert store.search("hammer nails", mode="vector")[0].similarity == pytest.approx(1, abs=1e-5)


def test_a_given_embedding_is_kept(store):
    stored = store.add("apples")
    store.update(stored.id, content="pears", embedding=[1.0] * 16)
    assert store.get(stored.id).embedding.tolist() == [1.0] * 16
    store.update(stored.id, embedding=[2.0] * 16)
    assert store.get(stored.id).embedding.tolist() == [2.0] * 16


def test_relationships_to_an_updated_memory_stay_right(store):
    """C45."""
    target = store.add("the target")
    source = store.add("about it", relationships=[Relationship(relation="about", target=target.id)])
    store.update(target.id, content="the target, told better")
    assert [(r.memory.content, r.relation) for r in store.related(source.id)] == [
        ("the target, told better", "about")
    ]


def test_what_is_not_named_stays(store):
    stored = store.add("a", metadata={"n": 0}, tags=["t"], key="k", actor="bob", seq=3)
    before = store.get(stored.id)
    store.update("k", role="user")
    after = store.get(stored.id)
    changed = {
        n
        for n in before.__dataclass_fields__
        if getattr(before, n) is not getattr(after, n)
        and n != "embedding"
        and getattr(before, n) != getattr(after, n)
    }
    assert changed == {"role", "revision", "updated_at"}


def test_the_old_text_stays_in_the_history(store):
    stored = store.add("old")
    store.update(stored.id, content="new")
    assert store.at(stored.version).get(stored.id).content == "old"


def test_an_update_to_what_is_there_makes_no_version(store):
    stored = store.add("a", metadata={"a": 1, "b": [True, None]}, tags=["t"], importance=0.3)
    before = store.version
    result = store.update(
        stored.id, content="a", metadata={"a": 1, "b": [True, None]}, tags=["t"], importance=0.3
    )
    assert result == WriteResult(uri=store.uri, version=before, operation="update")
    assert (store.version, store.get(stored.id).revision) == (before, 1)


@pytest.mark.parametrize(
    "fields",
    [{"id": "x"}, {"state": "retired"}, {"user": "bob"}, {"tenant": "t"}, {"session": "s"}],
    ids=str,
)
def test_identity_scope_and_state_do_not_change_by_update(store, fields):
    stored = store.add("a")
    with pytest.raises(InvalidInputError, match=f"update cannot change {next(iter(fields))}"):
        store.update(stored.id, **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"superseded_by": "x"},
        {"content_hash": "x"},
        {"state_at": None},
        {"created_at": None},
        {"updated_at": None},
        {"state_reason": "x"},
    ],
    ids=str,
)
def test_the_stores_own_columns_do_not_change_by_update(store, fields):
    stored = store.add("a")
    before = store.get(stored.id)
    with pytest.raises((InvalidInputError, RejectedError), match=next(iter(fields))):
        store.update(stored.id, **fields)
    assert store.get(stored.id) == before


def test_an_update_of_nothing_is_refused(store):
    stored = store.add("a")
    with pytest.raises(InvalidInputError, match="changes nothing"):
        store.update(stored.id)


@pytest.mark.parametrize(
    "fields",
    [
        {"content": ""},
        {"content": " "},
        {"content": 5},
        {"content": " ", "embedding": [1.0] * 16},
        {"kind": "dream"},
        {"importance": 2},
        {"embedding": [0.0] * 16},
        {"embedding": [1.0]},
        {"metadata": {"a": {1}}},
        {"colour": "red"},
        {"key": " "},
    ],
    ids=str,
)
def test_a_malformed_update_changes_nothing(store, fields):
    stored = store.add("a")
    before = store.version
    with pytest.raises((InvalidInputError, RejectedError)):
        store.update(stored.id, **fields)
    assert store.version == before


def test_a_key_can_be_given_and_taken_away(store):
    stored = store.add("a")
    store.update(stored.id, key="k")
    assert store.get("k").id == stored.id
    store.update("k", key=None)
    assert store.find("k") is None
    assert store.get(stored.id).key is None


def test_a_key_that_another_live_memory_has_is_a_conflict(store):
    holder = store.add("a", key="k")
    other = store.add("b")
    elsewhere = store.add("c", user="ana")
    with pytest.raises(ConflictError, match=f"key 'k' is held by {holder.id}") as caught:
        store.update(other.id, key="k")
    assert caught.value.ids == (holder.id,)
    store.update(elsewhere.id, key="k")
    assert store.get(elsewhere.id).key == "k"


def test_what_is_not_there_cannot_be_updated(store):
    store.add("a")
    with pytest.raises(NotFoundError, match="'nope'"):
        store.update("nope", importance=1)


def test_the_reason_of_an_update_is_in_the_log(store):
    stored = store.add("a")
    store.update(stored.id, importance=1, reason="more important now")
    assert [(e.operation, e.reason, e.updated) for e in store.log(limit=1)] == [
        ("update", "more important now", 1)
    ]


def test_an_update_keeps_the_state_of_what_is_hidden(store):
    stored = store.add("a")
    store.retire(stored.id, reason="wrong")
    store.update(stored.id, content="b")
    memory = store.get(stored.id)
    assert (memory.state, memory.state_reason, memory.content) == (State.RETIRED, "wrong", "b")
