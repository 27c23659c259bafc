"""Which versions are kept: the last ones, and fewer the older they are, like rotated backups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import instance, whole

__all__ = ["Retain", "to_clean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retain:
    """How many versions a store keeps. One that any of these names stays.

    Tagged versions, those that a branch or a checkout started from, and the newest always stay;
    `log` goes on telling of the others. Hours, days, weeks (from Monday) and months are UTC, and
    only those count that have a version: a store that rests for a year loses nothing by it.

    Attributes:
        last: so many of the newest.
        hours: the newest of each of the last so many hours.
        days: the same of days.
        weeks: the same of weeks.
        months: the same of months.
        passes: so many more that consolidations made, the newest, each with the version before it:
            so it can be looked at and reverted. Backups have none.
        within: all that are not older.
    """

    last: int = 128
    hours: int = 24
    days: int = 14
    weeks: int = 8
    months: int = 24
    passes: int = 16
    within: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        whole("last", self.last, least=1)
        for name in (*_PERIODS, "passes"):
            whole(name, getattr(self, name), least=0)
        if instance("within", self.within, timedelta, "a timedelta") < timedelta(0):
            raise InvalidInputError(f"within={self.within}; it takes a timedelta of 0 or more")


_PERIODS: Mapping[str, Callable[[datetime], Hashable]] = {
    "hours": lambda at: (at.date(), at.hour),
    "days": lambda at: at.date(),
    "weeks": lambda at: at.isocalendar()[:2],
    "months": lambda at: (at.year, at.month),
}


def to_clean(
    versions: Mapping[int, datetime],
    retain: Retain,
    *,
    now: datetime,
    pinned: Collection[int] = (),
    passes: Collection[int] = (),
) -> list[int]:
    """The versions that go, ascending: what the budget does not keep.

    Cleaning is stable: of what it leaves, nothing more goes at the same moment.

    Args:
        versions: version → when it was made, aware.
        retain: the budget.
        now: the present moment.
        pinned: versions that stay in any case.
        passes: versions that consolidations made.
    """
    newest_first = sorted(versions, reverse=True)
    kept = {*pinned, *newest_first[: retain.last]}
    kept.update(v for v, at in versions.items() if now - at <= retain.within)
    for name, period in _PERIODS.items():
        first_of: dict[Hashable, int] = {}
        for version in newest_first:
            named = period(versions[version].astimezone(UTC))
            if named not in first_of and len(first_of) < getattr(retain, name):
                first_of[named] = version
        kept.update(first_of.values())
    beyond = sorted({*passes} - kept, reverse=True)[: retain.passes]
    kept.update(number for made in beyond for number in (made - 1, made))
    return sorted(versions.keys() - kept)
