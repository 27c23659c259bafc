"""One pass over a store, while no other is under way, and what it leaves behind."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lance_memory.curate import (
    Bounds,
    ConsolidateOptions,
    ConsolidationPlan,
    Execution,
    Guard,
    Transform,
)
from lance_memory.dream.lock import held, is_held
from lance_memory.dream.news import News
from lance_memory.dream.results import DreamOutcome, DreamResult, Running, failure, success
from lance_memory.dream.state import Course, Passes
from lance_memory.dream.stretch import Mark, Stretch
from lance_memory.errors import LanceMemoryError
from lance_memory.record.filters import Filter, Where
from lance_memory.store import MemoryStore

__all__ = ["OnePass", "about"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePass:
    """What every pass of a dreamer is asked to do; see `Dreamer`."""

    store: MemoryStore
    options: ConsolidateOptions | None
    transform: Transform
    execution: Execution
    guard: Guard | None
    bounds: Bounds
    where: Where
    about: str
    news: News
    also: Callable[[MemoryStore], object] | None = None

    @property
    def file(self) -> Path:
        """Where passes leave their status."""
        return Path(self.store.uri) / "dream.json"

    @property
    def lock(self) -> Path:
        """What is locked while a pass is under way."""
        return Path(self.store.uri) / "dream.lock"

    def before(self) -> Course:
        """The passes before the next one."""
        return Passes.read(self.file).about(self.about)

    def under_way(self) -> tuple[Running | None, Running | None]:
        """The pass that runs in the store, and else the one that was killed."""
        running = Passes.read(self.file).running
        if running is None or is_held(self.lock) is not False:
            return running, None
        again = Passes.read(self.file).running  # it may have ended between the two looks
        return (None, running) if again == running else (again, None)

    def dry(self, trigger: str, stop: threading.Event, *, at: datetime) -> DreamResult:
        """What a pass would do; another one may be under way."""
        start = time.monotonic()
        plan = self._plan(stop, self._begin(self.before()))
        return success(
            plan,
            at=at,
            trigger=trigger,
            version=plan.version,
            outcome=DreamOutcome.PLANNED,
            seconds=time.monotonic() - start,
        )

    def alone(
        self,
        trigger: str,
        stop: threading.Event,
        *,
        at: datetime,
        after: Course | None = None,
    ) -> DreamResult:
        """A pass, unless another one is under way.

        Args:
            trigger: why.
            stop: ends it.
            at: the moment it begins.
            after: the passes that made it due; where another one came meanwhile, it is not.

        Raises:
            StorageError: the store's directory cannot be written to.
        """
        with held(self.lock) as alone:
            passes = Passes.read(self.file)
            before = passes.about(self.about)
            if not alone or before != (after or before):
                return self._busy(passes.running, at)
            running = Running(
                pid=os.getpid(),
                host=socket.gethostname(),
                since=at,
                trigger=trigger,
                about=self.about,
            )
            replace(passes, running=running).write(self.file)
            stopped = DreamResult(outcome=DreamOutcome.STOPPED, at=at, trigger=trigger)
            course = before.then(stopped)
            try:
                result, course = self._made(trigger, stop, at, before)
            except Exception as error:
                course = before.then(failure(error, at=at, trigger=trigger))
                raise
            finally:
                passes.having(self.about, course).write(self.file)
            return result

    def _busy(self, running: Running | None, at: datetime) -> DreamResult:
        return DreamResult(
            outcome=DreamOutcome.BUSY,
            at=at,
            version=self.store.version,
            reason=f"another pass is under way: {running or 'it begins or ends just now'}",
        )

    def _made(
        self, trigger: str, stop: threading.Event, at: datetime, before: Course
    ) -> tuple[DreamResult, Course]:
        start = time.monotonic()
        also = ""
        try:
            begun = self._begin(before)
            also = "" if stop.is_set() else self._beside()
            plan = self._plan(stop, begun)
            plan.refuse_failures()
            plan.refuse_unanswered()
            stretch = self._stretch(plan, begun)
            write = self.store.apply(plan, reason=trigger)
        except LanceMemoryError as error:
            failed = failure(
                error,
                at=at,
                trigger=trigger,
                version=self.store.version,
                seconds=time.monotonic() - start,
                also=also,
            )
            return failed, before.then(failed)
        result = success(
            plan,
            at=at,
            trigger=trigger,
            version=write.version,
            outcome=DreamOutcome.CONSOLIDATED if plan.accepted else DreamOutcome.NOTHING,
            seconds=time.monotonic() - start,
            also=also,
        )
        return result, before.then(result, begun=begun, stretch=stretch)

    def _beside(self) -> str:
        """What came of what the pass does beside consolidating; it never ends the pass."""
        if self.also is None:
            return ""
        try:
            return str(self.also(self.store))
        except Exception as error:  # noqa: BLE001 - it is anybody's code, and is told of
            told = str(error) if isinstance(error, LanceMemoryError) else repr(error)
            _LOG.warning("what a pass does beside consolidating failed: %s", type(error).__name__)
            return f"failed: {told}"

    def _begin(self, before: Course) -> Mark | None:
        return before.begin(new=self.news.since(before.seen) > 0)

    def _stretch(self, plan: ConsolidationPlan, begun: Mark | None) -> Stretch:
        """What the plan considered, of the version that it was made at.

        By similarity memories without a vector were left out of it, and count here: it may have
        gone on further than this says, and never less far.
        """
        where: Where = {**self.where}
        where.setdefault("states", "visible")
        rows = self.store.at(plan.version).to_arrow(columns=["created_at", "id"], **where)
        return Stretch.of(rows, begun=begun, max_rows=self.bounds.max_rows)

    def _plan(self, stop: threading.Event, begun: Mark | None) -> ConsolidationPlan:
        return self.store.consolidate(
            self.options,
            self.transform,
            execution=self.execution,
            guard=self.guard,
            bounds=replace(self.bounds, before=begun),
            stop=stop,
            dry_run=True,
            **self.where,
        )


def about(store: MemoryStore, where: Where) -> str:
    """The memories that passes are about, as one text: the branch, and what they are filtered by.

    Raises:
        InvalidInputError: the filter makes no sense.
    """
    Filter.of(where, within=store.scope)
    given: dict[str, Any] = {**store.scope.given(), **where}
    told = [f"{name}={_one(value)}" for name, value in sorted(given.items())]
    return " ".join([store.branch_name, *told])


def _one(value: Any) -> str:
    """A filter's value, the same for the same filter."""
    if isinstance(value, str | Mapping) or not isinstance(value, Collection):
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return json.dumps(sorted(map(str, value)), ensure_ascii=False)
