"""Sets of whole numbers that lie close together, as ranges: (first, last), ascending, apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

__all__ = ["Range", "Ranges", "minus", "ranges_of", "size", "up_to"]

Range: TypeAlias = tuple[int, int]
"""First and last, both in it."""

Ranges: TypeAlias = tuple[Range, ...]


def ranges_of(parts: Iterable[Range]) -> Ranges:
    """The numbers of all parts; those that overlap or touch become one."""
    made: list[Range] = []
    for first, last in sorted(parts):
        if made and first <= made[-1][1] + 1:
            made[-1] = made[-1][0], max(made[-1][1], last)
        else:
            made.append((first, last))
    return tuple(made)


def minus(ranges: Sequence[Range], others: Sequence[Range]) -> Ranges:
    """The numbers that are in none of the others."""
    return tuple(_minus(ranges, others))


def size(ranges: Iterable[Range]) -> int:
    """How many numbers there are."""
    return sum(last - first + 1 for first, last in ranges)


def up_to(ranges: Sequence[Range], start: int) -> int:
    """The last number of the run that begins at `start`; one less than that, where none does."""
    return next((last for first, last in ranges if first <= start <= last), start - 1)


def _minus(ranges: Sequence[Range], others: Sequence[Range]) -> Iterator[Range]:
    at = 0
    for first, last in ranges:
        start = first
        while at < len(others) and others[at][1] < start:
            at += 1
        inside = at
        while inside < len(others) and others[inside][0] <= last and start <= last:
            if start < others[inside][0]:
                yield start, others[inside][0] - 1
            start = max(start, others[inside][1] + 1)
            inside += 1
        if start <= last:
            yield start, last
