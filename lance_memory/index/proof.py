"""The check of a new index, made before it is installed."""

from __future__ import annotations

from dataclasses import dataclass

from lance_memory.errors import StorageError
from lance_memory.index.health import IndexInfo, IndexRecall, inspect, measure_recall
from lance_memory.storage.snapshot import Snapshot

__all__ = ["Proof", "prove"]

_QUERIES = 100

_BROKEN_BELOW = 0.6
"""Recall of an index that is wrong, not coarse. Seen: 0.43 with half of the codes missing, 0.0
with row ids of before a compaction; 0.97 and more of every sound kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a new index is, and what it recalls."""

    info: IndexInfo
    recall: IndexRecall


def prove(snapshot: Snapshot) -> Proof:
    """Search the index that `snapshot` has, and compare with an exact scan.

    Raises:
        StorageError: it finds too little to be right.
    """
    recall = measure_recall(snapshot, sample=_QUERIES)
    info = inspect(snapshot)
    if info is None or recall.recall < _BROKEN_BELOW:
        raise StorageError(
            f"the index was not installed: it finds {recall.recall:.2f} of the true neighbours, "
            f"and {_BROKEN_BELOW} is the least; build another kind, or with more sub-vectors"
        )
    return Proof(info=info, recall=recall)
