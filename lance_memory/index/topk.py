"""The rows nearest to each of many queries, exactly, of rows that are seen block by block.

One search for a batch of questions, for the neighbours of every row, and for the truth that an
index is measured by; on the CPU with numpy, on CUDA with torch.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lance_memory.errors import InvalidInputError
from lance_memory.index.device import cuda_answers, torch_on
from lance_memory.record.unit import unit

__all__ = ["Scored", "TopK"]

Scored = tuple[NDArray[np.float32], NDArray[np.int64]]
"""Cosines and ids, both [m, k], best first; -inf and -1 where there is no further row."""

_MERGED = 2**22
"""Scores that a block of queries keeps at most, so that merging them takes some 100 MB."""

_FIRST = 1_024
"""Rows merged at a time where many are good enough, as all are at first: of those after them
only the better are looked at."""

_MANY = 2**20
"""Scores that are merged at once at most: an eighth of a block, some 50 MB."""


class TopK:
    """The k rows of the largest cosine to each query, of all that `see` was shown.

    Memory is that of the queries and the answer, and one block of scores: 32 MB on the CPU,
    1 GB on CUDA.
    """

    def __init__(
        self,
        queries: NDArray[np.float32],
        k: int,
        *,
        floor: float = -np.inf,
        device: str | None = None,
    ) -> None:
        """Begin a search.

        Args:
            queries: float32 [m, d]; one without a direction finds nothing.
            k: how many rows of each, from 1.
            floor: rows of a lower cosine are none; where few reach it, the search costs little
                more than its matrix products.
            device: "cpu" or "cuda"; by default CUDA where torch and a device are there.

        Raises:
            InvalidInputError: shapes that do not fit, or a device that does not answer.
            MissingExtraError: torch was asked for and is not installed.
        """
        if queries.ndim != 2 or k < 1:
            raise InvalidInputError(f"queries {queries.shape}, k={k}; it takes [m, d], k from 1")
        self._k = k
        self._arithmetic = _arithmetic(device)
        ready = unit(queries)
        self._valid = np.isfinite(ready).all(axis=1)
        if not self._valid.all():
            ready = np.nan_to_num(ready)
        self._step = max(1, min(self._arithmetic.queries, _MERGED // k))
        above = np.nextafter(np.float32(floor), np.float32(-np.inf))
        self._blocks = [
            self._arithmetic.search(ready[i : i + self._step], k, above)
            for i in range(0, len(ready), self._step)
        ]

    def see(
        self,
        ids: NDArray[np.int64],
        rows: NDArray[np.float32],
        *,
        allowed: NDArray[np.bool_] | None = None,
    ) -> None:
        """Compare more rows, float32 [n, d]; one without a direction is passed over.

        Of rows equally near, the CPU keeps those that it saw first. `allowed`, bool [m, n], says
        which of them may be found for which query; by default all.
        """
        step = self._arithmetic.rows
        for start in range(0, len(ids), step):
            part = slice(start, start + step)
            numbers, ready = ids[part], unit(rows[part])
            may = None if allowed is None else allowed[:, part]
            there = np.isfinite(ready[:, 0])
            if not there.all():
                numbers, ready = numbers[there], ready[there]
                may = None if may is None else may[:, there]
            self._shown(self._arithmetic.put(numbers), self._arithmetic.put(ready), may)

    def _shown(self, ids: Any, rows: Any, allowed: NDArray[np.bool_] | None) -> None:
        for i, block in enumerate(self._blocks):
            if allowed is None:
                block.see(ids, rows, None)
            else:
                some = slice(i * self._step, (i + 1) * self._step)
                block.see(ids, rows, self._arithmetic.put(allowed[some]))

    def found(self) -> Scored:
        """The best rows of those seen so far; equally near ones in the order of their ids."""
        parts = [block.found() for block in self._blocks]
        if not parts:
            return np.empty((0, self._k), np.float32), np.empty((0, self._k), np.int64)
        cosines = np.concatenate([part[0] for part in parts])
        ids = np.concatenate([part[1] for part in parts])
        cosines[~self._valid], ids[~self._valid] = -np.inf, -1
        order = np.lexsort((ids, -cosines), axis=1)
        return np.take_along_axis(cosines, order, axis=1), np.take_along_axis(ids, order, axis=1)


class _Search(Protocol):
    """The best rows so far of one block of queries."""

    def see(self, ids: Any, rows: Any, allowed: Any) -> None:
        """Merge a block of rows, where they are allowed."""

    def found(self) -> Scored:
        """Cosines and ids, in any order."""


class _Arithmetic(Protocol):
    """An array library, and how many queries and rows it compares at a time."""

    queries: int
    rows: int

    def put(self, array: NDArray[Any]) -> Any:
        """The array where the library works."""

    def search(self, queries: NDArray[np.float32], k: int, above: np.float32) -> _Search:
        """A search for these queries, of rows with a cosine above this one."""


def _arithmetic(device: str | None) -> _Arithmetic:
    """Torch where it was asked for or a GPU answers; numpy is the quicker one on a CPU."""
    if device == "cpu" or (device is None and not cuda_answers()):
        return _Numpy()
    return _Torch("cuda" if device is None else device)


class _Numpy:
    queries, rows = 1_024, 8_192

    def put(self, array: NDArray[Any]) -> Any:
        return array

    def search(self, queries: NDArray[np.float32], k: int, above: np.float32) -> _Search:
        return _NumpySearch(queries, k, above)


class _NumpySearch:
    """Once k rows are known, only those nearer than the k-th are looked at: 10 of 8,192, say."""

    def __init__(self, queries: NDArray[np.float32], k: int, above: np.float32) -> None:
        self._queries = queries
        self._cosines = np.full((len(queries), k), -np.inf, np.float32)
        self._ids = np.full((len(queries), k), -1, np.int64)
        self._above = above
        self._floor = np.full(len(queries), above, np.float32)

    def see(
        self,
        ids: NDArray[np.int64],
        rows: NDArray[np.float32],
        allowed: NDArray[np.bool_] | None,
    ) -> None:
        scores = self._queries @ rows.T
        if allowed is not None:
            np.putmask(scores, ~allowed, -np.inf)
        self._weigh(ids, scores)

    def _weigh(self, ids: NDArray[np.int64], scores: NDArray[np.float32]) -> None:
        """Merge what is nearer than the k-th and not below the floor; in parts, if it is much."""
        better = scores > self._floor[:, None]
        count, width = np.count_nonzero(better), max(_FIRST, self._ids.shape[1])
        if count > _MANY and len(ids) > width:
            for start in range(0, len(ids), width):
                self._weigh(ids[start : start + width], scores[:, start : start + width])
        elif count:
            self._merge(ids, scores, np.flatnonzero(better))

    def _merge(
        self, ids: NDArray[np.int64], scores: NDArray[np.float32], over: NDArray[np.intp]
    ) -> None:
        """Put these scores beside those kept, query by query, and keep the k best of both."""
        query, row = np.divmod(over, scores.shape[1])
        size, k = self._ids.shape
        counts = np.bincount(query, minlength=size)
        place = k + np.arange(len(over)) - np.repeat(np.cumsum(counts) - counts, counts)
        width = k + int(counts.max())
        cosines = np.full((size, width), -np.inf, np.float32)
        numbers = np.full((size, width), -1, np.int64)
        cosines[:, :k], numbers[:, :k] = self._cosines, self._ids
        cosines[query, place], numbers[query, place] = scores[query, row], ids[row]
        chosen = _largest(cosines, k)
        self._cosines = cosines[chosen].reshape(size, k)
        self._ids = numbers[chosen].reshape(size, k)
        self._floor = np.maximum(self._cosines.min(axis=1), self._above)

    def found(self) -> Scored:
        return self._cosines, self._ids


def _largest(values: NDArray[np.float32], k: int) -> NDArray[np.bool_]:
    """Which k of each row are the largest; of equal ones the earlier."""
    least = np.partition(values, -k, axis=1)[:, -k, None]
    chosen = values >= least
    if np.count_nonzero(chosen) > k * len(values):
        equal = values == least
        room = k - (values > least).sum(axis=1, keepdims=True)
        chosen &= ~equal | (equal.cumsum(axis=1) <= room)
    return chosen


class _Torch:
    queries, rows = 4_096, 65_536

    def __init__(self, device: str) -> None:
        self._torch, self._device = torch_on(device), device

    def put(self, array: NDArray[Any]) -> Any:
        return self._torch.tensor(array, device=self._device)

    def search(self, queries: NDArray[np.float32], k: int, above: np.float32) -> _Search:
        return _TorchSearch(self._torch, self.put(queries), k, float(above))


class _TorchSearch:
    """The best of each block, and then of those and the best before."""

    def __init__(self, torch: Any, queries: Any, k: int, above: float) -> None:
        self._torch, self._queries, self._k, self._above = torch, queries, k, above
        self._cosines = torch.full((len(queries), k), -np.inf, device=queries.device)
        self._ids = torch.full((len(queries), k), -1, device=queries.device)

    def see(self, ids: Any, rows: Any, allowed: Any) -> None:
        scores = self._queries @ rows.T
        if allowed is not None:
            scores.masked_fill_(~allowed, -np.inf)
        best = scores.topk(min(self._k, len(ids)), dim=1, sorted=False)
        cosines = self._torch.cat([self._cosines, best.values], dim=1)
        numbers = self._torch.cat([self._ids, ids[best.indices]], dim=1)
        kept = cosines.topk(self._k, dim=1, sorted=False)
        self._cosines, self._ids = kept.values, numbers.gather(1, kept.indices)

    def found(self) -> Scored:
        low = self._cosines <= self._above
        cosines = self._cosines.masked_fill(low, -np.inf)
        return cosines.cpu().numpy(), self._ids.masked_fill(low, -1).cpu().numpy()
