"""Send texts away without what a redactor finds, and put it back into what comes home."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from typing import Final

from lance_memory.errors import InvalidInputError
from lance_memory.redact.protocol import Finding, Redactor, Sensitive, replaced
from lance_memory.redact.spans import Span, apart, everywhere, united

__all__ = ["Veiled", "veiled"]

_NAME: Final = re.compile(r"\[[^\[\]]+-\d+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Veiled:
    """Texts with a numbered placeholder for each value, like `[email-1]`.

    The same value has the same placeholder in all of them. No repr shows a value.
    """

    texts: tuple[str, ...]
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    allowed: frozenset[str] = frozenset()  # what looks like a placeholder in the texts as given

    def unknown(self, text: str) -> list[str]:
        """What looks like a placeholder in a text, whole or broken, and stands for nothing."""
        known = {*self.values, *self.allowed}
        return [found for found in _looking(_kinds(self.values), text) if found not in known]

    def restored(self, text: str) -> str:
        """The text with each value in its place; values are not looked into."""
        if not self.values:
            return text
        known = re.compile("|".join(map(re.escape, self.values)))
        return known.sub(lambda match: self.values[match.group()], text)


def veiled(texts: Sequence[str], redactor: Redactor | None) -> Veiled:
    """The texts without what the redactor finds; numbers count from 1, kind by kind, in order.

    A value found in one of them is replaced wherever it stands in any of them; one of fewer than
    6 characters only where it is no part of a longer word. Without a redactor the texts are as
    they were given.

    Raises:
        InvalidInputError: the redactor would still change what it gave: its findings do not say
            all that it removes, and what they leave out would be sent.
    """
    names = _Names(texts)
    known: set[tuple[str, str]] = set()
    shown = tuple(texts)
    while redactor and any(found := _found(shown, redactor, names)):
        known |= {
            (str(finding.kind), text[finding.start : finding.end])
            for text, findings in zip(shown, found, strict=True)
            for finding in findings
        }
        spread = [[*new, *everywhere(known, text)] for text, new in zip(shown, found, strict=True)]
        shown = tuple(map(names.put, shown, spread))
    values = names.values()
    looking = partial(_looking, _kinds(values))
    return Veiled(texts=shown, values=values, allowed=frozenset(chain(*map(looking, texts))))


def _found(texts: Sequence[str], redactor: Redactor, names: _Names) -> list[list[Finding]]:
    """What the redactor finds in each text, without what is hidden already."""
    redacted = [redactor.redact(text) for text in texts]
    found = [
        list(apart(one.found, names.spans(text))) for text, one in zip(texts, redacted, strict=True)
    ]
    if not any(found) and any(one.text != text for text, one in zip(texts, redacted, strict=True)):
        raise InvalidInputError(
            f"{redactor!r} finds more in what it redacted; its findings must say all it removes"
        )
    return found


class _Names:
    """The placeholder of each value, made when it is first hidden; none is in the texts given."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._taken = {name for text in texts for name in _NAME.findall(text)}
        self._by_value: dict[str, str] = {}
        self._free: dict[str, Iterator[str]] = {}

    def put(self, text: str, findings: Iterable[Finding]) -> str:
        """The text with placeholders for the findings, in any order, that may overlap."""

        def name(finding: Finding) -> str:
            return self._of(finding.kind, text[finding.start : finding.end])

        return replaced(text, apart(united(findings), self.spans(text)), name)

    def spans(self, text: str) -> list[Span]:
        """Where placeholders stand in a text."""
        names = set(self._by_value.values())
        return [match.span() for match in _NAME.finditer(text) if match.group() in names]

    def values(self) -> dict[str, str]:
        """By placeholder."""
        return {name: value for value, name in self._by_value.items()}

    def _of(self, kind: str, value: str) -> str:
        if value not in self._by_value:
            free = self._free.setdefault(kind, self._unused(kind))
            self._by_value[value] = next(free)
        return self._by_value[value]

    def _unused(self, kind: str) -> Iterator[str]:
        names = (f"[{kind}-{number}]" for number in count(1))
        return (name for name in names if name not in self._taken)


def _kinds(values: Iterable[str]) -> set[str]:
    return {name[1:].rpartition("-")[0] for name in values} | set(Sensitive)


def _looking(kinds: set[str], text: str) -> list[str]:
    named = "|".join(sorted(map(re.escape, kinds)))
    shape = rf"\[\s*(?:{named})\b[^\[\]]{{0,10}}\]|\b(?:{named})-\d+\b"
    return re.findall(shape, text, re.IGNORECASE)
