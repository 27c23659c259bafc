"""Dates that a question names: "on 8 May 2023", "in May", "2023-05", "2023年5月8日", "yesterday".

Rules of our own: what the libraries for it find in running text is meant for forms, not for
questions ("may" and "on" are dates to them), and takes longer than the search.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

__all__ = ["Period", "periods"]

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
    """A day, a month or a year of the UTC calendar; without a year, the one of every year."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def covers(self, times: NDArray[np.datetime64]) -> NDArray[np.bool_]:
        """Which of the times, datetime64[us] [n], lie in it; bool [n]."""
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
        return "-".join([year, *(f"{n:02d}" for n in (self.month, self.day) if n is not None)])


def periods(text: str, *, today: date) -> tuple[Period, ...]:
    """The dates that `text` names, in its order; `today` is what "yesterday" counts from."""
    taken: list[tuple[int, int, Period]] = []
    for start, end, period in [*_written(text), *_relative(text, today)]:
        if all(end <= first or last <= start for first, last, _ in taken):
            taken.append((start, end, period))
    return tuple(dict.fromkeys(period for _, _, period in sorted(taken, key=lambda t: t[0])))


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
    number = None if month is None else _MONTHS.get(month.lower()) or int(month)
    try:
        datetime(int(year or 2000), number or 1, int(day or 1))  # 2000 has a 29 February
    except ValueError:
        return None
    return Period(
        year=None if year is None else int(year),
        month=number,
        day=None if day is None else int(day),
    )


_RELATIVE: dict[str, Callable[[date], Period]] = {
    "today": lambda day: Period(day.year, day.month, day.day),
    "yesterday": lambda day: _day(day - timedelta(days=1)),
    "this month": lambda day: Period(day.year, day.month),
    "last month": lambda day: _month(day.replace(day=1) - timedelta(days=1)),
    "this year": lambda day: Period(day.year),
    "last year": lambda day: Period(day.year - 1),
}


def _relative(text: str, today: date) -> Iterator[tuple[int, int, Period]]:
    for words, of in _RELATIVE.items():
        for match in re.finditer(rf"\b{words}\b", text, re.IGNORECASE):
            yield match.start(), match.end(), of(today)


def _day(day: date) -> Period:
    return Period(day.year, day.month, day.day)


def _month(day: date) -> Period:
    return Period(day.year, day.month)
