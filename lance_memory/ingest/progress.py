"""The events of one tenant: which are worked off, handed out, waiting, missing. Pure values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lance_memory.ingest.ranges import Ranges, minus, ranges_of, up_to
from lance_memory.record.times import parse_instant

__all__ = ["Handed", "Progress"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """A job with its events, and since when it is here."""

    job: str
    events: Ranges
    since: datetime

    @property
    def first(self) -> int:
        """Its first event."""
        return self.events[0][0]

    def to_json(self) -> list[Any]:
        """As JSON values."""
        return [self.job, [list(one) for one in self.events], self.since.isoformat()]

    @classmethod
    def from_json(cls, values: list[Any]) -> Handed:
        """The inverse of `to_json`."""
        job, events, since = values
        return cls(job=job, events=_ranges(events), since=parse_instant(since))


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is known of the events of one tenant.

    Attributes:
        start: the first number there is.
        finished: worked off.
        skipped: accepted as missing; counted as worked off, until they arrive after all.
        given_up: missing, and not waited for.
        running: handed out.
        buffered: waiting for what is before them.
        distilled: up to where the rest of the house has read.
    """

    start: int
    distilled: int
    finished: Ranges = ()
    skipped: Ranges = ()
    given_up: Ranges = ()
    running: tuple[Handed, ...] = ()
    buffered: tuple[Handed, ...] = ()

    @classmethod
    def new(cls, start: int) -> Progress:
        """Of a tenant that nothing arrived of."""
        return cls(start=start, distilled=start - 1)

    @property
    def contiguous(self) -> int:
        """Everything up to here is worked off or skipped."""
        return up_to(ranges_of([*self.finished, *self.skipped]), self.start)

    @property
    def claimed(self) -> Ranges:
        """What has arrived."""
        return ranges_of([*self.finished, *_events(self.running), *_events(self.buffered)])

    @property
    def ingested(self) -> int:
        """The greatest number that arrived, or was skipped or given up."""
        known = [*self.claimed, *self.skipped, *self.given_up]
        return max((last for _, last in known), default=self.start - 1)

    @property
    def gaps(self) -> Ranges:
        """What is missing below `ingested`."""
        return self._missing_below(self.ingested)

    def handed(self, job: str) -> Handed | None:
        """The job, where it runs or waits."""
        return next((one for one in (*self.running, *self.buffered) if one.job == job), None)

    def is_next(self, one: Handed) -> bool:
        """Whether nothing before its first event is still to come, to wait or to end."""
        settled = ranges_of([*self.finished, *self.skipped, *self.given_up])
        return up_to(settled, self.start) >= one.first - 1

    def starting(self, one: Handed) -> Progress:
        """With a job handed out."""
        buffered = tuple(other for other in self.buffered if other.job != one.job)
        return replace(self, running=(*self.running, one), buffered=buffered)

    def waiting(self, one: Handed) -> Progress:
        """With a job that waits."""
        return replace(self, buffered=tuple(sorted([*self.buffered, one], key=_first)))

    def done(self, job: str) -> Progress:
        """With a job's events worked off."""
        events = self._running(job)
        return replace(
            self._without(job),
            finished=ranges_of([*self.finished, *events]),
            skipped=minus(self.skipped, events),
            given_up=minus(self.given_up, events),
        )

    def failed(self, job: str) -> Progress:
        """With a job's events given up."""
        return replace(
            self._without(job), given_up=ranges_of([*self.given_up, *self._running(job)])
        )

    def skipping(self, gap: Ranges) -> Progress:
        """With what is missing of a gap accepted as missing."""
        missing = minus(gap, self.claimed)
        return replace(
            self,
            skipped=ranges_of([*self.skipped, *missing]),
            given_up=minus(self.given_up, missing),
        )

    def released(self) -> tuple[Progress, tuple[str, ...]]:
        """With the waiting jobs that are next handed out, and their names."""
        made, names = self, []
        for one in self.buffered:
            if made.is_next(one):
                made = made.starting(one)
                names.append(one.job)
        return made, tuple(names)

    def is_late(self, moment: datetime) -> bool:
        """Whether one has waited since that moment, and for what is missing, not for what runs."""
        waits = any(one.since <= moment for one in self.buffered)
        return waits and not any(one.first < self.buffered[0].first for one in self.running)

    def past_gap(self, moment: datetime) -> tuple[Progress, tuple[str, ...]]:
        """With what the first waiting job waits for given up, and the jobs that are next."""
        if not self.is_late(moment):
            return self, ()
        missing = self._missing_below(self.buffered[0].first - 1)
        return replace(self, given_up=ranges_of([*self.given_up, *missing])).released()

    def to_json(self) -> bytes:
        """As JSON text."""
        values = {
            "start": self.start,
            "distilled": self.distilled,
            "finished": self.finished,
            "skipped": self.skipped,
            "given_up": self.given_up,
            "running": [one.to_json() for one in self.running],
            "buffered": [one.to_json() for one in self.buffered],
        }
        return json.dumps(values, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, raw: bytes) -> Progress:
        """The inverse of `to_json`."""
        values = json.loads(raw)
        return cls(
            start=values["start"],
            distilled=values["distilled"],
            finished=_ranges(values["finished"]),
            skipped=_ranges(values["skipped"]),
            given_up=_ranges(values["given_up"]),
            running=tuple(map(Handed.from_json, values["running"])),
            buffered=tuple(map(Handed.from_json, values["buffered"])),
        )

    def _missing_below(self, last: int) -> Ranges:
        if last < self.start:
            return ()
        return minus([(self.start, last)], ranges_of([*self.claimed, *self.skipped]))

    def _running(self, job: str) -> Ranges:
        return next((one.events for one in self.running if one.job == job), ())

    def _without(self, job: str) -> Progress:
        return replace(self, running=tuple(one for one in self.running if one.job != job))


def _first(one: Handed) -> int:
    return one.first


def _events(handed: Iterable[Handed]) -> list[tuple[int, int]]:
    return [part for one in handed for part in one.events]


def _ranges(values: Iterable[Iterable[int]]) -> Ranges:
    return tuple((first, last) for first, last in values)
