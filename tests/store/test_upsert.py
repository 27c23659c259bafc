from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lance_memory import (
    AddResult,
    AmbiguousError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    Outcome,
    RejectedError,
    Relationship,
    State,
)


def test_an_upsert_under_a_free_key_stores(store):
    result = store.upsert("Lives in Rome.", key="home")
    assert result == AddResult(
        uri=store.uri, version=store.version, id=result.id, outcome=Outcome.STORED
    )
    assert store.get("home").content == "Lives in Rome."


def test_an_upsert_puts_the_new_one_in_the_place_of_the_old_and_links_them(store):
    old = store.upsert("Lives in Rome.", key="home")
    new = store.upsert("Lives in Oslo.", key="home")
    assert [m.content for m in store.list()] == ["Lives in Oslo."]
    assert store.get("home").id == new.id
    former = store.get(old.id)
    assert (former.state, former.superseded_by, former.revision) == (State.SUPERSEDED, new.id, 2)
    assert store.get(new.id).relationships == (Relationship(relation="updates", target=old.id),)
    assert [(r.memory.id, r.relation) for r in store.related(new.id)] == [(old.id, "updates")]
    assert [(r.memory.id, r.relation) for r in store.related(old.id)] == [(new.id, "updates")]


def test_an_upsert_is_one_version(store):
    first = store.upsert("a", key="k").version
    assert store.upsert("b", key="k").version == first + 1


@pytest.mark.parametrize("end", ["delete", "retire", "expire"])
def test_what_was_replaced_never_comes_back_when_its_successor_goes(store, clock, end):
    """C43."""
    old = store.upsert("Lives in Rome.", key="home")
    new = store.upsert("Lives in Oslo.", key="home", expires_at=clock.now + timedelta(minutes=5))
    if end == "expire":
        clock.forward(minutes=10)
    else:
        getattr(store, end)(new.id)
    assert store.list() == []
    assert list(store.search("Lives in Rome.")) == []
    assert store.find("home") is None
    assert store.get(old.id).state is State.SUPERSEDED


@pytest.mark.parametrize("content", ["Lives in Rome.", "Lives in Oslo."])
@pytest.mark.parametrize("verb", ["add", "upsert"])
@pytest.mark.parametrize("end", ["delete", "retire", "expire"])
def test_a_key_whose_memory_is_gone_can_be_used_found_and_deleted_again(
    store, clock, end, verb, content
):
    """C44."""
    old = store.add("Lives in Rome.", key="home", expires_at=clock.now + timedelta(minutes=5))
    if end == "expire":
        clock.forward(minutes=10)
    else:
        getattr(store, end)(old.id)
    result = getattr(store, verb)(content, key="home")
    assert result.outcome is Outcome.STORED
    assert (store.get("home").id, store.get("home").content) == (result.id, content)
    assert [m.content for m in store.list()] == [content]
    store.delete("home")
    assert (store.find("home"), store.list()) == (None, [])


def test_an_upsert_over_a_contradicted_memory_stores(store):
    store.add("Lives in Rome.", key="home", state="contradicted")
    assert store.upsert("Lives in Rome.", key="home").outcome is Outcome.STORED
    assert store.get("home").content == "Lives in Rome."


def test_the_same_said_again_under_the_key_makes_no_version(store):
    said = {
        "key": "home",
        "tags": ["place"],
        "importance": 0.3,
        "event_at": datetime(2024, 1, 1, tzinfo=UTC),
        "user": "ana",
    }
    first = store.upsert("Lives in Rome.", **said)
    before = store.version
    again = store.upsert("Lives in Rome.", **said)
    assert (again.id, again.outcome, again.version) == (first.id, Outcome.ALREADY_THERE, before)
    assert again.reason
    assert store.version == before


def test_the_same_metadata_said_again_under_the_key_makes_no_version(store):
    said = {"key": "home", "metadata": {"a": 1, "b": [1, {"c": None}], "é": "ü"}}
    store.upsert("Lives in Rome.", **said)
    before = store.version
    assert store.upsert("Lives in Rome.", **said).outcome is Outcome.ALREADY_THERE
    assert store.version == before


