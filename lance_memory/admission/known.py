"""Which contents a table holds, remembered by one handle, so that an add need not look."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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

    def may_hold(self, snapshot: Snapshot, rows: pa.Table) -> bool:
        """Whether the table may hold one of the rows' contents. False is certain."""
        with self._lock:
            if self._adds < _WARM_UP and len(rows) < _MANY:
                return True
            self._refresh(snapshot)
            wanted = _words(rows)
            if self._recent.isdisjoint(wanted.tolist()):
                places = np.searchsorted(self._sorted, wanted)
                places[places == len(self._sorted)] = 0
                return bool(len(self._sorted) and (self._sorted[places] == wanted).any())
            return True

    def learn(self, rows: pa.Table, *, read: Snapshot, written: Snapshot) -> None:
        """Take note of rows that this handle committed, so that they need not be read back.

        Where somebody committed between `read` and `written`, whose fragments are whose is not
        known, and the next look reads them.
        """
        with self._lock:
            self._adds += 1
            if self._adds > _WARM_UP and written.version == read.version + 1:
                self._remember(_words(rows))
                self._fragments |= written.fragment_ids - read.fragment_ids

    def _refresh(self, snapshot: Snapshot) -> None:
        """Read the hashes of the fragments that are new since the last call."""
        new = snapshot.fragment_ids - self._fragments
        if new:
            self._remember(_words(snapshot.of_fragments(new, columns=["content_hash"])))
            self._fragments |= new

    def _remember(self, words: NDArray[np.uint64]) -> None:
        """Few go into a set, many into the sorted array."""
        if len(self._recent) + len(words) <= _RECENT:
            self._recent.update(words.tolist())
            return
        recent = np.fromiter(self._recent, dtype=np.uint64, count=len(self._recent))
        self._sorted = np.sort(np.concatenate([self._sorted, recent, words]))
        self._recent = set()


def _words(rows: pa.Table) -> NDArray[np.uint64]:
    """The first 64 bits of each content hash, uint64 [n]."""
    hashes: Sequence[str] = rows["content_hash"].to_pylist()
    raw = bytes.fromhex("".join(hashes))
    return np.frombuffer(raw, dtype=np.uint64)[::2].copy()
