"""What was written to a store, read from its log a version at a time, each once."""

from __future__ import annotations

import threading
from datetime import datetime

from lance_memory.storage import LogEntry
from lance_memory.store import MemoryStore

__all__ = ["News"]

_FURTHEST = 1_000
_NOTHING_NEW = ("consolidate", "retire")
"""Writes that leave nothing for a pass to look at."""
_REPLACING = ("supersede", "upsert")
"""Writes whose updates only hide what the insert takes the place of."""


class News:
    """How much was written since a version, and when last.

    The log knows what no time of a row tells: a batch that took its time to embed has times from
    before a pass, and a version after it. Looking again costs 0.05 ms where there is no newer
    version, and about 0.5 ms for each one that there is.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._written: dict[int, int] = {}
        self._read = 0
        self._reading = threading.Lock()
        self.last_write: datetime | None = None

    def since(self, seen: int) -> int:
        """Memories written in the versions after `seen`, as the log counts them.

        Of the newest thousand versions; through a scoped handle a version that reached other
        scopes too counts as one memory.
        """
        with self._reading:
            newest = self._store.version
            behind = min(newest - max(self._read, seen), _FURTHEST)
            if behind > 0:
                self._take(self._store.log(limit=behind, upkeep=True))
            if self.last_write is None:
                self._take(self._store.log(limit=1))
            self._read = newest
            self._written = {version: n for version, n in self._written.items() if version > seen}
            return sum(self._written.values())

    def _take(self, entries: list[LogEntry]) -> None:
        for entry in reversed(entries):
            self._written[entry.version] = _count(entry)
            if not entry.upkeep:
                self.last_write = entry.at


def _count(entry: LogEntry) -> int:
    if entry.upkeep or entry.operation in _NOTHING_NEW:
        return 0
    if entry.scopes == ():
        return 1
    return entry.inserted + (0 if entry.operation in _REPLACING else entry.updated)
