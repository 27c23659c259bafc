"""In which order the events of a tenant are worked off, and up to where all of them are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar

from lance_memory.errors import ConflictError, InvalidInputError, RejectedError
from lance_memory.ingest.progress import Handed, Progress
from lance_memory.ingest.ranges import Ranges, minus, ranges_of, size
from lance_memory.ledger import Ledger
from lance_memory.record.filters import any_of, beyond, none_of
from lance_memory.record.times import utc

__all__ = ["ORDER", "Arrival", "Arrived", "Order", "OrderOptions", "Watermarks", "boundary"]

ORDER: Final = "order"
_TRIES: Final = 1_000
"""Of one change against others of the same tenant; each failed try is another's success."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOptions:
    """How long, and for how many, events wait for those before them.

    Attributes:
        bound: events of one tenant that wait, at most.
        timeout: how long they do, before what is missing is given up as a gap.
        start: the first `seq` of a tenant.
    """

    bound: int = 1_000
    timeout: timedelta = timedelta(minutes=5)
    start: int = 0

    def __post_init__(self) -> None:
        if self.bound < 0 or self.start < 0 or self.timeout < timedelta():
            raise InvalidInputError(
                f"bound={self.bound}, timeout={self.timeout}, start={self.start}; none is negative"
            )


class Arrived(StrEnum):
    """What becomes of a job now."""

    READY = "ready"
    """It is next: run it."""

    BUFFERED = "buffered"
    """It waits for what is before it; `done` or `overdue` names it when it is next."""

    REPLAYED = "replayed"
    """All of its events were here before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """What becomes of a job, and which of its events are new: the others are another job's."""

    status: Arrived
    fresh: Ranges = ()

    def has(self, seq: int) -> bool:
        """Whether the event of that number is new, so that this job is the one to work it off."""
        return any(first <= seq <= last for first, last in self.fresh)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermarks:
    """How far a tenant is. A number one below the start: nothing is yet.

    Attributes:
        ingested: the greatest number that has arrived.
        contiguous: all events up to here are worked off, or were skipped.
        distilled: all up to here went into what is made of memories.
        gaps: what is missing below `ingested`, as (first, last).
        given_up: those of the gaps that are not waited for any more.
        buffered: events that wait.
        running: the jobs that were handed out and are not done.
    """

    ingested: int
    contiguous: int
    distilled: int
    gaps: Ranges = ()
    given_up: Ranges = ()
    buffered: int = 0
    running: tuple[str, ...] = ()


