from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_memory.search.fusion import fused, normalised_bm25, normalised_cosines

IDS = st.sampled_from("abcdefgh")
COSINES = st.dictionaries(IDS, st.floats(-1, 1, allow_subnormal=False))
WORDS = st.dictionaries(IDS, st.floats(0.01, 50))


@given(COSINES, WORDS)
def test_every_candidate_has_one_score_within_0_and_1_best_first(cosines, words):
    ranked = fused(cosines, words)
    assert sorted(i for i, _ in ranked) == sorted({*cosines, *words})
    assert all(0 <= score <= 1 for _, score in ranked)
    assert [s for _, s in ranked] == sorted((s for _, s in ranked), reverse=True)


@given(COSINES)
def test_one_leg_alone_keeps_its_order(cosines):
    scores = dict(fused(cosines, {}))
    for one in cosines:
        for other in cosines:
            assert cosines[one] <= cosines[other] or scores[one] >= scores[other]


@given(COSINES, WORDS, IDS)
def test_being_better_in_both_legs_is_being_better(cosines, words, best):
    top = {**cosines, best: 1.0}, {**words, best: 60.0}
    assert fused(*top)[0][1] == dict(fused(*top))[best]


def test_ties_are_ordered_by_id():
    assert fused({"b": 0.5, "a": 0.5}, {}) == [("a", 1.0), ("b", 1.0)]


def test_nothing_fuses_to_nothing():
    assert fused({}, {}) == []
    assert (normalised_cosines({}), normalised_bm25({}), normalised_bm25({"a": 0.0})) == (
        {},
        {},
        {},
    )


def test_the_sum_has_equal_shares():
    assert fused({"a": 0.9, "b": 0.1}, {"b": 4.0, "c": 2.0}) == [
        ("a", pytest.approx(0.5)),
        ("b", pytest.approx(0.5)),
        ("c", pytest.approx(0.25)),
    ]
