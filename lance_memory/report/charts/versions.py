"""Charts of what happened: growth, churn, the flow of states, consolidation passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from lance_memory.report import frames
from lance_memory.report.charts.axis import by_version, held, span, tail
from lance_memory.report.charts.style import altair, labelled, most, styled
from lance_memory.report.palette import LIGHT, STATES
from lance_memory.report.passes import Holds

if TYPE_CHECKING:
    from lance_memory.report.charts.style import Chart

__all__ = ["WIDE", "churn", "growth", "lifecycle", "passes", "states"]

WIDE = 520
"""Pixels of a chart unless asked otherwise."""

_STEPS = 24
"""Points of the edge of a band of the flow."""

_NODE, _GAP = 0.03, 0.08
"""Of the flow's width, a node; of its height, the space between two."""

_PASSES = 12

_WRITTEN = pl.sum_horizontal("inserted", "updated", "deleted").sum()
_MOVED = pl.col("moved").abs().sum()
"""How much a version changed: rows; memories that came to a state or left it."""


def growth(versions: pl.DataFrame, *, width: int = WIDE) -> Chart | None:
    """How many memories of all states there were after each version.

    Args:
        versions: of `versions_frame`.
        width: pixels.

    Returns:
        None where the frame does not say, as through a scoped handle; see `states`.
    """
    told = frames.churn(versions).filter(pl.col("memories").is_not_null())
    if not len(told):
        return None
    alt = altair()
    tall = max(1, most(told["memories"]))
    room = tail(told, "until")
    x = by_version(alt, told, "until", width=width, weight=_WRITTEN, room=room)
    y = alt.Y("memories:Q", title="memories", axis=_counts(alt, tall))
    longer = alt.Chart(held(told, "until", room)).encode(x=x, y=y)
    area = longer.mark_area(interpolate="step-after", color=LIGHT.series[0], opacity=0.18)
    line = longer.mark_line(interpolate="step-after", color=LIGHT.series[0], strokeWidth=2)
    dots = alt.Chart(told).encode(x=x, y=y)
    dots = dots.mark_point(color=LIGHT.series[0], filled=True, size=36, opacity=1).encode(
        tooltip=["version", "until", alt.Tooltip("memories", format=",")]
    )
    drawn = area + line + dots if len(told) <= _STEPS else area + line
    return styled(drawn, width=width, height=220)


