"""One memory's lineage, two versions, one question over time."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import polars as pl

from lance_memory.record.results import Lineage
from lance_memory.report import stories
from lance_memory.report.charts import stories as charts
from lance_memory.report.findings import Findings
from lance_memory.report.section import WHOLE, Section, figure, memories, numbers, section
from lance_memory.report.shown import aged, shown
from lance_memory.report.stories import Asked
from lance_memory.wording import counted

__all__ = ["difference", "lineage", "travel"]

_TREE = {
    "direction": "Is",
    "relation": "By",
    "state": "State",
    "at": "When (UTC)",
    "content": "Memory",
    "id": "Id",
}
_CHANGES = {
    "change": "Change",
    "kind": "Kind",
    "state": "State now",
    "content": "Memory",
    "columns": "What changed",
}
_LETTERS = {
    "letter": "Letter",
    "content": "Memory",
    "first": "First version",
    "last": "Last version",
    "best": "Best rank",
}


def lineage(found: Findings) -> Section:
    """What a memory was made from, and what took its place."""
    name, title, tree = "lineage", "Lineage of one memory", found.lineage
    if tree is None:
        nothing = "No memory here was made from others, or took the place of one."
        return section(name, title, nothing=nothing)
    told = stories.lineage(tree)
    drawn = figure(
        "Sources and successors",
        f"“{shown(tree.memory.content, 110)}” {_came_from(tree)}{_replaced(tree)}.",
        partial(charts.lineage, told),
        width=WHOLE,
        table=numbers(told, _TREE),
    )
    return section(name, title, drawn)


def difference(found: Findings) -> Section:
    """What an earlier version has differently."""
    name, title, diff = "diff", "Two versions compared", found.diff
    if diff is None:
        return section(name, title, nothing="There is no earlier version that can be read.")
    told = stories.difference(diff)
    counts = f"{len(diff.inserted):,} inserted, {len(diff.updated):,} updated, "
    counts += f"{len(diff.removed):,} deleted."
    between = f"Between version {diff.before} and version {diff.after}"
    drawn = figure(
        f"Version {diff.before} and version {diff.after}",
        f"{between}: {counts}",
        partial(charts.difference, told),
        width=WHOLE,
        table=numbers(told, _CHANGES),
    )
    return section(name, title, drawn, nothing=f"{between} nothing changed.")


def travel(found: Findings) -> Section:
    """What one question found at several versions."""
    name, title = "travel", "One question over time"
    if not found.question:
        return section(
            name, title, nothing="No question was asked: give one with --question, or question=."
        )
    told = stories.time_travel(found.answers)
    asked = f"“{shown(found.question, 160)}”"
    tried = counted(len(found.answers), "version")
    drawn = figure(
        asked,
        f"Asked of {tried}{_apart(found.answers)}: {_turned(found.answers)}. A letter is "
        "a memory; the table names them.",
        partial(charts.time_travel, told),
        width=WHOLE,
        table=numbers(_named(told), _LETTERS),
        open=True,
    )
    return section(name, title, drawn, nothing=f"{asked} found nothing at {tried}.")


def _apart(answers: tuple[Asked, ...]) -> str:
    moments = [one.at for one in answers]
    return f", {aged(max(moments) - min(moments))} apart" if len(moments) > 1 else ""


def _turned(answers: tuple[Asked, ...]) -> str:
    """How often the best answer said something else, and how often only its memory was another."""
    best = [one.result.hits[0].memory for one in answers if one.result.hits]
    texts = sum(a.content != b.content for a, b in pairwise(best))
    taken = sum(a.id != b.id and a.content == b.content for a, b in pairwise(best))
    said = f"what the best answer says {f'changed {_times(texts)}' if texts else 'never changed'}"
    if taken:
        joined = "and" if texts else "though"
        said += f", {joined} {_times(taken)} another memory that says the same took its place"
    return said


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def _came_from(tree: Lineage) -> str:
    """What stands below a memory: what it was made from, and what it took the place of."""
    made = sum(node.relation == "consolidates" for node in tree.sources)
    said = [f"was made from {memories(made)}"] if made else []
    if len(tree.sources) > made:
        said.append(f"took the place of {memories(len(tree.sources) - made)}")
    if not said:
        return "was made from no other memory"
    more = sum(1 for node in tree.sources for _ in node) - len(tree.sources)
    behind = f", with {more:,} more behind {'it' if len(tree.sources) == 1 else 'them'}"
    return f"{' and '.join(said)}, below it{behind if more else ''}"


def _replaced(tree: Lineage) -> str:
    """What stands above it."""
    after = sum(1 for node in tree.successors for _ in node)
    return f"; {memories(after)} took its place, above it" if after else ""


def _named(told: pl.DataFrame) -> pl.DataFrame:
    """What each letter stands for, and where it was found."""
    return told.group_by("letter", maintain_order=True).agg(
        pl.col("content").first(),
        pl.col("version").min().cast(pl.String).alias("first"),
        pl.col("version").max().cast(pl.String).alias("last"),
        pl.col("rank").min().alias("best"),
    )
