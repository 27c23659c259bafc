"""The semantic layer: facts, what they are about, and their corrections."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lance_memory import (
    ConflictError,
    InvalidInputError,
    Mode,
    NotFoundError,
    Outcome,
    SemanticMemory,
)


@pytest.fixture
def ann(store):
    return store.scoped(tenant="t", user="ann")


@pytest.fixture
def facts(ann):
    return SemanticMemory(ann)


def recalled(result):
    return [hit.memory.content for hit in result]


def test_a_fact_is_kept_with_what_it_is_about(facts, ann):
    meeting = ann.add("the meeting of monday", key="monday").id
    made = facts.add(
        "the budget is 5000 euro",
        about=["monday", meeting],
        confidence=0.75,
        importance=0.5,
        tags=["money"],
        metadata={"sum": 0},
        ref="mail 7",
    )
    memory = ann.get(made.id)
    assert (memory.kind, memory.confidence, memory.tags) == ("semantic", 0.75, ("money",))
    assert (memory.metadata, memory.source_ref) == ({"sum": 0}, "mail 7")
    assert [(edge.relation, edge.target) for edge in memory.relationships] == [("about", meeting)]
    assert [m.id for m in facts.about("monday")] == [made.id]
    assert facts.about(made.id) == []


def test_a_fact_that_is_said_twice_is_one(facts):
    """C01."""
    first, second = facts.add("tea is green"), facts.add("tea is green")
    assert (second.id, second.outcome) == (first.id, Outcome.ALREADY_THERE)


def test_a_corrected_fact_takes_the_place_of_the_old_one(facts, ann):
    """C02."""
    old = facts.add("ann lives in porto", tags=["home"], about=ann.add("a chat").id)
    new, former = facts.correct(old.id, "ann lives in lisbon", reason="she moved").ids
    assert former == old.id
    assert recalled(facts.recall("ann lives in porto")) == ["ann lives in lisbon"]
    assert [m.content for m in facts.list()] == ["ann lives in lisbon"]
    assert {m.id for m in facts.list(states=["active", "superseded"])} == {new, former}
    assert [(r.memory.id, r.relation) for r in ann.related(new, relation="updates")] == [
        (old.id, "updates")
    ]
    assert (ann.get(new).kind, ann.get(new).tags) == ("semantic", ("home",))
    with pytest.raises(ConflictError):
        facts.correct(old.id, "ann lives in faro")


def test_a_corrected_fact_is_still_about_what_it_was_about(facts, ann):
    """A corrected one was about nothing any more."""
    chat = ann.add("a chat").id
    old = facts.add("ann lives in porto", about=chat).id
    newer = facts.correct(old, "ann lives in lisbon").ids[0]
    newest = facts.correct(newer, "ann lives in faro").ids[0]
    assert [m.id for m in facts.about(chat)] == [newest]
    one = facts.add("rex barks", about=chat).id
    both = ann.supersede([newest, one], "ann and rex live in faro").ids[0]
    assert [m.id for m in facts.about(chat)] == [both]
    ann.retire(both)
    assert facts.about(chat) == []


def test_facts_about_a_memory_are_the_visible_ones(facts, ann, clock):
    chat = ann.add("a chat").id
    kept = facts.add("fact one", about=chat)
    gone = facts.add("fact two", about=chat)
    late = facts.add("fact three", about=chat)
    ann.retire(gone.id)
    ann.update(late.id, expires_at=clock.forward(seconds=5))
    clock.forward(hours=1)
    ann.add("no fact", kind="episodic", relationships=[*ann.get(kept.id).relationships])
    assert [m.id for m in facts.about(chat)] == [kept.id]


def test_recall_is_by_words_too_unless_asked_otherwise(facts, ann):
    """C17."""
    far = [-1.0] * 16
    ann.add("error E4711 means no paper", kind="semantic", embedding=far)
    facts.add("the printer is on the second floor")
    assert recalled(facts.recall("E4711", k=1)) == ["error E4711 means no paper"]
    nearest = facts.recall("the printer floor", k=1, mode=Mode.VECTOR)
    assert recalled(nearest) == ["the printer is on the second floor"]


def test_a_fact_that_has_ended_answers_unless_a_moment_is_asked_about(facts):
    """C03: both are true, at different times."""
    moved = datetime(2024, 6, 1, tzinfo=UTC)
    facts.add("ann lives in porto", valid_to=moved)
    facts.add("ann lives in lisbon", valid_from=moved)
    assert len(facts.recall("ann lives")) == 2
    later = datetime(2025, 1, 1, tzinfo=UTC)
    assert recalled(facts.recall("ann lives", valid_at=later)) == ["ann lives in lisbon"]
    assert [m.content for m in facts.list(valid_at=moved)] == ["ann lives in lisbon"]


def test_a_fact_counts_no_more_for_its_neighbours(facts, ann):
    """What lies between two answers in a session would be lifted by them among events."""
    rows = [
        {"content": text, "session": "s", "kind": "semantic", "event_at": f"2025-01-0{n}T00:00:00Z"}
        for n, text in enumerate(["red kettle here", "zzz", "red kettle there"], start=1)
    ]
    ann.add_many(rows)
    (between,) = [hit for hit in facts.recall("red kettle", k=9) if hit.memory.content == "zzz"]
    assert between.parts.neighbours == 0
    (lifted,) = [hit for hit in ann.search("red kettle", k=9) if hit.memory.content == "zzz"]
    assert lifted.parts.neighbours > 0


def test_other_kinds_and_other_users_are_not_among_the_facts(facts, store, ann):
    """C16."""
    theirs = SemanticMemory(store.scoped(tenant="t", user="bob")).add("tea of bob")
    ann.add("tea at noon", kind="episodic")
    mine = facts.add("tea is green")
    assert [m.id for m in facts.list()] == [mine.id]
    assert [hit.memory.id for hit in facts.recall("tea of bob", k=9)] == [mine.id]
    for verb in (
        facts.about,
        lambda ref: facts.correct(ref, "x"),
        lambda ref: facts.add("y", about=ref),
    ):
        with pytest.raises(NotFoundError):
            verb(theirs.id)
    with pytest.raises(InvalidInputError, match="this layer is about semantic memories"):
        facts.recall("tea", kinds="episodic")


def test_what_is_no_fact_is_not_corrected(facts, ann):
    event = ann.add("tea at noon").id
    with pytest.raises(InvalidInputError, match="is episodic, no fact"):
        facts.correct(event, "tea at one")
