"""Charts of one memory's lineage, of two versions, and of one question over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from lance_memory.report.charts.style import CHARACTER, altair, labelled, most, styled
from lance_memory.report.charts.versions import WIDE
from lance_memory.report.palette import CHANGES, LIGHT, STATES
from lance_memory.report.shown import shown

if TYPE_CHECKING:
    from lance_memory.report.charts.style import Chart

__all__ = ["difference", "lineage", "time_travel"]

_ROW = 28
_LETTERED = 6


def lineage(told: pl.DataFrame, *, width: int = WIDE) -> Chart | None:
    """A memory between what took its place, above, and what it was made from, below.

    Args:
        told: of `stories.lineage`.
        width: pixels.
    """
    if not len(told):
        return None
    alt = altair()
    deep = most(told["depth"])
    indent = min(26, (width // 3) // max(1, deep))
    told = told.with_columns(
        pl.struct("content", "depth")
        .map_elements(lambda one: _fitting(one, width, indent), return_dtype=pl.String)
        .alias("text")
    )
    above = told.select(pl.col("row").alias("parent"), pl.col("depth").alias("from"))
    edges = told.drop_nulls("parent").join(above, on="parent")
    domain = [-0.5, (width - 10) / indent]
    x = alt.X("depth:Q", axis=None, scale=alt.Scale(domain=domain, nice=False, zero=False))
    rows = alt.Scale(domain=[len(told) - 0.5, -0.5], nice=False, zero=False)
    y = alt.Y("row:Q", axis=None, scale=rows)
    lines = alt.Chart(edges)
    down = lines.mark_rule(color=LIGHT.quiet).encode(
        x=alt.X("from:Q", axis=None), y=alt.Y("parent:Q", axis=None), y2="row:Q"
    )
    across = lines.mark_rule(color=LIGHT.quiet).encode(
        x=alt.X("from:Q", axis=None), x2="depth:Q", y=y
    )
    present = [state for state in STATES if state in set(told["state"].to_list())]
    scale = alt.Scale(domain=present, range=[STATES[state] for state in present])
    base = alt.Chart(told).encode(x=x, y=y)
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        color=alt.Color("state:N", scale=scale), tooltip=["content", "state", "relation"]
    )
    text = labelled(base, "text:N", dx=11, baseline="middle")
    return styled(alt.layer(down, across, dots, text), width=width, height=_ROW * len(told))


def difference(told: pl.DataFrame, *, width: int = WIDE) -> Chart | None:
    """How many memories of each kind came, changed and went between two versions.

    Args:
        told: of `stories.difference`.
        width: pixels.
    """
    if not len(told):
        return None
    alt = altair()
    counted = told.group_by("kind", "change").agg(pl.len().cast(pl.Int64).alias("memories"))
    counted = counted.sort("kind", "change")
    present = [change for change in CHANGES if change in set(told["change"].to_list())]
    longest = most(counted["memories"])
    scale = alt.Scale(domain=present, range=[CHANGES[change] for change in present])
    ticks = {
        "format": ",d",
        "tickMinStep": 1,
        "tickCount": min(5, max(1, longest)),
        "domain": False,
    }
    length = alt.Scale(domain=[0, longest * 1.18], nice=False)
    base = alt.Chart(counted).encode(
        x=alt.X("memories:Q", title="memories", scale=length, axis=alt.Axis(**ticks)),
        y=alt.Y("kind:N", title=None),
        yOffset=alt.YOffset("change:N", scale=alt.Scale(domain=present, paddingInner=0.2)),
    )
    bars = base.mark_bar().encode(color=alt.Color("change:N", scale=scale))
    text = labelled(base, "memories:Q", baseline="middle")
    text = text.encode(text=alt.Text("memories", format=","))
    height = (12 + 22 * len(present)) * counted["kind"].n_unique()
    return styled(bars + text, width=width, height=height)


def time_travel(told: pl.DataFrame, *, width: int = WIDE) -> Chart | None:
    """Which memories one question found at each version, the best on top.

    Args:
        told: of `stories.time_travel`. Its letters stand for the memories, and a line joins the
            places of one.
        width: pixels.
    """
    if not len(told):
        return None
    alt = altair()
    told = told.with_columns(pl.format("v{}", "version").alias("when"))
    order = told["when"].unique(maintain_order=True).to_list()
    often = told.group_by("letter", maintain_order=True).agg(pl.len().alias("times"))
    names = often.sort("times", descending=True, maintain_order=True)["letter"].head(_LETTERED)
    rest = pl.lit("the others")
    told = told.with_columns(
        pl.when(pl.col("letter").is_in(names.to_list()))
        .then("letter")
        .otherwise(rest)
        .alias("part")
    )
    domain = [*names.to_list(), "the others"]
    scale = alt.Scale(domain=domain, range=[*LIGHT.series[: len(names)], LIGHT.quiet])
    colour = alt.Color("part:N", scale=scale, legend=None)
    x = alt.X("when:N", title="version", sort=order, axis=alt.Axis(labelAngle=0, labelOverlap=True))
    ranks = most(told["rank"])
    y = alt.Y(
        "rank:Q",
        title="rank",
        scale=alt.Scale(domain=[ranks + 0.5, 0.5], nice=False, zero=False),
        axis=alt.Axis(values=list(range(1, ranks + 1)), format="d", grid=False, domain=False),
    )
    base = alt.Chart(told).encode(x=x, y=y)
    lines = base.mark_line(strokeWidth=2, opacity=0.6).encode(color=colour, detail="letter:N")
    dots = base.mark_point(filled=True, size=420, opacity=1).encode(
        color=colour, tooltip=["letter", "content"]
    )
    text = labelled(base, "letter:N", dx=0, align="center", baseline="middle", color=LIGHT.card)
    text = text.encode(text="letter:N")
    return styled(lines + dots + text, width=width, height=44 * ranks + 20)


def _fitting(one: dict[str, object], width: int, indent: int) -> str:
    room = width - int(str(one["depth"])) * indent - 40
    return shown(str(one["content"]), max(8, int(room / CHARACTER)))
