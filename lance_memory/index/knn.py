"""The exact nearest neighbours of every row: matrix products in blocks, on the CPU or on CUDA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_memory.errors import InvalidInputError
from lance_memory.index.topk import Scored, TopK
from lance_memory.record.unit import unit

__all__ = ["Graph", "near"]

_REACH = 8
"""Blocks that a row is compared with. At 30k x 384 over k-means blocks, 8 find every neighbour
among 10 (recall 1.000) in a sixth of the time of all pairs, and 4 find 0.989."""

_OWN, _SEEN = 8_192, 8_192
"""Rows whose neighbours are looked for at a time, and rows that they are compared with at a time:
25 MB of 384 dimensions."""

_ASKED = 1_024
"""The first of them where it is asked which may be neighbours: 8 million answers at a time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """Which rows are near which, nearest first.

    Attributes:
        offsets: int64 [n + 1]; the neighbours of row i are `index[offsets[i]:offsets[i + 1]]`.
        index: int32 [p].
        similarity: cosine, float32 [p].
        full: bool [n]; the row has k neighbours, so there may be more.
    """

    offsets: NDArray[np.int64]
    index: NDArray[np.int32]
    similarity: NDArray[np.float32]
    full: NDArray[np.bool_]


Allowed: TypeAlias = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
"""Which of the rows [a] and rows [b] may be neighbours, bool [a, b]."""


def near(
    rows: NDArray[np.float32],
    k: int,
    *,
    floor: float,
    members: NDArray[np.int64] | None = None,
    blocks: NDArray[np.integer[Any]] | None = None,
    allowed: Allowed | None = None,
    stop: Callable[[], bool] = lambda: False,
    device: str | None = None,
) -> Graph:
    """The k nearest others of each row with a cosine of at least `floor`, as a sparse graph.

    Beside the rows it holds the graph and some 100 MB.

    Args:
        rows: float32 [n, d], of any length but zero.
        k: how many at most.
        floor: the least cosine.
        members: int64 [m], the rows that are compared, each once; the others have no
            neighbours. By default all.
        blocks: int [n], the block of each row, such as its partition in an index. Rows are then
            compared with those of the 8 nearest blocks only: quicker, and nearly exact where
            blocks are k-means cells. By default with all.
        allowed: asked which rows may be neighbours; by default all may.
        stop: asked between blocks of rows; the rows after that have no neighbours.
        device: as for `TopK`.

    Raises:
        InvalidInputError: as `TopK`; or `blocks` of another length.
    """
    if rows.ndim != 2 or k < 1 or (blocks is not None and blocks.shape != (len(rows),)):
        raise InvalidInputError(
            f"neighbours among rows {rows.shape} with k={k} and blocks "
            f"{None if blocks is None else blocks.shape}; it takes [n, d], k from 1, and [n]"
        )
    chosen = np.arange(len(rows), dtype=np.int64) if members is None else members
    parts = []
    for own, candidates in _compared(rows, chosen, blocks, _OWN if allowed is None else _ASKED):
        if stop():
            break
        parts.append(_listed(rows, own, candidates, k, floor=floor, allowed=allowed, device=device))
    return _graph(len(rows), k, parts)


_Lists: TypeAlias = tuple[
    NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]
]
"""Rows [m], how many neighbours each has [m], and those and their cosines, end to end."""


def _listed(
    rows: NDArray[np.float32],
    own: NDArray[np.int64],
    candidates: Sequence[NDArray[np.int64]],
    k: int,
    *,
    floor: float,
    allowed: Allowed | None,
    device: str | None,
) -> _Lists:
    """The neighbours of `own` among the candidates."""
    count = sum(map(len, candidates))
    search = TopK(rows[own], min(k + 1, count), floor=floor, device=device)
    for some in candidates:
        for start in range(0, len(some), _SEEN):
            part = some[start : start + _SEEN]
            search.see(part, rows[part], allowed=allowed(own, part) if allowed else None)
    cosines, others = _others(*search.found(), own, k)
    there = others >= 0
    return own, there.sum(axis=1), others[there].astype(np.int32), cosines[there]


def _graph(n: int, k: int, parts: Sequence[_Lists]) -> Graph:
    lengths = np.zeros(n, np.int64)
    for own, counts, _, _ in parts:
        lengths[own] = counts
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    index = np.empty(offsets[-1], np.int32)
    similarity = np.empty(offsets[-1], np.float32)
    for own, counts, others, cosines in parts:
        first = offsets[own] - np.cumsum(counts) + counts
        place = np.repeat(first, counts) + np.arange(len(others))
        index[place], similarity[place] = others, cosines
    return Graph(offsets=offsets, index=index, similarity=similarity, full=lengths >= k)


def _compared(
    rows: NDArray[np.float32],
    members: NDArray[np.int64],
    blocks: NDArray[np.integer[Any]] | None,
    step: int,
) -> Iterator[tuple[NDArray[np.int64], Sequence[NDArray[np.int64]]]]:
    """For some members at a time the rows that they are compared with, in one or several parts."""
    if not len(members):
        return
    if blocks is None:
        for start in range(0, len(members), step):
            yield members[start : start + step], [members]
        return
    _, number = np.unique(blocks[members], return_inverse=True)
    order = members[np.argsort(number, kind="stable")]
    parts = np.split(order, np.cumsum(np.bincount(number))[:-1])
    middles = np.stack([_middle(rows, part) for part in parts])
    nearest = np.argsort(-(middles @ middles.T), axis=1, kind="stable")[:, :_REACH]
    for i, part in enumerate(parts):
        reached = [parts[j] for j in sorted({i, *nearest[i].tolist()})]
        for start in range(0, len(part), step):
            yield part[start : start + step], reached


def _middle(rows: NDArray[np.float32], part: NDArray[np.int64]) -> NDArray[np.float32]:
    """The mean of the rows as directions; of a block that is larger than most, of its head."""
    mean: NDArray[np.float32] = unit(rows[part[:_OWN]], without=0.0).mean(axis=0)
    return mean


def _others(
    scores: NDArray[np.float32], found: NDArray[np.int64], own: NDArray[np.int64], k: int
) -> Scored:
    """The first k without the row itself."""
    scores = np.where(found == own[:, None], np.float32(-np.inf), scores)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    kept = np.take_along_axis(scores, order, axis=1)
    numbers = np.take_along_axis(found, order, axis=1)
    return kept, np.where(np.isneginf(kept), -1, numbers)
