"""Frames of a view's memories: read in narrow columns, contents of those alone that are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_memory.curate.cluster.select import Selection, select
from lance_memory.curate.options import ConsolidateOptions
from lance_memory.record.filters import (
    FIRST_HAND,
    all_of,
    kept_by_name,
    live,
    none_of,
    still_said,
)
from lance_memory.record.memory import SCOPE_LEVELS, Scope
from lance_memory.view import MemoryView
from lance_memory.wording import worded

if TYPE_CHECKING:
    import polars as pl

    from lance_memory.report import Plane

__all__ = ["clusters", "memories", "near", "points", "with_content"]

_COMPARED = 20_000
"""Visible memories, the newest, among which near-duplicates are looked for."""

_LISTED = 25

_APART = {
    "{n} [snapshot|snapshots] of others, from distillation": none_of(FIRST_HAND),
    "{n} [procedure or profile fact|procedures and profile facts], found by name": kept_by_name(),
    "{n} [message|messages] of hibernating sessions": still_said(),
}
"""What no pass looks at, though it is visible: in words, and the predicate of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The memories of the map.

    Attributes:
        points: `id`, `kind`, `cluster`, `content`, in the order of `plane`.
        plane: where they are.
        unplaced: how many were chosen that have no vector.
    """

    points: pl.DataFrame
    plane: Plane
    unplaced: int


def memories(view: MemoryView, used: pl.DataFrame) -> pl.DataFrame:
    """Narrow columns of every memory of the scope, and how often each was recalled."""
    import polars as pl

    columns = ["id", "kind", "state", *SCOPE_LEVELS, "created_at", "event_at"]
    found = pl.DataFrame(view.to_arrow(columns=columns))
    # What reads show by default is what the use of memories is told of.
    counts = used.select("id", "recalls", "last_recalled", pl.lit(value=True).alias("visible"))
    return (
        found.join(counts, on="id", how="left")
        .with_columns(
            pl.col("recalls").fill_null(0),
            pl.col("visible").fill_null(value=False),
            pl.coalesce("event_at", "created_at").alias("happened_at"),
        )
        .sort("id")
    )


def near(view: MemoryView) -> Selection:
    """Clusters of near-duplicates, as a consolidation pass with its default options finds them."""
    return select(view._snapshot(), _comparable(view), ConsolidateOptions(), rows=_COMPARED)


def apart(view: MemoryView, selection: Selection) -> tuple[str, ...]:
    """What the visible memories are that are not among the compared ones, in words."""
    seen, snapshot = view._predicate({}), view._snapshot()
    told, rest = [], [seen]
    for what, predicate in _APART.items():
        number = snapshot.count(all_of(*rest, predicate))
        rest.append(none_of(predicate))
        if number:
            told.append(worded(what, number))
    older = snapshot.count(_comparable(view)) - selection.considered
    if older > 0:
        told.append(worded(f"{{n}} older than the newest {selection.considered:,}", older))
    return tuple(told)


def _comparable(view: MemoryView) -> str | None:
    """The memories that a pass with its default options looks at."""
    kept = (FIRST_HAND, none_of(kept_by_name()), none_of(still_said()))
    return all_of(view._predicate({}), live(view._moment()), *kept)


def clusters(view: MemoryView, selection: Selection) -> pl.DataFrame:
    """The largest first, each with its first memory; contents of those that are shown."""
    import polars as pl

    from lance_memory.report.shown import shown

    order = sorted(selection.clusters, key=lambda one: (-len(one.ids), one.ids))
    firsts = _contents(view, [one.ids[0] for one in order[:_LISTED]])
    rows = [
        {
            "cluster": number,
            "size": len(one.ids),
            "kind": firsts.get(one.ids[0], ("", ""))[0],
            "cohesion": one.cohesion,
            "content": shown(firsts.get(one.ids[0], ("", ""))[1], 160),
        }
        for number, one in enumerate(order)
    ]
    numbers = {"cluster": pl.Int64, "size": pl.Int64, "kind": pl.String, "cohesion": pl.Float64}
    return pl.DataFrame(rows, schema={**numbers, "content": pl.String})


def points(
    view: MemoryView, visible: pl.DataFrame, selection: Selection, *, sample: int, seed: int
) -> Placed:
    """A sample of the visible memories, and the places of those that have a vector."""
    import polars as pl

    from lance_memory.report import plane
    from lance_memory.report.shown import shown

    ids = visible["id"].to_list()
    if len(ids) > sample:
        chosen = np.random.default_rng(seed).choice(len(ids), sample, replace=False)
        ids = [ids[i] for i in sorted(chosen.tolist())]
    vectors = view.embeddings(ids)
    there = [identifier for identifier in ids if identifier in vectors]
    order = sorted(selection.clusters, key=lambda one: (-len(one.ids), one.ids))
    cluster_of = {identifier: n for n, one in enumerate(order) for identifier in one.ids}
    told = _contents(view, there)
    frame = pl.DataFrame(
        {
            "id": there,
            "kind": [told[i][0] for i in there],
            "cluster": [cluster_of.get(i) for i in there],
            "content": [shown(told[i][1], 160) for i in there],
        },
        schema={"id": pl.String, "kind": pl.String, "cluster": pl.Int64, "content": pl.String},
    )
    rows = np.stack([vectors[i] for i in there]) if there else np.zeros((0, 2), np.float32)
    return Placed(points=frame, plane=plane(rows), unplaced=len(ids) - len(there))


def _contents(view: MemoryView, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Kind and content of memories of this scope, by id."""
    rows = view._snapshot().by_ids(list(ids), columns=["id", *SCOPE_LEVELS, "kind", "content"])
    return {
        row["id"]: (row["kind"], row["content"])
        for row in rows.to_pylist()
        if view.scope.holds(Scope(**{level: row[level] for level in SCOPE_LEVELS}))
    }


def with_content(view: MemoryView, rows: pl.DataFrame, most: str | None) -> pl.DataFrame:
    """The first rows by how often, or by how long ago, and what they say."""
    import polars as pl

    from lance_memory.report.shown import shown

    by = ["happened_at", "id"] if most is None else [most, "id"]
    order = rows.sort(by, descending=[most is not None, False])
    # Of the rows alone that a table shows; how many there are is told elsewhere.
    first = order.head(_LISTED).select("id", "recalls", "happened_at")
    told = _contents(view, first["id"].to_list())
    texts = [shown(told.get(i, ("", ""))[1], 160) for i in first["id"].to_list()]
    return first.with_columns(pl.Series("content", texts, dtype=pl.String))
