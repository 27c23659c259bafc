"""MemoryView: every read, at one version and within one scope."""

from __future__ import annotations

from datetime import datetime

from lance_memory.record.times import utc
from lance_memory.storage import history
from lance_memory.view.frames import Frames
from lance_memory.view.searching import Searching

__all__ = ["MemoryView"]


class MemoryView(Searching, Frames):
    """The memories as of one version. It has no method that writes.

    Every read verb takes the keywords of `Where`. What is *visible* is decided at the moment
    that the view is about: its version's time, or the very moment that `at` was asked for.
    """

    def at(self, when: int | str | datetime) -> MemoryView:
        """The memories as they were: at a version, at a tag, or at a moment.

        Raises:
            NotFoundError: there is no such version or tag, or nothing is that old.
            InvalidInputError: a time without a zone.
        """
        if isinstance(when, datetime):
            moment = utc(when, "at")
            pinned = self._snapshot(moment)
        else:
            pinned = self._snapshot(self._resolve(when))
            moment = history.entry(self._table, pinned.version).at
        return MemoryView(
            self._table,
            embedder=self._embedder,
            clock=self._clock,
            scope=self._scope,
            pinned=pinned,
            moment=moment,
            actors=self._actors,
            queries=self._queries.reading(),
        )
