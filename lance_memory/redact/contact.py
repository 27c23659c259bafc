"""E-mail addresses and phone numbers; the only module that knows phonenumbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from lance_memory.extras import require

__all__ = ["emails", "phones", "regions_known"]

_EMAIL: Final = re.compile(
    r"(?<![\w.%+@-])[.%+-]*"
    r"(?!git@[\w.-]+:)"  # a repository's address
    r"(\w[\w.%+-]*(?:'\w[\w.%+-]*)?"
    r"@(?!v?\d+\.\d|\dx\.)"  # a version, a picture for dense screens
    r"(?:\w[\w-]*\.)+[^\W\d_]{2,63})(?![\w@-])"
)
"""No letter of the first part may stand before it, so that each run is read from one place."""

_CJK: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_MIXED: Final = re.compile(
    rf"(?:.*[{_CJK}](?=[!-~]+@))?(.*?(?:(?<=[A-Za-z]{{2}})(?=[{_CJK}]+$)|$))"
)
"""An address in Latin letters between words of a script that is written without spaces."""

_AUTHORITY: Final = re.compile(r"://[^\s/?#]*$")

_RUN: Final = re.compile(r"(?<![\w.,/$€£#-])[+(]{0,2}\d(?:[ \u00a0()./\u2010-\u2013-]{0,3}\d){6,}")
"""Seven digits and more, with what may stand between the digits of a phone number."""

_TABLE: Final = 100
"""A run of more characters, without a country code or a cue, is a table of digits."""

_CUE: Final = re.compile(
    r"\b(?:call|dial|phone|mobile|cell|tel|telephone|telefon\w*|handy|whatsapp|signal|sms|fax|ring"
    r"|hotline|celular|text (?:me|him|her|them|us))\b[^\d\n]{0,20}$",
    re.IGNORECASE,
)
_BEFORE: Final = 40
_LONGEST: Final = 30
"""Characters of one number with its punctuation."""


def emails(text: str) -> Iterator[tuple[int, int]]:
    """Spans of e-mail addresses whose domain has a dot and ends in letters.

    What stands before the path of a URL is none: `https://user:password@host`.
    """
    for match in _EMAIL.finditer(text):
        start = match.start(1)
        latin = _MIXED.match(match[1])
        start, end = (start + edge for edge in latin.span(1)) if latin else match.span(1)
        if not _AUTHORITY.search(text[max(0, start - _BEFORE) : start]):
            yield start, end


def phones(text: str, *, regions: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Spans of valid phone numbers, international or of one of the regions.

    Without a country code and without a word like "phone" before it, a number counts only when
    its digits are grouped as people of its region do: others are order numbers.
    """
    for match in _RUN.finditer(text):
        start, end = match.span()
        told = "+" in match.group() or _CUE.search(text[max(0, start - _BEFORE) : start])
        if told or end - start <= _TABLE:
            for piece in _cut(start, end):
                yield from _numbers(text, piece, regions, told=bool(told))


def regions_known() -> frozenset[str]:
    """The regions whose phone numbers can be told."""
    return frozenset(_library().SUPPORTED_REGIONS)


def _cut(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Pieces of bounded length, each with the end of the one before."""
    for at in range(start, end, _TABLE):
        yield at, min(end, at + _TABLE + _LONGEST)


def _numbers(
    text: str, piece: tuple[int, int], regions: Sequence[str], *, told: bool
) -> Iterator[tuple[int, int]]:
    library = _library()
    start, end = piece
    run = text[start : end + 1]  # one more: what a number runs into tells that it is none
    abroad = "+" in run
    leniency = library.Leniency.VALID if told else library.Leniency.EXACT_GROUPING
    for region in [None] if abroad else regions:
        if not abroad and not _trunk(region).search(run):
            continue
        for match in library.PhoneNumberMatcher(run, region, leniency=leniency):
            if told or not match.raw_string.isdigit():
                yield start + match.start, start + match.end
                if match.end - match.start == end - start:
                    return


@cache
def _trunk(region: str) -> re.Pattern[str]:
    """How a number begins that is dialled within the region: with a 0, where all of them do."""
    data = _library().PhoneMetadata.metadata_for_region(region)
    rules = {form.national_prefix_formatting_rule for form in data.number_format} - {None}
    optional = any(form.national_prefix_optional_when_formatting for form in data.number_format)
    needed = rules and not optional and all(data.national_prefix in rule for rule in rules)
    return re.compile(rf"(?<!\d){data.national_prefix}" if needed else r"\d")


def _library() -> Any:
    return require("phonenumbers")
