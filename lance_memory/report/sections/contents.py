"""What there is: near-duplicates and ages, scopes, recall, the map."""

from __future__ import annotations

from functools import partial

import polars as pl

from lance_memory.report import frames
from lance_memory.report.charts import contents
from lance_memory.report.findings import Findings
from lance_memory.report.section import (
    HALF,
    WHOLE,
    Section,
    figure,
    memories,
    numbers,
    section,
)
from lance_memory.report.shown import day
from lance_memory.wording import counted, worded

__all__ = ["duplicates", "map_of", "recall", "scopes"]

_GROUPS = {
    "content": "First of them",
    "size": "Memories",
    "kind": "Kind",
    "cohesion": "Cohesion",
}
_UNUSED = {"content": "Oldest without a recall", "happened_at": "When (UTC)"}
_USED = {"content": "Memory", "recalls": "Queries answered"}
_PLACED = {"name": "Cluster", "count": "Memories here", "content": "First of them"}


def duplicates(found: Findings) -> Section:
    """What says nearly the same, and what is old."""
    clusters, seen = len(found.clusters), len(found.visible)
    spare = int((found.clusters["size"] - 1).sum() or 0)
    said = f"{counted(clusters, 'cluster')} of near-duplicates"
    notes = [] if clusters else [f"No near-duplicates among {memories(found.compared, 'visible')}."]
    if seen > found.compared:
        said = f"{{n}} of {memories(seen, 'visible')} [was|were] compared"
        notes.append(f"{worded(said, found.compared)}{_apart(found)}.")
    return section(
        "duplicates",
        "Duplicates and staleness",
        figure(
            "The largest clusters of near-duplicates",
            f"{said}; if each became one, {worded('{n} [memory|memories] fewer', spare)} would be "
            "visible.",
            partial(contents.duplicates, found.clusters),
            table=numbers(found.clusters, _GROUPS),
        ),
        figure(
            "Age of the visible memories",
            _aged(found),
            partial(contents.staleness, found.memories, now=found.at),
            width=HALF if clusters else WHOLE,
            table=numbers(found.never_recalled, _UNUSED),
        ),
        nothing="No memory is visible.",
        note=" ".join(notes),
    )


def scopes(found: Findings) -> Section:
    """Whose memories they are."""
    level = frames.level_to_show(found.memories, found.scope.given())
    told = frames.scopes(found.memories, level)
    said = ""
    if len(told):
        name, visible, hidden = told.select("name", "visible", "hidden").row(0)
        said = f"{counted(len(told), level)}; the largest, {name}, has "
        said += f"{memories(visible + hidden)}, {visible:,} of them visible."
    heads = {"name": level.capitalize(), "visible": "Visible", "hidden": "Hidden"}
    return section(
        "scopes",
        "Scope sizes",
        figure(
            f"Memories of each {level}",
            said,
            partial(contents.scopes, told),
            width=WHOLE,
            table=numbers(told, heads),
        ),
        nothing="There is no memory in this scope.",
    )


def recall(found: Findings) -> Section:
    """What recorded queries found, and what they never found."""
    name, title = "recall", "What is recalled, and what never is"
    if not found.queries and not found.most_recalled["recalls"].sum():
        return section(
            name,
            title,
            nothing="No query was recorded, so nobody knows what is recalled. Open the store with "
            "record_queries=True, or set LMEM_RECORD_QUERIES=1.",
        )
    seen = found.visible
    never = int((seen["recalls"] == 0).sum())
    rate = "" if found.hit_rate is None else f", {found.hit_rate:.0%} of which found something"
    return section(
        name,
        title,
        figure(
            "Recalled most",
            f"{counted(found.queries, 'recorded query', 'recorded queries')}{rate}.",
            partial(contents.recalled, found.most_recalled),
            table=numbers(found.most_recalled, _USED),
        ),
        figure(
            "How often memories are recalled",
            f"{never:,} of {memories(len(seen), 'visible')} never answered a recorded query.",
            partial(contents.recalls, found.memories),
            table=numbers(found.never_recalled, _UNUSED),
        ),
        nothing="No memory is visible.",
    )


def map_of(found: Findings) -> Section:
    """Where the embeddings lie."""
    plane = found.plane
    points = found.points.with_columns(
        pl.Series("x", plane.points[:, 0]), pl.Series("y", plane.points[:, 1])
    )
    grouped = int(points["cluster"].is_not_null().sum())
    kinds = _of_kinds(points)
    note = "Principal components: what is far apart here is far apart; what is near may still "
    note += "differ in other directions."
    if found.unplaced:
        said = "{n} visible [memory has|memories have] no embedding, and [is|are] not on the map."
        note = f"{worded(said, found.unplaced)} {note}"
    chosen = len(points) + found.unplaced
    if found.points_of > chosen:
        note = f"A sample of {chosen:,} of {memories(found.points_of, 'visible')}. {note}"
    return section(
        "map",
        "Map of the embeddings",
        figure(
            "By kind",
            f"{memories(len(points), 'visible')}: {kinds}. The two axes hold {plane.share:.0%} "
            "of how the embeddings differ.",
            partial(contents.embedding_map, points, by="kind"),
            width=HALF if grouped else WHOLE,
        ),
        figure(
            "By cluster of near-duplicates",
            f"{grouped:,} of {memories(len(points))} are near-duplicates of another.",
            partial(contents.embedding_map, points if grouped else points.head(0), by="cluster"),
            table=numbers(_largest(points), _PLACED),
        ),
        nothing="No visible memory has a vector.",
        note=note,
    )


def _of_kinds(points: pl.DataFrame) -> str:
    """How many there are of each kind, the most first."""
    often = points["kind"].value_counts().sort(["count", "kind"], descending=[True, False])
    return ", ".join(f"{number:,} {kind}" for kind, number in often.iter_rows())


def _apart(found: Findings) -> str:
    """Which were not compared, and why."""
    return f"; left out: {', '.join(found.apart)}" if found.apart else ""


def _aged(found: Findings) -> str:
    seen = found.visible
    oldest = min(seen["happened_at"].to_list(), default=None)
    never = int((seen["recalls"] == 0).sum())
    used = (
        f"{never:,} never answered a recorded query" if found.queries else "no query was recorded"
    )
    return f"The oldest of {memories(len(seen), 'visible')} is of {day(oldest)}; {used}."


def _largest(points: pl.DataFrame) -> pl.DataFrame:
    """The clusters that have a colour of their own, by the names that the map gives them."""
    firsts = points.group_by("cluster", maintain_order=True).agg(pl.col("content").first())
    named = contents.largest_clusters(points).join(
        firsts, on="cluster", how="left", maintain_order="left"
    )
    return named.select("name", "count", "content")