def churn(versions: pl.DataFrame, *, width: int = WIDE) -> Chart | None:
    """How many memories each version inserted, updated and deleted, each on a scale of its own."""
    told = frames.churn(versions)
    shown = [n for n in ("inserted", "updated", "deleted") if told[n].sum()]
    if not shown:
        return None
    alt = altair()
    colours = {"inserted": LIGHT.series[0], "updated": LIGHT.series[4], "deleted": LIGHT.series[1]}
    height = max(46, (220 - 30) // len(shown) - 14)
    panels = []
    for place, name in enumerate(shown):
        last = place == len(shown) - 1
        x = by_version(alt, told, "until", width=width, weight=_WRITTEN, axis=last)
        tall = most(told[name])
        axis = _counts(alt, tall, minExtent=44, maxExtent=44, tickCount=2)
        y = alt.Y(f"{name}:Q", title=name, axis=axis)
        thick = max(1, min(14, 0.9 * (width - 72) / (span(told, "until") * 1.08 + 1) - 1))
        bars = alt.Chart(told).mark_bar(color=colours[name], size=thick)
        tips = ["version", "until", alt.Tooltip(name, format=",")]
        panels.append(
            bars.encode(x=x, y=y, tooltip=tips).properties(width=width - 72, height=height)
        )
    return styled(alt.vconcat(*panels, spacing=10), width=width, inner=True)


def states(history: pl.DataFrame, *, width: int = WIDE) -> Chart | None:
    """How many memories were in each state after each version."""
    told = frames.states(history)
    if not len(told):
        return None
    alt = altair()
    present = _ordered(told["state"])
    moved = pl.col("memories").diff().over("state", order_by="version")
    told = told.with_columns(_rank(pl.col("state"), present), moved.alias("moved"))
    room = tail(told, "version")
    x = by_version(alt, told, "version", width=width, weight=_MOVED, room=room)
    tall = most(told.group_by("version").agg(pl.col("memories").sum())["memories"])
    y = alt.Y("memories:Q", title="memories", stack="zero", axis=_counts(alt, tall))
    chart = alt.Chart(held(told, "version", room)).mark_area(interpolate="step-after", opacity=0.9)
    drawn = chart.encode(
        x=x,
        y=y,
        color=_states(alt, present),
        order="rank:Q",
        tooltip=[alt.Tooltip("version:Q", format=".0f"), "state"],
    )
    return styled(drawn, width=width, height=220)


def lifecycle(history: pl.DataFrame, *, width: int = WIDE) -> Chart | None:
    """What brought the memories, on the left, and the state they are in now, on the right.

    The bands are as thick as the memories are many; a band has the colour of the state it leads to.
    """
    told = frames.flows(history)
    if not len(told):
        return None
    alt = altair()
    left = told.group_by("came", maintain_order=True).agg(pl.col("memories").sum())
    right = told.group_by("state", maintain_order=True).agg(pl.col("memories").sum())
    right = right.with_columns(_rank(pl.col("state"), list(STATES))).sort("rank")
    height = 40 + 44 * max(len(left), len(right), 4)
    nodes = [*_nodes(left, "came", 0.0), *_nodes(right, "state", 1.0 - _NODE)]
    room = 105 / (width - 210)  # of the labels on each side, in widths of the flow
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-room, 1 + room], nice=False))
    scale = alt.Scale(domain=[1, 0], nice=False, zero=False)
    y = alt.Y("y:Q", axis=None, stack=None, scale=scale)
    colour = _states(alt, right["state"].to_list(), legend=False)
    bands = (
        alt.Chart(pl.DataFrame(_bands(told, nodes)))
        .mark_area(opacity=0.45, orient="vertical")
        .encode(x=x, y=y, y2="y2:Q", color=colour, detail="band:N")
    )
    frame = pl.DataFrame(nodes)
    blocks = alt.Chart(frame).mark_rect(color=LIGHT.faint)
    blocks = blocks.encode(x=x, x2="x2:Q", y=y, y2="y2:Q", tooltip=["label"])
    layers = [bands, blocks]
    for side, align, dx, at in ((0.0, "right", -6, "x:Q"), (1.0 - _NODE, "left", 6, "x2:Q")):
        base = alt.Chart(frame.filter(pl.col("x") == side))
        text = labelled(base, "label:N", align=align, dx=dx, limit=112)
        layers.append(text.encode(x=alt.X(at, axis=None), y=alt.Y("middle:Q", axis=None)))
    return styled(alt.layer(*layers), width=width, height=height)


def passes(told: pl.DataFrame, *, width: int = WIDE) -> Chart | None:
    """How many memories each consolidation pass touched, and how many it left in their place.

    Args:
        told: of `passes.passes`.
        width: pixels.

    Beside each is how much recall was kept, as far as its guard measured; the newest twelve. What
    does not hold any more is faint, and says so.
    """
    told = told.tail(_PASSES)
    if not len(told):
        return None
    alt = altair()
    yes = pl.col("holds") == Holds.YES
    label = pl.format("version {}", "version")
    label = pl.when(yes).then(label).otherwise(pl.format("{}, {}", label, "holds"))
    kept = (
        pl.when(pl.col("kept").is_null())
        .then(pl.lit("recall not measured"))
        .otherwise(pl.format("{}% of recall kept", (pl.col("kept") * 100).round().cast(pl.Int64)))
    )
    text = (
        pl.when(yes)
        .then(pl.format("−{} rows, {}", "saved", kept))
        .when(pl.col("holds") == Holds.NO)
        .then(pl.lit("saves nothing any more"))
        .otherwise(pl.format("−{} rows at first", "saved"))
    )
    frame = told.with_columns(label.alias("pass"), text.alias("text"), yes.alias("yes"))
    longest = max(1, most(frame["sources"]))
    room = 185 if width > 400 else 0
    labels = 90 if frame["yes"].all() else 170
    y = alt.Y("pass:N", title=None, sort=frame["pass"].to_list())
    scale = alt.Scale(domain=[0, longest * (1 + room / max(1, width - room - labels))], nice=False)
    x = alt.X("derived:Q", title="memories", scale=scale, axis=_counts(alt, longest))
    base = alt.Chart(frame).encode(y=y)
    faint = alt.condition("datum.yes", alt.value(1), alt.value(0.4))
    line = base.mark_rule(color=LIGHT.quiet, strokeWidth=3).encode(x=x, x2="sources:Q")
    layers = [line]
    for field, name in (("sources", "before"), ("derived", "after")):
        dots = base.transform_calculate(moment=f"'{name}'").mark_point(size=110, filled=True)
        colours = alt.Scale(domain=["before", "after"], range=[LIGHT.series[1], LIGHT.series[0]])
        colour = alt.Color("moment:N", scale=colours)
        layers.append(dots.encode(x=alt.X(f"{field}:Q"), color=colour, opacity=faint))
    if room:
        layers.append(labelled(base, "text:N", dx=12).encode(x="sources:Q"))
    return styled(alt.layer(*layers), width=width, height=60 + 34 * len(frame))


