"""Send texts away without what a redactor finds, and put it back into what comes home."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from lance_memory.errors import InvalidInputError
from lance_memory.redact.protocol import Finding, Redactor, Sensitive, replaced

__all__ = ["Veiled", "veiled"]


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
        return [found for found in _looking(self._kinds(), text) if found not in known]

    def restored(self, text: str) -> str:
        """The text with each value in its place; values are not looked into."""
        if not self.values:
            return text
        known = re.compile("|".join(map(re.escape, self.values)))
        return known.sub(lambda match: self.values[match.group()], text)

    def _kinds(self) -> set[str]:
        return {label[1:].rpartition("-")[0] for label in self.values} | set(Sensitive)


def veiled(texts: Sequence[str], redactor: Redactor | None) -> Veiled:
    """The texts without what the redactor finds; numbers count from 1, kind by kind, in order.

    Without a redactor the texts are as they were given.

    Raises:
        InvalidInputError: the redactor would still change what it gave: its findings do not say
            all that it removes, and what they leave out would be sent.
    """
    found = [redactor.redact(text).found if redactor else () for text in texts]
    kinds = {str(finding.kind) for findings in found for finding in findings} | set(Sensitive)
    allowed = frozenset(name for text in texts for name in _looking(kinds, text))
    labels: dict[tuple[str, str], str] = {}
    numbers = {kind: _free(kind, allowed) for kind in kinds}

    def label(text: str, finding: Finding) -> str:
        kind, value = str(finding.kind), text[finding.start : finding.end]
        if (kind, value) not in labels:
            labels[kind, value] = next(numbers[kind])
        return labels[kind, value]

    hidden = tuple(
        replaced(text, findings, partial(label, text))
        for text, findings in zip(texts, found, strict=True)
    )
    if redactor and any(redactor.redact(text).text != text for text in hidden):
        raise InvalidInputError(
            f"{redactor!r} finds more in what it redacted; its findings must say all it removes"
        )
    values = {name: value for (_, value), name in labels.items()}
    return Veiled(texts=hidden, values=values, allowed=allowed)


def _free(kind: str, allowed: frozenset[str]) -> Iterator[str]:
    """`[kind-1]` and so on, but for those that the texts hold already."""
    names = (f"[{kind}-{number}]" for number in count(1))
    return (name for name in names if name not in allowed)


def _looking(kinds: set[str], text: str) -> list[str]:
    named = "|".join(sorted(map(re.escape, kinds)))
    shape = rf"\[\s*(?:{named})\b[^\[\]]{{0,10}}\]|\b(?:{named})-\d+\b"
    return re.findall(shape, text, re.IGNORECASE)
