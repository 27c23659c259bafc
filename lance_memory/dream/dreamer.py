"""Dreamer: consolidation in the background, when a trigger says so."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Self, Unpack

from lance_memory.curate import (
    Bounds,
    ConsolidateOptions,
    Execution,
    Guard,
    Transform,
    extractive,
)
from lance_memory.dream.news import News
from lance_memory.dream.one_pass import OnePass, about
from lance_memory.dream.results import DreamOutcome, DreamResult, DreamStatus, failure
from lance_memory.dream.state import Course
from lance_memory.dream.triggers import Moment, Triggers, backoff, due, next_time
from lance_memory.errors import InvalidInputError, LanceMemoryError
from lance_memory.extras import require
from lance_memory.record.filters import Where
from lance_memory.record.times import Clock, utc, utc_now
from lance_memory.store import MemoryStore

__all__ = ["Dreamer"]

_GUARD = Guard()
_ONCE = "dream: once"
_LAST_WAIT = 5.0
"""Seconds that the end of the program waits for a pass to stop."""


class Dreamer:
    """Consolidates a store in the background, bounded, one pass at a time.

    A pass is due when a trigger holds and something was written since the last one; each is one
    version with its manifest, or none where there was nothing to do. Of all processes one makes a
    pass at a time, and one that is killed leaves the store as it was, and its place free.

    A pass looks at what was learned last, and where its bounds end it, the next ones go on below
    until they reach what was looked at before: so all of a store is, a stretch at a time, and no
    memory is compared with those of another stretch. New memories and older ones take turns.

        with Dreamer(store, triggers=Triggers(idle=timedelta(minutes=10))):
            ...

    Its threads end with the program. What the last pass did is kept in the store's directory, in
    `dream.json`, by branch, scope and filter; `dream.lock` is there for the lock.

    Attributes:
        TRIGGERS: when, unless told otherwise: after 10 minutes in which nobody wrote.
        EXECUTION: how: a call that takes longer than 60 s is given up.
        BOUNDS: of each pass: 20,000 memories, 500 clusters, 120 s.
    """

    TRIGGERS: Final = Triggers(idle=timedelta(minutes=10))
    EXECUTION: Final = Execution(timeout=60.0)
    BOUNDS: Final = Bounds(max_rows=20_000, max_clusters=500, max_seconds=120.0)

    def __init__(
        self,
        store: MemoryStore,
        *,
        triggers: Triggers = TRIGGERS,
        options: ConsolidateOptions | None = None,
        transform: Transform = extractive,
        execution: Execution = EXECUTION,
        guard: Guard | None = _GUARD,
        bounds: Bounds = BOUNDS,
        every: timedelta = timedelta(seconds=5),
        told: Callable[[DreamResult], None] | None = None,
        also: Callable[[MemoryStore], object] | None = None,
        clock: Clock = utc_now,
        **where: Unpack[Where],
    ) -> None:
        """A dreamer that does nothing yet: see `start` and `once`.

        Args:
            store: what to consolidate, through a handle of its own scope and branch.
            triggers: when; by default after 10 minutes in which nobody wrote.
            options: as for `MemoryStore.consolidate`.
            transform: as there.
            execution: as there; by default a call that takes longer than 60 s is given up. With
                a timeout, or several workers, `stop` need not wait for a call to end.
            guard: as there.
            bounds: of each pass; by default 20,000 memories, 500 clusters, 120 s. Where it
                begins is the dreamer's to say.
            every: how often to look whether a pass is due.
            told: called with each result of a pass in the background, in a thread of the
                dreamer's; it must not call `stop`.
            also: called with the store at the beginning of each pass, before anything is
                consolidated, such as `lambda store: Distiller(store).distill()`. What it gives is
                told as `DreamResult.also`, as a text; where it fails, that is told, and the pass
                goes on. A dry run leaves it out.
            clock: gives the present moment; the store's times should be of the same clock.
            where: which memories to consider, see `Where`; visible ones by default.

        Raises:
            InvalidInputError: the store is not in a local directory, where alone a lock holds
                for all processes; or an argument makes no sense.
        """
        if "://" in store.uri:
            raise InvalidInputError(
                f"{store.uri} is no local directory, and passes are kept apart by a lock on a "
                "file there; call store.consolidate(...) from a scheduler of your own: of two "
                "passes at a time one raises ConflictError and writes nothing"
            )
        if every <= timedelta(0):
            raise InvalidInputError(f"every={every} is not longer than nothing")
        if bounds.before is not None:
            raise InvalidInputError(
                f"bounds have before={bounds.before}, and a dreamer goes on by itself where the "
                "last pass ended; leave it out, or call store.consolidate(bounds=...)"
            )
        self._news = News(store)
        self._one = OnePass(
            store=store,
            options=options,
            transform=transform,
            execution=execution,
            guard=guard,
            bounds=bounds,
            where=where,
            about=about(store, where),
            news=self._news,
            also=also,
        )
        self._triggers = triggers
        self._every = every
        self._told = told
        self._clock = clock
        self._began = self._now()
        self._failures = 0
        self._retry_at: datetime | None = None
        self._stop = threading.Event()
        self._asked_for: set[threading.Event] = set()
        self._scheduler: Any = None
        self._pass: threading.Thread | None = None

    # -- in the background ----------------------------------------------------------------

    def start(self) -> Self:
        """Look from now on whether a pass is due, and make it. Returns at once."""
        if self._scheduler is not None:
            return self
        self._stop = threading.Event()
        self._began = self._now()
        # The looks are short and run in the scheduler's own daemon thread, passes in one of ours:
        # those of a pool would keep the interpreter from exiting.
        executor = require("apscheduler.executors.debug").DebugExecutor()
        background = require("apscheduler.schedulers.background").BackgroundScheduler
        interval = require("apscheduler.triggers.interval").IntervalTrigger
        self._scheduler = background(timezone=UTC, executors={"default": executor})
        self._scheduler.add_job(
            self._look,
            interval(seconds=self._every.total_seconds(), timezone=UTC),
            next_run_time=datetime.now(UTC),
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,
        )
        self._scheduler.start()
        atexit.register(self._end)
        return self

    def stop(self, *, wait: bool = True) -> None:
        """Look no more, and stop the pass under way, also those of `once`: they write nothing.

        Args:
            wait: until the pass has ended; False: only tell it.
        """
        self._end(timeout=None if wait else 0.0)
        atexit.unregister(self._end)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # -- one pass -------------------------------------------------------------------------

    def once(self, *, dry_run: bool = False) -> DreamResult:
        """Make one pass now, whatever the triggers say.

        A pass that fails is told as the result, with its `error`.

        Args:
            dry_run: only plan; another pass may be under way.

        Raises:
            StorageError: the store's directory cannot be written to.
        """
        make = self._one.dry if dry_run else self._one.alone
        stop = threading.Event()
        self._asked_for.add(stop)
        try:
            return make(_ONCE, stop, at=self._now())
        finally:
            self._asked_for.discard(stop)

    def status(self) -> DreamStatus:
        """Where the store stands. Reads only."""
        running, lost = self._one.under_way()
        passes = self._one.before()
        cron = self._triggers.cron
        return DreamStatus(
            about=self._one.about,
            running=running,
            lost=lost,
            last=passes.last,
            new_rows=self._news.since(passes.seen),
            unfinished=passes.unfinished,
            next_cron=None if cron is None else next_time(cron, passes.since or self._began),
            retry_at=self._retry_at,
        )

    # -- inside ---------------------------------------------------------------------------

    def _now(self) -> datetime:
        return utc(self._clock(), "clock()")

    def _end(self, timeout: float | None = _LAST_WAIT) -> None:
        self._stop.set()
        for stop in list(self._asked_for):
            stop.set()
        scheduler, self._scheduler = self._scheduler, None
        if scheduler is not None:
            scheduler.shutdown()
        if self._pass is not None and self._pass is not threading.current_thread():
            self._pass.join(timeout)

    def _look(self) -> None:
        """Begin a pass, if one is due."""
        if self._stop.is_set() or (self._pass is not None and self._pass.is_alive()):
            return
        began = self._now()
        if self._retry_at is not None and began < self._retry_at:
            return
        try:
            passes = self._one.before()
            trigger = self._due(passes, began)
        except LanceMemoryError as error:
            self._note(failure(error, at=began))
            return
        if trigger is not None:
            self._pass = threading.Thread(
                target=self._dream,
                args=(f"dream: {trigger}", self._stop, passes),
                name="lance-memory-dream",
                daemon=True,
            )
            self._pass.start()

    def _due(self, passes: Course, now: datetime) -> str | None:
        new_rows = self._news.since(passes.seen)  # before `last_write`, which it finds out
        moment = Moment(
            now=now,
            since=passes.since or self._began,
            new_rows=new_rows,
            unfinished=passes.unfinished,
            last_write=self._news.last_write,
        )
        return due(self._triggers, moment)

    def _dream(self, trigger: str, stop: threading.Event, after: Course) -> None:
        """A pass in the background."""
        began = self._now()
        try:
            result = self._one.alone(trigger, stop, at=began, after=after)
        except LanceMemoryError as error:
            result = failure(error, at=began, trigger=trigger)
        except Exception as error:  # a fault of ours: the thread's hook shows it, and we go on
            self._note(failure(error, at=began, trigger=trigger))
            raise
        if result.outcome is not DreamOutcome.BUSY:
            self._note(result)

    def _note(self, result: DreamResult) -> None:
        """Tell of a pass in the background; after failures the next one waits."""
        failed = result.outcome is DreamOutcome.FAILED
        self._failures = self._failures + 1 if failed else 0
        self._retry_at = self._now() + backoff(self._failures) if failed else None
        if self._told is not None:
            self._told(result)
