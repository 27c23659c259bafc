"""How every chart looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from lance_memory.extras import require
from lance_memory.report.palette import LIGHT

if TYPE_CHECKING:
    import altair as alt

    Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.VConcatChart

__all__ = ["CHARACTER", "altair", "labelled", "most", "short", "styled"]

CHARACTER = 6.2
"""Pixels of a character of a label, on average."""

_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_SIZE = 12


def altair() -> Any:
    """The library.

    Raises:
        MissingExtraError: it is not installed (extra `analysis`).
    """
    return require("altair", "analysis")


def styled(chart: Any, *, width: int, height: int | None = None, inner: bool = False) -> Chart:
    """The chart in the house's colours, `width` pixels wide with its axes and labels.

    Args:
        chart: as Altair made it.
        width: in pixels.
        height: likewise; None: as the chart has it.
        inner: it has its size already, as charts below each other do.
    """
    size: dict[str, Any] = {} if height is None else {"height": height}
    if not inner:
        size |= {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
    axis = {
        "labelColor": LIGHT.faint,
        "titleColor": LIGHT.faint,
        "gridColor": LIGHT.line,
        "domainColor": LIGHT.line,
        "tickColor": LIGHT.line,
        "labelFontSize": _SIZE,
        "titleFontSize": _SIZE,
        "titleFontWeight": "normal",
        "labelLimit": 400,
    }
    legend = {
        "orient": "top",
        "title": None,
        "labelColor": LIGHT.ink,
        "labelFontSize": _SIZE,
        "symbolSize": 90,
        "columns": max(2, width // 120),
        "labelLimit": 110,
        "offset": 4,
    }
    drawn: Chart = (
        chart.properties(**size)
        .configure(background=LIGHT.card, font=_FONT, padding=4)
        .configure_view(stroke=None)
        .configure_axis(**axis)
        .configure_legend(**legend)
    )
    return drawn


def most(column: pl.Series) -> int:
    """The largest of whole numbers; 0 of none."""
    return max((int(number) for number in column.drop_nulls().to_list()), default=0)


def short(frame: pl.DataFrame, column: str, *, pixels: float) -> pl.DataFrame:
    """The frame with texts of a column cut to what has room in so many pixels; still distinct."""
    from lance_memory.report.shown import shown

    longest = max(6, int(pixels / CHARACTER))
    cut = [shown(text, longest) for text in frame[column].to_list()]
    seen: dict[str, int] = {}
    told = []
    for text in cut:
        seen[text] = seen.get(text, 0) + 1
        told.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return frame.with_columns(pl.Series(column, told, dtype=pl.String))


def labelled(base: Any, field: str, **options: Any) -> Any:
    """Numbers or texts beside the marks of a chart."""
    given = {"color": LIGHT.ink, "fontSize": _SIZE, "align": "left", "dx": 5, **options}
    return base.mark_text(**given).encode(text=field)
