"""A job: what was accepted for later, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from lance_memory.record.memory import Scope

__all__ = ["Job", "JobState", "ServicePlan"]


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    """It is tried as soon as a worker of its plan is free."""

    WAITING = "waiting"
    """Something before it must come first; `Desk.release` queues it."""

    RUNNING = "running"
    """A worker has it, until the end of its lease."""

    FAILED = "failed"
    """The last try failed, and there will be another, from `due_at` on."""

    DONE = "done"

    DEAD = "dead"
    """Nobody tries it any more, until somebody asks to (`Desk.retry`)."""

    @property
    def ended(self) -> bool:
        """Whether no worker will take it by itself."""
        return self in (JobState.DONE, JobState.DEAD)


class ServicePlan(StrEnum):
    """What a tenant has booked: each has workers of its own, so none waits for another."""

    ENTERPRISE = "enterprise"
    GROWTH = "growth"
    FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job. It has nothing of what was said; that is in its payload until it is done.

    Attributes:
        id: of a job with an idempotency key, made from the tenant and the key.
        tenant: whose.
        scopes: of whom its conversations are, each once; those that were forgotten are gone.
        plan: which workers take it.
        priority: among the jobs of a plan, the greater first.
        attempts: how often it was begun since it was accepted, or tried again by hand.
        retries: how often that was (`Desk.retry`).
        accepted_at: when it was.
        eta: seconds from then on, in which it was likely to be done; None: unknown.
        started_at: when the last attempt began.
        ended_at: when it was done or died.
        due_at: of a failed one, when it is tried again.
        error: why the last attempt failed: a kind and a place, and the message where that can
            have no content.
        answer: JSON of what came of it, without content; None: nothing yet, or forgotten.
        memories: how many `ids` the answer has.
        seqs: the first and the last number of its events, where they have numbers.
        digest: of what was handed in, by which a repeated call is told from another one.
        token: of the worker that has it.
        lease_until: until when that is so, unless the worker prolongs it.
    """

    id: str
    accepted_at: datetime
    digest: str
    tenant: str = ""
    scopes: tuple[Scope, ...] = ()
    plan: ServicePlan = ServicePlan.FREE
    priority: int = 0
    state: JobState = JobState.QUEUED
    attempts: int = 0
    retries: int = 0
    eta: float | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    due_at: datetime | None = None
    error: str = ""
    answer: Mapping[str, Any] | None = None
    memories: int = 0
    seqs: tuple[int, int] | None = None
    token: str = field(default="", repr=False)
    lease_until: datetime | None = None

    def ready(self, now: datetime) -> bool:
        """Whether a worker may take it: it is queued, due again, or its worker's lease is over."""
        match self.state:
            case JobState.QUEUED:
                return True
            case JobState.FAILED:
                return self.due_at is None or self.due_at <= now
            case JobState.RUNNING:
                return self.lease_until is None or self.lease_until <= now
        return False

    def to_json(self) -> dict[str, Any]:
        """As JSON values; nothing of it is content."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Job:
        """The inverse of `to_json`."""
        times = {name: _time(values.get(name)) for name in _TIMES}
        return cls(
            **{
                **values,
                **times,
                "scopes": tuple(Scope(**names) for names in values["scopes"]),
                "plan": ServicePlan(values["plan"]),
                "state": JobState(values["state"]),
                "seqs": None if values["seqs"] is None else tuple(values["seqs"]),
            }
        )

    def to_bytes(self) -> bytes:
        """As a ledger keeps it."""
        return json.dumps(self.to_json(), separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, raw: bytes) -> Job:
        """The inverse of `to_bytes`."""
        return cls.from_json(json.loads(raw))


_TIMES = ("accepted_at", "started_at", "ended_at", "due_at", "lease_until")


def _time(text: str | None) -> Any:
    return None if text is None else datetime.fromisoformat(text)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.given() if isinstance(value, Scope) else value
