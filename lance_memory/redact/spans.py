"""Findings in one text: made one where they overlap, and cut where they may not be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from lance_memory.redact.protocol import Finding, Sensitive

__all__ = ["Span", "apart", "everywhere", "united"]

Span: TypeAlias = tuple[int, int]

_WHOLE: Final = 6
"""Characters; a value of fewer may be a part of any word by chance."""

_RANK: Final = {str(kind): place for place, kind in enumerate(Sensitive)}


def united(findings: Iterable[Finding]) -> list[Finding]:
    """In order; those that overlap become one, of the kind that comes first in `Sensitive`."""
    found: list[Finding] = []
    for finding in sorted(findings, key=_place):
        last = found[-1] if found else None
        if last is None or finding.start >= last.end:
            found.append(finding)
            continue
        kind = min(last.kind, finding.kind, key=_rank)
        end = max(last.end, finding.end)
        found[-1] = Finding(kind=kind, start=last.start, end=end)
    return found


def apart(findings: Iterable[Finding], holes: Sequence[Span]) -> Iterator[Finding]:
    """The parts of the findings outside the holes, both being in order without overlaps."""
    at = 0
    for finding in findings:
        start = finding.start
        while at < len(holes) and holes[at][1] <= start:
            at += 1
        inside = at
        while inside < len(holes) and holes[inside][0] < finding.end:
            if start < holes[inside][0]:
                yield Finding(kind=finding.kind, start=start, end=holes[inside][0])
            start = holes[inside][1]
            inside += 1
        if start < finding.end:
            yield Finding(kind=finding.kind, start=start, end=finding.end)


def everywhere(known: Iterable[tuple[str, str]], text: str) -> Iterator[Finding]:
    """Where values, given by kind, stand in a text that a redactor may not have found them in.

    One of fewer than 6 characters counts only where it is no part of a longer word.
    """
    for kind, value in known:
        for start, end in _places(value, text):
            yield Finding(kind=kind, start=start, end=end)


def _places(value: str, text: str) -> Iterator[Span]:
    if not any(map(str.isalnum, value)):  # a space between two findings, a comma
        return
    end = 0
    while (start := text.find(value, end)) >= 0:
        end = start + len(value)
        around = text[max(0, start - 1) : start] + text[end : end + 1]
        if len(value) >= _WHOLE or not re.search(r"\w", around):
            yield start, end


def _place(finding: Finding) -> tuple[int, int, tuple[int, str]]:
    return finding.start, finding.end, _rank(finding.kind)


def _rank(kind: str) -> tuple[int, str]:
    """Kinds of a redactor's own come last, by name."""
    return _RANK.get(str(kind), len(_RANK)), str(kind)
