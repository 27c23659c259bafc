"""What moves a memory up: its neighbours, its actor, its date; and, if asked, age and importance."""

from datetime import UTC, datetime, timedelta

import pytest

from lance_memory import (
    InvalidInputError,
    LateInteraction,
    Mode,
    Ranking,
    Recency,
    ScoreParts,
    Understood,
)

START = datetime(2023, 5, 1, tzinfo=UTC)
BARE = Ranking(neighbours=0, actor_bonus=0, period_bonus=0)


def turn(content, place, **more):
    return {
        "content": content,
        "event_at": START + timedelta(minutes=place),
        "session": "s1",
        "user": "u",
        **more,
    }


def contents(found):
    return [hit.memory.content for hit in found]


@pytest.fixture
def talk(store):
    """A talk in which the answer follows the question; elsewhere the same words stand alone."""
    store.add_many(
        [
            turn("where did you go hiking", 0, actor="Ana"),
            turn("up the hill behind home", 1, actor="Bo"),
            turn("what a view", 2, actor="Ana"),
            turn("up the hill behind town", 1, session="s2", actor="Bo"),
            turn("rain and tea", 3, session="s2", actor="Ana"),
        ]
    )
    return store


def test_an_answer_is_lifted_by_the_question_before_it(talk):
    found = talk.search("hiking up the hill behind", user="u")
    bare = talk.search("hiking up the hill behind", user="u", ranking=Ranking(neighbours=0))
    answer = next(hit for hit in found if hit.memory.content == "up the hill behind home")
    assert answer.parts.neighbours > 0
    assert contents(found).index("up the hill behind home") < contents(found).index(
        "up the hill behind town"
    )
    assert all(hit.parts.neighbours == 0 for hit in bare)


def test_neighbours_are_those_of_the_whole_session_in_its_order(store):
    """Also when the memories between were not found, are hidden, or were stored in another order."""
    store.add_many([turn("needle one", 0), turn("needle two", 3)])
    store.add_many([turn("hay", 1), turn("straw", 2)])
    far = store.search("needle", user="u", mode="hybrid")
    lifts = {hit.memory.content: hit.parts.neighbours for hit in far}
    near = store.search("needle", user="u", states="any")
    assert lifts["needle two"] == pytest.approx(
        {hit.memory.content: hit.parts.neighbours for hit in near}["needle two"]
    )
    # Two turns lie between: 0.3 · 0.5 · 0.5 of what the first has, and a little from those between.
    first = next(hit for hit in far if hit.memory.content == "needle one")
    second = next(hit for hit in far if hit.memory.content == "needle two")
    others = [h for h in far if h.memory.content in ("hay", "straw")]
    expected = 0.075 * (first.parts.vector + first.parts.words) + sum(
        (0.3 if h.memory.content == "straw" else 0.15) * (h.parts.vector + h.parts.words)
        for h in others
    )
    assert second.parts.neighbours == pytest.approx(expected)


def test_sessions_of_one_name_in_two_scopes_are_two(store):
    store.add_many([turn("needle", 0, user="u"), turn("needle", 1, user="v", actor="Bo")])
    assert [hit.parts.neighbours for hit in store.search("needle")] == [0, 0]


def test_memories_outside_of_sessions_have_no_neighbours(store):
    store.add_many(["needle one", "needle two"])
    assert [hit.parts.neighbours for hit in store.search("needle")] == [0, 0]


def test_a_named_actor_leaves_the_legs_and_lifts_their_memories(talk):
    found = talk.search("Did Bo see the view up the hill?", user="u")
    assert found.understood == Understood(
        embedded="Did see the view up the hill?",
        words="Did see the view up the hill?",
        actors=("Bo",),
        periods=(),
    )
    assert {hit.memory.actor: hit.parts.actor for hit in found} == {"Bo": 0.2, "Ana": 0.0}


def test_two_named_actors_stay_among_the_words_and_lift_nobody(talk):
    found = talk.search("What did Ana tell Bo?", user="u")
    assert found.understood.embedded == "What did tell ?"
    assert found.understood.words == "What did Ana tell Bo?"
    assert found.understood.actors == ("Ana", "Bo")
    assert {hit.parts.actor for hit in found} == {0.0}


def test_a_name_is_known_only_in_its_scope(talk):
    talk.add("I met Zoe", user="w", actor="Cy")
    assert talk.search("What did Bo say?", user="w").understood.actors == ()
    assert talk.scoped(user="w").search("What did Bo say?").understood.actors == ()
    assert talk.search("What did Cy say?", user="u").understood.actors == ()
    assert talk.search("What did Cy say?").understood.actors == ("Cy",)


def test_an_actor_is_known_from_the_first_memory_on_and_not_before(store):
    before = store.add("hello there", user="u").version
    assert store.search("What did Dee say?").understood.actors == ()
    store.add("good evening", user="u", actor="Dee")
    assert store.search("What did Dee say?").understood.actors == ("Dee",)
    assert store.at(before).search("What did Dee say?").understood.actors == ()


def test_in_text_mode_the_words_are_as_they_were_asked(talk):
    found = talk.search("Bo hill", user="u", mode="text")
    assert found.understood == Understood(words="Bo hill")


def test_a_named_day_lifts_what_happened_on_it(store):
    store.add_many(
        [
            {"content": "swimming there", "event_at": START},
            {"content": "swimming there", "event_at": START + timedelta(days=40)},
        ]
    )
    found = store.search("swimming on 10 June 2023")
    assert found.understood.periods == ("2023-06-10",)
    assert [(hit.memory.event_at.month, hit.parts.period) for hit in found] == [(6, 0.8), (5, 0)]


