"""All that is known of a language: its rules by their words, and what is no statement."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from lance_memory.errors import InvalidInputError, NotFoundError
from lance_memory.ingest.extract.patterns.rule import (
    Nuance,
    Remember,
    Rule,
    compiled,
    known_fields,
)

__all__ = ["LANGUAGES", "Book", "book_of"]

LANGUAGES: Final = ("en",)
"""Those that come with the package."""

_REFUSALS: Final = ("question", "hypothetical", "reported", "task", "recalled")
_KEEP: Final = ("temporary", "off_record", "never_store")
_FIELDS: Final = dict.fromkeys(
    ("language", "parts", "refuse", "keep", "signals", "nuance", "remember", "rule")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """Patterns of one or several files, put together in their order.

    Attributes:
        by_word: the rules that a word calls, the folded word → their places in `rules`.
        refuse: what is no statement, by why: "question", "hypothetical", "reported", "task" (a
            message for the assistant to work on), "recalled" (what comes after was).
        keep: what is not to be stored, by why: "temporary", "off_record" (nothing of the
            message is), "never_store".
        signals: of a conversation that is rich: a group → words, lower case.
    """

    rules: tuple[Rule, ...]
    by_word: Mapping[str, tuple[int, ...]]
    refuse: Mapping[str, re.Pattern[str]]
    keep: Mapping[str, re.Pattern[str]]
    nuances: tuple[Nuance, ...]
    remember: tuple[Remember, ...]
    signals: Mapping[str, tuple[str, ...]]


@cache
def book_of(*sources: str | Path) -> Book:
    """The patterns of languages of the package ("en") and of files of one's own, made ready once.

    Raises:
        InvalidInputError: no such language; a file that is no TOML or says what means nothing.
        NotFoundError: there is no such file.
    """
    if not sources:
        raise InvalidInputError(f"no patterns; give a language ({', '.join(LANGUAGES)}) or a file")
    read = [_read(source) for source in sources]
    parts = {name: part for values in read for name, part in values.get("parts", {}).items()}
    rules = tuple(Rule.of(one, parts=parts) for one in _all(read, "rule"))
    return Book(
        rules=rules,
        by_word=MappingProxyType(_by_word(rules)),
        refuse=MappingProxyType(_joined(read, "refuse", _REFUSALS, parts)),
        keep=MappingProxyType(_joined(read, "keep", _KEEP, parts)),
        nuances=tuple(Nuance.of(one, parts=parts) for one in _all(read, "nuance")),
        remember=tuple(
            Remember.of(values["remember"], parts=parts) for values in read if "remember" in values
        ),
        signals=MappingProxyType(_signals(read)),
    )


def _read(source: str | Path) -> Mapping[str, Any]:
    if isinstance(source, str) and source not in LANGUAGES:
        raise InvalidInputError(
            f"language {source!r}; there are: {', '.join(LANGUAGES)}. Give a file as a Path"
        )
    if isinstance(source, str):
        raw = files(__package__).joinpath(f"{source}.toml").read_text("utf-8")
    else:
        try:
            raw = source.read_text("utf-8")
        except FileNotFoundError as error:
            raise NotFoundError(f"there is no pattern file {source}") from error
    try:
        values = tomllib.loads(raw)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"{source} is no TOML: {error}") from error
    known_fields(values, _FIELDS, f"pattern file {source}")
    return values


def _all(read: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    return [one for values in read for one in values.get(name, ())]


def _by_word(rules: Sequence[Rule]) -> dict[str, tuple[int, ...]]:
    places: dict[str, list[int]] = {}
    for place, rule in enumerate(rules):
        for word in rule.words:
            places.setdefault(word, []).append(place)
    return {word: tuple(those) for word, those in places.items()}


def _joined(
    read: Sequence[Mapping[str, Any]], table: str, names: Sequence[str], parts: Mapping[str, str]
) -> dict[str, re.Pattern[str]]:
    """One pattern for each name; of no patterns, one that is never found."""
    found: dict[str, re.Pattern[str]] = {}
    for values in read:
        known_fields(values.get(table, {}), dict.fromkeys(names), table)
    for name in names:
        given = [one for values in read for one in values.get(table, {}).get(name, ())]
        pieces = compiled(given, parts=parts, where=f"{table}.{name}")
        joined = "|".join(f"(?:{piece.pattern})" for piece in pieces) or r"(?!)"
        found[name] = re.compile(joined, re.IGNORECASE)
    return found


def _signals(read: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {}
    for values in read:
        for name, words in values.get("signals", {}).items():
            groups[name] = (*groups.get(name, ()), *map(str.casefold, words))
    return groups
