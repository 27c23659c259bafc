"""Jobs and payloads in a ledger: what is true of a job, whatever becomes of its task.

Spaces: "jobs" has each job, "payloads" what is to be worked off, "open" the ids of jobs that have
not ended, "delayed" when failed ones are due, "pace" how fast each plan's jobs went.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from lance_memory.jobs.job import Job, ServicePlan
from lance_memory.ledger import Ledger
from lance_memory.record.memory import Scope

__all__ = ["Pace", "Part", "Records"]

_JOBS: Final = "jobs"
_PAYLOADS: Final = "payloads"
_OPEN: Final = "open"
_DELAYED: Final = "delayed"
_PACE: Final = "pace"

_NEWEST: Final = 0.2
"""Weight of the last job in the mean of durations."""

Part = tuple[Scope, Any]
"""One conversation of a payload, as JSON values, and whose it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast the jobs of a plan went: seconds for each, and how many at a time."""

    seconds: float
    slots: int


class Records:
    """Reads and writes them; each change of a job is one swap."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def find(self, id: str) -> Job | None:
        """The job of that id."""
        raw = self.ledger.get(_JOBS, id)
        return None if raw is None else Job.from_bytes(raw)

    def named(self, prefix: str) -> Iterator[Job]:
        """The jobs whose ids begin so, ordered by id; "" for all."""
        for _, raw in self.ledger.items(_JOBS, prefix=prefix):
            yield Job.from_bytes(raw)

    def create(self, job: Job) -> bool:
        """Note a new job; False: there is one of its id."""
        return self.ledger.swap(_JOBS, job.id, old=None, new=job.to_bytes())

    def change(self, id: str, change: Callable[[Job], Job | None]) -> Job | None:
        """The job as `change` makes it of what it is now; None: there is none, or it gave None."""
        while True:
            raw = self.ledger.get(_JOBS, id)
            changed = None if raw is None else change(Job.from_bytes(raw))
            if changed is None:
                return None
            if self.ledger.swap(_JOBS, id, old=raw, new=changed.to_bytes()):
                return changed

    def remove(self, job: Job) -> bool:
        """Remove the job with all that is of it, if it is still what it was; whether it was."""
        raw = self.ledger.get(_JOBS, job.id)
        if raw is None or Job.from_bytes(raw) != job:
            return False
        if not self.ledger.swap(_JOBS, job.id, old=raw, new=None):
            return False
        self.tidy(job.id)
        return True

    # -- payloads -------------------------------------------------------------------------

    def put_payload(self, id: str, parts: Sequence[Part]) -> None:
        """Keep what is to be worked off."""
        self.ledger.put(_PAYLOADS, id, _packed(parts))

    def payload(self, id: str) -> list[Part] | None:
        """What is to be worked off; None: it is done, forgotten, or not there yet."""
        raw = self.ledger.get(_PAYLOADS, id)
        return None if raw is None else _unpacked(raw)

    def cut(self, id: str, goes: Callable[[Part], bool]) -> tuple[int, int]:
        """Take some parts out of a payload: how many went, and how many are left."""
        while True:
            raw = self.ledger.get(_PAYLOADS, id)
            parts = [] if raw is None else _unpacked(raw)
            left = [part for part in parts if not goes(part)]
            new = _packed(left) if left else None
            if len(left) == len(parts) or self.ledger.swap(_PAYLOADS, id, old=raw, new=new):
                return len(parts) - len(left), len(left)

    def drop_payload(self, id: str) -> None:
        """Nothing of it is needed any more."""
        self.ledger.remove(_PAYLOADS, id)

    # -- what has not ended ---------------------------------------------------------------

    def open(self, job: Job) -> None:
        """Note that a job has not ended, so that it is looked after. Done before it is created."""
        self.ledger.put(_OPEN, job.id, job.accepted_at.isoformat().encode())

    def opened_before(self, id: str, moment: datetime) -> bool:
        """Whether that was before."""
        raw = self.ledger.get(_OPEN, id)
        return raw is not None and datetime.fromisoformat(raw.decode()) < moment

    def all_open(self) -> Iterator[str]:
        """The ids of the jobs that have not ended, and of some that have."""
        return (id for id, _ in self.ledger.items(_OPEN))

    def close(self, id: str) -> None:
        """A job has ended."""
        self.ledger.remove(_OPEN, id)

    def tidy(self, id: str) -> None:
        """Remove what a job that is done, or gone, has left."""
        self.drop_payload(id)
        self.close(id)

    def delay(self, job: Job, due: datetime) -> None:
        """Note when a job is due again."""
        self.ledger.put(_DELAYED, f"{_milliseconds(due):015d}.{job.id}", b"")

    def pop_due(self, now: datetime) -> Iterator[str]:
        """The ids of jobs that are due again; each is struck off once it is dealt with."""
        limit = f"{_milliseconds(now):015d}/"  # "/" comes after "."
        for key, _ in self.ledger.items(_DELAYED):
            if key > limit:
                return
            yield key.partition(".")[2]
            self.ledger.remove(_DELAYED, key)

    # -- how fast it goes -----------------------------------------------------------------

    def pace(self, plan: ServicePlan) -> Pace | None:
        """How fast the jobs of a plan went lately; None: none was done yet."""
        raw = self.ledger.get(_PACE, plan)
        return None if raw is None else Pace(**json.loads(raw))

    def note_pace(self, plan: ServicePlan, *, seconds: float, slots: int) -> None:
        """One more job took so long. Of two at once, one may be left out of the mean."""
        known = self.pace(plan)
        mean = seconds if known is None else known.seconds + _NEWEST * (seconds - known.seconds)
        self.ledger.put(_PACE, plan, json.dumps({"seconds": mean, "slots": slots}).encode())


def _packed(parts: Sequence[Part]) -> bytes:
    told = [[scope.given(), part] for scope, part in parts]
    return json.dumps(told, separators=(",", ":")).encode()


def _unpacked(raw: bytes) -> list[Part]:
    return [(Scope(**names), part) for names, part in json.loads(raw)]


def _milliseconds(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp() * 1_000)
