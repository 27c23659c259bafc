"""Strength as a factor of the ranking; off unless asked for."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lance_memory import Decay, InvalidInputError, Ranking

DAY = timedelta(days=1)
BARE = {"neighbours": 0, "actor_bonus": 0, "period_bonus": 0}


def ranked(**options):
    return Ranking(decay=Decay(half_life=DAY, **options), **BARE)


def factors(found):
    return {hit.memory.content: pytest.approx(hit.parts.decay, abs=1e-3) for hit in found}


@pytest.fixture
def store(store, clock):
    """Contents of one vector and the same words; what differs is said by the second word."""
    now = clock.now
    aged = {"event_at": now - DAY, "importance": 1.0}
    store.add_many(
        [
            {"content": "tea fresh", "event_at": now, "importance": 1.0, "user": "u"},
            {"content": "tea aged", **aged, "user": "u"},
            {"content": "tea habit", **aged, "kind": "procedural", "user": "u"},
            {"content": "tea pinned", **aged, "tags": ["evergreen"], "user": "u"},
            {"content": "tea minor", **aged, "importance": 0.25, "user": "u"},
        ]
    )
    return store


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_a_score_is_multiplied_by_the_strength(store, mode):
    found = store.search("tea", mode=mode, ranking=ranked(use=0))
    assert factors(found) == {
        "tea fresh": 1.0,
        "tea aged": 0.5,
        "tea habit": 1.0,
        "tea pinned": 1.0,
        "tea minor": 0.125,
    }
    assert [hit.memory.content for hit in found][-1] == "tea minor"
    best = found[0].parts.total
    assert [hit.score for hit in found] == [pytest.approx(h.parts.total / best) for h in found]


def test_a_floor_is_left(store):
    found = store.search("tea", ranking=ranked(use=0, floor=0.5))
    assert factors(found)["tea aged"] == 0.75


def test_it_is_off_unless_asked_for(store):
    assert {hit.parts.decay for hit in store.search("tea")} == {1.0}
    assert "decay" not in store.search("tea")[0].explain()
    assert "times decay 0.5" in store.search("aged", ranking=ranked())[0].explain()


def test_many_questions_are_ranked_as_one_by_one(store):
    view = store.at(store.version)
    asked = ["tea fresh", "tea minor", "nothing here"]
    together = view.search_many(asked, ranking=ranked(floor=0.2))
    assert together == [view.search(one, ranking=ranked(floor=0.2)) for one in asked]


def test_what_was_recalled_is_stronger(tmp_path, reopen, clock):
    store = reopen(tmp_path / "recorded", record_queries=True)
    aged = {"event_at": clock.now - 3 * DAY, "importance": 1.0}
    store.add_many([{"content": "green tea", **aged}, {"content": "black tea", **aged}])
    before = factors(store.search("tea", ranking=ranked(use=1)))
    assert before == {"green tea": 0.125, "black tea": 0.125}
    store.query_log.flush()
    store.forget_queries()
    for _ in range(3):
        store.search("green", mode="text")
    store.query_log.flush()
    after = store.search("tea", ranking=ranked(use=1))
    assert factors(after) == {"green tea": 1.0, "black tea": 0.125}
    assert after[0].memory.content == "green tea"
    unused = store.search("tea", ranking=ranked(use=0))
    assert factors(unused) == {"green tea": 0.125, "black tea": 0.125}


def test_recalls_of_other_scopes_do_not_count(tmp_path, reopen, clock):
    store = reopen(tmp_path / "recorded", record_queries=True)
    aged = {"event_at": clock.now - DAY, "importance": 1.0, "user": "ann"}
    store.add("green tea", **aged)
    store.search("tea")
    store.query_log.flush()
    (whole,) = store.search("tea", ranking=ranked(use=1))
    (scoped,) = store.scoped(user="ann").search("tea", ranking=ranked(use=1))
    assert whole.parts.decay > 0.99
    assert scoped.parts.decay == pytest.approx(0.5, abs=1e-3)


def test_a_past_version_knows_the_recalls_up_to_then(tmp_path, reopen, clock):
    store = reopen(tmp_path / "recorded", record_queries=True)
    written = store.add("green tea", event_at=clock.now - DAY, importance=1.0)
    store.search("tea")
    store.query_log.flush()
    past, now = store.at(written.version), store.at(clock.forward(seconds=1))
    assert past.search("tea", ranking=ranked())[0].parts.decay == pytest.approx(0.5, abs=1e-3)
    assert now.search("tea", ranking=ranked())[0].parts.decay > 0.99


def test_another_thing_is_refused():
    with pytest.raises(InvalidInputError, match="it takes a Decay"):
        Ranking(decay=DAY)
