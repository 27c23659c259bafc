"""One entry of a pattern file: what a sentence must look like, and what it then states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.candidate import Category
from lance_memory.record.arguments import flag, one_of, real, several, text

__all__ = ["Nuance", "Remember", "Rule", "compiled", "known_fields"]

_PART: Final = re.compile(r"\{([a-z_]+)\}")
_DEPTH: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What states something, and what.

    Attributes:
        name: for `Candidate.why`.
        words: one of them must be in the sentence, folded; looked at before any pattern.
        patterns: the first that is found counts. Groups: `value`, and perhaps `subject`, `what`
            and `neg`.
        category, importance, confidence: of the candidate; 0..10 and 0..1.
        attribute: of the claim; "{what}" in it is the group `what`, folded.
        single: the attribute has one value at a time.
        negated: the value is always denied.
        claim: False: nothing that a later sentence could contradict, such as an event.
        examples: sentences that it must find; tests look at them.
    """

    name: str
    words: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]
    category: Category
    attribute: str
    importance: float
    confidence: float
    single: bool = False
    negated: bool = False
    claim: bool = True
    examples: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any], *, parts: Mapping[str, str]) -> Rule:
        """From the values of a file; InvalidInputError names what is wrong."""
        known_fields(values, cls.__dataclass_fields__, "rule")
        name = text("name", values.get("name"))
        return cls(
            name=name,
            words=several("words", values.get("words")),
            patterns=compiled(values.get("patterns"), parts=parts, where=f"rule {name!r}"),
            category=Category(one_of("category", values.get("category"), tuple(Category))),
            attribute=text("attribute", values.get("attribute")),
            importance=real("importance", values.get("importance"), least=0, most=10),
            confidence=real("confidence", values.get("confidence"), least=0, most=1),
            single=flag("single", values.get("single", False)),
            negated=flag("negated", values.get("negated", False)),
            claim=flag("claim", values.get("claim", True)),
            examples=several("examples", values.get("examples", ())),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nuance:
    """What shifts the confidence of a sentence that a rule found.

    Attributes:
        pattern: where it is found.
        confidence: what is added, often less than 0.
        only: for rules of these attributes alone; empty: for all.
    """

    pattern: re.Pattern[str]
    confidence: float
    only: frozenset[str] = frozenset()

    @classmethod
    def of(cls, values: Mapping[str, Any], *, parts: Mapping[str, str]) -> Nuance:
        """From the values of a file; InvalidInputError names what is wrong."""
        known_fields(values, cls.__dataclass_fields__, "nuance")
        return cls(
            pattern=compiled([values.get("pattern")], parts=parts, where="nuance")[0],
            confidence=real("confidence", values.get("confidence"), least=-1, most=1),
            only=frozenset(several("only", values.get("only", ()))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember:
    """How somebody asks in so many words that something be remembered; the group `rest` is what."""

    pattern: re.Pattern[str]
    words: frozenset[str]
    importance: float
    confidence: float

    @classmethod
    def of(cls, values: Mapping[str, Any], *, parts: Mapping[str, str]) -> Remember:
        """From the values of a file; InvalidInputError names what is wrong."""
        known_fields(values, cls.__dataclass_fields__, "remember")
        return cls(
            pattern=compiled([values.get("pattern")], parts=parts, where="remember")[0],
            words=frozenset(several("words", values.get("words"))),
            importance=real("importance", values.get("importance"), least=0, most=10),
            confidence=real("confidence", values.get("confidence"), least=0, most=1),
        )


def compiled(patterns: Any, *, parts: Mapping[str, str], where: str) -> tuple[re.Pattern[str], ...]:
    """Patterns with the parts that they name in their place.

    Raises:
        InvalidInputError: one is no regular expression, or names a part that there is not.
    """
    found: list[re.Pattern[str]] = []
    for pattern in several(f"patterns of {where}", patterns):
        try:
            found.append(re.compile(_expanded(pattern, parts), re.IGNORECASE))
        except (re.error, KeyError) as error:
            raise InvalidInputError(
                f"{where}: {pattern!r} is no pattern ({error}); parts are: {', '.join(parts)}"
            ) from error
    return tuple(found)


def known_fields(values: Any, fields: Mapping[str, Any], where: str) -> None:
    """InvalidInputError, where a table of a file has a field that means nothing."""
    if not isinstance(values, Mapping):
        raise InvalidInputError(f"{where} is {type(values).__name__}; it takes a table")
    for name in values:
        one_of(f"a field of {where}", name, fields)


def _expanded(pattern: str, parts: Mapping[str, str]) -> str:
    for _ in range(_DEPTH):  # parts name parts
        pattern = _PART.sub(lambda match: parts[match[1]], pattern)
    return pattern
