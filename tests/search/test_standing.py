"""A consolidated memory stands in the conversations where its sources stood."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from lance_memory import ConsolidateOptions
from lance_memory.search.fusion import from_neighbours

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
ACROSS = ConsolidateOptions(across=("session",))


def said(session, *texts, at=NOON):
    return [
        {"content": text, "session": session, "event_at": at + timedelta(minutes=i)}
        for i, text in enumerate(texts)
    ]


def parts(store, question):
    return {hit.memory.content: hit.parts for hit in store.search(question)}


def test_what_was_said_around_its_sources_leads_to_it(store):
    store.add_many(said("monday", "did you see rome", "gladly", "fine"))
    store.add_many(said("friday", "shall we dance", "gladly", at=NOON + timedelta(days=4)))
    hits = store.search("did you see rome")
    (before,) = (
        hit.parts.neighbours
        for hit in hits
        if (hit.memory.content, hit.memory.session) == ("gladly", "monday")
    )
    assert before > 0.3
    store.consolidate(ACROSS)
    (new,) = store.list(source="consolidated")
    assert (new.content, new.session) == ("gladly", "")
    assert parts(store, "did you see rome")["gladly"].neighbours >= before
    assert parts(store, "shall we dance")["gladly"].neighbours > 0.29


def test_it_leads_to_what_was_said_around_its_sources(store):
    store.add_many(said("monday", "red shoes", "zanzibar"))
    store.add_many(said("friday", "red shoes", "krakow", at=NOON + timedelta(days=4)))
    store.consolidate(ACROSS)
    found = parts(store, "red shoes")
    assert found["zanzibar"].neighbours == found["krakow"].neighbours > 0


def test_a_summary_of_summaries_stands_where_the_first_sources_stood(store):
    for day, session in enumerate("abcd"):
        when = NOON + timedelta(days=day)
        store.add_many(said(session, f"topic{session}", "gladly", at=when), progress=None)
    store.consolidate(ACROSS, until=NOON + timedelta(days=1, hours=1))
    store.consolidate(ACROSS, since=NOON + timedelta(days=2))
    store.consolidate(ACROSS)
    (last,) = store.list(source="consolidated")
    assert len(store.related(last.id, relation="consolidates", depth=2)) == 6
    for session in "abcd":
        assert parts(store, f"topic{session}")["gladly"].neighbours > 0.29


def test_it_happened_when_its_sources_did(store):
    """Its own time is that of the latest."""
    store.add_many(said("monday", "tea and cake"))
    store.add_many(said("friday", "tea and cake", at=datetime(2024, 6, 7, tzinfo=UTC)))
    store.add_many(said("sunday", "nothing much", at=datetime(2024, 6, 9, tzinfo=UTC)))
    store.consolidate(ACROSS)
    for question in ("what was on 1 May 2024?", "what was on 7 June 2024?"):
        assert parts(store, question)["tea and cake"].period > 0
    assert parts(store, "what was on 9 June 2024?")["tea and cake"].period == 0


def test_a_deleted_source_is_no_place_to_stand(store):
    store.add_many(said("monday", "did you see rome", "gladly"))
    store.add_many(said("friday", "shall we dance", "gladly", at=NOON + timedelta(days=4)))
    store.consolidate(ACROSS)
    (source,) = store.list(states="superseded", session="monday")
    store.delete(source.id)
    assert parts(store, "did you see rome")["gladly"].neighbours < 0.1
    assert parts(store, "shall we dance")["gladly"].neighbours > 0.29


def test_many_questions_at_once_have_the_same_places(store):
    store.add_many(said("monday", "did you see rome", "gladly"))
    store.add_many(said("friday", "shall we dance", "gladly", at=NOON + timedelta(days=4)))
    store.consolidate(ACROSS)
    questions = ["did you see rome", "shall we dance", "gladly"]
    together = store.search_many(questions)
    assert [r.hits for r in together] == [store.search(q).hits for q in questions]


def test_a_row_in_one_place_each_is_as_before():
    rng = np.random.default_rng(3)
    relevance = rng.random(12)
    sessions = rng.integers(0, 3, 12).astype(np.uint64)
    positions = rng.permutation(12).astype(np.int64)
    plain = from_neighbours(relevance, sessions, positions)
    twice = np.concatenate([np.arange(12), [11]])  # the last one again, where nobody else is
    found = from_neighbours(
        relevance, np.append(sessions, np.uint64(9)), np.append(positions, 0), owners=twice
    )
    assert found == pytest.approx(plain)


def test_of_two_rows_the_places_nearest_to_each_other_count():
    """Row 0 stands at 0 and at 5, row 1 at 4."""
    one, session = np.array([1.0, 0.0]), np.ones(3, dtype=np.uint64)
    near = from_neighbours(one, session[:2], np.array([5, 4]))
    both = from_neighbours(
        one, session, np.array([0, 5, 4]), owners=np.array([0, 0, 1], dtype=np.intp)
    )
    assert both == pytest.approx(near)
