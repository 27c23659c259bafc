"""Whether the vector index still does what it is for: coverage, balance, recall, and advice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from lance_memory.errors import InvalidInputError
from lance_memory.index.knn import top_k
from lance_memory.record.filters import all_of, present
from lance_memory.record.rows import EMBEDDING
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.vector_facts import IndexFacts, describe, has_vector_index
from lance_memory.storage.vector_probe import similarities

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
    if k < 1 or sample < 1:
        raise InvalidInputError(f"k={k}, sample={sample}; both are 1 or more")
    wanted = all_of(predicate, present(EMBEDDING))
    count = snapshot.count(wanted)
    asked, nearest = min(sample, count), min(k, count - 1)
    indexed = has_vector_index(snapshot)
    if nearest < 1 or not indexed:
        return IndexRecall(
            k=k, sample=asked, recall=1.0, worst=1.0, exact=not indexed, proposal=None
        )
    queries = _drawn(snapshot, wanted, count, asked, seed)
    floors = _floors(snapshot, wanted, queries, nearest) - _SAME
    share = count / max(1, snapshot.count())
    shares = [
        _found(
            similarities(snapshot, query, k=nearest + 1, predicate=predicate, share=share),
            floor,
            nearest,
        )
        for query, floor in zip(queries, floors, strict=True)
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


def _batches(snapshot: Snapshot, wanted: str | None) -> Iterator[NDArray[np.float32]]:
    width = snapshot.schema.field(EMBEDDING).type.list_size
    for batch in snapshot.batches(wanted, columns=[EMBEDDING], batch_size=8_192):
        yield batch[EMBEDDING].flatten().to_numpy(zero_copy_only=False).reshape(-1, width)


def _drawn(
    snapshot: Snapshot, wanted: str | None, count: int, asked: int, seed: int
) -> NDArray[np.float32]:
    """So many of the vectors, at random and each once."""
    places = np.sort(np.random.default_rng(seed).choice(count, asked, replace=False))
    taken, start = [], 0
    for rows in _batches(snapshot, wanted):
        here = places[(places >= start) & (places < start + len(rows))] - start
        taken.append(rows[here])
        start += len(rows)
    drawn = np.concatenate(taken)
    return drawn[np.any(drawn != 0, axis=1)]  # zeros, which only another tool writes, ask nothing


def _floors(
    snapshot: Snapshot, wanted: str | None, queries: NDArray[np.float32], k: int
) -> NDArray[np.float32]:
    """The cosine of each query's k-th nearest other: a query is its own nearest."""
    best = np.full((len(queries), k + 1), -np.inf, np.float32)
    for rows in _batches(snapshot, wanted):
        found, _ = top_k(queries, rows, k + 1)
        best = -np.sort(-np.concatenate([best, found], axis=1), axis=1)[:, : k + 1]
    floors: NDArray[np.float32] = best[:, k]
    return floors


def _found(near: NDArray[np.float32], floor: float, k: int) -> float:
    """The share of the k nearest others that were found; the query itself is found besides."""
    return max(0, int(np.count_nonzero(near >= floor)) - 1) / k
