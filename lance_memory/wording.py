"""Numbers as people say them: 1 row, 2 rows; versions 3-17, 20."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["counted", "ranges", "shown", "some", "worded"]

_CHOICE = re.compile(r"\[([^\[\]|]*)\|([^\[\]|]*)\]")
_SHOWN = 5
_LINE = 60


def counted(number: int, one: str, more: str = "") -> str:
    """1 row, 2 rows; `more` is the plural of a word that takes more than an "s"."""
    return f"{number:,} {one if number == 1 else more or f'{one}s'}"


def worded(text: str, number: int) -> str:
    """`text` as it is said of so many: "{n} [row is|rows are]" becomes "1 row is", "2 rows are"."""
    chosen = _CHOICE.sub(lambda found: found[1 if number == 1 else 2], text)
    return chosen.replace("{n}", f"{number:,}")


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers, each run of them as its ends: 3-17, 20; "none" of none."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs) or "none"


def shown(text: str, most: int = _LINE) -> str:
    """A text in one line, cut to so many characters; what is cut ends with "…"."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def some(values: Sequence[object], shown: int = _SHOWN) -> str:
    """The first few of many, and how many more there are; "none" of none."""
    told = ", ".join(str(value) for value in values[:shown]) or "none"
    return f"{told} and {len(values) - shown:,} more" if len(values) > shown else told
