"""Which columns of a table fit beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from rich.cells import cell_len

__all__ = ["WIDEST", "first_that_fit", "that_fit"]

WIDEST = 40
_GAP = 2


def first_that_fit(columns: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> int:
    """How many columns fit, from the left; the last of them takes what is left, and folds."""
    widths = [
        max(cell_len(text) for text in (name, *(row[place] for row in rows)))
        for place, name in enumerate(columns)
    ]
    ends = accumulate(min(width, WIDEST) + _GAP for width in widths)
    return max(1, sum(end - _GAP <= room for end in ends))


def that_fit(columns: Mapping[str, Sequence[str]], room: int) -> list[str]:
    """The names of the columns that fit, up to the first that does not.

    Args:
        columns: name → its cells, in order of importance. Empty columns are left out.
        room: for all of them.
    """
    found = []
    for name, cells in columns.items():
        width = max(map(cell_len, (name, *cells))) + _GAP
        if not any(cells):
            continue
        room -= width
        if room < 0:
            break
        found.append(name)
    return found
