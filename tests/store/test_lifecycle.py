from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest

from lance_memory import (
    AmbiguousError,
    ConflictError,
    Derived,
    InvalidInputError,
    Kind,
    NotFoundError,
    RejectedError,
    Relationship,
    ScopeError,
    State,
    WriteResult,
)

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)

# -- supersede ------------------------------------------------------------------------------


def test_n_sources_get_one_successor_in_one_version(store):
    ids = store.add_many(["tea at four", "tea at 4", "tea 16:00"]).ids
    before = store.version
    result = store.supersede(ids, "Tea is at four.", reason="three times the same")
    new = result.ids[0]
    assert result == WriteResult(
        uri=store.uri,
        version=before + 1,
        operation="supersede",
        ids=(new, *result.ids[1:]),
        inserted=1,
        updated=3,
    )
    assert sorted(result.ids[1:]) == sorted(ids)
    assert [m.content for m in store.list()] == ["Tea is at four."]
    assert {(m.state, m.superseded_by, m.revision) for m in map(store.get, ids)} == {
        (State.SUPERSEDED, new, 2)
    }
    assert set(store.get(new).relationships) == {
        Relationship(relation="consolidates", target=i) for i in ids
    }


def test_a_successor_carries_over_what_its_sources_agree_on(store):
    first = store.add(
        "a",
        user="ana",
        session="s1",
        kind="profile",
        actor="x",
        tags=["t", "u"],
        metadata={"same": 1, "differs": 1},
        importance=0.2,
        confidence=0.4,
        event_at=NOON,
        quality=0.1,
    )
    second = store.add(
        "b",
        user="ana",
        session="s2",
        kind="profile",
        actor="x",
        tags=["u", "v"],
        metadata={"same": 1, "differs": 2},
        importance=0.7,
        confidence=0.3,
        event_at=NOON + timedelta(days=1),
        expires_at=datetime(2030, 1, 1, tzinfo=UTC),
    )
    new = store.get(store.supersede([first.id, second.id], "c").ids[0])
    assert (new.user, new.session, new.kind, new.actor, new.tags, new.metadata) == (
        ("ana", "", Kind.PROFILE, "x", ("t", "u", "v"), {"same": 1})
    )
    assert (new.importance, new.confidence, new.quality) == (
        (pytest.approx(0.7), pytest.approx(0.4), pytest.approx(0.1))
    )
    assert (new.valid_from, new.event_at, new.expires_at) == (NOON, NOON + timedelta(days=1), None)
    assert new.source == "consolidated"


def test_a_successor_lives_as_long_as_its_longest_lived_source(store):
    ends = [datetime(2030, 1, day, tzinfo=UTC) for day in (1, 3, 2)]
    ids = store.add_many([{"content": f"m{e.day}", "expires_at": e} for e in ends]).ids
    assert store.get(store.supersede(ids, "all").ids[0]).expires_at == max(ends)


def test_what_the_successor_says_itself_wins(store):
    stored = store.add("a", tags=["t"], metadata={"a": 1, "b": 1}, importance=0.9)
    derived = Derived(
        content="b", kind="semantic", tags=["u"], metadata={"b": 2}, importance=0.1, confidence=0.2
    )
    new = store.get(store.supersede(stored.id, derived, relation="updates").ids[0])
    assert (new.kind, new.tags, new.metadata, new.importance, new.confidence) == (
        (Kind.SEMANTIC, ("t", "u"), {"a": 1, "b": 2}, pytest.approx(0.1), pytest.approx(0.2))
    )
    assert new.relationships == (Relationship(relation="updates", target=stored.id),)


def test_a_successor_is_found_by_words_and_meaning_and_its_sources_are_not(store):
    ids = store.add_many(["green apples", "red apples"]).ids
    new = store.supersede(ids, "apples both green and red").ids[0]
    for mode in ("text", "vector", "hybrid"):
        assert [h.memory.id for h in store.search("apples", mode=mode)] == [new]


@pytest.mark.parametrize("verb", ["supersede", "retire"])
def test_what_is_superseded_cannot_be_superseded_or_retired_again(store, verb):
    stored = store.add("a")
    new = store.supersede(stored.id, "b").ids[0]
    before = store.version
    with pytest.raises(
        ConflictError, match=rf"cannot {verb} {stored.id}: it is superseded"
    ) as caught:
        store.supersede([new, stored.id], "c") if verb == "supersede" else store.retire(stored.id)
    assert caught.value.ids == (stored.id,)
    assert store.version == before


def test_what_is_retired_cannot_be_superseded(store):
    ids = store.add_many(["a", "b"]).ids
    store.retire(ids)
    with pytest.raises(ConflictError, match=r"it is retired \(and 1 more\); nothing was written"):
        store.supersede(ids, "c")


