"""Packing: pure, within the budget whatever counts it, and never the same thing twice."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import (
    ContextOptions,
    ContextShare,
    ContextSource,
    DropReason,
    Hit,
    InvalidInputError,
    Kind,
    Memory,
    Scope,
    ScoreParts,
)
from lance_memory.agent.context.candidate import Candidate
from lance_memory.agent.context.pack import packed
from lance_memory.agent.context.scale import on_scale_of
from lance_memory.agent.context.score import (
    freshness,
    hit_relevance,
    profile_relevance,
    scored,
    snapshot_relevance,
    talk_relevance,
    with_neighbours,
)

DAY = datetime(2025, 3, 1, 9, tzinfo=UTC)
NOBODY = Scope()
ANN = Scope(tenant="t", user="ann")


def words(texts):
    """A token a word."""
    return [len(text.split()) for text in texts]


def together(texts):
    """More for a whole than for its parts."""
    return [len(text.split()) ** 2 // 8 for text in texts]


def fewer(texts):
    """Fewer for a whole than for its parts."""
    return [len(set(text.split())) + 3 for text in texts]


COUNTERS = [words, together, fewer, lambda texts: [7] * len(texts), lambda t: [len(x) for x in t]]


def one(id, content="", relevance=1.0, source="episodic", **more):
    kind = Kind.EPISODIC if source in ("distilled", "shared") else Kind(source)
    given = {"at": DAY, "who": "ann", "content": content or f"text of {id}", **more}
    if source == "shared":
        given = {"shared_by": ANN, "scope": ANN, **given}
    return Candidate(id=id, source=ContextSource(source), kind=kind, relevance=relevance, **given)


def pack(*candidates, budget=500, count=words, within=NOBODY, query="", **options):
    chosen = ContextOptions(**options)
    found = scored(candidates, chosen)
    return packed(found, budget=budget, options=chosen, count=count, within=within, query=query)


def ids(made):
    return [item.id for item in made.items]


def left_out(made):
    return {drop.id: str(drop.reason) for drop in made.dropped}


def test_what_was_only_asked_before_is_no_answer_to_it():
    """The former question is the nearest there is, and would come first; its answer stays."""
    asked = one("q", "When does  she fly? ", 1.0)
    answer, talk = one("a", "On 12 May.", 0.8), one("m", "When does she fly?", source="working")
    made = pack(asked, answer, talk, query="when does she fly?")
    assert sorted(ids(made)) == ["a", "m"]  # what is being said just now stands there as it is
    assert left_out(made) == {"q": "duplicate"}
    assert ids(pack(asked, query="")) == ["q"]


# -- laws -------------------------------------------------------------------------------------

SAID = st.text(alphabet="ab \n", min_size=1, max_size=40)


@st.composite
def candidates(draw):
    found = []
    for n in range(draw(st.integers(0, 14))):
        vector = draw(st.none() | st.lists(st.integers(-2, 2), min_size=3, max_size=3))
        links = draw(st.sets(st.integers(0, 14), max_size=2))
        newer = draw(st.sets(st.integers(0, 14), max_size=1))
        found.append(
            one(
                f"m{n:02}",
                draw(SAID) * draw(st.integers(1, 8)),
                draw(st.floats(0, 1)),
                draw(st.sampled_from(sorted(ContextSource))),
                at=DAY + timedelta(hours=draw(st.integers(0, 60))),
                ref=draw(st.sampled_from(["", "r1", "r2"])),
                verbatim=draw(st.booleans()),
                successor=draw(st.none() | st.just(f"m{n + 1:02}")),
                made_of=frozenset(f"m{link:02}" for link in links),
                outdated_by=frozenset(f"m{link:02}" for link in newer),
                vector=None if vector is None else np.array(vector, np.float32),
            )
        )
    return found


@settings(max_examples=60, deadline=None)
@given(candidates(), st.integers(1, 160), st.sampled_from(COUNTERS), st.sampled_from([0.5, 0.9, 1]))
def test_a_pack_is_never_over_its_budget_and_says_what_became_of_all(found, budget, count, share):
    made = pack(*found, budget=budget, count=count, relevance=share)
    assert made.tokens <= budget
    assert made.tokens == (count([made.text])[0] if made.text else 0)
    assert sorted([*ids(made), *left_out(made)]) == sorted(c.id for c in found)
    assert [item.number for item in made.items] == list(range(1, len(made.items) + 1))
    assert all(item.text in made.text for item in made.items)


@settings(max_examples=30, deadline=None)
@given(candidates(), st.integers(20, 160), st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_makes_no_difference(found, budget, shuffle):
    other = list(found)
    shuffle.shuffle(other)
    assert pack(*found, budget=budget) == pack(*other, budget=budget)


@settings(max_examples=40, deadline=None)
@given(candidates())
def test_nothing_stands_beside_its_successor_its_source_or_itself(found):
    made = pack(*found, budget=2_000)
    chosen = {c.id: c for c in found if c.id in ids(made)}
    for candidate in chosen.values():
        assert candidate.successor not in chosen
        assert not candidate.made_of & (chosen.keys() - {candidate.id})
    texts = [" ".join(c.content.split()) for c in chosen.values() if c.source != "working"]
    assert len(texts) == len(set(texts))
    every = {c.id: c for c in found}
    for candidate in chosen.values():
        others = [c for c in chosen.values() if c is not candidate]
        assert all(tells(others, every[id]) for id in candidate.outdated_by)
    said = {c.event for c in chosen.values() if c.event and c.verbatim and not c.outdated_by}
    assert not [c.id for c in chosen.values() if c.event in said and not c.verbatim]


def tells(some, other):
    """Whether one of them is it, the message that it was taken from, or says the same."""
    return any(
        c.id == other.id
        or (c.verbatim and other.event and c.event == other.event)
        or c.content.split() == other.content.split()
        for c in some
    )


# -- rules ------------------------------------------------------------------------------------


def test_the_best_come_in_and_the_text_is_in_the_order_of_time():
    found = [
        one("old", relevance=0.9, at=DAY - timedelta(days=2)),
        one("poor", "word " * 30, relevance=0.1),
        one("new", relevance=0.5),
    ]
    made = pack(*found, budget=52)
    assert (ids(made), left_out(made)) == (["old", "new"], {"poor": "budget"})


def test_the_latest_turns_stay_in_the_order_of_time():
    talk = [
        one(f"w{n}", f"turn {n}", freshness(4 - n), "working", at=DAY, place=n) for n in range(5)
    ]
    random.Random(1).shuffle(talk)
    assert ids(pack(*talk, budget=500)) == ["w0", "w1", "w2", "w3", "w4"]
    assert ids(pack(*talk, budget=36)) == ["w3", "w4"]


def test_a_share_bounds_the_tokens_and_the_items_of_a_source():
    found = [one(f"e{n}", f"four words of {n}", 1 - n / 100) for n in range(10)]
    made = pack(*found, shares={"episodic": ContextShare(items=3)})
    assert (ids(made), left_out(made)["e3"]) == (["e0", "e1", "e2"], "cap")
    made = pack(*found, budget=120, shares={"episodic": ContextShare(tokens=0.3)})
    assert sum(item.tokens for item in made.items) <= 36
    assert set(left_out(made).values()) == {"cap"}
    shares = {"episodic": ContextShare(items=0)}
    assert pack(*found, shares=shares).text == ""


def test_a_weight_puts_one_source_before_another():
    found = [one("e", relevance=0.6), one("s", relevance=0.5, source="semantic")]
    assert ids(pack(*found, budget=32)) == ["e"]
    assert ids(pack(*found, budget=32, shares={"semantic": ContextShare(weight=2.0)})) == ["s"]


def test_what_is_unlike_the_rest_is_preferred_to_the_same_again():
    near, same, far = (np.array(v, np.float32) for v in ([1, 0], [1, 0.1], [0, 1]))
    found = [
        one("a", relevance=1.0, vector=near),
        one("b", relevance=0.9, vector=same),
        one("c", relevance=0.8, vector=far),
    ]
    made = pack(*found, budget=37, relevance=0.5)
    assert (ids(made), left_out(made)) == (["a", "c"], {"b": "diversity"})
    assert ids(pack(*found, budget=37, relevance=1)) == ["a", "b"]


def test_what_is_too_large_is_left_out_for_the_budget_though_smaller_ones_follow():
    found = [one("a"), one("b", "word " * 20, 0.9), one("c", relevance=0.8)]
    made = pack(*found, budget=40, longest=1.0)
    assert (ids(made), left_out(made)) == (["a", "c"], {"b": "budget"})


def test_a_message_and_its_row_are_one_text():
    talk = one("ref1", "I moved to Porto.", source="working", ref="ref1", verbatim=True)
    row = one("row", "Moved, it is Porto", ref="ref1", verbatim=True, relevance=0.9)
    same = one("same", "i  moved to PORTO.", relevance=0.8)
    made = pack(row, talk, same)
    assert ids(made) == ["ref1"]
    assert {drop.id: drop.detail for drop in made.dropped} == {
        "row": "said in ref1",
        "same": "ref1 says the same",
    }


def test_what_is_said_twice_in_the_conversation_stands_there_twice():
    talk = [one(f"w{n}", "yes", source="working", place=n) for n in range(2)]
    assert ids(pack(*talk)) == ["w0", "w1"]


def test_a_message_takes_the_place_of_the_facts_that_were_taken_from_it():
    facts = [one(f"f{n}", f"fact {n}", 1.0, "semantic", ref="r") for n in range(2)]
    said = one("said", "both facts in one message", 0.5, ref="r", verbatim=True)
    assert ids(pack(*facts)) == ["f0", "f1"]
    made = pack(*facts, said)
    assert ids(made) == ["said"]
    assert left_out(made) == {"f0": "duplicate", "f1": "duplicate"}
    again = pack(*facts, said, one("x", "four words more here", 0.1), budget=50)
    assert ids(again) == ["said", "x"]  # what the facts had is given back


def test_the_successor_stands_for_what_it_replaced_however_it_scores():
    old, new = one("old", successor="new"), one("new", relevance=0.1)
    made = pack(old, new)
    assert (ids(made), left_out(made)) == (["new"], {"old": "lineage"})
    assert ids(pack(old)) == ["old"]


def outdated(by="new", **more):
    return one("old", "I live in Lisbon", ref="r1", verbatim=True, outdated_by={by}, **more)


def test_what_is_outdated_stands_marked_beside_its_successor_alone():
    new = one("new", "I moved to Porto", 0.1, "semantic", ref="r2")
    made = pack(new, outdated())
    assert "ann (outdated): I live in Lisbon" in made.text
    assert "ann (partly outdated): I live" in pack(new, outdated(partly=True)).text
    alone = pack(outdated())
    assert (ids(alone), left_out(alone)) == ([], {"old": "lineage"})
    small = pack(new, outdated(), budget=34)  # though the old one has the better score
    assert (ids(small), left_out(small)) == (["new"], {"old": "budget"})
    told = one("said", "I moved to Porto today", 0.05, ref="r2", verbatim=True)
    assert ids(pack(new, outdated(), told)) == ["old", "said"]  # its message stands for it
    holds = one("nurse", "I am a nurse", 0.9, "semantic", ref="r1")
    assert ids(pack(new, outdated(partly=True), holds)) == ["new", "nurse", "old"]


def test_what_has_next_to_nothing_to_do_with_the_question_is_left_out():
    found = [one(f"{source}", relevance=0.04, source=source) for source in ContextSource]
    made = pack(*found)
    assert ids(made) == ["profile", "working"]
    assert set(left_out(made).values()) == {"weak"}
    assert len(ids(pack(*found, min_score=0))) == len(found)


def test_a_message_counts_by_the_words_of_the_question_and_not_only_by_its_age():
    asked, talk = "What is my badge?", ["My badge is 4711.", "Fine.", "Ok."]
    scores = [talk_relevance(2 - n, asked, said) for n, said in enumerate(talk)]
    assert scores == pytest.approx([1.0, 0.5 * freshness(1), 0.5])
    assert talk_relevance(0, "badge number", "my badge") == pytest.approx(0.75)
    assert talk_relevance(0, asked, asked) == talk_relevance(0, "what is it", "it") == 0.5
    found = [
        one(f"w{n}", said, scores[n], "working", at=DAY, place=n) for n, said in enumerate(talk)
    ]
    assert ids(pack(*found, budget=500)) == ["w0", "w1", "w2"]
    assert ids(pack(*found, budget=34)) == ["w0"]


def test_a_summary_and_its_sources_exclude_each_other():
    made_of = frozenset(["a", "b"])
    summary = one("sum", relevance=0.5, source="distilled", made_of=made_of)
    assert ids(pack(summary, one("a"), one("b"))) == ["a", "b"]
    first = one("sum", relevance=1.0, source="distilled", made_of=made_of)
    made = pack(first, one("a", relevance=0.5))
    assert (ids(made), left_out(made)) == (["sum"], {"a": "lineage"})


def test_of_two_summaries_of_the_same_the_better_one_stands():
    session = one("sum1", "a summary", source="distilled", made_of=frozenset(["a", "b"]))
    day = one("sum2", "another", 0.9, "distilled", made_of=frozenset(["a", "b", "c"]))
    other = one("sum3", "a third", 0.1, "distilled", made_of=frozenset(["c", "d"]))
    made = pack(session, day, other)
    assert (ids(made), left_out(made)) == (["sum1", "sum3"], {"sum2": "duplicate"})


def test_a_long_item_is_cut_to_its_share():
    long = one("long", " ".join(f"w{n}" for n in range(500)))
    made = pack(long, budget=100)
    (item,) = made.items
    assert item.cut
    assert item.tokens <= 50
    assert item.text.startswith("#1 ann: w0 w1 ")
    assert item.text.endswith("…")
    assert pack(long, budget=700, longest=1.0).items[0].cut is False


def test_of_a_very_long_content_the_beginning_alone_is_counted():
    """Guards a turn's time: a memory of a megabyte was counted whole in each pack, a second long."""
    longest = []

    def counted(texts):
        longest.append(max(map(len, texts)))
        return words(texts)

    huge = one("huge", "word " * 200_000)
    made = pack(huge, budget=200, count=counted)
    (item,) = made.items
    assert (item.cut, item.text.endswith("word…")) == (True, True)
    assert 80 <= item.tokens <= 100 < made.tokens <= 200
    assert max(longest) < 7_000


