"""Charts of what there is: scopes, ages, duplicates, recall, and the map of embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from lance_memory.errors import InvalidInputError
from lance_memory.report import frames
from lance_memory.report.charts.style import altair, labelled, most, short, styled
from lance_memory.report.charts.versions import WIDE
from lance_memory.report.palette import LIGHT
from lance_memory.report.shown import shown

if TYPE_CHECKING:
    from lance_memory.report.charts.style import Chart

__all__ = [
    "duplicates",
    "embedding_map",
    "largest_clusters",
    "recalled",
    "recalls",
    "scopes",
    "staleness",
]

_ROW = 26
_SHOWN = 12
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_OTHERS, _ALONE, _REST = "other clusters", "in no cluster", "all others"
_SMALL, _LARGE = 34, 90
_HIGH = 460
"""Pixels of a map at most, so that a window shows all of it."""
_RARE = 50
"""A value of fewer than one point in so many has larger points."""


def scopes(told: pl.DataFrame, *, width: int = WIDE) -> Chart | None:
    """The largest scopes, and how much of each is visible.

    Args:
        told: of `frames.scopes`, the largest first.
        width: pixels.
    """
    told = told.head(_SHOWN)
    if not len(told):
        return None
    alt = altair()
    told = short(told, "name", pixels=width * 0.35)
    long = told.unpivot(index="name", variable_name="part", value_name="memories")
    both = told.with_columns((pl.col("visible") + pl.col("hidden")).alias("all"))
    y = alt.Y("name:N", title=None, sort=told["name"].to_list())
    longest = most(both["all"])
    scale = alt.Scale(domain=["visible", "hidden"], range=[LIGHT.series[0], LIGHT.quiet])
    bars = (
        alt.Chart(long)
        .mark_bar(height=_ROW - 10)
        .encode(
            x=_length(alt, "memories", longest),
            y=y,
            color=alt.Color("part:N", scale=scale),
            order=alt.Order("part:N", sort="descending"),
            tooltip=["name", "part", "memories"],
        )
    )
    text = labelled(alt.Chart(both), "all:Q").encode(
        x="all:Q", y=y, text=alt.Text("all", format=",")
    )
    return styled(bars + text, width=width, height=_ROW * len(told))


def staleness(memories: pl.DataFrame, *, now: Any, width: int = WIDE) -> Chart | None:
    """How old the visible memories are, and which of them answered a recorded query.

    Args:
        memories: with `visible`, `happened_at` and `recalls`.
        now: the moment that their age is told of.
        width: pixels.
    """
    told = frames.ages(memories, now=now)
    if not len(told):
        return None
    alt = altair()
    names = {True: "recalled", False: "never recalled"}
    told = told.with_columns(pl.col("recalled").replace_strict(names).alias("part"))
    scale = alt.Scale(domain=list(names.values()), range=[LIGHT.series[0], LIGHT.quiet])
    whole = told.group_by("age").agg(pl.col("memories").sum().alias("all"))
    y = alt.Y("age:N", title=None, sort=list(frames.AGES))
    bars = (
        alt.Chart(told)
        .mark_bar(height=_ROW - 10)
        .encode(
            x=_length(alt, "memories", most(whole["all"])),
            y=y,
            color=alt.Color("part:N", scale=scale),
            order=alt.Order("part:N", sort="descending"),
            tooltip=["age", "part", "memories"],
        )
    )
    text = labelled(alt.Chart(whole), "all:Q")
    text = text.encode(x="all:Q", y=y, text=alt.Text("all", format=","))
    return styled(bars + text, width=width, height=_ROW * len(whole))


def duplicates(clusters: pl.DataFrame, *, width: int = WIDE) -> Chart | None:
    """The largest clusters of near-duplicates, by the content of their first memory.

    Args:
        clusters: with `size` and `content`, the largest first.
        width: pixels.
    """
    return _ranked(clusters.head(_SHOWN), "size", "memories", width)


def recalled(memories: pl.DataFrame, *, width: int = WIDE) -> Chart | None:
    """The memories that answered most recorded queries.

    Args:
        memories: with `recalls` and `content`, the most recalled first.
        width: pixels.
    """
    told = memories.filter(pl.col("recalls") > 0).head(_SHOWN)
    return _ranked(told, "recalls", "queries answered", width)


def recalls(memories: pl.DataFrame, *, width: int = WIDE) -> Chart | None:
    """How many of the visible memories answered how many recorded queries.

    Args:
        memories: with `visible` and `recalls`.
        width: pixels.
    """
    told = frames.recalls(memories)
    if not len(told):
        return None
    alt = altair()
    y = alt.Y("recalls:N", title=None, sort=list(frames.RECALLS))
    never = alt.condition(
        "datum.recalls === 'never'", alt.value(LIGHT.quiet), alt.value(LIGHT.series[0])
    )
    base = alt.Chart(told).encode(x=_length(alt, "memories", most(told["memories"])), y=y)
    bars = base.mark_bar(height=_ROW - 10).encode(color=never)
    text = labelled(base, "memories:Q").encode(text=alt.Text("memories", format=","))
    return styled(bars + text, width=width, height=_ROW * len(told))


def embedding_map(points: pl.DataFrame, *, by: str = "kind", width: int = WIDE) -> Chart | None:
    """Memories as points of a plane, near where their embeddings are alike.

    Args:
        points: with `x`, `y`, and the column named by `by`; where they have them, `content` and
            `kind` are shown by a pointer.
        by: the column that gives a point its colour, such as "kind" or "user": its six most
            frequent values, or five and the others. Of "cluster" (a number, null: in none) the
            largest ones.
        width: pixels.

    Rare values are drawn over frequent ones, and larger, so that a single point is seen.

    Raises:
        InvalidInputError: the points have no such column.
    """
    if by not in points.columns:
        raise InvalidInputError(
            f"the points have no column {by!r}; they have {', '.join(points.columns)}"
        )
    if not len(points):
        return None
    alt = altair()
    told, names = _clusters(points) if by == "cluster" else _values(points, by)
    colours = [LIGHT.series[i % len(LIGHT.series)] for i in range(len(names))]
    shapes = [_SHAPES[i % len(_SHAPES)] for i in range(len(names))]
    for name, colour in ((_OTHERS, LIGHT.ink), (_ALONE, LIGHT.quiet), (_REST, LIGHT.quiet)):
        if name in names:
            colours[names.index(name)] = colour
            shapes[names.index(name)] = "circle"
    legend = alt.Legend(symbolOpacity=1)
    around = {"axis": None, "scale": alt.Scale(nice=False, zero=False, padding=10)}
    drawn = (
        alt.Chart(told)
        .mark_point(filled=True, opacity=0.75)
        .encode(
            x=alt.X("x:Q", **around),
            y=alt.Y("y:Q", **around),
            color=alt.Color("part:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
            shape=alt.Shape("part:N", scale=alt.Scale(domain=names, range=shapes), legend=legend),
            size=alt.Size("size:Q", scale=None, legend=None),
            tooltip=[name for name in ("content", "kind", by) if name in told.columns],
        )
    )
    return styled(drawn, width=width, height=min(_HIGH, int(width * 0.72)))


def largest_clusters(points: pl.DataFrame) -> pl.DataFrame:
    """The clusters that have a colour on the map: `cluster`, `name` (there), `count`."""
    counted = points["cluster"].drop_nulls().value_counts()
    order = counted.sort(["count", "cluster"], descending=[True, False])
    first = order.head(len(LIGHT.series) - 1).with_row_index("place", offset=1)
    return first.select("cluster", pl.format("cluster {}", "place").alias("name"), "count")


def _values(points: pl.DataFrame, by: str) -> tuple[pl.DataFrame, list[str]]:
    """The most frequent values, each with how often it is there, and the others together.

    The frame is in the order of drawing: the rarest last, over the others.
    """
    told = points.with_columns(_text(by).alias("part"))
    counted = told["part"].value_counts().sort(["count", "part"], descending=[True, False])
    if len(counted) > len(LIGHT.series):
        first = counted["part"].head(len(LIGHT.series) - 1).to_list()
        kept = pl.when(pl.col("part").is_in(first)).then("part").otherwise(pl.lit(_REST))
        told = told.with_columns(kept)
        names = [*first, _REST]
    else:
        names = counted["part"].to_list()
    often = pl.len().over("part")
    size = pl.when(often * _RARE <= len(told)).then(_LARGE).otherwise(_SMALL)
    told = told.with_columns(often.alias("often"), size.alias("size"))
    return told.sort("often", "part", descending=[True, False], maintain_order=True), names


def _text(column: str) -> pl.Expr:
    """A column's values as names: of "" and null "(none)"."""
    text = pl.col(column).cast(pl.String)
    return text.map_elements(lambda one: shown(one, 40), return_dtype=pl.String, skip_nulls=False)


