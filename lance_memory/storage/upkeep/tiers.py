"""Which small parts become one, so that each row is written again a bounded number of times.

As in a log-structured merge tree: the newest parts are merged, and an older one joins when they
have grown to its size. N rows that are added one by one are each written O(log N) times, and lie
in O(log N) parts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

__all__ = ["AT_REST", "FRAGMENTS", "SEGMENTS", "Fragment", "chosen", "tail"]

FRAGMENTS = 4
"""Of one index segment, about as many are left at most: a search reads every fragment."""

SEGMENTS = 8
"""Of an index, about as many are left at most."""

AT_REST = 2
"""As many fragments where writers rest, of those that are small enough (see `tender`)."""

_DELETED = 0.1
"""A fragment that has lost more of its rows is written again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A fragment, as far as merging goes.

    `covered_by` names the index segments that have its rows: the engine merges no fragments that
    differ in them.
    """

    id: int
    rows: int
    deleted: int
    covered_by: Hashable

    @property
    def thinned(self) -> bool:
        """Whether it has lost so many rows that it is worth writing again."""
        return self.deleted > _DELETED * (self.rows + self.deleted)


def tail(sizes: Sequence[int], *, floor: int = 0, most: int | None, parts: int = SEGMENTS) -> int:
    """How many of the last parts become one; 0, or at least 2.

    Args:
        sizes: rows of each part, oldest first.
        floor: parts up to as many rows join in any case.
        most: no merged part has more rows; None: whatever it has.
        parts: about as many are left at most, as far as `most` lets them be merged.
    """
    taken = rows = 0
    for size in reversed(sizes):
        crowded = len(sizes) - taken >= parts
        fits = most is None or rows + size <= most
        if not fits or (taken and size > max(rows, floor) and not crowded):
            break
        taken, rows = taken + 1, rows + size
    return taken if taken > 1 else 0


def chosen(
    fragments: Iterable[Fragment], *, most: int, spared: int | None, parts: int = FRAGMENTS
) -> set[int]:
    """The ids of the fragments to write again: small ones to merge, and thinned ones.

    Args:
        fragments: all of them.
        most: rows of a fragment that is made, about.
        spared: the id of one that is not merged.
        parts: about as many of one index segment are left at most.
    """
    ordered = sorted(fragments, key=lambda one: one.id)
    found = {one.id for one in ordered if one.thinned and one.rows <= most}
    runs = groupby((one for one in ordered if one.id != spared), key=lambda one: one.covered_by)
    for _, run in runs:
        mergeable = list(run)
        count = tail([one.rows for one in mergeable], most=most, parts=parts)
        found |= {one.id for one in mergeable[len(mergeable) - count :]}
    return found