@pytest.mark.parametrize(
    "change",
    [{"importance": 0.9}, {"metadata": {"a": 1}}, {"tags": ["t"]}, {"kind": "semantic"}],
    ids=str,
)
def test_the_same_words_with_other_details_replace(store, change):
    old = store.upsert("Lives in Rome.", key="home")
    new = store.upsert("Lives in Rome.", key="home", **change)
    assert new.outcome is Outcome.STORED
    assert [m.id for m in store.list()] == [new.id]
    assert store.get(old.id).superseded_by == new.id


def test_the_key_of_another_scope_is_another_key(store):
    store.upsert("Ana lives in Rome.", key="home", user="ana")
    store.upsert("Bob lives in Oslo.", key="home", user="bob")
    assert [m.content for m in store.list()] == ["Ana lives in Rome.", "Bob lives in Oslo."]
    assert store.scoped(user="bob").get("home").content == "Bob lives in Oslo."
    with pytest.raises(AmbiguousError) as caught:
        store.get("home")
    assert sorted(caught.value.candidates) == sorted(m.id for m in store.list())


def test_a_chain_of_upserts_is_walked_back_to_the_first(store):
    ids = [store.upsert(f"version {i}", key="k").id for i in range(4)]
    assert [r.memory.id for r in store.related(ids[-1], relation="updates", depth=9)] == ids[-2::-1]


def test_an_upsert_that_waits_for_approval_says_so(store):
    assert store.upsert("Maybe.", key="k", state="pending").outcome is Outcome.PENDING


@pytest.mark.parametrize("key", ["", "  ", None, 5])
def test_an_upsert_needs_a_key(store, key):
    with pytest.raises((RejectedError, InvalidInputError), match="key"):
        store.upsert("a text", key=key)
    assert store.count(states="any") == 0


def test_an_upsert_under_the_id_of_another_memory_is_a_conflict(store):
    store.add("somebody else's", id="x")
    with pytest.raises(ConflictError, match="x"):
        store.upsert("mine", key="k", id="x")
    assert [m.content for m in store.list(states="any")] == ["somebody else's"]


def test_an_upsert_under_the_id_of_what_it_replaces_never_doubles_the_id(store):
    store.upsert("first", key="k", id="x")
    try:
        store.upsert("second", key="k", id="x")
    except ConflictError:
        assert store.get("k").content == "first"
    else:
        assert store.get("k").content == "second"
    ids = store.to_arrow()["id"].to_pylist()
    assert len(ids) == len(set(ids))


def test_one_key_has_one_live_memory_whatever_becomes_active_again(store):
    first = store.add("first", key="k")
    store.retire(first.id)
    second = store.add("second", key="k")
    with pytest.raises(ConflictError, match=f"'k' is held by {second.id}"):
        store.unretire(first.id)
    store.retire(second.id)
    with pytest.raises(ConflictError):
        store.unretire([first.id, second.id])
    store.unretire(first.id)
    assert store.get("k").id == first.id


def test_an_expired_memory_whose_key_was_given_away_cannot_be_prolonged(store, clock):
    old = store.add("old", key="k", expires_at=clock.now + timedelta(minutes=1))
    clock.forward(minutes=2)
    new = store.add("new", key="k")
    with pytest.raises(ConflictError, match="'k'"):
        store.update(old.id, expires_at=None)
    assert store.get("k").id == new.id


def test_a_revert_never_gives_a_key_two_live_memories(store):
    old = store.add("old", key="k")
    retiring = store.retire(old.id).version
    new = store.add("new", key="k")
    with pytest.raises(ConflictError, match="'k'"):
        store.revert(retiring)
    assert store.get("k").id == new.id


def test_the_key_of_a_pending_memory_finds_it(store):
    """`add` says "a live memory with this key is there"; then `get` has to find it."""
    pending = store.add("Maybe.", key="k", state="pending")
    assert store.add("Other.", key="k").id == pending.id
    assert store.get("k").id == pending.id


def test_the_key_of_a_pending_memory_is_taken(store):
    store.add("Maybe.", key="k", state="pending")
    other = store.add("Other.")
    with pytest.raises(ConflictError):
        store.update(other.id, key="k")


def test_a_key_that_is_nowhere_is_not_found(store):
    store.add("a", key="k")
    with pytest.raises(NotFoundError, match=r"no memory 'q' in \(all\) at version"):
        store.get("q")
