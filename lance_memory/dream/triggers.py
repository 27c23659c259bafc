"""When a pass is due. Pure: what is known goes in, a reason comes out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from lance_memory.errors import InvalidInputError
from lance_memory.extras import require
from lance_memory.record.arguments import duration, instance, whole
from lance_memory.wording import counted

__all__ = ["Moment", "Triggers", "backoff", "due", "next_time"]

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DAY = re.compile(r"(?:\*|(?P<first>[a-z0-9]+)(?:-(?P<last>[a-z0-9]+))?)(?:/(?P<step>[1-9]))?")
_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
_FIRST_BACKOFF = timedelta(minutes=1)
_LONGEST_BACKOFF = timedelta(hours=1)
_MOST_ROWS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggers:
    """What makes a pass due, any one of them; each only when something new is there to look at.

    Attributes:
        idle: nobody has written to the store for so long.
        new_rows: so many memories were written since the last pass.
        cron: minute, hour, day of month, month, day of week, in UTC, as crontab(5) takes them: 0
            and 7 are Sunday, and where both kinds of day are named, either will do. A time that
            went by while nothing ran counts once.
    """

    idle: timedelta | None = None
    new_rows: int | None = None
    cron: str | None = None

    def __post_init__(self) -> None:
        if self.idle is None and self.new_rows is None and self.cron is None:
            raise InvalidInputError("no trigger is given; give idle, new_rows or cron")
        if self.idle is not None:
            duration("idle", self.idle)
        if self.new_rows is not None:
            whole("new_rows", self.new_rows, least=1, most=_MOST_ROWS)
        if self.cron is not None:
            next_time(instance("cron", self.cron, str, "a text"), datetime(2025, 1, 1, tzinfo=UTC))

    def __str__(self) -> str:
        """What is waited for: idle 10m or 200 new rows."""
        told = (
            self.idle and f"idle {_span(self.idle)}",
            self.new_rows and counted(self.new_rows, "new row"),
            self.cron and f"cron {self.cron}",
        )
        return " or ".join(one for one in told if one)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What is known at one moment.

    Attributes:
        now: the moment.
        since: when the last pass that succeeded began; before the first, when dreaming began.
        new_rows: memories that were written since the newest ones were looked at.
        unfinished: passes ended at their bounds, with more to look at.
        last_write: of anybody; None: nobody ever wrote.
    """

    now: datetime
    since: datetime
    new_rows: int
    unfinished: bool = False
    last_write: datetime | None = None


def due(triggers: Triggers, moment: Moment) -> str | None:
    """Why a pass is due now; None: it is not."""
    if not (moment.new_rows or moment.unfinished):
        return None
    quiet = moment.now - moment.last_write if moment.last_write else timedelta(0)
    if triggers.idle is not None and quiet >= triggers.idle:
        return f"idle {_span(triggers.idle)}"
    if triggers.new_rows is not None and moment.new_rows >= triggers.new_rows:
        return counted(moment.new_rows, "new row")
    if triggers.cron is not None and next_time(triggers.cron, moment.since) <= moment.now:
        return f"cron {triggers.cron}"
    return None


def backoff(failures: int) -> timedelta:
    """How long to wait after so many failures in a row: 1, 2, 4, ... minutes, at most an hour."""
    if failures < 1:
        return timedelta(0)
    return min(_FIRST_BACKOFF * (1 << min(failures - 1, 16)), _LONGEST_BACKOFF)


def next_time(cron: str, after: datetime) -> datetime:
    """The first moment after `after` that a cron expression names.

    Raises:
        InvalidInputError: it is no cron expression, or it names no moment at all.
    """
    try:
        times = [
            trigger.get_next_fire_time(None, after + timedelta(microseconds=1))
            for trigger in _cron_triggers(cron)
        ]
    except ValueError as error:
        raise InvalidInputError(
            f"cron={cron!r} is no cron expression ({error}); write one like '0 3 * * *'"
        ) from error
    named: list[datetime] = [time for time in times if time is not None]
    if not named:
        raise InvalidInputError(f"cron={cron!r} names a day that never comes")
    return min(named)


def _cron_triggers(cron: str) -> list[Any]:
    """APScheduler's triggers: two where crontab(5) lets either kind of day do."""
    trigger = require("apscheduler.triggers.cron").CronTrigger
    fields = cron.lower().split()
    if len(fields) != 5:
        raise ValueError(f"it has {len(fields)} fields, not 5")
    minute, hour, day, month, weekday = fields
    days = [(day, _weekdays(weekday))]
    if not day.startswith("*") and not weekday.startswith("*"):
        days = [(day, "*"), ("*", _weekdays(weekday))]
    return [trigger.from_crontab(f"{minute} {hour} {d} {month} {w}", timezone=UTC) for d, w in days]


def _weekdays(field: str) -> str:
    """Days of the week by name: APScheduler counts them from Monday, crontab(5) from Sunday."""
    if field == "*":
        return field
    numbers: list[int] = []
    for part in field.split(","):
        found = _DAY.fullmatch(part)
        if found is None:
            raise ValueError(f"{part!r} is no day of the week")
        first = _weekday(found["first"] or "0")
        last = _weekday(found["last"] or found["first"] or "6")
        if found["last"] and last < first:
            last += 7
        numbers += range(first, last + 1, int(found["step"] or 1))
    return ",".join(dict.fromkeys(_DAYS[number % 7] for number in numbers))


def _weekday(text: str) -> int:
    if text in _DAYS:
        return _DAYS.index(text)
    if text.isdecimal() and int(text) <= 7:
        return int(text)
    raise ValueError(f"{text!r} is no day of the week")


def _span(length: timedelta) -> str:
    """The length in its largest whole unit: 1d, 36h, 90m, 1.5s."""
    for unit, one in _UNITS.items():
        if length % one == timedelta(0):
            return f"{length // one}{unit}"
    return f"{length.total_seconds():g}s"
