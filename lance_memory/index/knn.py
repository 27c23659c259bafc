"""Exact nearest neighbours in bulk: matrix products in blocks, on the CPU or on CUDA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lance_memory.errors import InvalidInputError
from lance_memory.index.device import cuda_answers, torch_on

__all__ = ["Neighbours", "self_join", "top_k"]

_REACH = 8
"""Blocks that a row is compared with. At 30k x 384 over k-means blocks, 8 find every neighbour
among 10 (recall 1.000) in a sixth of the time of all pairs, and 4 find 0.989."""

_Scored = tuple[NDArray[np.float32], NDArray[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbours:
    """Each row's nearest others, nearest first.

    Args:
        similarity: cosine, float32 [n, k]; -inf where there is no further neighbour.
        index: their numbers, int64 [n, k]; -1 where there is none.
    """

    similarity: NDArray[np.float32]
    index: NDArray[np.int64]

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Every pair once, the lower number first: int64 [p, 2], and cosine float32 [p]."""
        rows, places = np.nonzero(self.index >= 0)
        others = self.index[rows, places]
        both = np.stack([np.minimum(rows, others), np.maximum(rows, others)], axis=1)
        pairs, first = np.unique(both, axis=0, return_index=True)
        return pairs.astype(np.int64), self.similarity[rows, places][first]


def top_k(
    queries: NDArray[np.float32],
    rows: NDArray[np.float32],
    k: int,
    *,
    device: str | None = None,
) -> _Scored:
    """The k rows of the largest cosine to each query, exactly.

    Memory is bounded by the inputs and one block of scores (32 MB on the CPU, 1 GB on CUDA).

    Args:
        queries: float32 [m, d], of any length but zero.
        rows: float32 [n, d], likewise.
        k: how many; all rows where there are fewer.
        device: "cpu" or "cuda"; by default CUDA where torch and a device are there.

    Returns:
        Cosine float32 [m, min(k, n)] and row number int64 of the same shape, best first. Which
        of several rows of the same cosine stand at the end of a list is not said.

    Raises:
        InvalidInputError: shapes that do not fit, k below 1, or a device that does not answer.
    """
    if queries.ndim != 2 or rows.ndim != 2 or queries.shape[1] != rows.shape[1] or k < 1:
        raise InvalidInputError(
            f"top_k of queries {queries.shape} among rows {rows.shape} with k={k}; it takes "
            "[m, d], [n, d] and k from 1"
        )
    return _top_k(_unit(queries), _unit(rows), k, _arithmetic(device))


def self_join(
    rows: NDArray[np.float32],
    k: int,
    *,
    floor: float,
    blocks: NDArray[np.integer[Any]] | None = None,
    device: str | None = None,
) -> Neighbours:
    """The k nearest others of each row, of those with a cosine of at least `floor`.

    Args:
        rows: float32 [n, d], of any length but zero.
        k: how many at most.
        floor: the least cosine.
        blocks: int [n], the block of each row, such as its partition in an index. Rows are then
            compared with those of the 8 nearest blocks only: quicker, and nearly exact where
            blocks are k-means cells. By default with all.
        device: as for `top_k`.

    Raises:
        InvalidInputError: as `top_k`; or `blocks` of another length.
    """
    if rows.ndim != 2 or k < 1 or (blocks is not None and blocks.shape != (len(rows),)):
        raise InvalidInputError(
            f"self_join of rows {rows.shape} with k={k} and blocks "
            f"{None if blocks is None else blocks.shape}; it takes [n, d], k from 1, and [n]"
        )
    unit, arithmetic = _unit(rows), _arithmetic(device)
    similarity = np.full((len(rows), k), -np.inf, np.float32)
    index = np.full((len(rows), k), -1, np.int64)
    for members, candidates in _compared(unit, blocks):
        scores, found = _top_k(unit[members], unit[candidates], k + 1, arithmetic)
        kept, others = _others(scores, candidates[found], members, k, floor)
        width = kept.shape[1]
        similarity[members, :width], index[members, :width] = kept, others
    return Neighbours(similarity=similarity, index=index)