def test_a_budget_below_the_frame_gives_an_empty_text():
    made = pack(one("a"), budget=5)
    assert (made.text, made.tokens, left_out(made)) == ("", 0, {"a": "budget"})
    assert (pack().text, pack().items) == ("", ())


def test_after_many_in_a_row_without_room_nobody_else_is_counted():
    asked = []

    def counted(texts):
        asked.extend(texts)
        return words(texts)

    found = [one(f"m{n:03}", f"{n} " * 60, 1 - n / 1000) for n in range(200)]
    made = pack(*found, budget=100, count=counted, longest=1.0)
    assert (made.items[0].id, len(made.dropped)) == ("m000", 199)
    assert len(asked) < 60


# -- scores -----------------------------------------------------------------------------------


def test_relevance_is_what_the_formulas_say():
    assert [freshness(n) for n in (0, 8, 16)] == [1.0, 0.5, 0.25]
    assert profile_relevance(0.8, 0.0) == pytest.approx(0.4)
    assert profile_relevance(1.0, 1.0) == 1.0
    assert [snapshot_relevance(q, 0.8) for q in (1.0, None, 0.5)] == pytest.approx([0.8, 0.8, 0.6])


def hit(similarity, bm25=None, *, content="x", score=1.0, **parts):
    times = {"created_at": DAY, "updated_at": DAY, "state_at": DAY}
    memory = Memory(id="m", revision=1, content=content, content_hash="", **times)
    given = {"memory": memory, "score": score, "similarity": similarity, "words": bm25}
    return Hit(parts=ScoreParts(**parts), **given)


