"""From recorded queries to what they say of each memory. Pure functions over Arrow tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.record.decay import Uses
from lance_memory.record.rows import one_array

__all__ = ["COUNTED", "RECALLS", "recalls", "uses"]

COUNTED = ("at", "offset", "memory_ids", "scores")
"""The columns of recorded queries that `recalls` looks at."""

RECALLS = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("recalls", pa.int64()),
        pa.field("last_recalled", pa.timestamp("us", "UTC")),
        pa.field("best_rank", pa.int64()),
        pa.field("mean_rank", pa.float64()),
        pa.field("mean_score", pa.float64()),
    ]
)


def recalls(queries: pa.Table) -> pa.Table:
    """Of each memory that was among the hits, as `RECALLS` says; ranks count from 1."""
    lists = one_array(queries["memory_ids"])
    parents = pc.list_parent_indices(lists)
    sizes = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.arange(len(parents)) - starts
    skipped = queries["offset"].take(parents).to_numpy()
    hits = pa.table(
        {
            "id": pc.list_flatten(lists),
            "at": queries["at"].take(parents),
            "rank": pa.array(skipped + places + 1, pa.int64()),
            "score": pc.list_flatten(one_array(queries["scores"])),
        }
    )
    found = hits.group_by("id").aggregate(
        [("at", "count"), ("at", "max"), ("rank", "min"), ("rank", "mean"), ("score", "mean")]
    )
    names = ["id", "at_count", "at_max", "rank_min", "rank_mean", "score_mean"]
    return found.select(names).rename_columns(RECALLS.names).cast(RECALLS)


def uses(found: pa.Table) -> Uses:
    """The same for `record.decay`."""
    ids = found["id"].to_pylist()
    last = found["last_recalled"].cast(pa.timestamp("us")).to_numpy().astype("datetime64[us]")
    return Uses(
        places=dict(zip(ids, range(len(ids)), strict=True)),
        recalls=np.append(found["recalls"].to_numpy().astype(np.float64), 0.0),
        last=np.append(last, np.zeros(1, "datetime64[us]")),
    )