def _clusters(points: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The largest ones by number, the other ones together, and those that are in none."""
    named = dict(largest_clusters(points).select("cluster", "name").iter_rows())
    part = pl.col("cluster").replace_strict(named, default=_OTHERS, return_dtype=pl.String)
    part = pl.when(pl.col("cluster").is_null()).then(pl.lit(_ALONE)).otherwise(part)
    size = pl.when(pl.col("cluster").is_null()).then(_SMALL).otherwise(_LARGE)
    told = points.with_columns(part.alias("part"), size.alias("size")).sort(
        "size", maintain_order=True
    )
    names = [*named.values(), _OTHERS, _ALONE]
    there = set(told["part"].to_list())
    return told, [name for name in names if name in there]


def _ranked(told: pl.DataFrame, field: str, title: str, width: int) -> Chart | None:
    """Bars with what they are about on their left."""
    if not len(told):
        return None
    alt = altair()
    told = short(told, "content", pixels=width * 0.55)
    y = alt.Y("content:N", title=None, sort=told["content"].to_list())
    base = alt.Chart(told).encode(x=_length(alt, field, most(told[field]), title), y=y)
    bars = base.mark_bar(height=_ROW - 10, color=LIGHT.series[0])
    text = labelled(base, f"{field}:Q").encode(text=alt.Text(field, format=","))
    return styled(bars + text, width=width, height=_ROW * len(told))


def _length(alt: Any, field: str, longest: int, title: str = "memories") -> Any:
    """Where a bar ends, with room for its number."""
    ticks = {
        "format": ",d",
        "tickMinStep": 1,
        "tickCount": min(5, max(1, longest)),
        "domain": False,
    }
    scale = alt.Scale(domain=[0, max(1, longest) * 1.18], nice=False)
    return alt.X(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(**ticks))
