"""Upkeep as part of writing: each commit is told of here, and does, or starts, what is due."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from lance_memory.errors import ConflictError, LanceMemoryError, StorageError
from lance_memory.record.times import Clock, utc_now
from lance_memory.storage import indices
from lance_memory.storage.upkeep import steps as upkeep
from lance_memory.storage.upkeep.options import Upkeep, UpkeepMode
from lance_memory.storage.upkeep.races import undisturbed
from lance_memory.storage.upkeep.state import State, UpkeepStatus, read_state, write_state
from lance_memory.storage.upkeep.tiers import AT_REST

if TYPE_CHECKING:
    from lance_memory.storage.change import ChangeSet
    from lance_memory.storage.snapshot import Snapshot
    from lance_memory.storage.table import Table

__all__ = ["Tender"]

_LOG = logging.getLogger("lance_memory.upkeep")
_LOCK = "lock"
_NOTE = "note"
_LOOK, _LOOKS = 0.1, 5
"""Writers that are silent for so many seconds, so many times, rest: then what they left is merged.
The program may end in between, and then nobody waits for more."""

_SETTLED = 2
"""Of so many rows written, one is written once more when writers rest."""

_BUSY = 1.0
"""Seconds that nobody looks again for, after another process was found at it."""


class Tender:
    """Tends one table on one branch, as its writes make it necessary. Thread-safe.

    A step that fails is written down, logged, and tried again later with growing pauses; the write
    that came before it has succeeded all the same. One step runs at a time, of all processes.
    """

    def __init__(self, table: Table, options: Upkeep | None, *, clock: Clock = utc_now) -> None:
        self.options = options
        self._table = table
        self._clock = clock
        self._place = table.place
        self._state = State()  # of the store, as far as this process knows
        self._looked = self._unwritten = False
        self._rows = self._bytes = 0  # written by this process since
        self._unsettled = 0  # rows written by it since writers rested
        self._not_before = 0.0  # by a clock that nobody sets
        self._left = 0  # fragments that the last compaction left
        self._told = ""
        self._thread: threading.Thread | None = None
        self._busy = False  # with a run
        self._hurried = False  # somebody waits, so no more writes are waited for
        self._resting = False  # writers do
        self._called = threading.Event()
        self._changing = threading.Lock()

    def after(self, change: ChangeSet, made: Snapshot) -> str:
        """To be called after a commit: do what is due, or start to; why the last step failed.

        Nothing is read for it but, once a process, the small file that tells of the last run.
        """
        if self.options is None or not change:
            return self._told
        with self._changing:
            written = change.written()
            self._rows += 0 if written is None else len(written)
            self._unsettled += 0 if written is None else len(written)
            self._bytes += 0 if written is None else written.nbytes
            due = self._due(made, self.options)
        if due and (self.options.mode is UpkeepMode.INLINE or _ends()):
            self._run(self.options)
        elif due:
            self._start(self.options)
        return self._told

    @property
    def status(self) -> UpkeepStatus:
        """How it goes, for all processes; what could not be written down only for this one."""
        with self._changing:
            self._look()
            state = self._state
        return UpkeepStatus(
            uri=self._table.uri,
            branch=self._table.branch,
            version=state.version,
            at=state.at,
            running=self._is_running,
            failures=state.failures,
        )

    def wait(self, timeout: float | None = None) -> None:
        """Wait until what this process has started is done, seconds at most."""
        thread = self._thread
        if thread is not None:
            self._hurried = True
            self._called.set()
            thread.join(timeout)
            self._hurried = False

    def done(self) -> None:
        """To be called after a whole `optimize`: nothing is due, and no failure stands."""
        with self._changing:
            self._rows = self._bytes = 0
        self._left = len(self._table.latest().fragment_ids)
        state = self._done(State())
        try:
            with upkeep.alone(self._table):
                self._settle(state)
        except ConflictError:  # another's step takes long, and tells of itself
            with self._changing:
                self._take(state)
        except LanceMemoryError as error:
            self._settle(self._failed(state, _LOCK, error))

    # -- inside ---------------------------------------------------------------------------

    @property
    def _is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _due(self, made: Snapshot, options: Upkeep) -> bool:
        if self._busy or time.monotonic() < self._not_before:
            return False
        if not self._looked:
            self._look()
        if not self._reached(made, options):
            return False
        self._look()  # another process may have done it
        return self._reached(made, options)

    def _reached(self, made: Snapshot, options: Upkeep) -> bool:
        state, now = self._state, self._clock()
        if state.version > made.version:  # another process was faster, or versions were set aside
            newest = made.version
            with suppress(LanceMemoryError):  # the write before it has succeeded
                newest = self._table.latest().version
            state = state.at_most(newest)
        return not state.pauses(now) and (
            made.version - state.version >= options.versions
            or len(made.fragment_ids) - state.fragments >= options.fragments
            or self._rows >= options.unindexed_rows
            or self._bytes >= options.bytes
            or (state.at is not None and now - state.at >= options.age)
        )

    def _look(self) -> None:
        """Read what other processes have written down, unless this one knows more."""
        if self._unwritten:
            return
        try:
            state = read_state(self._place, self._table.branch)
        except StorageError as error:
            self._take(self._failed(self._state, _NOTE, error))
            self._unwritten = True
            return
        if self._looked and state.version > self._state.version:
            self._rows = self._bytes = 0
        self._looked = True
        self._take(state)

    def _take(self, state: State) -> None:
        self._state = state
        self._told = "; ".join(map(str, state.failures))

    def _start(self, options: Upkeep) -> None:
        with self._changing:
            self._called.set()
            if self._is_running:
                return
            # No daemon: the interpreter waits for it when it ends, and it ends with its step then.
            self._thread = threading.Thread(
                target=self._work, args=(options,), name="lance-memory-upkeep", daemon=False
            )
            self._thread.start()

    def _work(self, options: Upkeep) -> None:
        """What the thread does: a run, and another one while there is something to do."""
        again = True
        while again and not _ends():
            self._run(options, until=_ends)
            try:
                again = self._again(options)
            except LanceMemoryError:
                return  # the next write meets it too, and tells of it

    def _again(self, options: Upkeep) -> bool:
        """Whether to run again: writers have made it due meanwhile, or rest and left fragments."""
        newest = self._table.latest()
        with self._changing:
            self._called.clear()
            if time.monotonic() < self._not_before or self._state.pauses(self._clock()):
                return False
            if self._reached(newest, options):
                return True
        while not _ends():
            before = newest.version
            if not self._hurried and self._is_called():
                return True
            newest = self._table.latest()
            if self._hurried or newest.version == before:
                enough = self._unsettled >= options.unindexed_rows
                self._resting = enough or len(newest.fragment_ids) > self._left + 1
                return self._resting
        return False

    def _is_called(self) -> bool:
        """Whether a write finds something due, or somebody waits, before writers seem to rest."""
        looks = range(_LOOKS)
        return any(not _ends() and self._called.wait(_LOOK) for _ in looks)

    def _run(self, options: Upkeep, *, until: Callable[[], bool] = lambda: False) -> None:
        """All steps, unless another process is at it; none is begun any more once `until` says."""
        with self._changing:
            self._busy = True
        try:
            with upkeep.alone(self._table, wait=0):
                self._settle(self._tended(options, until))
        except ConflictError:
            self._not_before = time.monotonic() + _BUSY
        except LanceMemoryError as error:  # no lock to be had: whoever else writes meets that too
            self._settle(self._failed(self._state, _LOCK, error))
        finally:
            self._busy = self._resting = False

    def _tended(self, options: Upkeep, until: Callable[[], bool]) -> State:
        """The state after all steps, or as many as there was time for."""
        with self._changing:
            newest = self._table.latest().version
            state = self._state.at_most(newest).succeeded(_LOCK)
            rows, size = self._rows, self._bytes
        state, whole = self._stepped(state, options, until)
        if not whole:
            return state
        with self._changing:
            self._rows, self._bytes = self._rows - rows, self._bytes - size
        return self._done(state)

    def _stepped(
        self, state: State, options: Upkeep, until: Callable[[], bool]
    ) -> tuple[State, bool]:
        """The state after all steps, and whether none is left."""
        aged = state.at is not None and self._clock() - state.at >= options.age
        steps: dict[str, Callable[[], object]] = {
            "compact": lambda: self._compact(options),
            "fold": lambda: self._fold(options, anyway=aged),
            "settle": lambda: self._merge_at_rest(options),
            "clean": lambda: upkeep.clean(
                self._table, options.retain, least=1 if aged else options.versions
            ),
        }
        for name, step in steps.items():
            if until():
                return state, False  # the program ends: the rest is due again in the next one
            try:
                step()
                state = state.succeeded(name)
            # The write before it is acknowledged, and must not fail of an error that is not ours
            # either; it is written down, logged and told.
            except Exception as error:  # noqa: BLE001 (see above)
                state = self._failed(state, name, error)
        return state, not state.failures

    def _compact(self, options: Upkeep) -> None:
        self._left = upkeep.compact(self._table, most=options.step_rows)

    def _fold(self, options: Upkeep, *, anyway: bool) -> None:
        """Build the indices that are missing, and fold, where it pays."""
        if not anyway and upkeep.unfolded_rows(self._table) < options.unindexed_rows:
            return
        undisturbed(self._table, lambda: indices.create_missing(self._table.own()))
        upkeep.fold(self._table, most=options.step_rows)
        self._compact(options)  # what is in one segment now

    def _merge_at_rest(self, options: Upkeep) -> None:
        """Leave fewer fragments and segments than usual, as searches read every one.

        What is written again is bounded by the rows that were written since the last time: of
        indices as many, of the rows themselves half as many.
        """
        rows = self._unsettled
        if self._resting and rows >= options.unindexed_rows:
            most = min(options.step_rows, rows)
            upkeep.fold(self._table, most=options.step_rows)
            upkeep.fold(self._table, most=most, parts=1)
            self._left = upkeep.compact(self._table, most=most // _SETTLED, parts=AT_REST)
            with self._changing:
                self._unsettled -= rows

    def _failed(self, state: State, step: str, error: Exception) -> State:
        ours = isinstance(error, LanceMemoryError)
        told = str(error) if ours else f"{type(error).__name__}: {error}"
        _LOG.warning("upkeep of %s: %s failed: %s", self._table.uri, step, told)
        return state.failed(step, told, now=self._clock())

    def _done(self, state: State) -> State:
        newest = self._table.latest().version
        return replace(state, version=newest, fragments=self._left, at=self._clock())

    def _settle(self, state: State) -> None:
        """Write down how it went; under the lock, as other branches are in the same file."""
        try:
            write_state(self._place, self._table.branch, state.succeeded(_NOTE))
            state, unwritten = state.succeeded(_NOTE), False
        except StorageError as error:
            state, unwritten = self._failed(state, _NOTE, error), True
        with self._changing:
            self._unwritten = unwritten
            self._take(state)


def _ends() -> bool:
    """Whether the program's main thread is done: then it ends, unless other threads go on."""
    return not threading.main_thread().is_alive()
