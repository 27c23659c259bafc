"""Dates that a question names: "on 8 May 2023", "in May", "2023-05", "2023年5月8日", "yesterday".

Rules of our own: what the libraries for it find in running text is meant for forms, not for
questions ("may" and "on" are dates to them), and takes longer than the search.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import chain

import numpy as np
from numpy.typing import NDArray

__all__ = ["Period", "periods"]

_LONGEST = 4_000
"""Characters in which dates are looked for: what is longer is a document, and no question."""

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"),
            ("february", "feb"),
            ("march", "mar"),
            ("april", "apr"),
            ("may",),
            ("june", "jun"),
            ("july", "jul"),
            ("august", "aug"),
            ("september", "sept", "sep"),
            ("october", "oct"),
            ("november", "nov"),
            ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}

_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})\b\.?"
_YEAR = r"(?P<year>(?:19|20)\d\d)(?!\d)"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_BEFORE = (
    r"\b(?:in|during|of|from|between|since|until|till|by|before|after|early|late|mid|last|this|next"
    r"|year|spring|summer|autumn|fall|winter)\s+"
)
"""A bare month or year is one only after such a word: may, march and 2000 are other things too."""

_WRITTEN = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!\d){_YEAR}[-/](?P<month>\d{{1,2}})(?:[-/](?P<day>\d{{1,2}}))?(?![\d/-])",
        rf"{_YEAR}\s?年(?:\s?(?P<month>\d{{1,2}})\s?月(?:\s?(?P<day>\d{{1,2}})\s?日?)?)?",
        r"(?<![\d年])(?P<month>\d{1,2})\s?月\s?(?P<day>\d{1,2})\s?日",
        rf"\b{_DAY}(?:\s+of)?\s+{_MONTH}(?:,?\s+{_YEAR})?",
        rf"\b{_MONTH}\s+{_DAY}\b(?:,?\s+{_YEAR})?",
        rf"\b{_MONTH},?(?:\s+of)?\s+{_YEAR}",
        rf"{_BEFORE}{_MONTH}",
        rf"{_BEFORE}{_YEAR}",
    )
)


@dataclass(frozen=True, slots=True)
class Period:
    """A day, a month or a year of the UTC calendar; without a year, the one of every year.

    With `days`, so many days from a date with a year on.
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    days: int = 1

    def covers(self, times: NDArray[np.datetime64]) -> NDArray[np.bool_]:
        """Which of the times, datetime64[us] [n], lie in it; bool [n]."""
        if self.days > 1:
            first = np.datetime64(str(Period(self.year, self.month, self.day)), "D")
            return (times >= first) & (times < first + self.days)
        months = times.astype("datetime64[M]")
        found = {
            "year": times.astype("datetime64[Y]").astype(np.int64) + 1970,
            "month": months.astype(np.int64) % 12 + 1,
            "day": (times.astype("datetime64[D]") - months).astype(np.int64) + 1,
        }
        inside = np.ones(times.shape, dtype=np.bool_)
        for name, values in found.items():
            wanted = getattr(self, name)
            if wanted is not None:
                inside &= values == wanted
        return inside

    def __str__(self) -> str:
        year = "*" if self.year is None else f"{self.year:04d}"
        text = "-".join([year, *(f"{n:02d}" for n in (self.month, self.day) if n is not None)])
        return f"{text} and {self.days - 1} days" if self.days > 1 else text


def periods(text: str, *, today: date) -> tuple[Period, ...]:
    """The dates that the first 4,000 characters of `text` name, in its order.

    `today` is what "yesterday" counts from.
    """
    head = text[:_LONGEST]
    taken = bytearray(len(head))
    found: list[tuple[int, Period]] = []
    for start, end, period in chain(_written(head), _relative(head, today)):
        if not any(taken[start:end]):
            taken[start:end] = b"\1" * (end - start)
            found.append((start, period))
    return tuple(dict.fromkeys(period for _, period in sorted(found, key=lambda one: one[0])))


def _written(text: str) -> Iterator[tuple[int, int, Period]]:
    for pattern in _WRITTEN:
        for match in pattern.finditer(text):
            period = _period(**match.groupdict())
            if period is not None:
                yield match.start(), match.end(), period


def _period(
    year: str | None = None, month: str | None = None, day: str | None = None
) -> Period | None:
    """None where there is no such date."""
    try:
        number = None if month is None else _month_number(month)
        datetime(int(year or 2000), 1 if number is None else number, int(day or 1))  # 2000: 29 Feb.
    except ValueError:
        return None
    return Period(
        year=None if year is None else int(year),
        month=number,
        day=None if day is None else int(day),
    )


def _month_number(month: str) -> int:
    """ValueError where it is none: to a pattern that ignores case \u0131 is an i, and no month."""
    return _MONTHS.get(month.casefold()) or int(month)


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}


def _ago(today: date, said: re.Match[str]) -> Period:
    number = said["n"].lower()
    count = _NUMBERS.get(number) or int(number)
    if said["unit"].lower() == "week":
        return _week(today - timedelta(weeks=count))
    return _day(today - timedelta(days=count))


def _weekday(today: date, said: re.Match[str]) -> Period:
    """The last such day before today."""
    back = (today.weekday() - _WEEKDAYS.index(said["weekday"].lower()) - 1) % 7 + 1
    return _day(today - timedelta(days=back))


def _day(day: date) -> Period:
    return Period(day.year, day.month, day.day)


def _week(day: date) -> Period:
    monday = day - timedelta(days=day.weekday())
    return Period(monday.year, monday.month, monday.day, days=7)


def _month(day: date) -> Period:
    return Period(day.year, day.month)


_RELATIVE: dict[str, Callable[[date, re.Match[str]], Period]] = {
    r"today": lambda day, _: _day(day),
    r"yesterday": lambda day, _: _day(day - timedelta(days=1)),
    r"this week": lambda day, _: _week(day),
    r"last week": lambda day, _: _week(day - timedelta(days=7)),
    r"this month": lambda day, _: Period(day.year, day.month),
    r"last month": lambda day, _: _month(day.replace(day=1) - timedelta(days=1)),
    r"this year": lambda day, _: Period(day.year),
    r"last year": lambda day, _: Period(day.year - 1),
    r"(?P<n>\d{1,3}|NUMBER) (?P<unit>day|week)s? ago": _ago,
    r"(?:last|on) (?P<weekday>WEEKDAY)": _weekday,
}
"""How people name what was a short while ago. A week begins on Monday."""

_RELATIVE_PATTERNS = tuple(
    (
        re.compile(
            rf"\b{words}\b".replace("NUMBER", "|".join(_NUMBERS)).replace(
                "WEEKDAY", "|".join(_WEEKDAYS)
            ),
            re.IGNORECASE | re.ASCII,
        ),
        of,
    )
    for words, of in _RELATIVE.items()
)


def _relative(text: str, today: date) -> Iterator[tuple[int, int, Period]]:
    for pattern, of in _RELATIVE_PATTERNS:
        for match in pattern.finditer(text):
            yield match.start(), match.end(), of(today, match)
