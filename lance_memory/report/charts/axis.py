"""The axis that versions stand on, from left to right."""

from __future__ import annotations

from typing import Any

import polars as pl

from lance_memory.report import frames

__all__ = ["by_version", "held", "span", "tail"]

_AXIS = 72
"""Pixels of the axis on the left, with its labels."""

_EDGE = 0.04
"""Of the versions shown, the room beside the first and the last."""


def tail(told: pl.DataFrame, column: str) -> float:
    """The room that the newest version gets: of two versions a third, of many a little."""
    return max(1, span(told, column)) * max(_EDGE, min(1 / 3, 1 / told[column].n_unique()))


def held(told: pl.DataFrame, column: str, room: float) -> pl.DataFrame:
    """The frame with its newest version once more, further on: a step needs room to be seen."""
    version = pl.col(column).cast(pl.Float64)
    drawn = told.with_columns(version)
    newest = drawn.filter(version == version.max())
    return pl.concat([drawn, newest.with_columns(version + room)])


def by_version(
    alt: Any,
    told: pl.DataFrame,
    column: str,
    *,
    width: int,
    weight: pl.Expr,
    axis: bool = True,
    room: float = 0.0,
) -> Any:
    """The versions from left to right, with room after the last; whole numbers only.

    Labels are those of the first, of the last, and of the versions that changed most, by the
    aggregate `weight` of their rows.
    """
    changed = told.group_by(pl.col(column).alias("version")).agg(weight.alias("weight"))
    numbers = changed["version"].sort().to_list()
    low, high = numbers[0], numbers[-1]
    spread = max(1, high - low)
    end = high + max(room, _EDGE * spread)
    scale = alt.Scale(domain=[low - _EDGE * spread, end], nice=False, zero=False)
    pixels = (width - _AXIS) / (end - low + _EDGE * spread)
    values = frames.told_apart(changed, pixels=pixels)
    shown = alt.Axis(values=values, format="d", grid=False, labelOverlap=False) if axis else None
    return alt.X(f"{column}:Q", title="version", scale=scale, axis=shown)


def span(told: pl.DataFrame, column: str) -> int:
    """From the first version to the last."""
    numbers = told[column].to_list()
    return int(max(numbers) - min(numbers))
