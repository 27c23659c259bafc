"""The dates that a question names."""

import time
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_memory.search.periods import Period, periods

TODAY = date(2026, 1, 3)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What did she do on 8 May 2023?", ["2023-05-08"]),
        ("on May 8th, 2023 or in June 2022", ["2023-05-08", "2022-06"]),
        ("the 3rd of Sept.", ["*-09-03"]),
        ("on July 4", ["*-07-04"]),
        ("in May", ["*-05"]),
        ("In MAY", ["*-05"]),
        ("between August and September 2023", ["*-08", "2023-09"]),
        ("in December, 2021", ["2021-12"]),
        ("during the spring of 2022", ["2022"]),
        ("2023-05 and 2023/06/07", ["2023-05", "2023-06-07"]),
        ("我2023年5月8日吃了什么", ["2023-05-08"]),
        ("2023年5月", ["2023-05"]),
        ("2023年に", ["2023"]),
        ("5月8日", ["*-05-08"]),
        ("what did we say yesterday, and last month?", ["2026-01-02", "2025-12"]),
        ("today", ["2026-01-03"]),
        ("this week", ["2025-12-29 and 6 days"]),
        ("Last week and two weeks ago", ["2025-12-22 and 6 days", "2025-12-15 and 6 days"]),
        ("3 days ago, one day ago", ["2025-12-31", "2026-01-02"]),
        ("on Saturday, last Friday, on Sunday", ["2025-12-27", "2026-01-02", "2025-12-28"]),
        ("this month or this year or last year", ["2026-01", "2026", "2025"]),
        ("29 February", ["*-02-29"]),
        ("8 May 2023, I mean 8 May 2023", ["2023-05-08"]),
        ("8 Auguſt 2023", ["2023-08-08"]),
        ("in ſep", ["*-09"]),
    ],
)
def test_dates_are_found_in_their_order(text, found):
    assert [str(period) for period in periods(text, today=TODAY)] == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "may I march",
        "I may go",
        "Mark my words",
        "phone 2023-05-081",
        "version 2023-13",
        "1999 bottles",
        "12345",
        "room 2023",
        "the second",
        "99月99日",
        "a decade",
        "in aprıl",
        "APRİL 2023",
        "2023-00",
        "junebug 3",
    ],
)
def test_what_only_looks_like_a_date_is_none(text):
    assert periods(text, today=TODAY) == ()


@given(st.text(max_size=80))
def test_any_text_is_read(text):
    for period in periods(text, today=TODAY):
        assert str(period)


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)))
def test_a_written_day_covers_that_day_and_no_other(day):
    for text in (
        day.isoformat(),
        f"{day.day} {day:%B} {day.year}",
        f"{day:%b} {day.day}, {day.year}",
    ):
        (period,) = periods(text, today=TODAY)
        noon = np.datetime64(day.isoformat()) + np.timedelta64(12, "h")
        near = np.array([noon + d * np.timedelta64(1, "D") for d in (-1, 0, 1)])
        assert period.covers(near.astype("datetime64[us]")).tolist() == [False, True, False]


def test_a_month_without_a_year_is_that_of_every_year():
    times = np.array(["1969-05-31T23:59", "2023-05-01", "2023-06-01"], dtype="datetime64[us]")
    assert Period(month=5).covers(times).tolist() == [True, True, False]
    assert Period(year=1969).covers(times).tolist() == [True, False, False]
    assert Period(year=2023, month=6).covers(times).tolist() == [False, False, True]


def test_dates_are_looked_for_in_the_first_4000_characters():
    assert periods("x" * 3_985 + " on 8 May 2023", today=TODAY) == (Period(2023, 5, 8),)
    assert periods("x" * 4_000 + " on 8 May 2023", today=TODAY) == ()


def test_the_time_to_read_dates_does_not_grow_with_the_square_of_their_number():
    many = " ".join(f"{day}.{year}-05-0{day}," for year in range(1900, 2099) for day in range(1, 9))
    start = time.process_time()
    assert len(periods(many * 50, today=TODAY)) > 100
    assert time.process_time() - start < 1


def test_a_week_is_seven_days_from_monday_on():
    (week,) = periods("last week", today=TODAY)
    days = ["2025-12-21T23:59", "2025-12-22", "2025-12-28T23:59:59", "2025-12-29"]
    times = np.array(days, dtype="datetime64[us]")
    assert week.covers(times).tolist() == [False, True, True, False]