def _counts(alt: Any, tall: int, **options: Any) -> Any:
    """An axis of whole numbers."""
    ticks = min(int(options.pop("tickCount", 5)), max(1, tall))
    form = "~s" if tall >= 10_000 else ",d"
    return alt.Axis(format=form, tickMinStep=1, domain=False, tickCount=ticks, **options)


def _states(alt: Any, present: list[str], *, legend: bool = True) -> Any:
    colours = [STATES.get(state, LIGHT.quiet) for state in present]
    more = {} if legend else {"legend": None}
    return alt.Color("state:N", scale=alt.Scale(domain=present, range=colours), **more)


def _ordered(found: pl.Series) -> list[str]:
    known = set(found.to_list())
    return [state for state in STATES if state in known] + sorted(known - STATES.keys())


def _rank(column: pl.Expr, order: list[str]) -> pl.Expr:
    places = {name: place for place, name in enumerate(order)}
    return column.replace_strict(places, default=len(order), return_dtype=pl.Int64).alias("rank")


def _nodes(told: pl.DataFrame, column: str, x: float) -> list[dict[str, Any]]:
    """Blocks below each other, as tall as they are many, spread over the whole height."""
    total, gaps = told["memories"].sum(), (len(told) - 1) * _GAP
    found, y = [], 0.0
    for name, number in told.select(column, "memories").iter_rows():
        tall = (1 - gaps) * number / total
        found.append(
            {
                "name": name,
                "x": x,
                "x2": x + _NODE,
                "y": y,
                "y2": y + tall,
                "middle": y + tall / 2,
                "label": f"{name}: {number:,}",
            }
        )
        y += tall + _GAP
    return found


def _bands(told: pl.DataFrame, nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The edges of a band for each flow, as points from left to right."""
    total = told["memories"].sum()
    sides = {(one["name"], one["x"] > 0): one for one in nodes}
    scale = {
        right: sum(one["y2"] - one["y"] for one in nodes if (one["x"] > 0) == right) / total
        for right in (False, True)
    }
    top = {key: one["y"] for key, one in sides.items()}
    found = []
    order = told.with_columns(_rank(pl.col("state"), list(STATES))).sort(
        "rank", maintain_order=True
    )
    for band, (came, state, number) in enumerate(
        order.select("came", "state", "memories").iter_rows()
    ):
        start, end = top[came, False], top[state, True]
        top[came, False] += number * scale[False]
        top[state, True] += number * scale[True]
        for step in range(_STEPS + 1):
            share = step / _STEPS
            bend = share * share * (3 - 2 * share)
            upper = start + (end - start) * bend
            tall = number * (scale[False] * (1 - bend) + scale[True] * bend)
            x = _NODE + (1 - 2 * _NODE) * share
            found.append({"band": band, "state": state, "x": x, "y": upper, "y2": upper + tall})
    return found
