"""When a pass is due: pure, without a store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lance_memory import InvalidInputError, Triggers
from lance_memory.dream.triggers import Moment, backoff, due, next_time

NOON = datetime(2025, 3, 5, 12, tzinfo=UTC)  # a Wednesday
ALL = Triggers(idle=timedelta(minutes=10), new_rows=200, cron="0 3 * * *")


def minutes(number):
    return timedelta(minutes=number)


def moment(**given):
    return Moment(**{"now": NOON, "since": NOON - minutes(1), "new_rows": 1, **given})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, None),
        ({"last_write": NOON - minutes(9)}, None),
        ({"last_write": NOON - minutes(10)}, "idle 10m"),
        ({"last_write": NOON + minutes(10)}, None),
        ({"new_rows": 199}, None),
        ({"new_rows": 200}, "200 new rows"),
        ({"new_rows": 200, "last_write": NOON - minutes(11)}, "idle 10m"),
        ({"since": NOON - minutes(539)}, None),
        ({"since": NOON - minutes(541)}, "cron 0 3 * * *"),
        ({"since": NOON - minutes(9_999)}, "cron 0 3 * * *"),
    ],
)
def test_any_trigger_that_holds_makes_a_pass_due(given, reason):
    assert due(ALL, moment(**given)) == reason


def test_nothing_is_due_where_nothing_is_new():
    quiet = {"last_write": NOON - minutes(99), "since": NOON - minutes(9_999), "new_rows": 0}
    assert due(ALL, moment(**quiet)) is None
    assert due(ALL, moment(**quiet, unfinished=True)) == "idle 10m"


@pytest.mark.parametrize(
    ("triggers", "reason"),
    [
        (Triggers(idle=timedelta(hours=36)), "idle 36h"),
        (Triggers(idle=timedelta(days=2)), "idle 2d"),
        (Triggers(idle=minutes(90)), "idle 90m"),
        (Triggers(idle=timedelta(seconds=1.5)), "idle 1.5s"),
        (Triggers(new_rows=5), None),
        (Triggers(cron="1 12 * * *"), None),
    ],
)
def test_only_triggers_that_were_given_hold(triggers, reason):
    known = moment(last_write=NOON - timedelta(days=9), new_rows=4)
    assert due(triggers, known) == reason


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no trigger is given"),
        ({"idle": timedelta(0)}, "idle=0:00:00; it takes a positive timedelta"),
        ({"new_rows": 0}, "it takes a whole number within 1..1000000000"),
        ({"new_rows": 10**10}, "it takes a whole number within 1..1000000000"),
        ({"cron": "0 3 * *"}, "it has 4 fields, not 5"),
        ({"cron": "61 3 * * *"}, "is no cron expression"),
        ({"cron": "0 3 * * 8"}, "'8' is no day of the week"),
        ({"cron": "0 3 * * monday"}, "'monday' is no day of the week"),
        ({"cron": "0 3 * * 1-"}, "'1-' is no day of the week"),
        ({"cron": "0 3 30 2 *"}, "names a day that never comes"),
        ({"cron": ""}, "it has 0 fields, not 5"),
    ],
)
def test_triggers_that_make_no_sense_are_refused(given, said):
    with pytest.raises(InvalidInputError, match=said):
        Triggers(**given)


def test_triggers_say_what_is_waited_for():
    assert str(ALL) == "idle 10m or 200 new rows or cron 0 3 * * *"
    assert str(Triggers(new_rows=3)) == "3 new rows"


def days_named(cron, count=4):
    """Days of the next moments, as weekday.day."""
    found, moment = [], NOON
    for _ in range(count):
        moment = next_time(cron, moment)
        found.append(f"{moment:%a %d}")
    return " ".join(found)


@pytest.mark.parametrize(
    ("cron", "days"),
    [
        ("0 3 * * *", "Thu 06 Fri 07 Sat 08 Sun 09"),
        ("0 3 * * 0", "Sun 09 Sun 16 Sun 23 Sun 30"),
        ("0 3 * * 7", "Sun 09 Sun 16 Sun 23 Sun 30"),
        ("0 3 * * sun", "Sun 09 Sun 16 Sun 23 Sun 30"),
        ("0 3 * * 1-5", "Thu 06 Fri 07 Mon 10 Tue 11"),
        ("0 3 * * Mon-Fri", "Thu 06 Fri 07 Mon 10 Tue 11"),
        ("0 3 * * 5-7", "Fri 07 Sat 08 Sun 09 Fri 14"),
        ("0 3 * * 6,1", "Sat 08 Mon 10 Sat 15 Mon 17"),
        ("0 3 * * fri-mon", "Fri 07 Sat 08 Sun 09 Mon 10"),
        ("0 3 * * */3", "Sat 08 Sun 09 Wed 12 Sat 15"),
        ("0 3 * * 1-6/2", "Fri 07 Mon 10 Wed 12 Fri 14"),
        ("0 3 13 * 5", "Fri 07 Thu 13 Fri 14 Fri 21"),
        ("0 3 7-8 * *", "Fri 07 Sat 08 Mon 07 Tue 08"),
    ],
)
def test_days_are_those_of_crontab(cron, days):
    """APScheduler alone counts days from Monday, and asks for both kinds of day at once."""
    assert days_named(cron) == days


def test_a_moment_is_strictly_after_the_one_given():
    three = datetime(2025, 3, 5, 3, tzinfo=UTC)
    assert next_time("0 3 * * *", three - timedelta(microseconds=1)) == three
    assert next_time("0 3 * * *", three) == three + timedelta(days=1)


def test_waits_after_failures_grow_and_are_bounded():
    assert [backoff(n) for n in (0, 1, 2, 3)] == [minutes(n) for n in (0, 1, 2, 4)]
    assert [backoff(n) for n in (6, 7, 99, 10**9)] == [minutes(n) for n in (32, 60, 60, 60)]
