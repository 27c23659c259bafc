"""Which memories belong together. Pure functions over positions and vectors."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["cohesion", "grouped", "near_duplicates", "unit", "windows"]

_BLOCK = 2_048
_FEW = 256
_SLACK = 1e-6  # equal texts give 0.9999999 as often as 1


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


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length one, float32 [n, d]; rows of zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = np.divide(
        vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0
    )
    return scaled


def cohesion(vectors: NDArray[np.float32]) -> float:
    """Mean cosine over all pairs of the unit rows float32 [n, d]; 1 for a single row."""
    n = len(vectors)
    if n < 2:
        return 1.0
    total = float(np.square(vectors.sum(axis=0, dtype=np.float64)).sum())
    own = float(np.square(vectors, dtype=np.float64).sum())
    return (total - own) / (n * (n - 1))


def near_duplicates(
    vectors: NDArray[np.float32], *, floor: float, max_size: int
) -> list[list[int]]:
    """Greedy near-duplicate clusters of two members or more; each row is in one at most.

    The row with the most neighbours at or above the cosine `floor` becomes a centre and takes
    its free neighbours, the nearest ones first, up to `max_size` members; then the next row.
    Ties go to the lower position, so the answer depends on the input alone.

    Args:
        vectors: unit rows, float32 [n, d].
        floor: cosine, -1..1.
        max_size: members of a cluster, centre included.

    Returns:
        Positions, ascending in each cluster; clusters by their first position.
    """
    counts, kept = _neighbourhoods(vectors, floor)
    order = np.lexsort((np.arange(len(vectors)), -counts)).tolist()
    free = np.ones(len(vectors), dtype=np.bool_)
    clusters = []
    for centre in order:
        if not free[centre] or not counts[centre]:
            continue
        near, cosines = kept.get(centre) or _near(vectors, centre, floor)
        open_ones = free[near]
        near, cosines = near[open_ones], cosines[open_ones]
        nearest = near[np.lexsort((near, -cosines))][: max_size - 1]
        if len(nearest):
            members = sorted([centre, *nearest.tolist()])
            free[members] = False
            clusters.append(members)
    return sorted(clusters)


Near: TypeAlias = tuple[NDArray[np.intp], NDArray[np.float32]]


def _neighbourhoods(
    vectors: NDArray[np.float32], floor: float
) -> tuple[NDArray[np.intp], dict[int, Near]]:
    """How many others are near each row, and which, where they are few.

    One matrix product a block. A row with many neighbours (n copies of one text have n² pairs)
    is looked at again if it becomes a centre, so memory stays within `_FEW` pairs a row.
    """
    counts = np.zeros(len(vectors), dtype=np.intp)
    kept: dict[int, Near] = {}
    for start in range(0, len(vectors), _BLOCK):
        cosines = vectors[start : start + _BLOCK] @ vectors.T
        for row, line in enumerate(cosines, start=start):
            near, values = _above(line, row, floor)
            counts[row] = len(near)
            if 0 < len(near) <= _FEW:
                kept[row] = (near, values)
    return counts, kept


def _near(vectors: NDArray[np.float32], row: int, floor: float) -> Near:
    """The other rows with a cosine of at least `floor` to this one, and these cosines."""
    return _above(vectors @ vectors[row], row, floor)


def _above(cosines: NDArray[np.float32], row: int, floor: float) -> Near:
    cosines[row] = -2.0
    near = np.flatnonzero(cosines >= np.float32(floor - _SLACK))
    return near, cosines[near]
