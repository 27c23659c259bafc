"""What a report is about, read of one view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lance_memory.errors import NotFoundError
from lance_memory.reporting import rows
from lance_memory.view import MemoryView

if TYPE_CHECKING:
    import polars as pl

    from lance_memory.report import Asked, Findings

__all__ = ["Asking", "Progress", "Steps", "findings"]

_VERSIONS = 5
_ANSWERS = 5

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What the report is to be about, beside the version."""

    question: str
    ref: str | None
    before: int | str | datetime | None
    sample: int
    seed: int


class Steps:
    """Tells how far it is."""

    ALL = 8

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._done = progress, 0

    def __call__(self, what: str) -> None:
        if self._progress is not None:
            self._progress(self._done, self.ALL, what)
        self._done += 1


def findings(view: MemoryView, asked: Asking, steps: Steps) -> Findings:
    """Read it all, in steps that are told."""
    import polars as pl

    from lance_memory.report import Findings

    steps("reading the memories")
    usage = view.usage()
    memories = rows.memories(view, pl.DataFrame(usage.memories))
    steps("reading the versions")
    versions = view.versions_frame()
    log = view.log()
    steps("reading the history")
    history = view.history_frame()
    steps("comparing memories")
    selection = rows.near(view)
    clusters = rows.clusters(view, selection)
    steps("placing embeddings")
    visible = memories.filter(pl.col("visible"))
    placed = rows.points(view, visible, selection, sample=asked.sample, seed=asked.seed)
    steps("following a lineage")
    start = asked.ref or _made_from_most(view)
    readable = versions.filter(pl.col("readable") & ~pl.col("upkeep"))["version"].to_list()
    earlier = asked.before if asked.before is not None else _earlier(versions, view.version)
    steps("asking over time")
    question = asked.question or _last_question(view)
    answers = _answers(view, question, readable) if question else ()
    return Findings(
        uri=view.uri,
        version=view.version,
        at=view._moment(),
        scope=view.scope,
        branch=view.branch_name,
        memories=memories,
        versions=versions,
        history=history,
        log=log,
        queries=usage.queries,
        hit_rate=usage.hit_rate,
        most_recalled=rows.with_content(view, visible.filter(pl.col("recalls") > 0), "recalls"),
        never_recalled=rows.with_content(view, visible.filter(pl.col("recalls") == 0), None),
        clusters=clusters,
        points=placed.points,
        points_of=len(visible),
        plane=placed.plane,
        unplaced=placed.unplaced,
        compared=selection.considered,
        apart=rows.apart(view, selection),
        lineage=view.lineage(start) if start else None,
        diff=view.diff(earlier) if earlier is not None else None,
        question=question if answers else "",
        answers=answers,
    )


def _made_from_most(view: MemoryView) -> str | None:
    """The visible memory that took the place of most others; None: there is none."""
    replaced = view.to_arrow(columns=["superseded_by"], states="superseded").column(0)
    counts = replaced.drop_null().value_counts().to_pylist()
    for pair in sorted(counts, key=lambda one: (-one["counts"], one["values"])):
        memory = view.find(pair["values"])
        if memory is not None and memory.visible_at(view._moment()):
            return memory.id
    return None


def _earlier(versions: pl.DataFrame, present: int) -> int | None:
    """The readable version before the newest pass, or before the newest write."""
    import polars as pl

    readable = versions.filter(pl.col("readable"))
    passes = versions.filter(pl.col("operation") == "consolidate")["version"].to_list()
    writes = versions.filter(~pl.col("upkeep"))["version"].to_list()
    for newest in (passes[-1:] or []) + (writes[-1:] or []):
        before = readable.filter(pl.col("version") < newest)["version"].to_list()
        if before and before[-1] < present:
            return int(before[-1])
    return None


def _last_question(view: MemoryView) -> str:
    """The newest recorded question of this scope that has a text."""
    return next((one.query for one in view.queries(limit=50) if one.query.strip()), "")


def _answers(view: MemoryView, question: str, readable: Sequence[int]) -> tuple[Asked, ...]:
    """What it found at five of the versions, evenly, with the first and the last."""
    from lance_memory.report import Asked
    from lance_memory.report.frames import spread

    found = []
    for version in spread(sorted(readable), _VERSIONS):
        try:
            then = view.at(version)
        except NotFoundError:  # it was cleaned up meanwhile
            continue
        found.append(Asked(at=then._moment(), result=then.search(question, k=_ANSWERS)))
    return tuple(found)