def test_of_noise_counts_only_what_its_neighbours_gave_it():
    assert hit_relevance(hit(0.01, vector=1.0), 0.05) == 0.0
    assert hit_relevance(hit(0.01, vector=0.6, neighbours=0.2), 0.05) == pytest.approx(0.25)
    assert hit_relevance(hit(0.05, vector=1.0), 0.05) == 1.0
    assert hit_relevance(hit(0.01, 2.5, vector=0.1, words=0.9), 0.05) == 1.0
    assert hit_relevance(hit(None, words=1.0), 0.05) == 1.0


def test_a_message_that_says_nothing_is_noise_whatever_its_cosine():
    near = {"vector": 0.6, "neighbours": 0.2, "actor": 0.2}
    assert hit_relevance(hit(0.4, content="Noted.", **near), 0.05) == 0.0
    assert (
        hit_relevance(hit(0.4, 1.5, content="Noted.", words=1.0), 0.05) == 1.0
    )  # it was asked for
    assert hit_relevance(hit(0.4, content="Porto.", **near), 0.05) == 1.0


def test_what_stands_next_to_a_hit_gets_a_part_of_its_relevance():
    hit, low = one("hit", relevance=0.8), one("low", relevance=0.1)
    around = [(one("b", relevance=0), "hit", -1), (one("low", relevance=0), "hit", 1)]
    found = {c.id: (c.relevance, c.why) for c in with_neighbours([hit, low], around)}
    assert found == {
        "hit": (0.8, ""),
        "b": (pytest.approx(0.4), "right before hit"),
        "low": (pytest.approx(0.56), "right after hit"),
    }
    better = [one("hit", relevance=0.8), one("low", relevance=0.7)]
    assert [c.relevance for c in with_neighbours(better, around)][:2] == [0.8, 0.7]


