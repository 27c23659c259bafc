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
"""Rows that a search starts with: all of them are weighed, of later ones only the better."""


class TopK:
    """The k rows of the largest cosine to each query, of all that `see` was shown.

    Memory is that of the queries and the answer, and one block of scores: 32 MB on the CPU,
    1 GB on CUDA.
    """

    def __init__(self, queries: NDArray[np.float32], k: int, *, device: str | None = None) -> None:
        """Begin a search.

        Args:
            queries: float32 [m, d]; one without a direction finds nothing.
            k: how many rows of each, from 1.
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
        step = max(1, min(self._arithmetic.queries, _MERGED // k))
        self._blocks = [
            self._arithmetic.search(ready[i : i + step], k) for i in range(0, len(ready), step)
        ]

    def see(self, ids: NDArray[np.int64], rows: NDArray[np.float32]) -> None:
        """Compare more rows, float32 [n, d]; one without a direction is passed over.

        Of rows equally near, the CPU keeps those that it saw first.
        """
        ready = unit(rows)
        there = np.isfinite(ready[:, 0])
        if not there.all():
            ids, ready = ids[there], ready[there]
        step = self._arithmetic.rows
        for start in range(0, len(ids), step):
            part = slice(start, start + step)
            some = self._arithmetic.put(ids[part]), self._arithmetic.put(ready[part])
            for block in self._blocks:
                block.see(*some)

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

    def see(self, ids: Any, rows: Any) -> None:
        """Merge a block of rows."""

    def found(self) -> Scored:
        """Cosines and ids, in any order."""


class _Arithmetic(Protocol):
    """An array library, and how many queries and rows it compares at a time."""

    queries: int
    rows: int

    def put(self, array: NDArray[Any]) -> Any:
        """The array where the library works."""

    def search(self, queries: NDArray[np.float32], k: int) -> _Search:
        """A search for these queries."""


def _arithmetic(device: str | None) -> _Arithmetic:
    """Torch where it was asked for or a GPU answers; numpy is the quicker one on a CPU."""
    if device == "cpu" or (device is None and not cuda_answers()):
        return _Numpy()
    return _Torch("cuda" if device is None else device)


class _Numpy:
    queries, rows = 1_024, 8_192

    def put(self, array: NDArray[Any]) -> Any:
        return array

    def search(self, queries: NDArray[np.float32], k: int) -> _Search:
        return _NumpySearch(queries, k)


class _NumpySearch:
    """Once k rows are known, only those nearer than the k-th are looked at: 10 of 8,192, say."""

    def __init__(self, queries: NDArray[np.float32], k: int) -> None:
        self._queries = queries
        self._cosines = np.full((len(queries), k), -np.inf, np.float32)
        self._ids = np.full((len(queries), k), -1, np.int64)
        self._floor = self._cosines[:, 0]

    def see(self, ids: NDArray[np.int64], rows: NDArray[np.float32]) -> None:
        first = max(_FIRST, self._ids.shape[1]) if np.isneginf(self._floor).any() else 0
        for part in (slice(0, first), slice(first, None)):
            if len(ids[part]):
                self._merge(ids[part], self._queries @ rows[part].T)

    def _merge(self, ids: NDArray[np.int64], scores: NDArray[np.float32]) -> None:
        """Put the better rows beside those kept, query by query, and keep the k best of both."""
        over = np.flatnonzero(scores > self._floor[:, None])
        query, row = np.divmod(over, scores.shape[1])
        size, k = self._ids.shape
        counts = np.bincount(query, minlength=size)
        place = k + np.arange(len(over)) - np.repeat(np.cumsum(counts) - counts, counts)
        width = k + int(counts.max())
        cosines = np.full((size, width), -np.inf, np.float32)
        numbers = np.full((size, width), -1, np.int64)
        cosines[:, :k], numbers[:, :k] = self._cosines, self._ids
        cosines[query, place], numbers[query, place] = scores.ravel()[over], ids[row]
        chosen = _largest(cosines, k)
        self._cosines = cosines[chosen].reshape(size, k)
        self._ids = numbers[chosen].reshape(size, k)
        self._floor = self._cosines.min(axis=1)

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

    def search(self, queries: NDArray[np.float32], k: int) -> _Search:
        return _TorchSearch(self._torch, self.put(queries), k)


class _TorchSearch:
    """The best of each block, and then of those and the best before."""

    def __init__(self, torch: Any, queries: Any, k: int) -> None:
        self._torch, self._queries, self._k = torch, queries, k
        self._cosines = torch.full((len(queries), k), -np.inf, device=queries.device)
        self._ids = torch.full((len(queries), k), -1, device=queries.device)

    def see(self, ids: Any, rows: Any) -> None:
        best = (self._queries @ rows.T).topk(min(self._k, len(ids)), dim=1, sorted=False)
        cosines = self._torch.cat([self._cosines, best.values], dim=1)
        numbers = self._torch.cat([self._ids, ids[best.indices]], dim=1)
        kept = cosines.topk(self._k, dim=1, sorted=False)
        self._cosines, self._ids = kept.values, numbers.gather(1, kept.indices)

    def found(self) -> Scored:
        return self._cosines.cpu().numpy(), self._ids.cpu().numpy()
