"""Works off what the queues have, and sees to it that no job is lost."""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from lance_memory.errors import InvalidInputError, LanceMemoryError
from lance_memory.jobs.desk import Desk
from lance_memory.jobs.failure import described, may_pass
from lance_memory.jobs.forgetting import FORGOTTEN
from lance_memory.jobs.job import Job, JobState, ServicePlan
from lance_memory.jobs.lease import Leases, holds, taken
from lance_memory.jobs.records import Part
from lance_memory.jobs.sweep import put_due, put_lost
from lance_memory.service import Retry
from lance_memory.telemetry import count, observe

__all__ = ["SLOTS", "Run", "Worker"]

_LOG: Final = logging.getLogger(__name__)

Run = Callable[[list[Part], Job], Mapping[str, Any]]
"""Does a job, and gives the answer as JSON values, without content. It may be called again for a
job that was done already, by a worker that was taken for lost: then it changes nothing more."""

SLOTS: Final = MappingProxyType(
    {ServicePlan.ENTERPRISE: 4, ServicePlan.GROWTH: 2, ServicePlan.FREE: 1}
)
"""Jobs of each plan at a time."""

_RETRY: Final = Retry(attempts=5, first_wait=1.0, longest_wait=300.0)

_TICK: Final = 0.25
"""Seconds between two looks at what is due again."""


