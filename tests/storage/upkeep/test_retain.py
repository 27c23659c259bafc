from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_memory import InvalidInputError, Retain
from lance_memory.storage.upkeep.retain import to_clean

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
NOTHING = {"hours": 0, "days": 0, "weeks": 0, "months": 0}
COUNT = st.integers(0, 5)

retains = st.builds(
    Retain,
    last=st.integers(1, 6),
    hours=COUNT,
    days=COUNT,
    weeks=COUNT,
    months=COUNT,
    passes=COUNT,
    within=st.timedeltas(timedelta(0), timedelta(days=3)),
)
ages = st.lists(st.timedeltas(timedelta(minutes=-90), timedelta(days=800)), max_size=60)


def numbered(given_ages):
    """Versions whose times fall in no order, as after a clock that went backward."""
    return {number: NOW - age for number, age in enumerate(given_ages, 1)}


def made_by_passes(versions):
    """Every third version was made by a consolidation."""
    return {number for number in versions if number % 3 == 0}


def kept(versions, retain, **options):
    return sorted(versions.keys() - set(to_clean(versions, retain, now=NOW, **options)))


@given(ages, retains, st.sets(st.integers(1, 60)))
def test_the_last_the_young_and_the_pinned_always_stay(given_ages, retain, pinned):
    versions = numbered(given_ages)
    stay = set(kept(versions, retain, pinned=pinned))
    assert set(sorted(versions)[-retain.last :]) <= stay
    assert pinned & versions.keys() <= stay
    assert {v for v, at in versions.items() if NOW - at <= retain.within} <= stay


@given(ages, retains)
def test_what_stays_is_bounded(given_ages, retain):
    versions = numbered(given_ages)
    young = sum(NOW - at <= retain.within for at in versions.values())
    most = retain.last + retain.hours + retain.days + retain.weeks + retain.months
    passes = made_by_passes(versions)
    assert len(kept(versions, retain, passes=passes)) <= most + young + 2 * retain.passes


@given(ages, retains, st.sets(st.integers(1, 60)))
def test_cleaning_again_at_the_same_moment_removes_nothing(given_ages, retain, pinned):
    versions = numbered(given_ages)
    passes = made_by_passes(versions)
    rest = {v: versions[v] for v in kept(versions, retain, pinned=pinned, passes=passes)}
    assert to_clean(rest, retain, now=NOW, pinned=pinned, passes=passes & rest.keys()) == []


@given(ages, retains)
def test_a_larger_budget_keeps_no_less(given_ages, retain):
    versions = numbered(given_ages)
    wider = Retain(
        last=retain.last + 1,
        hours=retain.hours + 1,
        days=retain.days + 1,
        weeks=retain.weeks + 1,
        months=retain.months + 1,
        within=retain.within + timedelta(hours=1),
    )
    assert set(kept(versions, retain)) <= set(kept(versions, wider))


def test_the_last_passes_stay_with_what_they_began_from():
    versions = dict.fromkeys(range(1, 21), NOW - timedelta(hours=1))
    retain = Retain(last=2, **NOTHING, passes=2)
    assert kept(versions, retain, passes={3, 9, 15}) == [8, 9, 14, 15, 19, 20]


def test_the_newest_of_each_day_stays():
    versions = {n: NOW - timedelta(hours=6 * (20 - n)) for n in range(1, 21)}  # four a day
    assert kept(versions, Retain(last=1, **{**NOTHING, "days": 3})) == [13, 17, 20]


def test_only_periods_with_a_version_count():
    """A store that rests for a year loses nothing by it."""
    versions = {1: NOW - timedelta(days=900), 2: NOW - timedelta(days=400), 3: NOW}
    assert kept(versions, Retain(last=1, **{**NOTHING, "months": 3})) == [1, 2, 3]
    assert kept(versions, Retain(last=1, **{**NOTHING, "months": 2})) == [2, 3]


def test_periods_are_utc():
    at = datetime.fromisoformat
    versions = {
        1: at("2025-05-31T23:30:00-02:00"),  # June in UTC
        2: at("2025-06-01T03:00:00+00:00"),
        3: at("2025-06-01T01:00:00+02:00"),  # May in UTC
    }
    assert kept(versions, Retain(last=1, **{**NOTHING, "months": 2})) == [2, 3]


@pytest.mark.parametrize(
    "wrong",
    [{"last": 0}, {"last": 2.5}, {"days": -1}, {"weeks": "1"}, {"within": timedelta(-1)}],
    ids=str,
)
def test_a_budget_that_means_nothing_is_refused(wrong):
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        Retain(**wrong)