@pytest.mark.parametrize("content", ["", " ", None, 5])
def test_a_successor_needs_a_text(store, content):
    stored = store.add("a")
    with pytest.raises((InvalidInputError, RejectedError)):
        store.supersede(stored.id, Derived(content=content))
    assert store.get(stored.id).state is State.ACTIVE


def test_a_source_may_be_named_by_id_prefix_and_key_and_counts_once(store):
    stored = store.add("a", key="k")
    result = store.supersede([stored.id, "k", stored.id[:35]], "b")
    assert (result.updated, store.get(result.ids[0]).relationships) == (
        (1, (Relationship(relation="consolidates", target=stored.id),))
    )


# -- retire, unretire -----------------------------------------------------------------------


def test_retired_memories_are_hidden_kept_and_say_why(store):
    stored = store.add("wrong thing")
    result = store.retire(stored.id, reason="it was wrong")
    assert result == WriteResult(
        uri=store.uri, version=store.version, operation="retire", ids=(stored.id,), updated=1
    )
    assert (store.list(), list(store.search("wrong thing"))) == ([], [])
    memory = store.get(stored.id)
    assert (memory.state, memory.state_reason, memory.revision) == (
        (State.RETIRED, "it was wrong", 2)
    )
    assert memory.state_at == memory.updated_at


def test_retiring_twice_makes_no_version(store):
    stored = store.add("a")
    first = store.retire(stored.id)
    assert store.retire(stored.id) == WriteResult(
        uri=store.uri, version=first.version, operation="retire"
    )


def test_unretire_brings_back_what_was_retired(store):
    stored = store.add("a thing")
    store.retire(stored.id)
    result = store.unretire(stored.id, reason="it was right")
    assert result == WriteResult(
        uri=store.uri, version=store.version, operation="unretire", ids=(stored.id,), updated=1
    )
    memory = store.get(stored.id)
    assert (memory.state, memory.state_reason, memory.revision) == (
        (State.ACTIVE, "it was right", 3)
    )
    assert [h.memory.id for h in store.search("thing")] == [stored.id]


def test_only_what_is_retired_can_be_unretired(store):
    stored = store.add("a")
    with pytest.raises(ConflictError, match=f"cannot unretire {stored.id}: it is active"):
        store.unretire(stored.id)


def test_a_filter_with_a_scope_unretires_what_it_names(store):
    store.add_many([{"content": f"{u} {t}", "user": u, "tags": [t]} for u in "ab" for t in "xy"])
    store.retire(user="a")
    store.retire(user="b")
    result = store.unretire(user="a", tags="x", reason="it was right")
    assert (result.operation, result.updated) == ("unretire", 1)
    assert [m.content for m in store.list()] == ["a x"]
    assert store.unretire(user="nobody").updated == 0
    with pytest.raises(ScopeError):
        store.unretire(tags="y")
    with pytest.raises(InvalidInputError, match="not both"):
        store.unretire(result.ids, user="a")


def test_a_filter_with_a_scope_retires_what_it_names(store):
    store.add_many([{"content": f"{u} {t}", "user": u, "tags": [t]} for u in "ab" for t in "xy"])
    result = store.retire(user="a", tags="x")
    assert result.updated == 1
    assert [m.content for m in store.list()] == ["a y", "b x", "b y"]


# -- delete ---------------------------------------------------------------------------------


def test_deleted_memories_are_gone_from_now_on_and_stay_in_earlier_versions(store):
    stored = store.add("a thing")
    result = store.delete(stored.id, reason="asked to")
    assert result == WriteResult(
        uri=store.uri, version=store.version, operation="delete", ids=(stored.id,), deleted=1
    )
    assert store.find(stored.id) is None
    assert list(store.search("thing", states="any")) == []
    assert store.at(stored.version).get(stored.id).content == "a thing"
    assert [(e.operation, e.reason, e.deleted) for e in store.log(limit=1)] == [
        ("delete", "asked to", 1)
    ]


def test_everything_of_one_user_is_deleted_and_nothing_of_another(store):
    """C12."""
    store.add_many([{"content": f"{u} {i}", "user": u} for u in ("ana", "bob") for i in range(5)])
    store.retire(user="ana", tags=[], kinds="episodic", until=store.list(user="ana")[1].created_at)
    store.retire(store.list(user="ana")[0].id)
    assert store.delete(user="ana", states="any").deleted == 5
    assert (store.count(user="ana", states="any"), store.count(user="bob")) == (0, 5)


@pytest.mark.parametrize("verb", ["retire", "delete"])
@pytest.mark.parametrize(
    "where", [{}, {"kinds": "episodic"}, {"tags": "t"}, {"states": "any"}], ids=str
)
def test_a_filter_without_a_scope_is_refused(store, verb, where):
    """C12."""
    store.add("a", tags=["t"])
    with pytest.raises(
        ScopeError, match=r"name at least one of: tenant, user, agent, session, run"
    ):
        getattr(store, verb)(**where)
    assert store.count() == 1


