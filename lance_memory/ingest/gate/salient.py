"""Does an input say something that another one did not? From hashes: no text is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lance_memory.facts import STOP, is_negation, said
from lance_memory.facts.distinct import facts

__all__ = ["Salient", "salient"]

WORD: Final = "said"
"""Beside the kinds of facts: what has no kind."""

_NAME: Final = "name"
_PLURAL: Final = 3
"""A word of so many letters is no plural."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Salient:
    """What an input says, as hashes of 8 bytes.

    Who has the ledger and a dictionary can guess words from them. Vectors tell as much.

    Attributes:
        values: numbers, names, units, months, sides of an opposite, ... by kind, as in
            `facts.distinct`; and all content words.
        negated: whether something is denied.
    """

    values: Mapping[str, frozenset[str]]
    negated: bool

    def adds_to(self, other: Salient) -> bool:
        """Whether it says anything that the other does not: a word, a name, a number, a denial.

        A name that the other has in lower case is no news.
        """
        return self.negated != other.negated or any(
            not values <= other.values.get(kind, frozenset()) | other._as(kind)
            for kind, values in self.values.items()
        )

    def _as(self, kind: str) -> frozenset[str]:
        return self.values.get(WORD, frozenset()) if kind == _NAME else frozenset()

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        values = {kind: sorted(some) for kind, some in self.values.items()}
        return {"values": values, "negated": self.negated}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Salient:
        """The inverse of `to_json`."""
        found = {kind: frozenset(some) for kind, some in values["values"].items()}
        return cls(values=found, negated=bool(values["negated"]))


def salient(text: str) -> Salient:
    """What a text says, by its own evidence: whatever else is looked at changes nothing."""
    found = facts([text])[0]
    told = {**found.values, WORD: frozenset(_words(text))}
    hashed = {
        kind: frozenset(_hash(kind, value) for value in some) for kind, some in told.items() if some
    }
    return Salient(values=hashed, negated=found.negated)


def _words(text: str) -> Iterator[str]:
    """The content words; a possessive without its end, a plural as its singular, `two` as 2."""
    for word in said(text)[0]:
        stem = word.partition("'")[0]
        if not is_negation(word) and stem not in STOP:
            yield _singular(stem)


def _singular(word: str) -> str:
    return word.removesuffix("s") if len(word) > _PLURAL else word


def _hash(kind: str, value: str) -> str:
    if kind in (_NAME, WORD):  # they are compared with each other
        kind, value = WORD, _singular(value)
    raw = f"{kind}\x1f{value}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(raw, digest_size=8).hexdigest()
