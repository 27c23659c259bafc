"""Which memories belong together. Pure functions over positions and vectors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_memory.curate.cluster.methods import METHODS, Near
from lance_memory.curate.options import ClusterMethod
from lance_memory.facts.distinct import Apart, Facts
from lance_memory.index import Graph
from lance_memory.index import near as near_each
from lance_memory.record.unit import SLACK

__all__ = ["LARGE", "cohesion", "grouped", "near_duplicates", "windows"]

_LISTED = (32, 256)
"""Neighbours of a row that are held, at least and at most: twice a cluster's members between."""

LARGE = 20_000
"""Rows from which on they are compared within blocks."""

_BLOCK = 8_192

FactsAt: TypeAlias = Callable[[NDArray[np.int64]], Sequence[Facts]]
"""The facts of the rows at these positions."""


def grouped(labels: Sequence[Hashable]) -> list[list[int]]:
    """Positions with equal labels, groups in order of first appearance."""
    groups: dict[Hashable, list[int]] = {}
    for position, label in enumerate(labels):
        groups.setdefault(label, []).append(position)
    return list(groups.values())


def windows(times: Sequence[datetime], length: timedelta) -> list[list[int]]:
    """Positions by time window of `length` each, the first one opening at the earliest time."""
    if not times:
        return []
    start = min(times)
    by_window: dict[int, list[int]] = {}
    for position in sorted(range(len(times)), key=lambda p: times[p]):
        by_window.setdefault((times[position] - start) // length, []).append(position)
    return [by_window[number] for number in sorted(by_window)]


def cohesion(vectors: NDArray[np.float32]) -> float:
    """Mean cosine over all pairs of the unit rows float32 [n, d]; 1 for a single row."""
    n = len(vectors)
    if n < 2:
        return 1.0
    total = float(np.square(vectors.sum(axis=0, dtype=np.float64)).sum())
    own = float(np.square(vectors, dtype=np.float64).sum())
    return (total - own) / (n * (n - 1))


def near_duplicates(
    vectors: NDArray[np.float32],
    *,
    floor: float,
    max_size: int,
    method: ClusterMethod | str = ClusterMethod.GREEDY,
    facts: FactsAt | None = None,
    blocks: NDArray[np.int64] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> list[list[int]]:
    """Clusters of two or more near rows; each row is in one at most.

    Greedy: the row with the most neighbours at or above the floor becomes a centre and takes its
    free neighbours, the nearest ones first. Components and average linkage: see `methods`. Ties
    go to the lower position, so the answer depends on the input alone.

    A row's neighbours are listed up to twice `max_size`, and 256. A row whose list was cut short,
    and which is left over, looks again among those left over: n copies of one text, or n texts
    that differ in a number each, hide no pair.

    Args:
        vectors: unit rows, float32 [n, d].
        floor: cosine, -1..1.
        max_size: members of a cluster.
        method: how pairs become clusters.
        facts: asked once, for the rows that are near another: those that conflict are in no
            cluster together. By default none does.
        blocks: int64 [n], the block of each row: compared are 8 near blocks, see `index.near`.
        stop: asked now and then; what is found by then is the answer.

    Returns:
        Positions, ascending in each cluster; clusters by their first position.
    """
    k = min(max(_LISTED[0], 2 * max_size), _LISTED[1])
    copies = _copies(vectors, more_than=max_size)
    spare = np.zeros(len(vectors), np.bool_)
    for group in copies:
        spare[group[max_size:]] = True
    members = np.flatnonzero(~spare) if copies else None
    graph = near_each(vectors, k, floor=floor - SLACK, members=members, blocks=blocks, stop=stop)
    unsure = graph.full | _beside(graph, copies)
    apart = _apart(graph, spare, facts)
    free = np.ones(len(vectors), np.bool_)
    clusters = _full_copies(copies, apart, max_size, free)
    while True:
        known = Near(
            vectors=vectors,
            graph=_without_conflicts(graph, apart),
            unsure=unsure,
            wanted=min(max_size - 1, k),
            floor=floor - SLACK,
            max_size=max_size,
            apart=apart,
        )
        clusters += METHODS[ClusterMethod(method)](known, free)
        again = np.flatnonzero(free & unsure)
        if len(again) < 2 or stop():
            return sorted(map(sorted, clusters))
        graph = near_each(
            vectors,
            k,
            floor=floor - SLACK,
            members=again,
            blocks=blocks if len(again) >= LARGE else None,
            allowed=None if apart is None else apart.allowed,
            stop=stop,
        )
        unsure = graph.full


def _copies(vectors: NDArray[np.float32], *, more_than: int) -> list[NDArray[np.int64]]:
    """Positions of rows that are the same bit for bit, of groups larger than that."""
    bits = np.ascontiguousarray(vectors).view(np.uint32)
    odd = np.random.default_rng(0).integers(2**62, size=bits.shape[1], dtype=np.uint64) * 2 + 1
    hashes = [
        (bits[start : start + _BLOCK] * odd).sum(axis=1) for start in range(0, len(bits), _BLOCK)
    ]
    _, label, counts = np.unique(
        np.concatenate([*hashes, np.empty(0, np.uint64)]), return_inverse=True, return_counts=True
    )
    large = np.flatnonzero(counts[label] > more_than)
    groups = [large[places] for places in grouped(label[large].tolist())]
    same = [group[(bits[group] == bits[group[0]]).all(axis=1)] for group in groups]
    return [group for group in same if vectors[group[0]].any() and len(group) > more_than]


def _beside(graph: Graph, copies: Sequence[NDArray[np.int64]]) -> NDArray[np.bool_]:
    """The copies, some of which were not compared, and the rows that are near them."""
    beside = np.zeros(len(graph.full), np.bool_)
    for group in copies:
        beside[group] = True
    owner = np.repeat(np.arange(len(beside)), np.diff(graph.offsets))
    beside[owner[beside[graph.index]]] = True
    return beside


def _full_copies(
    copies: Sequence[NDArray[np.int64]],
    apart: Apart | None,
    max_size: int,
    free: NDArray[np.bool_],
) -> list[list[int]]:
    """Clusters of copies with the same facts, as many as are full; the last ones stay free."""
    clusters: list[list[int]] = []
    for group in copies:
        kinds = grouped(apart.alike(group).tolist()) if apart else [list(range(len(group)))]
        for places in kinds:
            rows = group[places].tolist()
            full = len(rows) - len(rows) % max_size
            clusters += [rows[i : i + max_size] for i in range(0, full, max_size)]
            free[rows[:full]] = False
    return clusters


def _apart(graph: Graph, spare: NDArray[np.bool_], facts: FactsAt | None) -> Apart | None:
    """The conflicts among the rows that are near another."""
    if facts is None:
        return None
    near = (np.diff(graph.offsets) > 0) | spare
    at = np.flatnonzero(near)
    return Apart(facts(at), at=at, of=len(near)) if len(at) else None


def _without_conflicts(graph: Graph, apart: Apart | None) -> Graph:
    """The graph without the pairs that must not be together."""
    if apart is None:
        return graph
    owner = np.repeat(np.arange(len(graph.full)), np.diff(graph.offsets))
    may = apart.pairs(owner, graph.index.astype(np.int64))
    counts = np.bincount(owner[may], minlength=len(graph.full))
    return Graph(
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        index=graph.index[may],
        similarity=graph.similarity[may],
        full=graph.full,
    )