@pytest.mark.parametrize("said", ["Noted.", "Sure!", "I will.", "Ok, I will.", "\U0001f44d"])
@pytest.mark.parametrize("asked", ["I moved to Porto.", "Could you note that I moved?"])
def test_a_neighbour_that_says_nothing_by_itself_gets_nothing(said, asked):
    """Guards: "Noted." stood in the pack, as it came right after a hit."""
    around = [(one("n", said, 0), "hit", 1), (one("p", said, 0), "hit", -1)]
    assert [c.id for c in with_neighbours([one("hit", asked)], around)] == ["hit"]
    known = with_neighbours([one("hit", asked), one("n", said, 0.01)], around)
    assert {c.id: c.relevance for c in known} == {"hit": 1.0, "n": 0.01}


def test_a_bare_yes_or_no_counts_right_after_what_asks():
    around = [(one("yes", "Yes!", 0), "hit", 1)]
    asks, tells = one("hit", "Did you get the job?"), one("hit", "You got the job.")
    assert [c.id for c in with_neighbours([asks], around)] == ["hit", "yes"]
    assert [c.id for c in with_neighbours([tells], around)] == ["hit"]
    before = [(one("yes", "Yes!", 0), "hit", -1)]
    assert [c.id for c in with_neighbours([asks], before)] == ["hit"]


