"""What is done about what a redactor finds, in all texts of one conversation at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from lance_memory.errors import InvalidInputError
from lance_memory.facts import sentence_spans
from lance_memory.redact.protocol import Finding, Redacted, Redactor
from lance_memory.redact.spans import apart, everywhere, united

__all__ = ["Label", "Remedy", "Treated", "treated"]


class Remedy(StrEnum):
    """What becomes of a value that was found."""

    KEEP = "keep"
    """It stays. For kinds that are no secret to a tenant."""

    MASK = "mask"
    """`[email]` stands in its place."""

    HASH = "hash"
    """`[email:1f3a9b2c4d5e]`: of the same value of a tenant always the same."""

    DROP = "drop"
    """The sentence goes."""

    DROP_MESSAGE = "drop_message"
    """The message goes."""

    REFUSE = "refuse"
    """The conversation is not let in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Treated:
    """A text as it may go on, and where in it the marks and kept values are."""

    text: str
    marks: tuple[Finding, ...] = ()

    def without_sentences(self, drops: Callable[[str], bool]) -> str:
        """The text without the sentences that have a mark of such a kind."""
        gone = [mark for mark in self.marks if drops(mark.kind)]
        if not gone:
            return self.text
        left = [
            self.text[start:end]
            for start, end in _whole_spans(self.text, self.marks)
            if not any(start <= mark.start < end for mark in gone)
        ]
        return "".join(left).strip()


Label = Callable[[int, str, str], str | None]
"""Of the place of a text, a kind and a value: what takes its place; None: it stays."""


def treated(texts: Sequence[str], redactor: Redactor, label: Label) -> list[Treated]:
    """The texts with a label for each value that the redactor finds, or found in another of them.

    It looks again at what it changed until nothing is left to find: what was removed may have
    hidden something.

    Raises:
        InvalidInputError: the redactor changes what it does not say that it found, or says places
            that are not in the text.
        Exception: whatever the redactor and the label raise.
    """
    shown = [Treated(text=text) for text in texts]
    new = dict(enumerate(texts))
    while new:
        found = {at: _found(shown[at], redactor) for at in new}
        values = {
            (at, str(finding.kind), shown[at].text[finding.start : finding.end])
            for at, findings in found.items()
            for finding in findings
        }
        removed = sorted({value[1:] for value in values if label(*value) is not None})
        new = {}
        for at, one in enumerate(shown):
            spread = united([*found.get(at, ()), *everywhere(removed, one.text)])
            if fresh := [*apart(spread, _spans(one))]:
                shown[at] = _swapped(one, fresh, partial(label, at))
                new[at] = shown[at].text
    return shown


def _found(one: Treated, redactor: Redactor) -> list[Finding]:
    """What the redactor finds in a text outside of the marks."""
    redacted = redactor.redact(one.text)
    found = united(redacted.found)
    if not all(0 <= finding.start < finding.end <= len(one.text) for finding in found):
        raise InvalidInputError("the redactor names places that are not in the text")
    if not _honest(one.text, redacted, found):
        raise InvalidInputError("the redactor changes more than it says")
    return [*apart(found, _spans(one))]


def _honest(text: str, redacted: Redacted, found: Iterable[Finding]) -> bool:
    """Whether what lies outside of the findings is as it was."""
    edges = [0, *(edge for finding in found for edge in (finding.start, finding.end)), len(text)]
    pieces = [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
    if len(pieces) == 1:
        return redacted.text == text
    at = len(pieces[0])
    for piece in pieces[1:-1]:
        at = redacted.text.find(piece, at) + len(piece)
        if at < len(piece):
            return False
    return redacted.text.startswith(pieces[0]) and redacted.text[at:].endswith(pieces[-1])


def _spans(one: Treated) -> list[tuple[int, int]]:
    return [(mark.start, mark.end) for mark in one.marks]


def _swapped(
    one: Treated, fresh: Iterable[Finding], label: Callable[[str, str], str | None]
) -> Treated:
    """The text with labels for the findings, and where they and the marks before are now."""
    pieces: list[str] = []
    marks: list[Finding] = []
    last = length = 0
    old = set(one.marks)
    for finding in sorted([*old, *fresh], key=lambda finding: finding.start):
        value = one.text[finding.start : finding.end]
        put = value if finding in old else label(str(finding.kind), value)
        before = one.text[last : finding.start]
        pieces += [before, value if put is None else put]
        start = length + len(before)
        length = start + len(pieces[-1])
        marks.append(Finding(kind=str(finding.kind), start=start, end=length))
        last = finding.end
    return Treated(text="".join([*pieces, one.text[last:]]), marks=tuple(marks))


def _whole_spans(text: str, marks: Sequence[Finding]) -> Iterator[tuple[int, int]]:
    """The sentences; one that ends within a mark goes on to the end of that of the mark."""
    start = 0
    for _, end in sentence_spans(text):
        if not any(mark.start < end < mark.end for mark in marks):
            yield start, end
            start = end
