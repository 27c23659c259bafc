"""What a process keeps of a branch's fragments between searches, within bounds.

A fragment's rows never change, they only go. So what was read of one holds for every version,
as long as the fragment consists of the same files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lance_memory.storage.ranking.columns import KeptColumns

__all__ = ["CACHE_BYTES", "Files", "Kept", "KeptVectors"]

CACHE_BYTES = 32 * 2**20
"""Memory for kept vectors, of each open branch: 21,000 of 384 dimensions. Taken as it fills."""

Files = tuple[str, ...]
"""The names of a fragment's data files, which are unique in the world."""

Addresses = NDArray[np.uint64]
Vectors = NDArray[np.float32]


class KeptVectors:
    """Unit vectors by row address; the longest unused make room for new ones.

    The rows of one tenant are read at 8 us each; kept, a thousand take 0.3 ms.
    """

    def __init__(self, *, most_bytes: int = CACHE_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._files: dict[int, Files] = {}
        self._addresses = np.empty(0, np.uint64)  # sorted
        self._slots = np.empty(0, np.int64)  # where each address lies in the pool
        self._pool: Vectors | None = None
        self._used = np.empty(0, np.int64)  # of each slot, the last time it was asked for
        self._time = 0

    def get(
        self,
        addresses: Addresses,
        files: Mapping[int, Files],
        *,
        read: Callable[[Addresses], Vectors],
    ) -> Vectors:
        """The vectors at these addresses, float32 [n, d], in this order.

        Args:
            addresses: of rows, uint64 [n]; the fragment is in the upper half.
            files: what the fragments of these rows consist of.
            read: reads the rows that are not kept.
        """
        with self._lock:
            self._forget_changed(files)
            found, slots = self._find(addresses)
            if found.all() and self._pool is not None:
                self._touch(slots)
                return self._pool[slots]
            near = self._pool[slots[found]] if self._pool is not None else None
        new = read(addresses[~found])
        vectors = np.empty((len(addresses), new.shape[1]), np.float32)
        vectors[~found] = new
        if near is not None:
            vectors[found] = near
        with self._lock:
            self._put(addresses, vectors, files)
        return vectors

    def __len__(self) -> int:
        return len(self._addresses)

    def _find(self, addresses: Addresses) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        if not len(self._addresses):
            return np.zeros(len(addresses), np.bool_), np.zeros(len(addresses), np.int64)
        at = np.searchsorted(self._addresses, addresses).clip(max=len(self._addresses) - 1)
        return self._addresses[at] == addresses, self._slots[at]

    def _room(self, dimension: int) -> int:
        return max(1, self._most_bytes // (4 * dimension))

    def _touch(self, slots: NDArray[np.int64]) -> None:
        self._time += 1
        self._used[slots] = self._time

    def _put(self, addresses: Addresses, vectors: Vectors, files: Mapping[int, Files]) -> None:
        """Keep the rows; another thread may have kept some of them meanwhile."""
        if self._pool is not None and self._pool.shape[1] != vectors.shape[1]:
            self._keep(np.empty(0, np.intp))  # of another model
            self._files.clear()
            self._pool = None
        room = self._room(vectors.shape[1])
        if len(addresses) > room or any(self._files.get(f, n) != n for f, n in files.items()):
            return
        if self._pool is None:
            self._pool = np.empty((room, vectors.shape[1]), np.float32)
            self._used = np.zeros(room, np.int64)
        found, slots = self._find(addresses)
        self._touch(slots[found])
        self._files.update(files)
        free = self._free(int((~found).sum()))
        self._pool[free] = vectors[~found]
        self._touch(free)
        known = np.concatenate([self._addresses, addresses[~found]])
        order = np.argsort(known)
        self._addresses = known[order]
        self._slots = np.concatenate([self._slots, free])[order]

    def _free(self, count: int) -> NDArray[np.int64]:
        """So many empty slots, made by dropping what was not asked for longest."""
        taken = np.zeros(len(self._used), np.bool_)
        taken[self._slots] = True
        empty = np.flatnonzero(~taken)
        if len(empty) < count:
            oldest = np.argsort(self._used[self._slots], kind="stable")
            self._keep(np.sort(oldest[count - len(empty) :]))
            return self._free(count)
        return empty[:count]

    def _forget_changed(self, files: Mapping[int, Files]) -> None:
        """Drop the fragments whose columns another program has replaced in place."""
        changed = [f for f, names in files.items() if self._files.get(f, names) != names]
        for fragment in changed:
            self._keep(np.flatnonzero(self._addresses >> np.uint64(32) != fragment))
            del self._files[fragment]

    def _keep(self, places: NDArray[np.int64]) -> None:
        self._addresses, self._slots = self._addresses[places], self._slots[places]


@dataclass(frozen=True, slots=True)
class Kept:
    """What all versions of one branch share."""

    vectors: KeptVectors = field(default_factory=KeptVectors)
    columns: KeptColumns = field(default_factory=KeptColumns)