def test_yesterday_counts_from_the_moment_of_the_search(store, clock):
    store.add("swimming in the lake", event_at=clock.now)
    store.add("swimming in the pool", event_at=clock.now - timedelta(days=30))
    clock.forward(days=1)
    (lake, pool) = store.search("swimming yesterday")
    assert (lake.memory.content, lake.parts.period, pool.parts.period) == (
        "swimming in the lake",
        0.8,
        0.0,
    )


@pytest.mark.parametrize("mode", list(Mode))
def test_recency_and_importance_count_only_when_asked(store, clock, mode):
    store.add("old kettle", event_at=clock.now - timedelta(days=365), importance=1.0)
    store.add("kettle old", event_at=clock.now, importance=0.0)
    plain = store.search("old kettle", mode=mode)
    assert {(hit.parts.recency, hit.parts.importance) for hit in plain} == {(1.0, 1.0)}
    fresh = store.search(
        "old kettle", mode=mode, ranking=Ranking(recency=Recency(half_life=timedelta(days=7)))
    )
    assert contents(fresh) == ["kettle old", "old kettle"]
    assert fresh[1].parts.recency == pytest.approx(0.5)
    weighty = store.search("old kettle", mode=mode, ranking=Ranking(importance=0.9))
    assert contents(weighty) == ["old kettle", "kettle old"]
    assert weighty[1].parts.importance == pytest.approx(0.1)


def test_the_parts_make_the_score(talk):
    found = talk.search("Did Bo go hiking up the hill on 1 May 2023?", user="u")
    sums = [
        p.vector + p.words + p.neighbours + p.actor + p.period for p in (h.parts for h in found)
    ]
    assert [hit.score for hit in found] == pytest.approx([total / sums[0] for total in sums])


def test_an_explanation_names_what_counts():
    parts = ScoreParts(vector=0.5, neighbours=0.25, recency=0.5, reranker=2.0)
    assert str(parts) == (
        "vector 0.500 + neighbours 0.250, times recency 0.500 = 0.375; reranker 2.000"
    )
    assert str(ScoreParts()) == "nothing = 0.000"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ranking(fusion="best"), "weighted, rrf"),
        (lambda: Ranking(vector_share=1.5), "0..1"),
        (lambda: Ranking(importance=-1), "0..1"),
        (lambda: Ranking(neighbours=-1), "neighbours=-1; it takes a number from 0 on"),
        (lambda: Ranking(actor_bonus=float("nan")), "actor_bonus=nan; it takes a number"),
        (lambda: Ranking(rerank_depth=0), "it takes a whole number from 1 on"),
        (lambda: Ranking(reranker="late"), "rerank"),
        (lambda: Ranking(reranker=LateInteraction), "rerank"),
        (lambda: Ranking(recency=30), "Recency"),
        (lambda: Recency(half_life=timedelta(0)), "positive"),
        (lambda: Recency(half_life=30), "timedelta"),
        (lambda: Recency(half_life=timedelta(1), floor=2), "0..1"),
        (lambda: Recency(half_life=timedelta(1), floor=None), "floor=None; it takes a number"),
        (lambda: Ranking(rerank_depth=2.5), "rerank_depth=2.5; it takes a whole number"),
        (lambda: Ranking(rerank_depth=True), "rerank_depth=True; it takes a whole number"),
        (lambda: Ranking(neighbours="1"), "neighbours='1'; it takes a number"),
        (lambda: Ranking(vector_share=None), "vector_share=None; it takes a number"),
        (lambda: Ranking(importance="high"), "importance='high'; it takes a number"),
    ],
)
def test_a_ranking_that_makes_no_sense_says_why(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_a_search_wants_a_ranking(store):
    with pytest.raises(InvalidInputError, match="Ranking"):
        store.search("kettle", ranking="rrf")


def test_the_other_fusion_is_there(talk):
    found = talk.search("hill behind home", user="u", ranking=Ranking(fusion="rrf"))
    assert contents(found)[0] == "up the hill behind home"
    assert contents(talk.search("hill behind home", user="u", ranking=BARE))[0] == (
        "up the hill behind home"
    )


# -- what a handle has seen before never matters -------------------------------------------------


def test_an_expired_memory_does_not_come_back_in_an_old_version(store, clock, reopen):
    """C26: also when the row was deleted since, and the handle has read the newest version first."""
    store.add("pad")
    added = store.add_many(
        [
            {"content": "secret code", "expires_at": clock.now + timedelta(hours=1)},
            {"content": "dog"},
        ]
    )
    clock.forward(hours=2)
    store.add("tick")
    store.tag("then")
    store.delete([added.ids[0]])
    store.search("secret")
    assert contents(store.at("then").search("secret code")) == contents(
        reopen(store.uri).at("then").search("secret code")
    )
    assert "secret code" not in contents(store.at("then").search("secret code"))


def test_actors_of_an_old_version_are_known_whatever_was_read_before(store, reopen):
    store.add_many([{"content": "hi", "actor": "Ana"}, {"content": "ho", "actor": "Bo"}])
    old = store.version
    store.delete([memory.id for memory in store.list(actor="Bo")])
    again = reopen(store.uri)
    assert again.search("what did Bo say").understood.actors == ()
    assert again.at(old).search("what did Bo say").understood.actors == ("Bo",)
