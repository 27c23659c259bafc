"""Which contents a table holds, remembered by one handle, so that an add need not look."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from lance_memory.record.identity import hash_words
from lance_memory.storage import Snapshot

__all__ = ["KnownContents"]

_WARM_UP = 3
"""As many adds look into the table before the hashes are read: a short-lived process never reads
them, and a long-lived one reads them once."""

_MANY = 1_000
"""A batch of as many rows costs a look that is as long as reading the hashes."""

_RECENT = 4_096


class KnownContents:
    """A superset of the content hashes of a table, 8 bytes a row. Safe to share between threads.

    It answers "certainly not there" without touching the table; what may be there is looked up.
    Fragments never change their contents, only lose rows, so it reads each fragment once; hashes of
    rows that went stay, and cost a look-up, never an answer.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._adds = 0
        self._fragments: set[int] = set()
        self._sorted = np.empty(0, dtype=np.uint64)
        self._recent: set[int] = set()

    def may_hold(self, snapshot: Snapshot, wanted: NDArray[np.uint64]) -> bool:
        """Whether the table may hold one of these contents. False is certain.

        Args:
            snapshot: the table.
            wanted: of the contents' hashes, see `hash_words`.
        """
        with self._lock:
            if self._adds < _WARM_UP and len(wanted) < _MANY:
                return True
            self._refresh(snapshot)
            if self._recent.isdisjoint(wanted.tolist()):
                places = np.searchsorted(self._sorted, wanted)
                places[places == len(self._sorted)] = 0
                return bool(len(self._sorted) and (self._sorted[places] == wanted).any())
            return True

    def learn(self, words: NDArray[np.uint64], *, read: Snapshot, written: Snapshot) -> None:
        """Take note of contents that this handle committed, so that they need not be read back.

        Where somebody committed between `read` and `written`, whose fragments are whose is not
        known, and the next look reads them.
        """
        with self._lock:
            self._adds += 1
            if self._adds > _WARM_UP and written.version == read.version + 1:
                self._remember(words)
                self._fragments |= written.fragment_ids - read.fragment_ids

    def _refresh(self, snapshot: Snapshot) -> None:
        """Read the hashes of the fragments that are new since the last call."""
        new = snapshot.fragment_ids - self._fragments
        if new:
            read = snapshot.of_fragments(new, columns=["content_hash"])
            hashes = "".join(read["content_hash"].to_pylist())
            self._remember(hash_words(bytes.fromhex(hashes)))
            self._fragments |= new

    def _remember(self, words: NDArray[np.uint64]) -> None:
        """Few go into a set, many into the sorted array."""
        if len(self._recent) + len(words) <= _RECENT:
            self._recent.update(words.tolist())
            return
        recent = np.fromiter(self._recent, dtype=np.uint64, count=len(self._recent))
        self._sorted = np.sort(np.concatenate([self._sorted, recent, words]), kind="stable")
        self._recent = set()
