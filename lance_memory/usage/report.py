"""What the recorded queries say of a store: its hit rate, and how often each memory answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.record.memory import Scope
from lance_memory.storage import Snapshot
from lance_memory.usage.counts import RECALLS, recalls
from lance_memory.usage.recorder import RecordingStatus

__all__ = ["Usage", "measured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The use of a store's memories, as far as queries were recorded.

    Attributes:
        version: the version whose memories are listed.
        scope: what the queries were kept to that are counted here.
        queries: how many; further pages of a query are not counted again.
        without_hits: how many of them found nothing.
        mean_hits: hits of a query on average, of its first page.
        since: when the oldest of them was asked; None: there is none.
        memories: a row for each memory, the most recalled first: `id` (string), `recalls` (int64,
            0 for never), `last_recalled` (timestamp[us, UTC]), `best_rank` (int64, from 1),
            `mean_rank` and `mean_score` (float64); the last four are null for never.
        recording: how the recording through this handle goes; None where it does not record.
    """

    version: int
    scope: Scope
    queries: int
    without_hits: int
    mean_hits: float
    since: datetime | None
    memories: pa.Table = field(compare=False)
    recording: RecordingStatus | None = None

    @property
    def never_recalled(self) -> list[str]:
        """The ids of the memories that answered no recorded query."""
        rows = self.memories.filter(pc.equal(self.memories["recalls"], 0))
        found: list[str] = rows["id"].to_pylist()
        return found

    @property
    def hit_rate(self) -> float | None:
        """The share of the queries that found something; None without any."""
        return 1.0 - self.without_hits / self.queries if self.queries else None


def measured(
    snapshot: Snapshot,
    predicate: str | None,
    queries: pa.Table,
    *,
    scope: Scope,
    recording: RecordingStatus | None,
) -> Usage:
    """Count.

    Args:
        snapshot: has the memories.
        predicate: which memories to list.
        queries: the rows of all queries that count as recalls, with their scope levels.
        scope: of the queries that the hit rate is about.
        recording: to hand on.
    """
    asked = queries.filter(pc.equal(queries["offset"], 0))
    for level, name in scope.given().items():
        asked = asked.filter(pc.equal(asked[level], name))
    hits = pc.list_value_length(asked["memory_ids"]).to_numpy()
    return Usage(
        version=snapshot.version,
        scope=scope,
        queries=len(asked),
        without_hits=int(np.count_nonzero(hits == 0)),
        mean_hits=float(hits.mean()) if len(hits) else 0.0,
        since=pc.min(asked["at"]).as_py(),
        memories=_memories(snapshot.scan(predicate, columns=["id"]), recalls(queries)),
        recording=recording,
    )


def _memories(rows: pa.Table, found: pa.Table) -> pa.Table:
    joined = rows.join(found, "id", join_type="left outer")
    counted = pc.fill_null(joined["recalls"], 0)
    joined = joined.set_column(joined.schema.get_field_index("recalls"), "recalls", counted)
    order = [("recalls", "descending"), ("last_recalled", "descending"), ("id", "ascending")]
    return joined.select(RECALLS.names).cast(RECALLS).sort_by(order)
