"""A transform over many clusters: in order, several at a time, with timeouts and retries."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

from lance_memory.curate.transform.daemon import DaemonThreads
from lance_memory.curate.transform.protocol import BatchTransform, Transform
from lance_memory.curate.transform.verdict import Outcome, raised, verdicts
from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import instance, real, seconds, whole
from lance_memory.record.memory import Memory

__all__ = ["Execution", "Outcome", "outcomes"]

_AHEAD = 4  # batches under way for each worker, so that a slow one does not hold up the others
_LONGEST_WAIT = 30.0
_LOOK = 0.05  # seconds between two looks at `stop`


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How the clusters go through the transform.

    With one worker, no timeout and no executor, calls run in the caller's thread.

    Attributes:
        workers: calls at a time, on an executor too.
        executor: where the calls run; by default on threads of the pass. For one that runs them
            in other processes, transform and clusters are pickled. It is not shut down, and a
            call that exceeds the timeout keeps its place there until it ends.
        timeout: seconds for one call (of a whole batch, for a transform that takes batches),
            from the moment it is handed over. The call is then abandoned, not ended: nothing
            can end a thread.
        retries: further tries after an exception or a timeout. A transform that gives what is no
            memory is not asked again; one that raises then, as LLMTransform does, is.
        first_wait: seconds before the first retry; each later wait is twice as long, at most
            30 s.
    """

    workers: int = 1
    executor: Executor | None = None
    timeout: float | None = None
    retries: int = 0
    first_wait: float = 0.5

    def __post_init__(self) -> None:
        whole("workers", self.workers, least=1)
        whole("retries", self.retries, least=0)
        if self.executor is not None:
            instance("executor", self.executor, Executor, "a concurrent.futures.Executor, or None")
        if self.timeout is not None:
            seconds("timeout", self.timeout)
        real("first_wait", self.first_wait, least=0)


def outcomes(
    clusters: Iterable[Sequence[Memory]],
    transform: Transform,
    execution: Execution,
    *,
    stop: Callable[[], bool],
) -> Iterator[Outcome]:
    """One outcome for each cluster, in their order, whatever runs at a time.

    Clusters are taken as they are needed: a few batches for each worker are held, however many
    there are. Once `stop()` is true no call begins, calls under way are abandoned, and the
    outcomes end: they are those of the first clusters.

    Raises:
        InvalidInputError: the transform's batch size is no number from 1 on; the executor takes
            no calls, as one that was shut down.
        KeyboardInterrupt, SystemExit: from the transform too; whatever else it raises is the
            outcome of its cluster.
    """
    size = transform.batch_size if isinstance(transform, BatchTransform) else 1
    whole("batch_size", size, least=1)
    batches = _batches(iter(clusters), size)
    if execution.executor is not None:
        submit = partial(_there, execution.executor)
        yield from _flow(batches, transform, execution, submit, stop)
    elif execution.workers == 1 and execution.timeout is None:
        yield from _flow(batches, transform, execution, _here, stop, ahead=1)
    else:
        threads = DaemonThreads()
        try:
            yield from _flow(batches, transform, execution, threads.submit, stop)
        finally:
            threads.end()


_Submit: TypeAlias = "Callable[..., Future[list[Outcome]]]"


class _Batch:
    """Clusters that go through the transform together, until each has its outcome.

    `until` is when the call under way is given up, or else when the next one may begin.
    """

    __slots__ = ("call", "clusters", "outcomes", "tries", "until")

    def __init__(self, clusters: Sequence[Sequence[Memory]]) -> None:
        self.clusters = clusters
        self.outcomes: list[Outcome | None] = [None] * len(clusters)
        self.tries = 0
        self.call: Future[list[Outcome]] | None = None
        self.until = -math.inf

    @property
    def open(self) -> list[int]:
        """Positions of the clusters without an outcome."""
        return [place for place, outcome in enumerate(self.outcomes) if outcome is None]

    def begin(self, transform: Transform, submit: _Submit, timeout: float | None) -> None:
        """Hands the open clusters over."""
        self.tries += 1
        self.until = math.inf if timeout is None else time.monotonic() + timeout
        asked = [self.clusters[place] for place in self.open]
        try:
            self.call = submit(verdicts, transform, asked)
        except BrokenExecutor as error:
            self.call = Future()
            self.call.set_exception(error)

    def look(self, execution: Execution) -> bool:
        """Takes the outcomes of a call that ended, or gives up one that takes too long, if so."""
        if self.call is None or not (self.call.done() or time.monotonic() >= self.until):
            return False
        call, self.call, places = self.call, None, self.open
        found = _ended(call, len(places)) if call.done() else [_late(call, execution)] * len(places)
        for place, outcome in zip(places, found, strict=True):
            if not outcome.may_pass or self.tries > execution.retries:
                self.outcomes[place] = self._told(outcome)
        growth = 2 ** min(self.tries - 1, 32)
        self.until = time.monotonic() + min(execution.first_wait * growth, _LONGEST_WAIT)
        return True

    def _told(self, outcome: Outcome) -> Outcome:
        tries = f" ({self.tries} tries)" if outcome.failed and self.tries > 1 else ""
        return replace(outcome, reason=f"{outcome.reason}{tries}")