@pytest.mark.parametrize("verb", ["retire", "delete"])
@pytest.mark.parametrize("level", ["tenant", "user", "agent", "session", "run"])
def test_a_filter_with_an_empty_name_is_not_a_filter_for_everything(store, verb, level):
    """A name that turns out empty must not widen what is destroyed (C12)."""
    others = [n for n in ("tenant", "user") if n != level][:1]
    store.add_many(
        [{"content": f"m{i}", **dict.fromkeys(others, "x"), level: f"n{i}"} for i in "ab"]
    )
    with contextlib.suppress(InvalidInputError, ScopeError):
        getattr(store, verb)(**dict.fromkeys(others, "x"), **{level: ""})
    assert store.count() == 2


@pytest.mark.parametrize("verb", ["retire", "delete"])
@pytest.mark.parametrize("word", ["kind", "tag", "state", "usr", "limit"])
def test_a_filter_word_that_does_not_exist_is_refused(store, verb, word):
    store.add("a", user="ana", kind="episodic")
    with pytest.raises((InvalidInputError, TypeError), match=word):
        getattr(store, verb)(user="ana", **{word: "semantic"})
    assert store.count() == 1


@pytest.mark.parametrize("verb", ["retire", "delete"])
def test_a_filter_for_one_of_no_kinds_matches_nothing(store, verb):
    store.add("a", user="ana")
    assert getattr(store, verb)(user="ana", kinds=[]).ids == ()
    assert store.count() == 1


@pytest.mark.parametrize("verb", ["retire", "delete"])
def test_names_and_a_filter_together_are_refused(store, verb):
    stored = store.add("a", user="ana")
    with pytest.raises(InvalidInputError, match="either memories by name or a filter"):
        getattr(store, verb)(stored.id, user="ana")
    assert store.count() == 1


@pytest.mark.parametrize("verb", ["retire", "delete", "unretire"])
@pytest.mark.parametrize("refs", [[], ()])
def test_no_memory_named_is_an_error_not_all(store, verb, refs):
    store.add("a")
    with pytest.raises(InvalidInputError, match="name at least one memory"):
        getattr(store, verb)(refs)
    assert store.count() == 1


@pytest.mark.parametrize("bad", [None, 5, ""])
def test_a_memory_is_named_by_a_text(store, bad):
    store.add("a")
    with pytest.raises(InvalidInputError, match="named by its id or key"):
        store.delete(["a-key", bad][1:])


def test_one_unknown_name_among_known_ones_writes_nothing(store):
    stored = store.add("a")
    before = store.version
    with pytest.raises(NotFoundError, match="'nope'"):
        store.delete([stored.id, "nope"])
    assert store.version == before


def test_an_ambiguous_beginning_writes_nothing(store):
    ids = store.add_many(["a", "b"]).ids
    with pytest.raises(AmbiguousError) as caught:
        store.delete(ids[0][:13])
    assert caught.value.candidates == tuple(sorted(ids))
    assert store.count() == 2


def test_many_names_are_one_version(store):
    ids = store.add_many([f"m{i}" for i in range(2_200)]).ids
    before = store.version
    result = store.delete(ids[:2_150])
    assert (result.deleted, result.version, store.count()) == (2_150, before + 1, 50)


def test_many_names_of_nothing_are_not_found(store):
    with pytest.raises(NotFoundError, match="no memory 'm0'"):
        store.delete([f"m{i}" for i in range(2_200)])


def test_after_the_last_memory_was_deleted_the_store_goes_on(store):
    stored = store.add("first thing")
    store.delete(stored.id)
    assert (store.list(), list(store.search("first")), store.count(states="any")) == ([], [], 0)
    store.add("second thing")
    assert [h.memory.content for h in store.search("thing")] == ["second thing"]
    store.optimize()
    assert [h.memory.content for h in store.search("thing")] == ["second thing"]


# -- expiry ---------------------------------------------------------------------------------


def test_expired_memories_are_hidden_from_the_very_moment(store, clock):
    """C26."""
    end = clock.now + timedelta(minutes=1)
    stored = store.add("short lived", expires_at=end)
    clock.now = end - timedelta(seconds=1, microseconds=1)
    assert [m.id for m in store.list()] == [stored.id]
    clock.now = end - timedelta(seconds=1)
    assert store.list() == []
    assert list(store.search("short lived")) == []
    assert store.count() == 0
    assert store.stats().visible == 0
    assert [m.id for m in store.list(states="active")] == [stored.id]
    assert store.get(stored.id).state is State.ACTIVE
    assert store.at(stored.version).count() == 1
