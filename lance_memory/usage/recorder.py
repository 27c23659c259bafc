"""From answered queries to rows of the journal, off the searches' path."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

from lance_memory.errors import LanceMemoryError
from lance_memory.record.values import text_value
from lance_memory.storage.journal import Journal
from lance_memory.usage.options import QueryRecording
from lance_memory.usage.recorded import Entry, to_rows
from lance_memory.wording import worded

__all__ = ["Recorder", "RecordingStatus"]

_MOST_BATCHES = 16
"""While the disk does not keep up, as many batches wait in memory; then the oldest are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingStatus:
    """How the recording through this handle goes; counted since it was opened.

    Attributes:
        pending: queries that wait to be written.
        written: queries that were.
        lost: queries that could not be written, or not be redacted.
        warning: why the last ones were lost, or why upkeep failed; empty while all is well.
    """

    pending: int = 0
    written: int = 0
    lost: int = 0
    warning: str = ""


class Recorder:
    """Collects entries and writes them in batches, in a thread of its own. Thread-safe.

    A batch is redacted and written when it is full, when its oldest entry has waited long enough,
    on `flush` and `close`, when the last handle goes, and when the interpreter ends. A process that
    is killed loses what was not written: at most a batch, or what came within `seconds`. Nothing
    that fails here fails a search: it is counted, and `status` tells why.
    """

    def __init__(self, journal: Journal, recording: QueryRecording) -> None:
        self._buffer = _Buffer(journal, recording)
        weakref.finalize(self, self._buffer.close)  # also when the interpreter ends

    def add(self, entries: Sequence[Entry]) -> None:
        """Take entries; a few microseconds, never waits for the disk."""
        self._buffer.add(entries)

    def flush(self) -> None:
        """Write what is pending, and wait until it is durable."""
        self._buffer.flush()

    def close(self) -> None:
        """`flush`, and take nothing more."""
        self._buffer.close()

    @property
    def status(self) -> RecordingStatus:
        """Counts, and the last warning."""
        return self._buffer.status()


class _Buffer:
    """What outlives its recorder until it is written: threads hold this, and not the recorder."""

    def __init__(self, journal: Journal, recording: QueryRecording) -> None:
        self._journal = journal
        self._recording = recording
        self._process = os.getpid()
        self._entries: list[Entry] = []
        self._timer: threading.Timer | None = None
        self._full = False
        self._open = True
        self._written, self._lost, self._warning = 0, 0, ""
        # Reentrant: a collection of garbage in the writer's thread may end the recorder there.
        self._lock = threading.RLock()
        self._writing = threading.RLock()

    def add(self, entries: Sequence[Entry]) -> None:
        with self._lock:
            if not self._open:
                return
            self._entries.extend(entries)
            self._drop_oldest()
            full = len(self._entries) >= self._recording.batch
            if self._timer is None or (full and not self._full):
                self._full = full
                self._start(0.0 if full else self._recording.seconds)

    def flush(self) -> None:
        if os.getpid() != self._process:
            return  # a fork has a copy of the entries, and no engine that works
        with self._writing:
            with self._lock:
                entries, self._entries = self._entries, []
                self._stop()
            if entries:
                self._write(entries)

    def close(self) -> None:
        self._open = False
        self.flush()

    def status(self) -> RecordingStatus:
        with self._lock:
            return RecordingStatus(
                pending=len(self._entries),
                written=self._written,
                lost=self._lost,
                warning=self._warning,
            )

    def _start(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(seconds, self.flush)
        self._timer.daemon = True
        try:
            self._timer.start()
        except RuntimeError:  # the interpreter is about to end, and flushes by itself
            self._timer = None

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._full = None, False

    def _drop_oldest(self) -> None:
        surplus = len(self._entries) - _MOST_BATCHES * self._recording.batch
        if surplus > 0:
            del self._entries[:surplus]
            self._lost += surplus
            told = "{n} [query|queries] came faster than [it|they] could be written"
            self._warning = worded(told, surplus)

    def _write(self, entries: Sequence[Entry]) -> None:
        kept, texts = self._redacted(entries)
        if not kept:
            return
        try:
            self._journal.append(to_rows(kept, texts))
        except LanceMemoryError as error:
            self._lose(len(kept), str(error))
            return
        self._written += len(kept)
        try:
            self._journal.upkeep(keep=self._recording.max_rows)
        except LanceMemoryError as error:
            self._warning = f"the journal grows: {error}"

    def _redacted(self, entries: Sequence[Entry]) -> tuple[list[Entry], list[str]]:
        """The entries that could be redacted, and their texts; the others are never written."""
        kept, texts = [], []
        for entry in entries:
            try:
                text = self._fit(entry.query)
            except Exception as error:  # noqa: BLE001 (the user's code: it may raise anything)
                self._lose(1, f"the redactor raised {type(error).__name__}")  # it may quote
                continue
            kept.append(entry)
            texts.append(text)
        return kept, texts

    def _fit(self, text: str) -> str:
        redactor = self._recording.redact
        shown = redactor.redact(text).text if redactor and text else text
        return text_value("the redacted query", shown)

    def _lose(self, count: int, why: str) -> None:
        with self._lock:
            self._lost += count
            self._warning = f"queries were not recorded: {why}"
