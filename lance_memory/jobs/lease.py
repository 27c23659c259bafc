"""A worker has a job until its lease ends; it prolongs it while it lives."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from lance_memory.errors import StorageError
from lance_memory.jobs.job import Job, JobState
from lance_memory.jobs.records import Records
from lance_memory.record.times import Clock

__all__ = ["Leases", "holds", "taken"]

_LOG: Final = logging.getLogger(__name__)


def holds(job: Job, token: str) -> bool:
    """Whether the worker of that token has the job: nobody took it over."""
    return job.state is JobState.RUNNING and job.token == token


def taken(job: Job, *, token: str, now: datetime, lease: timedelta, attempts: int) -> Job | None:
    """The job as the worker of that token has it; None: it is not to be had.

    One whose worker was lost at each of so many attempts is dead: it may be what kills them.
    """
    if not job.ready(now):
        return None
    if job.state is JobState.RUNNING and job.attempts >= attempts:
        error = f"its worker ended without a word, {job.attempts} times at most"
        return _ended(job, now, error)
    return replace(
        job,
        state=JobState.RUNNING,
        attempts=job.attempts + 1,
        started_at=now,
        due_at=None,
        token=token,
        lease_until=now + lease,
    )


def _ended(job: Job, now: datetime, error: str) -> Job:
    state = JobState.DEAD
    return replace(job, state=state, ended_at=now, error=error, token="", lease_until=None)


class Leases:
    """Prolongs the leases of all jobs that one worker has, in a thread that ends with them."""

    def __init__(self, records: Records, *, lease: timedelta, clock: Clock) -> None:
        self._records = records
        self._lease = lease
        self._clock = clock
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._held: dict[str, str] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def prolonged(self, job: Job) -> Iterator[None]:
        """The job's lease does not end while the block lasts and this process lives."""
        with self._lock:
            self._held[job.id] = job.token
            if self._thread is None:
                self._wake.clear()
                self._thread = threading.Thread(target=self._prolong, daemon=True, name="leases")
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                del self._held[job.id]
                if not self._held:
                    self._wake.set()

    def _prolong(self) -> None:
        while True:
            self._wake.wait(self._lease.total_seconds() / 3)
            with self._lock:
                self._wake.clear()
                if not self._held:
                    self._thread = None
                    return
                held = dict(self._held)
            for id, token in held.items():
                self._prolong_one(id, token)

    def _prolong_one(self, id: str, token: str) -> None:
        def longer(job: Job) -> Job | None:
            until = self._clock() + self._lease
            return replace(job, lease_until=until) if holds(job, token) else None

        try:
            self._records.change(id, longer)
        except (StorageError, OSError, ValueError) as error:  # the last two: closed meanwhile
            _LOG.warning("the lease of job %s could not be prolonged: %s", id, error)
