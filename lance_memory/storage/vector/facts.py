"""What the vector index of a snapshot is: its kind, sizes, coverage, and what it stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lance_memory.record.filters import present
from lance_memory.record.rows import EMBEDDING
from lance_memory.storage.described import VECTOR_INDEX, covered, described, segments
from lance_memory.storage.engine import translated
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.vector.notes import notes_in

if TYPE_CHECKING:
    from lance import Index

__all__ = [
    "IndexFacts",
    "describe",
    "has_vector_index",
    "row_ids_of",
    "segments_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFacts:
    """The vector index of one version, as the engine tells of it.

    `rows` are the vectors that it covers, `unindexed_rows` those that a search scans besides it.
    `sizes` are the entries of each partition of the largest segment: a fold adds a small one.
    `notes` are what `install` was given.
    """

    kind: str
    metric: str
    partitions: int
    sub_vectors: int | None
    bits: int | None
    rows: int
    unindexed_rows: int
    sizes: tuple[int, ...]
    segments: int
    bytes: int
    created_at: datetime | None
    notes: Mapping[str, str]


def has_vector_index(snapshot: Snapshot) -> bool:
    """Whether vectors are searched through an index."""
    return _description(snapshot) is not None


def describe(snapshot: Snapshot) -> IndexFacts | None:
    """The vector index, or None where vectors are searched exactly."""
    found = _description(snapshot)
    if found is None:
        return None
    with translated("read index statistics"):
        statistics = snapshot.dataset.stats.index_stats(VECTOR_INDEX)
        details = found.details
    parts = statistics["segments"]
    largest = max(([int(p["size"]) for p in part["partitions"]] for part in parts), key=sum)
    compression = details.get("compression") or {}
    uncovered = _uncovered(snapshot, found)
    every = snapshot.count(present(EMBEDDING))
    return IndexFacts(
        kind=str(statistics["index_type"]),
        metric=str(parts[0]["metric_type"]).lower(),
        partitions=len(largest),
        sub_vectors=compression.get("num_sub_vectors"),
        bits=compression.get("num_bits"),
        rows=every - uncovered,
        unindexed_rows=uncovered,
        sizes=tuple(largest),
        segments=len(parts),
        bytes=int(found.total_size_bytes or 0),
        created_at=min((s.created_at for s in found.segments if s.created_at), default=None),
        notes=notes_in(details.get("runtime_hints") or {}),
    )


def segments_of(snapshot: Snapshot) -> list[Index]:
    """The segments of the index, in the form that a commit removes them by."""
    found = _description(snapshot)
    return segments(found) if found else []


def row_ids_of(snapshot: Snapshot, folder: str) -> NDArray[np.uint64]:
    """The row ids that a segment holds, uint64 [n], partition by partition.

    Args:
        snapshot: of the table, which knows how to open its files.
        folder: the segment's own, `<home>/_indices/<uuid>`; it need not be committed.
    """
    from lance.file import LanceFileReader  # after `engine` has set what lance reads on import

    with translated("read the row ids of the index"):
        reader = LanceFileReader(
            f"{folder}/auxiliary.idx",
            storage_options=snapshot.dataset.initial_storage_options,
            columns=["_rowid"],
        )
        ids: NDArray[np.uint64] = reader.read_all().to_table()["_rowid"].to_numpy()
    return ids


def _description(snapshot: Snapshot) -> Any:
    return described(snapshot.dataset).get(VECTOR_INDEX)


def _uncovered(snapshot: Snapshot, found: Any) -> int:
    """Vectors in fragments that no segment covers; the engine counts rows without one too."""
    with translated("count the rows that are not indexed"):
        return sum(
            int(snapshot.fragment(i).count_rows(present(EMBEDDING)))
            for i in snapshot.fragment_ids - covered(found)
        )
