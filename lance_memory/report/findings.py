"""All that a report is about, as values: what the page is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

from lance_memory.record.memory import Scope
from lance_memory.record.results import Diff, Lineage
from lance_memory.report.points import Plane
from lance_memory.report.stories import Asked
from lance_memory.storage import LogEntry

__all__ = ["Findings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found in a store at one version and within one scope.

    Attributes:
        uri: where the store is.
        version: that was read.
        at: the moment that it is about.
        scope: that was read; nothing outside is in here.
        branch: the line of versions.
        memories: a row for each memory of the scope: `id`, `kind`, `state`, `visible`, the five
            scope levels, `happened_at`, `recalls` and `last_recalled`.
        versions: of `versions_frame`.
        history: of `history_frame`.
        log: with the manifests of consolidation passes.
        queries: recorded ones, within the scope; `hit_rate` is the share that found something.
        most_recalled: `id`, `recalls`, `content`, the most recalled first.
        never_recalled: `id`, `happened_at`, `content`: the oldest visible ones without a recall.
        clusters: of near-duplicates: `cluster`, `size`, `kind`, `cohesion`, `content`, the
            largest first.
        points: of `points_of` memories with a vector: `id`, `kind`, `cluster`, `content`, in the
            order of `plane`.
        plane: where the points are.
        unplaced: visible memories that were to have a point, and have no vector.
        compared: how many of the newest visible memories near-duplicates were looked for among.
        apart: what the visible memories are that were not compared, each with its number.
        lineage: of one memory; None: none has any.
        diff: of two versions; None: there is but one.
        question: that was asked at several versions; "" if none was.
        answers: to the question, oldest version first.
    """

    uri: str
    version: int
    at: datetime
    scope: Scope
    branch: str
    memories: pl.DataFrame
    versions: pl.DataFrame
    history: pl.DataFrame
    log: Sequence[LogEntry]
    queries: int
    hit_rate: float | None
    most_recalled: pl.DataFrame
    never_recalled: pl.DataFrame
    clusters: pl.DataFrame
    points: pl.DataFrame
    points_of: int
    plane: Plane
    compared: int
    unplaced: int = 0
    apart: tuple[str, ...] = ()
    lineage: Lineage | None = None
    diff: Diff | None = None
    question: str = ""
    answers: tuple[Asked, ...] = field(default=())

    @property
    def visible(self) -> pl.DataFrame:
        """The memories that are recalled."""
        return self.memories.filter(pl.col("visible"))