class Order:
    """The order of each tenant's events, kept in a ledger; safe for any threads and processes.

    A job is ready when everything below its first new event is worked off. It is handed out once,
    by `arrived`, `done`, `skip`, `failed` or `overdue`, and asking again with the same job's name
    gives the same answer, so that a killed caller may repeat its call.

    Every method raises StorageError where the ledger cannot be reached.
    """

    def __init__(self, ledger: Ledger, options: OrderOptions | None = None) -> None:
        self._ledger = ledger
        self.options = options or OrderOptions()

    def arrived(self, tenant: str, seqs: Collection[int], *, job: str, now: datetime) -> Arrival:
        """Note that a job has these events, and say whether it is next.

        Raises:
            RejectedError: more events would wait than the bound allows; nothing was noted.
            InvalidInputError: no events, or one before the start.
        """
        moment = utc(now, "now")
        asked = _asked(seqs, start=self.options.start)
        return self._changed(tenant, lambda was: self._noted(was, asked, job, moment))

    def done(self, tenant: str, job: str) -> tuple[str, ...]:
        """Note that a job's events are worked off; the jobs that are next now.

        Of a job that was not handed out, or is done already, nothing is noted.
        """
        return self._changed(tenant, lambda was: was.done(job).released())

    def failed(self, tenant: str, job: str) -> tuple[str, ...]:
        """Note that a job was given up: its events become a gap; the jobs that are next now."""
        return self._changed(tenant, lambda was: was.failed(job).released())

    def overdue(self, now: datetime) -> tuple[tuple[str, str], ...]:
        """The (tenant, job) to be run although something before them is missing.

        What is missing is a gap from now on, and is not waited for again.
        """
        moment = utc(now, "now") - self.options.timeout
        states = ((tenant, self._of(raw)) for tenant, raw in self._ledger.items(ORDER))
        late = [tenant for tenant, was in states if was.is_late(moment)]
        return tuple(
            (tenant, job)
            for tenant in late
            for job in self._changed(tenant, lambda was: was.past_gap(moment))
        )

    def skip(self, tenant: str, gap: tuple[int, int]) -> tuple[str, ...]:
        """Accept that the events of a gap are not there; the jobs that are next now.

        The contiguous watermark goes past them. One that arrives later is worked off all the same.
        What has arrived is not skipped. Of a tenant that nothing arrived of yet, this sets where
        its events begin.

        Raises:
            InvalidInputError: the gap ends before it begins, or begins before the start.
        """
        first, last = gap
        if not self.options.start <= first <= last:
            raise InvalidInputError(
                f"gap={gap}; it is (first, last) from {self.options.start} on, in that order"
            )
        return self._changed(tenant, lambda was: was.skipping(((first, last),)).released())

    def distilled(self, tenant: str, seq: int) -> Watermarks:
        """Note that everything up to `seq` went into what is made of memories.

        Raises:
            InvalidInputError: `seq` is past the contiguous watermark.
        """

        def noted(was: Progress) -> tuple[Progress, None]:
            if seq > was.contiguous:
                raise InvalidInputError(
                    f"seq {seq} is not reached: the events of the tenant are complete up to "
                    f"{was.contiguous}"
                )
            return replace(was, distilled=max(was.distilled, seq)), None

        self._changed(tenant, noted)
        return self.status(tenant)

    def status(self, tenant: str) -> Watermarks:
        """How far a tenant is."""
        return _watermarks(self._of(self._ledger.get(ORDER, tenant)))

    def knows(self, tenant: str, job: str) -> bool:
        """Whether a job waits for its turn, or was handed out and is not done."""
        return self._of(self._ledger.get(ORDER, tenant)).handed(job) is not None

    def tenants(self) -> Iterator[str]:
        """Those that events have arrived of, by name."""
        return (tenant for tenant, _ in self._ledger.items(ORDER))

    def ceiling(self, tenant: str) -> int | None:
        """Up to which number its memories may be consolidated; None: nothing is outstanding."""
        marks = self.status(tenant)
        return None if marks.contiguous >= marks.ingested else marks.contiguous

    def _noted(
        self, was: Progress, asked: Ranges, job: str, now: datetime
    ) -> tuple[Progress, Arrival]:
        if known := was.handed(job):
            ready = known in was.running
            status = Arrived.READY if ready else Arrived.BUFFERED
            return was, Arrival(status=status, fresh=known.events)
        fresh = minus(asked, was.claimed)
        if not fresh:
            return was, Arrival(status=Arrived.REPLAYED)
        new = Handed(job=job, events=fresh, since=now)
        if was.is_next(new):
            return was.starting(new), Arrival(status=Arrived.READY, fresh=fresh)
        waiting = sum(size(one.events) for one in was.buffered) + size(fresh)
        if waiting > self.options.bound:
            raise RejectedError(
                f"the buffer is full: {waiting:,} events of the tenant would wait for what comes "
                f"after {was.contiguous}, and the bound is {self.options.bound:,}; send what is "
                "missing first, or skip it"
            )
        return was.waiting(new), Arrival(status=Arrived.BUFFERED, fresh=fresh)

    def _changed(self, tenant: str, change: Callable[[Progress], tuple[Progress, _T]]) -> _T:
        for _ in range(_TRIES):
            raw = self._ledger.get(ORDER, tenant)
            was = self._of(raw)
            made, answer = change(was)
            if made == was or self._ledger.swap(ORDER, tenant, old=raw, new=made.to_json()):
                return answer
        raise ConflictError(f"the order of one tenant was changed {_TRIES:,} times meanwhile")

    def _of(self, raw: bytes | None) -> Progress:
        return Progress.from_json(raw) if raw else Progress.new(self.options.start)


def boundary(order: Order, tenants: Iterable[str] | None = None) -> str | None:
    """The predicate that memories may be consolidated which nothing is missing before.

    Of tenants with events outstanding, those above the contiguous watermark are left out; memories
    without a `seq` and all other tenants' are not touched. None: every row passes. To be asked
    before the version that is read is chosen: what is complete then is in every later version.

    Args:
        order: of the store.
        tenants: whose; None: of all that events have arrived of.
    """
    asked = order.tenants() if tenants is None else tenants
    ceilings = ((tenant, order.ceiling(tenant)) for tenant in asked)
    outside = [beyond(tenant, seq) for tenant, seq in ceilings if seq is not None]
    return none_of(any_of(*outside)) if outside else None


def _asked(seqs: Collection[int], *, start: int) -> Ranges:
    asked = ranges_of((seq, seq) for seq in set(seqs))
    if not asked or asked[0][0] < start:
        raise InvalidInputError(
            f"there are {len(seqs):,} events, from {min(seqs, default=None)} on; a job has at "
            f"least one, and they count from {start} on"
        )
    return asked


def _watermarks(of: Progress) -> Watermarks:
    return Watermarks(
        ingested=of.ingested,
        contiguous=of.contiguous,
        distilled=of.distilled,
        gaps=of.gaps,
        given_up=minus(of.given_up, of.claimed),
        buffered=sum(size(one.events) for one in of.buffered),
        running=tuple(one.job for one in of.running),
    )
