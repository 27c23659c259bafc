"""Since when and until when something holds, where a sentence says so in so many words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from lance_memory.record.times import storable

__all__ = ["Span", "validity"]

Span = tuple[datetime | None, datetime | None]
"""From (inclusive) and to (exclusive), timezone-aware UTC; None: not said."""

_NAMES: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
_MONTH: Final = (
    r"(?P<{0}m>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_DAY: Final = r"(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:19|20)\d\d"
_WHEN: Final = (
    rf"(?:(?P<{{0}}d>\d{{{{1,2}}}}){_DAY}(?: of)? )?{_MONTH}"
    rf"(?: (?P<{{0}}e>\d{{{{1,2}}}}){_DAY}\b(?!\d))?(?:,? (?P<{{0}}y>{_YEAR}))?"
    rf"|(?P<{{0}}z>{_YEAR})\b"
)


def _when(name: str) -> str:
    return f"(?:{_WHEN.format(name)})"


_SINCE: Final = re.compile(rf"\bsince (?:the |early |late |mid[- ])?{_when('a')}", re.IGNORECASE)
_UNTIL: Final = re.compile(
    rf"\b(?:until|till|through) (?:the end of |early |late )?{_when('b')}", re.IGNORECASE
)
_BETWEEN: Final = re.compile(
    rf"\b(?:from|between) {_when('a')} (?:to|and|until|till|through) {_when('b')}", re.IGNORECASE
)
_PAST: Final = re.compile(
    r"\b(?:lived|worked|studied|taught|rented|served|stayed)\b", re.IGNORECASE
)
_IN: Final = re.compile(r"\bin (?P<year>(?:19|20)\d\d)\b|\b(?P<last>last year)\b", re.IGNORECASE)
_WORDS: Final = (
    "since",
    "until",
    "till",
    "through",
    "from ",
    "between",
    "last year",
    "in 19",
    "in 20",
)


def validity(sentence: str, *, at: datetime) -> Span:
    """When what the sentence states is true; (None, None) where it does not say so plainly.

    "since May 2019" is from its first day on, "until May" to the end of it, "from 2015 to 2019"
    both; "last year I lived in" is that calendar year. A month without a year is the last one
    before `at` after "since", and the next one after "until". "for five years" is no date.
    """
    lower = sentence.casefold()
    if not any(word in lower for word in _WORDS):
        return None, None
    if found := _BETWEEN.search(sentence):
        start, end = _instant(found, "a", at, end=False), _instant(found, "b", at, end=True)
        return (start, end) if start and end and start < end else (None, None)
    if (past := _IN.search(sentence)) and _PAST.search(sentence):
        year = int(past["year"]) if past["year"] else at.year - 1
        return (_first(year, 1), _first(year + 1, 1)) if year < at.year else (None, None)
    since, until = _SINCE.search(sentence), _UNTIL.search(sentence)
    start = _instant(since, "a", at, end=False) if since else None
    end = _instant(until, "b", at, end=True) if until else None
    return (None, None) if start and end and start >= end else (start, end)


def _instant(found: re.Match[str], name: str, at: datetime, *, end: bool) -> datetime | None:
    """The first moment of what is named, or the first after it; None for a day that is none."""
    if found[f"{name}z"]:
        return _first(int(found[f"{name}z"]) + end, 1)
    month = _NAMES.index(found[f"{name}m"][:3].casefold()) + 1
    day = int(found[f"{name}d"] or found[f"{name}e"] or 0)
    year = int(found[f"{name}y"] or 0) or _near(month, at, later=end)
    if not day:
        return _first(year + (month == 12), month % 12 + 1) if end else _first(year, month)
    return _moment(year, month, day, days=end)


def _near(month: int, at: datetime, *, later: bool) -> int:
    if later:
        return at.year if month >= at.month else at.year + 1
    return at.year if month <= at.month else at.year - 1


def _first(year: int, month: int) -> datetime | None:
    return _moment(year, month, 1)


def _moment(year: int, month: int, day: int, *, days: int = 0) -> datetime | None:
    """The beginning of a day, or of one after it; None: there is none that can be stored."""
    try:
        moment = datetime(year, month, day, tzinfo=UTC) + timedelta(days=days)
    except (ValueError, OverflowError):
        return None
    return moment if storable(moment) else None