class Worker:
    """Does the jobs of a desk; any number of workers may, in any processes.

    Args:
        desk: whose jobs.
        run: does one. What it raises is a failed attempt, and never ends the worker.
        slots: how many jobs of each plan at a time; plans without one are left to others.
        retry: how often a job is begun, and the waits between.
        lease: after which a job is another's if its worker has died. While it lives, it prolongs
            it. The clocks of several machines must agree far better than that.
        grace: for jobs that run when the worker is to stop; what takes longer is taken over by
            another, or by the next.
        told: called with each job after an attempt, as it stands then, by the thread that made it.
        look: called now and then, to release jobs that wait.

    Raises InvalidInputError for slots that are no whole numbers from 1 on, or a lease or grace
    that is none.
    """

    def __init__(
        self,
        desk: Desk,
        run: Run,
        *,
        slots: Mapping[ServicePlan, int] | Mapping[str, int] | None = None,
        retry: Retry | None = None,
        lease: timedelta = timedelta(minutes=1),
        grace: timedelta = timedelta(seconds=30),
        told: Callable[[Job], object] | None = None,
        look: Callable[[], object] | None = None,
    ) -> None:
        self._desk = desk
        self._records = desk.records
        self._run = run
        self._slots = _checked(SLOTS if slots is None else slots)
        self._retry = retry or _RETRY
        if lease <= timedelta() or grace < timedelta():
            raise InvalidInputError(f"lease={lease}, grace={grace}; a lease takes some time")
        self._lease = lease
        self._grace = grace
        self._told = told
        self._look_at = look or (lambda: None)
        self._leases = Leases(self._records, lease=lease, clock=desk.clock)

    def run_until(self, stop: threading.Event) -> bool:
        """Work until `stop` is set; then let what runs end, within the grace; whether it did.

        A program sets it when it is told to end: `signal.signal(SIGTERM, lambda *_: stop.set())`.
        """
        consumers = self._desk.queue.consume(self._slots, self._worked)
        looked = -float("inf")
        try:
            while not stop.wait(_TICK):
                if time.monotonic() - looked > self._lease.total_seconds() / 3:
                    looked = time.monotonic()
                    self._look(put_lost)
                    self._look(lambda _: self._look_at())
                    consumers.look_after()
                self._look(put_due)
        finally:
            ended = consumers.stop(self._grace.total_seconds())
        return ended

    def drain(self) -> int:
        """Work in this thread until nothing is due, and give back how many jobs were begun.

        Takes over what dead workers had, once their leases are over. Does not wait for failed jobs
        that are due later, nor for those that others have.

        Raises:
            StorageError: the ledger or the queue cannot be reached.
        """
        put_lost(self._desk)
        self._look_at()
        begun, found = 0, True
        while found:
            put_due(self._desk)
            found = False
            for plan, number in self._slots.items():
                for _ in range(number):
                    id = self._desk.queue.take(plan)
                    found = found or id is not None
                    begun += id is not None and self._worked(id) is not None
        return begun

    def work(self, id: str) -> Job | None:
        """Do that job here and now; what became of it. None: it is not to be had.

        Raises:
            StorageError: the ledger cannot be reached; what becomes of the job is seen later.
        """
        job = self._claimed(id)
        payload = None if job is None else self._records.payload(id)
        if job is None:
            return None
        if payload is None:
            return self._without_payload(job)
        with self._leases.prolonged(job):
            begun = time.monotonic()
            try:
                answer = self._run(payload, job)
                told = json.loads(json.dumps(answer))
            except Exception as error:  # noqa: BLE001 (whatever it is, it is this job's failure)
                return self._failed(job, error)
            except BaseException:  # the program is to end: the job was not tried
                self._ended(job, state=JobState.QUEUED, attempts=job.attempts - 1)
                raise
            return self._done(job, told, time.monotonic() - begun)

    # -- inside ---------------------------------------------------------------------------

    def _worked(self, id: str) -> Job | None:
        job = self.work(id)
        if job is not None and self._told is not None:
            self._told(job)
        return job

    def _claimed(self, id: str) -> Job | None:
        claim = partial(
            taken,
            token=secrets.token_hex(8),
            now=self._desk.clock(),
            lease=self._lease,
            attempts=self._retry.attempts,
        )
        job = self._records.change(id, claim)
        if job is not None and job.state is JobState.DEAD:
            self._dead(job)
            return None
        return job

    def _done(self, job: Job, answer: Mapping[str, Any], seconds: float) -> Job | None:
        made = answer.get("ids", ()) if isinstance(answer, Mapping) else ()
        done = self._ended(
            job,
            state=JobState.DONE,
            ended_at=self._desk.clock(),
            answer=answer,
            memories=len(made),
            error="",
        )
        if done is not None:
            self._records.tidy(job.id)
            slots = self._slots.get(job.plan, 1)
            self._records.note_pace(job.plan, seconds=seconds, slots=slots)
            count("jobs.ended", plan=job.plan, state=done.state, tenant=job.tenant)
            observe("jobs.seconds", seconds, plan=job.plan, tenant=job.tenant)
        return done

    def _failed(self, job: Job, error: Exception) -> Job | None:
        now, told = self._desk.clock(), described(error)
        if not may_pass(error) or job.attempts >= self._retry.attempts:
            dead = self._ended(job, state=JobState.DEAD, ended_at=now, error=told)
            return dead and self._dead(dead)
        due = now + timedelta(seconds=self._retry.wait(job.attempts))
        failed = self._ended(job, state=JobState.FAILED, due_at=due, error=told)
        if failed is not None:
            self._records.delay(failed, due)
            count("jobs.failed", plan=job.plan, tenant=job.tenant)
            _LOG.info("job %s failed at attempt %d (%s)", job.id, job.attempts, told)
        return failed

    def _without_payload(self, job: Job) -> Job | None:
        """It was accepted halfway, and its task came early; or it was forgotten while it ran."""
        if job.attempts == 1:
            return self._ended(job, state=JobState.QUEUED, attempts=0)
        now = self._desk.clock()
        dead = self._ended(job, state=JobState.DEAD, ended_at=now, error=FORGOTTEN)
        return dead and self._dead(dead)

    def _dead(self, job: Job) -> Job:
        self._records.close(job.id)
        count("jobs.ended", plan=job.plan, state=job.state, tenant=job.tenant)
        _LOG.warning("job %s is dead after %d attempts: %s", job.id, job.attempts, job.error)
        return job

    def _ended(self, job: Job, **changes: Any) -> Job | None:
        """The job after this attempt. None: the lease was lost, and it is another's to say."""

        def after(now: Job) -> Job | None:
            if not holds(now, job.token):
                return None
            return replace(now, token="", lease_until=None, **changes)

        changed = self._records.change(job.id, after)
        if changed is None:
            _LOG.warning("job %s was taken over from this worker while it ran", job.id)
        return changed

    def _look(self, at: Callable[[Desk], object]) -> None:
        try:
            at(self._desk)
        except LanceMemoryError as error:
            _LOG.warning("jobs could not be looked after, which is tried again: %s", error)


def _checked(slots: Mapping[ServicePlan, int] | Mapping[str, int]) -> dict[ServicePlan, int]:
    fits = slots and all(
        plan in list(ServicePlan) and type(number) is int and number > 0
        for plan, number in slots.items()
    )
    if not fits:
        raise InvalidInputError(
            f"slots={dict(slots)}; it takes a whole number from 1 on for some of "
            f"{', '.join(ServicePlan)}"
        )
    return {ServicePlan(plan): number for plan, number in slots.items()}
