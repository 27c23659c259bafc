"""What a redactor takes and gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from lance_memory.errors import InvalidInputError

__all__ = ["Finding", "Redacted", "Redactor", "Sensitive", "checked", "replaced"]


class Sensitive(StrEnum):
    """What is removed. Of two that overlap, the one that stands first here names both."""

    SECRET = "secret"  # noqa: S105 - a kind
    IBAN = "iban"
    CARD = "card"
    EMAIL = "email"
    PHONE = "phone"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Where something was found: `text[start:end]` of the text as it was given."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A text without what was found; `found` is ordered, without overlaps, and holds no value.

    What lies outside of the findings is as it was given.
    """

    text: str
    found: tuple[Finding, ...] = ()

    def counts(self) -> dict[str, int]:
        """How many of each kind were removed."""
        return dict(sorted(Counter(str(finding.kind) for finding in self.found).items()))


class Redactor(Protocol):
    """Takes out of a text what must not leave this machine. Safe to share between threads."""

    def redact(self, text: str) -> Redacted:
        """The text with a placeholder for each finding; redacting that again changes nothing."""
        ...


def checked(redact: Redactor | None) -> Redactor | None:
    """The argument `redact` of whatever takes one.

    Raises:
        InvalidInputError: it has no method `redact`, as a function or a class has none.
    """
    known = callable(getattr(redact, "redact", None)) and not isinstance(redact, type)
    if redact is None or known:
        return redact
    raise InvalidInputError(
        f"redact={redact!r}; it takes a Redactor, such as StandardRedactor(), or None: "
        "nothing is removed"
    )


def replaced(text: str, found: Iterable[Finding], label: Callable[[Finding], str]) -> str:
    """The text with a label in place of each finding; those are in order, without overlaps."""
    pieces: list[str] = []
    last = 0
    for finding in found:
        pieces += [text[last : finding.start], label(finding)]
        last = finding.end
    return "".join([*pieces, text[last:]])
