"""A part of the page: a statement, pictures, the numbers behind them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from lance_memory.report.shown import shown
from lance_memory.wording import counted

if TYPE_CHECKING:
    from lance_memory.report.charts.style import Chart

__all__ = [
    "HALF",
    "NARROW",
    "WHOLE",
    "Figure",
    "Numbers",
    "Section",
    "figure",
    "memories",
    "numbers",
    "section",
]

NARROW, HALF, WHOLE = 300, 520, 900
"""Pixels of a drawing: for a narrow window, beside another figure, alone in its row. Each window
gets the one that fits, so that letters keep their size."""

_ROWS = 25
_LONGEST = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A table: the first rows of what a picture shows, and how many there are."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    of: int
    right: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture, drawn wide and narrow, what is to be seen in it, and its numbers."""

    title: str
    said: str
    wide: Chart | None = None
    narrow: Chart | None = None
    table: Numbers | None = None
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with its figures; `note` stands where there is nothing to draw, or says a bound."""

    name: str
    title: str
    figures: tuple[Figure, ...] = ()
    note: str = ""


def figure(
    title: str,
    said: str,
    draw: Any,
    *,
    table: Numbers | None = None,
    open: bool = False,
    width: int = HALF,
) -> Figure | None:
    """The figure of a chart function that takes a width; None where it draws nothing."""
    wide = draw(width=width)
    if wide is None:
        return None
    return Figure(
        title=title, said=said, wide=wide, narrow=draw(width=NARROW), table=table, open=open
    )


def numbers(frame: pl.DataFrame, heads: dict[str, str], *, at_most: int = _ROWS) -> Numbers:
    """A frame's first rows as texts, under these headings: column → heading."""
    told = frame.select(list(heads)).head(at_most)
    right = tuple(kind.is_numeric() for kind in told.dtypes)
    rows = tuple(tuple(map(_told, row)) for row in told.iter_rows())
    return Numbers(heads=tuple(heads.values()), rows=rows, of=len(frame), right=right)


def section(
    name: str, title: str, *figures: Figure | None, nothing: str = "", note: str = ""
) -> Section:
    """A section of the figures that there are; `nothing` is its note where there is none."""
    there = tuple(one for one in figures if one is not None)
    return Section(name=name, title=title, figures=there, note=note if there else nothing)


def memories(number: int, what: str = "") -> str:
    """1 memory, 2 visible memories."""
    return counted(number, f"{what} memory".strip(), f"{what} memories".strip())


def _told(value: Any) -> str:
    match value:
        case None:
            return ""
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.3g}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M}"
        case list() | tuple():
            return shown(", ".join(map(str, value)), _LONGEST)
        case _:
            return shown(str(value), _LONGEST) if value else ""