def _batches(clusters: Iterator[Sequence[Memory]], size: int) -> Iterator[_Batch]:
    while together := list(islice(clusters, size)):
        yield _Batch(together)


def _flow(
    batches: Iterator[_Batch],
    transform: Transform,
    execution: Execution,
    submit: _Submit,
    stop: Callable[[], bool],
    *,
    ahead: int | None = None,
) -> Iterator[Outcome]:
    """The outcomes in order, with at most `ahead` batches held."""
    window: deque[_Batch] = deque()
    ahead = ahead or _AHEAD * execution.workers
    try:
        while not stop():
            for batch in _startable(window, batches, execution.workers, ahead, stop):
                batch.begin(transform, submit, execution.timeout)
            if not window:
                return
            ended = [batch.look(execution) for batch in window]
            if not any(ended):
                _pause(window)
            while window and not window[0].open:
                yield from _known(window.popleft())
        yield from _rest(window, execution)
    finally:
        for call in [batch.call for batch in window if batch.call is not None]:
            call.cancel()


def _startable(
    window: deque[_Batch],
    batches: Iterator[_Batch],
    workers: int,
    ahead: int,
    stop: Callable[[], bool],
) -> Iterator[_Batch]:
    """Batches to begin now, one for each free worker: the ones to be tried again, then new ones."""
    free = workers - sum(batch.call is not None for batch in window)
    now = time.monotonic()
    again = [b for b in window if b.call is None and b.open and b.until <= now]
    yield from again[:free]
    for _ in range(min(free - len(again), ahead - len(window))):
        if stop() or (batch := next(batches, None)) is None:
            return
        window.append(batch)
        yield batch


def _rest(window: Iterable[_Batch], execution: Execution) -> Iterator[Outcome]:
    """What is known of the batches under way, up to the first cluster without an outcome."""
    for batch in window:
        batch.look(execution)
        yield from _known(batch)
        if batch.open:
            return


def _known(batch: _Batch) -> Iterator[Outcome]:
    """The outcomes up to the first that is open."""
    for outcome in batch.outcomes:
        if outcome is None:
            return
        yield outcome


def _pause(window: Iterable[_Batch]) -> None:
    """Until a call ends, its time is over, a wait is over, or it is time to look at `stop`."""
    now = time.monotonic()
    calls = [batch.call for batch in window if batch.call is not None]
    moments = [b.until - now for b in window if b.open and b.until > now]
    rest = min(moments, default=_LOOK if calls else 0.0)
    if calls:
        wait(calls, timeout=min(rest, _LOOK), return_when=FIRST_COMPLETED)
    else:
        time.sleep(min(rest, _LOOK))


def _here(function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
    """Runs the call at once, in this thread, so that Ctrl-C and debuggers work plainly."""
    future: Future[Any] = Future()
    future.set_result(function(*arguments))
    return future


def _there(executor: Executor, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
    try:
        return executor.submit(function, *arguments)
    except BrokenExecutor:
        raise
    except RuntimeError as error:
        raise InvalidInputError(
            f"the executor takes no calls: {error}; give Execution one that is not shut down"
        ) from error


def _ended(call: Future[list[Outcome]], size: int) -> list[Outcome]:
    try:
        error = call.exception()
    except CancelledError as cancelled:
        error = cancelled
    if error is None:
        return call.result()
    if isinstance(error, Exception):
        return [raised(error)] * size
    raise error


def _late(call: Future[list[Outcome]], execution: Execution) -> Outcome:
    """Gives the call up. One that never began was waiting for a place on a busy executor."""
    what = "it did not begin within" if call.cancel() else "it took longer than"
    return Outcome(reason=f"{what} {execution.timeout:g} s", failed=True, may_pass=True)
