"""Whether the vector index still does what it is for: coverage, balance, recall, and advice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.index.sample import drawn
from lance_memory.index.topk import TopK
from lance_memory.record.arguments import whole
from lance_memory.storage.ranking.nearest import by_index
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.vector.facts import IndexFacts, describe, has_vector_index
from lance_memory.storage.vector.rows import count_vectors, vectors

__all__ = ["IndexInfo", "IndexRecall", "inspect", "measure_recall", "proposal"]

_SAME = 1e-5
"""Two cosines that differ by less are one: the engine and numpy add up in different orders."""

RECALL_FLOOR = 0.95
"""A healthy index recalls 0.99 and more of 10 at the store's probes and refine factor."""

IMBALANCE_CEILING = 4.0
"""k-means over clustered text embeddings gives 1.1 to 2; at 4 a search reads four times the
rows that equal partitions would make it read."""

UNINDEXED_CEILING = 0.2
"""A search scans these rows besides the index; a fifth of them costs more than the index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexInfo:
    """The vector index of one version.

    `rows` of the vectors are in it; the `unindexed_rows` are found all the same, by a scan.
    `imbalance` is the partitions' number times the sum of the squares of their shares: 1 when all
    are equal. `trainer` and `reason` say who trained it and why; empty where another tool did.
    `proposal` says what should be done about it, or is None. `bytes` is its size on disk.
    """

    kind: str
    metric: str
    trainer: str
    reason: str
    partitions: int
    sub_vectors: int | None
    bits: int | None
    rows: int
    unindexed_rows: int
    coverage: float
    imbalance: float
    segments: int
    bytes: int
    created_at: datetime | None
    proposal: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRecall:
    """How many of the true `k` nearest a vector search finds, on average and at worst.

    Measured with `sample` stored vectors as queries, each looking for its `k` nearest others, as
    deep as a search looks, and through the index also where a search would do without it.
    `exact`: there is no index, so nothing is missed.
    """

    k: int
    sample: int
    recall: float
    worst: float
    exact: bool
    proposal: str | None


def inspect(snapshot: Snapshot) -> IndexInfo | None:
    """The vector index, or None where vectors are searched exactly."""
    facts = describe(snapshot)
    if facts is None:
        return None
    every = facts.rows + facts.unindexed_rows
    return IndexInfo(
        kind=facts.kind,
        metric=facts.metric,
        trainer=facts.notes.get("trainer", ""),
        reason=facts.notes.get("reason", ""),
        partitions=facts.partitions,
        sub_vectors=facts.sub_vectors,
        bits=facts.bits,
        rows=facts.rows,
        unindexed_rows=facts.unindexed_rows,
        coverage=facts.rows / every if every else 1.0,
        imbalance=_imbalance(facts),
        segments=facts.segments,
        bytes=facts.bytes,
        created_at=facts.created_at,
        proposal=proposal(facts),
    )


def measure_recall(
    snapshot: Snapshot,
    *,
    k: int = 10,
    sample: int = 200,
    seed: int = 0,
    predicate: str | None = None,
) -> IndexRecall:
    """Compare what the index finds with what an exact scan finds.

    A neighbour counts as found when one as near was found, so ties cost nothing.

    Args:
        snapshot: what to search.
        k: neighbours of each query, the query itself not counted; fewer where there are fewer.
        sample: queries; fewer where there are fewer rows.
        seed: of the choice of queries.
        predicate: only these rows are queries and neighbours.

    Raises:
        InvalidInputError: `k` or `sample` is below 1.
    """
    whole("k", k, least=1)
    whole("sample", sample, least=1)
    count = count_vectors(snapshot, predicate)
    asked, nearest = min(sample, count), min(k, count - 1)
    indexed = has_vector_index(snapshot)
    if nearest < 1 or not indexed:
        return IndexRecall(
            k=k, sample=asked, recall=1.0, worst=1.0, exact=not indexed, proposal=None
        )
    queries = drawn(snapshot, asked, seed=seed, predicate=predicate)
    queries = queries[np.any(queries != 0, axis=1)]  # zeros, another tool's, ask nothing
    floors = _floors(snapshot, predicate, queries, nearest) - _SAME
    share = count / snapshot.count()

    def found(query: NDArray[np.float32]) -> pa.Table:
        return by_index(snapshot, query, k=nearest + 1, predicate=predicate, share=share)

    shares = [
        _share(found(query), floor, nearest) for query, floor in zip(queries, floors, strict=True)
    ]
    recall = float(np.mean(shares))
    return IndexRecall(
        k=k,
        sample=len(queries),
        recall=recall,
        worst=min(shares),
        exact=False,
        proposal=_of_recall(recall, nearest),
    )


def proposal(facts: IndexFacts) -> str | None:
    """What should be done about the index, judged by its sizes; None: nothing.

    Partitions that grow too large or too small are split and joined by the engine as it folds.
    """
    every = facts.rows + facts.unindexed_rows
    share = facts.unindexed_rows / every if every else 0.0
    imbalance = _imbalance(facts)
    if share > UNINDEXED_CEILING:
        return f"fold: {share:.0%} of the vectors are not in the index; run `lmem optimize`"
    if imbalance > IMBALANCE_CEILING:
        return (
            f"retrain: the partitions are uneven ({imbalance:.1f}, even is 1); "
            "run `lmem index build`"
        )
    return None


def _of_recall(recall: float, k: int) -> str | None:
    if recall >= RECALL_FLOOR:
        return None
    return (
        f"retrain: recall@{k} is {recall:.2f}, and {RECALL_FLOOR} or more is healthy; "
        "run `lmem index build`"
    )


def _imbalance(facts: IndexFacts) -> float:
    total = sum(facts.sizes)
    return len(facts.sizes) * sum((s / total) ** 2 for s in facts.sizes) if total else 1.0


def _floors(
    snapshot: Snapshot, predicate: str | None, queries: NDArray[np.float32], k: int
) -> NDArray[np.float32]:
    """The cosine of each query's k-th nearest other: a query is its own nearest.

    On the CPU also where a GPU answers: a process that only asked how good its index is should
    not find itself with a context of CUDA, after which it cannot fork.
    """
    search = TopK(queries, k + 1, device="cpu")
    for addresses, rows in vectors(snapshot, predicate):
        search.see(addresses.view(np.int64), rows)
    cosines, _ = search.found()
    floors: NDArray[np.float32] = cosines[:, k]
    return floors


def _share(rows: pa.Table, floor: float, k: int) -> float:
    """The share of the k nearest others among the rows; the query itself is found besides."""
    near = 1 - rows["_distance"].to_numpy()
    return max(0, int(np.count_nonzero(near >= floor)) - 1) / k