def test_equal_scores_are_ordered_by_source_and_id():
    found = [one("b"), one("a"), one("z", source="working"), one("a1", source="profile")]
    found.append(one("0", source="shared"))
    shares = {"profile": ContextShare()}
    assert [s.candidate.id for s in scored(found, ContextOptions(shares=shares))] == [
        "z", "a", "b", "a1", "0",
    ]  # fmt: skip


# -- what others share ------------------------------------------------------------------------


def test_the_text_and_the_citation_say_who_shares():
    giver = Scope(tenant="t", user="ann", session="s1")
    found = one("m", "the door code is 42", source="shared", shared_by=giver, until=DAY)
    made = pack(found, within=Scope(tenant="t", user="bob"))
    assert made.text.splitlines()[2:5] == [
        "## Shared by others",
        "1 Mar 2025",
        "#1 ann (shared by user=ann session=s1, until 1 Mar 2025): the door code is 42",
    ]
    assert (made.items[0].shared_by, made.items[0].scope) == (giver, ANN)
    alike = pack(found, within=Scope(tenant="t", user="ann", session="s1", agent="x"))
    assert "(shared by user=ann session=s1, " in alike.text  # where all of it is the reader's too


def test_in_a_session_of_python_items_are_short_and_have_their_ids():
    found = one("m", "word " * 40, source="shared", shared_by=ANN)
    made = pack(found, one("weak", "other", 0.01), within=Scope(tenant="t", user="bob"))
    (item,), (dropped,) = made.items, made.dropped
    assert repr(item) == (
        f"<ContextItem '{item.text[:59].rstrip()}…' shared, score 1.000, {item.tokens} tokens; "
        "shared by tenant=t/user=ann, id m>"
    )
    assert repr(dropped) == (
        "<DroppedItem episodic, score 0.010: weak (relevance 0.010 below 0.05); id weak>"
    )