def _compared(
    unit: NDArray[np.float32], blocks: NDArray[np.integer[Any]] | None
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """For each block its rows, and the rows that they are compared with."""
    everyone = np.arange(len(unit), dtype=np.int64)
    if blocks is None or not len(unit):
        return [(everyone, everyone)] if len(unit) else []
    _, number = np.unique(blocks, return_inverse=True)
    order = np.argsort(number, kind="stable").astype(np.int64)
    members = np.split(order, np.cumsum(np.bincount(number))[:-1])
    middles = np.stack([unit[rows].mean(axis=0) for rows in members])
    near = np.argsort(-(middles @ middles.T), axis=1, kind="stable")[:, :_REACH]
    return [
        (own, np.concatenate([members[j] for j in {i, *near[i].tolist()}]))
        for i, own in enumerate(members)
    ]


def _others(
    scores: NDArray[np.float32],
    found: NDArray[np.int64],
    members: NDArray[np.int64],
    k: int,
    floor: float,
) -> _Scored:
    """The first k without the row itself and without those below the floor."""
    out = (found == members[:, None]) | (scores < floor)
    scores = np.where(out, -np.inf, scores).astype(np.float32)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    kept = np.take_along_axis(scores, order, axis=1)
    numbers = np.take_along_axis(found, order, axis=1)
    return kept, np.where(np.isneginf(kept), -1, numbers)


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = rows / np.maximum(lengths, np.finfo(np.float32).tiny)
    return scaled.astype(np.float32, copy=False)


class _Arithmetic(Protocol):
    """What the blocked search asks of an array library."""

    queries: int
    """Rows of a block of queries."""
    rows: int
    """Rows of a block of rows."""

    def put(self, array: NDArray[np.float32]) -> Any:
        """The array where the library works."""

    def best(self, scores: Any, k: int) -> tuple[Any, Any]:
        """The k largest of each row and their places, in any order."""

    def join(self, one: Any, other: Any) -> Any:
        """Two arrays side by side."""

    def chosen(self, array: Any, places: Any) -> Any:
        """The elements at `places` of each row."""

    def host(self, array: Any) -> NDArray[Any]:
        """The array as numpy's."""


class _Numpy:
    queries, rows = 1_024, 8_192

    def put(self, array: NDArray[np.float32]) -> Any:
        return array

    def best(self, scores: Any, k: int) -> tuple[Any, Any]:
        if k >= scores.shape[1]:
            return scores, np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
        places = np.argpartition(scores, -k, axis=1)[:, -k:]
        return np.take_along_axis(scores, places, axis=1), places

    def join(self, one: Any, other: Any) -> Any:
        return np.concatenate([one, other], axis=1)

    def chosen(self, array: Any, places: Any) -> Any:
        return np.take_along_axis(array, places, axis=1)

    def host(self, array: Any) -> NDArray[Any]:
        return np.asarray(array)


class _Torch:
    queries, rows = 4_096, 65_536

    def __init__(self, device: str) -> None:
        self._torch, self._device = torch_on(device), device

    def put(self, array: NDArray[np.float32]) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

    def best(self, scores: Any, k: int) -> tuple[Any, Any]:
        found = scores.topk(min(k, scores.shape[1]), dim=1, sorted=False)
        return found.values, found.indices

    def join(self, one: Any, other: Any) -> Any:
        return self._torch.cat([one, other], dim=1)

    def chosen(self, array: Any, places: Any) -> Any:
        return array.gather(1, places)

    def host(self, array: Any) -> NDArray[Any]:
        copied: NDArray[Any] = array.cpu().numpy()
        return copied


def _arithmetic(device: str | None) -> _Arithmetic:
    """Torch where it was asked for or a GPU answers; numpy is the quicker one on a CPU."""
    if device == "cpu" or (device is None and not cuda_answers()):
        return _Numpy()
    return _Torch("cuda" if device is None else device)


def _top_k(
    queries: NDArray[np.float32], rows: NDArray[np.float32], k: int, arithmetic: _Arithmetic
) -> _Scored:
    width = min(k, len(rows))
    similarity = np.empty((len(queries), width), np.float32)
    index = np.empty((len(queries), width), np.int64)
    for start in range(0, len(queries), arithmetic.queries):
        block = slice(start, start + arithmetic.queries)
        scores, found = _best_of_all(arithmetic.put(queries[block]), rows, k, arithmetic)
        order = np.lexsort((found, -scores), axis=1)
        similarity[block] = np.take_along_axis(scores, order, axis=1)
        index[block] = np.take_along_axis(found, order, axis=1)
    return similarity, index


def _best_of_all(
    queries: Any, rows: NDArray[np.float32], k: int, arithmetic: _Arithmetic
) -> _Scored:
    """The best of one block of queries among all rows, not sorted."""
    kept: tuple[Any, Any] | None = None
    for start in range(0, len(rows), arithmetic.rows):
        scores = queries @ arithmetic.put(rows[start : start + arithmetic.rows]).T
        values, places = arithmetic.best(scores, k)
        numbers = places + start
        if kept is not None:
            values, numbers = arithmetic.join(kept[0], values), arithmetic.join(kept[1], numbers)
            values, places = arithmetic.best(values, k)
            numbers = arithmetic.chosen(numbers, places)
        kept = values, numbers
    if kept is None:
        return np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
    return arithmetic.host(kept[0]), arithmetic.host(kept[1])
