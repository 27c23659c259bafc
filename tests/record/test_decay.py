"""The laws of strength, and what `Decay` refuses."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_memory import Decay, InvalidInputError
from lance_memory.record.decay import Uses, evergreen, seconds_since, strengths

DAY = 86_400.0
shares = st.floats(0.0, 1.0)
ages = st.floats(-10 * DAY, 40_000 * DAY)
counts = st.integers(0, 10_000)
decays = st.builds(
    Decay,
    half_life=st.floats(60.0, 1_000 * DAY).map(lambda seconds: timedelta(seconds=seconds)),
    floor=shares,
    use=st.floats(0.0, 4.0),
)


def strength(decay, *, importance=1.0, age=0.0, recalls=0, idle=0.0, fixed=False):
    found = strengths(
        np.array([importance]),
        np.array([age]),
        decay,
        recalls=np.array([float(recalls)]),
        idle=np.array([idle]),
        evergreen=np.array([fixed]),
    )
    return float(found[0])


@given(decays, shares, ages, counts, ages)
def test_strength_lies_between_the_floor_of_the_importance_and_the_importance(
    decay, importance, age, recalls, idle
):
    found = strength(decay, importance=importance, age=age, recalls=recalls, idle=idle)
    assert importance * decay.floor - 1e-12 <= found <= importance + 1e-12


@given(decays, shares, ages, counts, ages, st.floats(0.0, 1_000 * DAY))
def test_the_older_the_weaker(decay, importance, age, recalls, idle, more):
    """And the longer ago the last recall was."""
    given_ = {"importance": importance, "recalls": recalls}
    now = strength(decay, age=age, idle=idle, **given_)
    assert strength(decay, age=age + more, idle=idle, **given_) <= now + 1e-12
    assert strength(decay, age=age, idle=idle + more, **given_) <= now + 1e-12


@given(decays, shares, shares, ages, counts, ages)
def test_the_more_important_the_stronger(decay, one, other, age, recalls, idle):
    low, high = sorted((one, other))
    rest = {"age": age, "recalls": recalls, "idle": idle}
    assert strength(decay, importance=low, **rest) <= strength(decay, importance=high, **rest)


@given(decays, ages, counts, counts, ages)
def test_the_more_recalled_the_stronger(decay, age, recalls, more, idle):
    fewer = strength(decay, age=age, recalls=recalls, idle=idle)
    assert strength(decay, age=age, recalls=recalls + more, idle=idle) >= fewer - 1e-12


@given(decays, shares, ages, counts, ages, st.floats(0.0, 4.0))
def test_the_more_use_counts_the_stronger_is_what_is_used(
    decay, importance, age, recalls, idle, use
):
    low, high = sorted((decay.use, use))
    rest = {"importance": importance, "age": age, "recalls": recalls, "idle": idle}
    weaker = strength(replace(decay, use=low), **rest)
    assert strength(replace(decay, use=high), **rest) >= weaker - 1e-12


@given(decays, shares)
def test_a_half_life_is_half_of_the_way_to_the_floor(decay, importance):
    """And two of them three quarters."""
    age, floor = decay.half_life.total_seconds(), decay.floor
    for lives, share in ((0, 1.0), (1, 0.5), (2, 0.25)):
        found = strength(decay, importance=importance, age=lives * age)
        assert found == pytest.approx(importance * (floor + share * (1 - floor)))


@given(decays, shares, ages, ages)
def test_without_use_strength_is_importance_times_recency(decay, importance, age, idle):
    """Nothing was recalled, or recalls do not count."""
    recency = decay.floor + (1 - decay.floor) * 0.5 ** (
        max(age, 0.0) / decay.half_life.total_seconds()
    )
    assert strength(decay, importance=importance, age=age) == pytest.approx(importance * recency)
    unused = replace(decay, use=0.0)
    assert strength(unused, importance=importance, age=age, recalls=5, idle=idle) == pytest.approx(
        importance * recency
    )


@given(decays, shares, ages, counts, ages)
def test_what_is_evergreen_does_not_age(decay, importance, age, recalls, idle):
    rest = {"age": age, "recalls": recalls, "idle": idle}
    assert strength(decay, importance=importance, fixed=True, **rest) == importance


def test_three_recalls_make_it_last_four_times_as_long_from_the_last_one_on():
    decay = Decay(half_life=timedelta(days=1), use=1.0)
    assert strength(decay, age=50 * DAY, recalls=3, idle=4 * DAY) == pytest.approx(0.5)
    slower = replace(decay, use=0.5)
    assert strength(slower, age=50 * DAY, recalls=3, idle=2 * DAY) == pytest.approx(0.5)


def test_what_happens_later_is_as_fresh_as_can_be():
    decay = Decay(half_life=timedelta(days=1))
    assert strength(decay, age=-5 * DAY) == 1.0
    assert strength(decay, age=-5 * DAY, recalls=1, idle=-DAY) == 1.0


@given(st.lists(st.tuples(shares, ages, counts, ages, st.booleans()), max_size=8), decays)
def test_many_are_as_one_by_one(memories, decay):
    columns = list(zip(*memories, strict=True)) or [[]] * 5
    importance, age, recalls, idle = (np.array(c, dtype=np.float64) for c in columns[:4])
    fixed = np.array(columns[4], dtype=np.bool_)
    found = strengths(importance, age, decay, recalls=recalls, idle=idle, evergreen=fixed)
    assert found.tolist() == [
        strength(decay, importance=i, age=a, recalls=r, idle=d, fixed=f)
        for i, a, r, d, f in memories
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"habit", "me", "pinned", "quoted"}),
        ({"evergreen_kinds": ("semantic",), "evergreen_tags": ("it's", "b")}, {"fact", "quoted"}),
        ({"evergreen_kinds": (), "evergreen_tags": ()}, set()),
    ],
)
def test_kinds_and_tags_are_evergreen(store, options, expected):
    store.add_many(
        [
            {"id": "habit", "content": "1", "kind": "procedural"},
            {"id": "me", "content": "2", "kind": "profile"},
            {"id": "pinned", "content": "3", "tags": ["a", "evergreen"]},
            {"id": "quoted", "content": "4", "tags": ["it's", "evergreen"]},
            {"id": "tagged", "content": "5", "tags": ["a"]},
            {"id": "fact", "content": "6", "kind": "semantic"},
        ]
    )
    predicate = evergreen(Decay(half_life=timedelta(days=1), **options))
    rows = store.lancedb_table().search().where(predicate).to_arrow()
    assert set(rows["id"].to_pylist()) == expected


def test_uses_know_nothing_of_others():
    times = np.array(["2025-01-02", "1970-01-01"], "datetime64[us]")
    uses = Uses(places={"a": 0}, recalls=np.array([3.0, 0.0]), last=times)
    recalls, last = uses.of(["b", "a"])
    assert (recalls.tolist(), last.tolist()) == ([0.0, 3.0], times[::-1].tolist())
    assert Uses().of(["a"])[0].tolist() == [0.0]
    assert (bool(uses), bool(Uses())) == (True, False)


def test_seconds_count_to_the_moment():
    times = np.array(["2025-01-01T00:00:00", "2025-01-01T00:02:00.5"], "datetime64[us]")
    moment = datetime(2025, 1, 1, 0, 1, tzinfo=UTC)
    assert seconds_since(times, moment).tolist() == [60.0, -60.5]


@pytest.mark.parametrize(
    "wrong",
    [
        {"half_life": timedelta(0)},
        {"half_life": 30},
        {"floor": -0.1},
        {"floor": 1.1},
        {"floor": float("nan")},
        {"floor": "much"},
        {"use": -1},
        {"use": 5},
        {"use": True},
        {"evergreen_kinds": ("nothing",)},
        {"evergreen_kinds": "profile"},
        {"evergreen_tags": "evergreen"},
        {"evergreen_tags": None},
    ],
)
def test_a_decay_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidInputError, match=f"^{next(iter(wrong))}"):
        Decay(**{"half_life": timedelta(days=1), **wrong})