def test_what_others_share_has_a_quarter_of_the_budget_unless_asked_for():
    found = [one(f"m{n}", f"word number {n}", source="shared") for n in range(40)]
    own = one("own", relevance=0.1)
    made = pack(*found, own, budget=200)
    spent = sum(item.tokens for item in made.items if item.source == "shared")
    assert 30 < spent <= 50
    assert "own" in ids(made)
    none = pack(*found, own, budget=200, shares={"shared": ContextShare(items=0)})
    assert ids(none) == ["own"]


def test_hits_of_another_search_are_put_on_the_scale_of_ones_own():
    own = [
        hit(0.9, 4.0, score=1.0, vector=0.5, words=0.5),
        hit(0.7, 2.0, score=0.5, vector=0.25, words=0.25),
    ]
    assert [h.score for h in on_scale_of(own, own)] == [1.0, 0.5]
    theirs = [
        hit(
            0.6, score=1.0, vector=1.0
        ),  # the best of what is shared, and further than all of one's own
        hit(0.5, score=0.5, vector=0.5),
        hit(0.8, 3.0, score=0.9, vector=0.9),
        hit(0.99, 9.0, score=0.9, vector=0.9),
    ]
    scores = [h.score for h in on_scale_of(own, theirs)]
    assert scores == pytest.approx([0.125, 0.0, 0.375 + 0.375, 1.0])


def test_where_there_is_nothing_to_compare_with_others_keep_their_scores():
    theirs = [hit(0.6, score=1.0, vector=1.0), hit(0.5, score=0.5, vector=0.5)]
    assert on_scale_of([], theirs) == theirs
    words = [hit(None, 2.0, score=1.0, words=1.0)]  # the vector leg did not answer
    assert [h.score for h in on_scale_of(words, theirs)] == [1.0, 0.5]
    alone = [hit(0.6, score=1.0, vector=1.0)]  # as the search: 0.1 of a cosine is the whole scale
    assert [h.score for h in on_scale_of(alone, theirs)] == pytest.approx([1.0, 0.0])


def test_one_ref_of_two_people_names_two_events():
    """Guards: a message of one hid what was taken from another's message of the same ref."""
    said = one("said", "I like tea", ref="r1", verbatim=True, scope=Scope(user="bob"))
    fact = one("fact", "ann likes figs", source="shared", ref="r1")
    other = one("other", "I like figs", source="shared", ref="r1", verbatim=True)
    assert set(ids(pack(said, fact))) == {"said", "fact"}
    assert set(ids(pack(said, other))) == {"said", "other"}
    assert ids(pack(fact, other)) == ["other"]


# -- options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget_tokens": 0}, {"budget_tokens": 1.5}, {"k": -1}, {"recent": "all"}, {"lead": None},
        {"relevance": 1.1}, {"longest": 0}, {"latency": 0}, {"mode": "words"}, {"tokenizer": 5},
        {"min_score": 2}, {"ids": "yes"}, {"shares": [1]}, {"shares": {"dreams": ContextShare()}},
        {"shares": {"working": 0.5}},
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused_by_name(wrong):
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        ContextOptions(**wrong)


@pytest.mark.parametrize("wrong", [{"weight": -1}, {"tokens": 1.1}, {"items": -1}, {"items": 1.5}])
def test_shares_that_make_no_sense_are_refused_by_name(wrong):
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        ContextShare(**wrong)


def test_a_larger_budget_looks_at_more_candidates():
    asked = [ContextOptions(budget_tokens=n).hits for n in (100, 1_500, 10**6)]
    assert asked == [50, 100, 1_000]
    assert ContextOptions(k=7).hits == 7


def test_every_reason_for_leaving_out_is_given():
    assert {str(reason) for reason in DropReason} == {
        "budget", "cap", "duplicate", "lineage", "diversity", "weak",
    }  # fmt: skip
