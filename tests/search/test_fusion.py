"""Laws of scores."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_memory.search.candidates import Leg, union
from lance_memory.search.fusion import (
    from_neighbours,
    reciprocal_ranks,
    scaled_bm25,
    scaled_cosines,
)
from lance_memory.search.ranking import Ranking, Recency
from lance_memory.search.scoring import Traits, scored

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEG = st.dictionaries(st.integers(0, 12), st.floats(-1, 1, allow_subnormal=False))
SAID = st.dictionaries(st.integers(0, 12), st.floats(0.01, 50))


def leg(scores):
    order = sorted(scores, key=lambda i: (-scores[i], i))
    return Leg(np.array(order, dtype=np.uint64), np.array([scores[i] for i in order], dtype=float))


def fuse(near, said, *, ranking=None, traits=None, alone=False, first=100):
    both = union(leg(near), leg(said), first=first)
    result = scored(both, traits or Traits(), ranking or Ranking(), moment=NOW, alone=alone)
    return dict(zip(both.whole.addresses.tolist(), result.scores.tolist(), strict=True))


@given(LEG, SAID, st.sampled_from(["weighted", "rrf"]))
def test_every_candidate_has_one_score_within_0_and_1(near, said, fusion):
    scores = fuse(near, said, ranking=Ranking(fusion=fusion))
    assert sorted(scores) == sorted({*near, *said})
    assert all(0 <= score <= 1 for score in scores.values())
    assert not said or max(scores.values()) == 1


@given(LEG, st.booleans())
def test_one_leg_alone_keeps_its_order(near, alone):
    scores = fuse(near, {}, alone=alone)
    for one in near:
        for other in near:
            assert near[one] <= near[other] or scores[one] >= scores[other]


@given(LEG, SAID, st.integers(0, 12), st.sampled_from(["weighted", "rrf"]))
def test_being_best_in_both_legs_is_being_best(near, said, best, fusion):
    scores = fuse({**near, best: 1.0}, {**said, best: 60.0}, ranking=Ranking(fusion=fusion))
    assert scores[best] == 1


@given(LEG, SAID, st.integers(1, 5))
def test_what_lies_deeper_in_a_leg_changes_nothing_of_the_first(near, said, first):
    whole = union(leg(near), leg(said), first=first)
    cut = union(leg(near).first(first), leg(said).first(first), first=first)
    assert whole.head.addresses.tolist() == cut.whole.addresses.tolist()
    assert np.array_equal(whole.head.cosines, cut.whole.cosines, equal_nan=True)
    assert np.array_equal(whole.head.words, cut.whole.words, equal_nan=True)


def test_the_weighted_sum_has_equal_shares():
    assert fuse({1: 0.9, 2: 0.1}, {2: 4.0, 3: 2.0}) == {
        1: pytest.approx(1.0),
        2: pytest.approx(1.0),
        3: pytest.approx(0.5),
    }


def test_a_share_moves_weight_between_the_legs():
    near = fuse({1: 0.9, 2: 0.1}, {2: 4.0}, ranking=Ranking(vector_share=0.9))
    said = fuse({1: 0.9, 2: 0.1}, {2: 4.0}, ranking=Ranking(vector_share=0.1))
    assert near[1] > near[2]
    assert said[2] > said[1]


def test_reciprocal_ranks_are_those_of_the_paper():
    ranks = reciprocal_ranks(np.array([0.2, np.nan, 0.9]))
    assert ranks.tolist() == [1 / 62, 0.0, 1 / 61]


def test_scaling_survives_equal_and_missing_scores():
    nothing = np.array([np.nan, np.nan])
    assert scaled_cosines(nothing).tolist() == scaled_bm25(nothing).tolist() == [0, 0]
    assert scaled_cosines(np.array([0.3, np.nan, 0.3])).tolist() == [1, 0, 1]
    assert scaled_bm25(np.array([2.0, np.nan, 8.0])).tolist() == [0.25, 0, 1]
    assert scaled_bm25(np.array([])).tolist() == []


def test_neighbours_give_more_forward_than_back_and_less_with_each_turn():
    relevance = np.array([1.0, 0.0, 0.0, 0.0])
    positions = np.array([5, 4, 6, 7])  # the relevant one, before it, after it, after that
    given_ = from_neighbours(relevance, np.ones(4, dtype=np.uint64), positions)
    assert given_.tolist() == pytest.approx([0.0, 0.2, 0.3, 0.15])


@given(st.permutations(range(6)))
def test_the_order_of_the_candidates_does_not_matter_to_neighbours(order):
    relevance = np.array([0.9, 0.1, 0.5, 0.0, 0.7, 0.3])
    sessions = np.array([1, 1, 1, 2, 2, 0], dtype=np.uint64)
    positions = np.array([3, 4, 9, 4, 5, 4])
    straight = from_neighbours(relevance, sessions, positions)
    chosen = np.array(order)
    mixed = from_neighbours(relevance[chosen], sessions[chosen], positions[chosen])
    assert mixed.tolist() == pytest.approx(straight[chosen].tolist())


def test_nothing_crosses_a_session_and_no_session_has_no_neighbours():
    alone = from_neighbours(np.ones(3), np.array([1, 2, 0], dtype=np.uint64), np.array([1, 2, 3]))
    none = from_neighbours(np.ones(2), np.zeros(2, dtype=np.uint64), np.array([1, 2]))
    assert [*alone, *none] == [0, 0, 0, 0, 0]


def test_recency_halves_the_way_to_the_floor():
    ages = [timedelta(0), timedelta(days=30), timedelta(days=60), timedelta(days=36_500)]
    happened = np.array([np.datetime64((NOW - age).replace(tzinfo=None), "us") for age in ages])
    ranking = Ranking(recency=Recency(half_life=timedelta(days=30), floor=0.2))
    scores = fuse(
        {}, {0: 5.0, 1: 5.0, 2: 5.0, 3: 5.0}, ranking=ranking, traits=Traits(happened=happened)
    )
    assert list(scores.values()) == pytest.approx([1.0, 0.6, 0.4, 0.2])


def test_what_lies_in_the_future_is_as_fresh_as_now():
    happened = np.array(["2027-01-01", "2026-01-01"], dtype="datetime64[us]")
    ranking = Ranking(recency=Recency(half_life=timedelta(days=1)))
    assert fuse({}, {0: 5.0, 1: 5.0}, ranking=ranking, traits=Traits(happened=happened)) == {
        0: 1.0,
        1: 1.0,
    }


def test_importance_is_a_factor_as_large_as_asked():
    traits = Traits(importance=np.array([1.0, 0.5, 0.0]))
    scores = fuse({}, {0: 5.0, 1: 5.0, 2: 5.0}, ranking=Ranking(importance=0.4), traits=traits)
    assert list(scores.values()) == pytest.approx([1.0, 0.8, 0.6])


@given(LEG.filter(bool))
def test_the_best_of_one_leg_has_1_wherever_it_points(near):
    scores = fuse(near, {}, alone=True)
    assert max(scores.values()) == 1
    best = max(near.values())
    for one in near:
        for other in near:
            if best <= 0 and near[one] > near[other] + 1e-5:
                assert scores[one] > scores[other]
