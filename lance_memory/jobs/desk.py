"""Where jobs are handed in and asked about."""

from __future__ import annotations

import builtins
import copy
import hashlib
import json
import logging
import math
import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import Any, Final

from lance_memory.errors import (
    AmbiguousError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    ScopeError,
    StorageError,
)
from lance_memory.jobs import forgetting
from lance_memory.jobs.forgetting import ForgottenJobs, Words
from lance_memory.jobs.job import Job, JobState, ServicePlan
from lance_memory.jobs.queue import Queue
from lance_memory.jobs.records import Part, Records
from lance_memory.ledger import Ledger
from lance_memory.record.identity import new_id
from lance_memory.record.memory import Scope
from lance_memory.record.times import Clock, utc_now
from lance_memory.telemetry import count

__all__ = ["Desk", "ForgottenJobs", "PurgeResult"]

_LOG: Final = logging.getLogger(__name__)

_NAMES: Final = uuid.UUID("b1a60f6e-7c3d-5d7f-8a4e-52d2b0f3c9a1")
"""Of the ids that are made from an idempotency key: a version 5 UUID needs a namespace."""

_LONGEST_LOOK: Final = 0.25
"""Seconds between two looks at a job that somebody waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeResult:
    """The jobs that were removed, or would be."""

    jobs: tuple[Job, ...]
    dry_run: bool


class Desk:
    """Accepts jobs, and knows what became of them; safe for any threads and processes.

    Every method raises StorageError where the ledger cannot be reached.

    Args:
        ledger: has all that is true of the jobs.
        queue: what workers are told by.
        clock: the present moment.
    """

    def __init__(self, ledger: Ledger, queue: Queue, *, clock: Clock = utc_now) -> None:
        self._records = Records(ledger)
        self._queue = queue
        self.clock = clock
        self._scope = Scope()

    def within(self, scope: Scope) -> Desk:
        """The desk for whoever is kept to a scope: it finds no job of anybody else's.

        A job is of a scope that holds all of its conversations. Only to look and to wait: all else
        raises ScopeError.
        """
        if not scope:
            return self
        made = copy.copy(self)
        made._scope = scope
        return made

    @property
    def records(self) -> Records:
        """The jobs of the whole store as the ledger has them, for its workers.

        Raises:
            ScopeError: this desk is kept to a scope.
        """
        self._refuse_scoped("records")
        return self._records

    @property
    def queue(self) -> Queue:
        """What the workers of the whole store are told by.

        Raises:
            ScopeError: this desk is kept to a scope.
        """
        self._refuse_scoped("queue")
        return self._queue

    def accept(
        self,
        payload: Sequence[Part],
        *,
        tenant: str = "",
        plan: ServicePlan | str = ServicePlan.FREE,
        priority: int = 0,
        idempotency_key: str = "",
        digest: str = "",
        seqs: tuple[int, int] | None = None,
        waiting: bool = False,
    ) -> Job:
        """Keep what is to be worked off, and put it on the queue of its plan.

        With a key, the second call gives the job of the first, whatever became of it, also when
        both come at once, from other processes, or after a restart.

        Args:
            payload: conversations as JSON values, and whose each is. Redacted: it stays in the
                ledger until the job is done, purged or forgotten.
            tenant: within which the key is one.
            plan: which workers take it.
            priority: among the jobs of the plan, the greater first.
            idempotency_key: the caller's name for this call; empty: each call is a job.
            digest: by which two payloads of one key are told apart; empty: SHA-256 of `payload`.
            seqs: the first and the last number of its events.
            waiting: it is not its turn; `release` queues it.

        Raises:
            InvalidInputError: the payload is no JSON, or there is no such plan.
            ConflictError: the key was used with another payload.
        """
        self._refuse_scoped("accept")
        told = digest or _digest(payload)
        now = self.clock()
        job = Job(
            id=_id_of(tenant, idempotency_key) if idempotency_key else new_id(now),
            accepted_at=now,
            digest=told,
            tenant=tenant,
            scopes=tuple(dict.fromkeys(scope for scope, _ in payload)),
            plan=_plan_of(plan),
            priority=priority,
            state=JobState.WAITING if waiting else JobState.QUEUED,
            seqs=seqs,
        )
        job = replace(job, eta=None if waiting else self._expected(job.plan))
        while (accepted := self._accepted(job, payload)) is None:
            continue  # one that was left halfway was removed meanwhile
        return accepted

    def find(self, id: str) -> Job | None:
        """The job of that id."""
        job = self._records.find(id)
        return job if job is not None and self._shows(job) else None

    def get(self, ref: str) -> Job:
        """The job of that id, or of the unambiguous beginning of one.

        Raises:
            NotFoundError: there is none.
            AmbiguousError: there are several.
        """
        exact = self.find(ref)
        if exact is not None:
            return exact
        found = list(islice(filter(self._shows, self._records.named(ref)), 6)) if ref else []
        if not found:
            raise NotFoundError(
                f"there is no job {ref!r}; `list` shows all, unless they were purged"
            )
        if len(found) > 1:
            ids = [job.id for job in found]
            raise AmbiguousError(
                f"several jobs begin with {ref!r}; give more of it", candidates=ids
            )
        return found[0]

    def list(
        self, *, states: Collection[JobState | str] = (), tenant: str | None = None
    ) -> builtins.list[Job]:
        """The jobs in these states (none given: in any), the earliest accepted first."""
        wanted = {_state_of(state) for state in states}
        found = [
            job
            for job in self._records.named("")
            if (not wanted or job.state in wanted)
            and tenant in (None, job.tenant)
            and self._shows(job)
        ]
        return sorted(found, key=lambda job: (job.accepted_at, job.id))

    def wait(self, ref: str, *, timeout: float) -> Job:
        """The job once it is done or dead, or as it is after so many seconds.

        Raises:
            NotFoundError: there is none.
        """
        end, pause = time.monotonic() + timeout, 0.005
        while True:
            job = self.get(ref)
            left = end - time.monotonic()
            if job.state.ended or left <= 0:
                return job
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_LOOK)

    def release(self, ids: Iterable[str]) -> builtins.list[Job]:
        """Queue those of the jobs that wait; gives them."""
        self._refuse_scoped("release")

        def queued(job: Job) -> Job | None:
            eta = self._expected(job.plan)
            waits = job.state is JobState.WAITING
            return replace(job, state=JobState.QUEUED, eta=eta) if waits else None

        released = [job for id in ids if (job := self._records.change(id, queued))]
        for job in released:
            self._put(job)
            count("jobs.accepted", plan=job.plan, tenant=job.tenant)
        return released

    def hold(self, id: str, answer: Mapping[str, Any]) -> Job | None:
        """Keep what is known so far of a job that waits; the first of several calls counts.

        What of it tells of people is under "known": forgetting takes that out, and keeps the rest
        until the job has ended.

        None: it does not wait, or something is known already.
        """
        self._refuse_scoped("hold")

        def noted(job: Job) -> Job | None:
            waits = job.state is JobState.WAITING and job.answer is None
            return replace(job, answer=answer) if waits else None

        return self._records.change(id, noted)

    def settle(self, id: str, answer: Mapping[str, Any]) -> Job | None:
        """End a job that waits, with nothing to do but this answer; None: it does not wait."""
        self._refuse_scoped("settle")
        now = self.clock()

        def settled(job: Job) -> Job | None:
            if job.state is not JobState.WAITING:
                return None
            return replace(job, state=JobState.DONE, answer=answer, ended_at=now)

        done = self._records.change(id, settled)
        if done is not None:
            self._records.tidy(id)
        return done

    def retry(self, refs: Iterable[str]) -> builtins.list[Job]:
        """Try dead and failed jobs again at once, as if they were new; gives them.

        Raises:
            NotFoundError, AmbiguousError: as `get`.
            ConflictError: one is neither, or its payload is gone; those before it are queued.
            ScopeError: this desk is kept to a scope.
        """
        self._refuse_scoped("retry")
        return [self._again(self.get(ref)) for ref in refs]

    def purge(
        self,
        refs: Iterable[str] | None = None,
        *,
        states: Collection[JobState | str] = (JobState.DONE, JobState.DEAD),
        older_than: timedelta = timedelta(),
        dry_run: bool = False,
    ) -> PurgeResult:
        """Remove jobs with their answers and payloads; one that has changed meanwhile stays.

        Danger: a key of such a job names no answer any more: a call that is repeated is a new job.

        Args:
            refs: these of them alone; None: all.
            states: in one of these states; any but "running".
            older_than: since they ended, or were accepted.
            dry_run: say which, and remove nothing.

        Raises:
            InvalidInputError: running jobs cannot be removed.
            NotFoundError, AmbiguousError: as `get`.
            ScopeError: this desk is kept to a scope.
        """
        self._refuse_scoped("purge")
        wanted = {_state_of(state) for state in states}
        if JobState.RUNNING in wanted or not wanted:
            raise InvalidInputError("purge takes the states of jobs that do not run; give them")
        before = self.clock() - older_than
        asked = self.list(states=wanted) if refs is None else [self.get(ref) for ref in refs]
        chosen = [
            job
            for job in asked
            if job.state in wanted and (job.ended_at or job.accepted_at) <= before
        ]
        if not dry_run:
            chosen = [job for job in chosen if self._records.remove(job)]
        return PurgeResult(jobs=tuple(chosen), dry_run=dry_run)

    def forget(self, scope: Scope) -> ForgottenJobs:
        """Take what is of a scope out of payloads, and remove the answers of its jobs.

        A job that has nothing else to do ends. Repeat it after an interruption.

        Danger: what was accepted and not yet stored of that scope never will be.

        Raises:
            ScopeError: no scope is given.
            StorageError: the ledger's file still has it, because others used it all the while.
        """
        self._refuse_scoped("forget")
        if not scope:
            raise ScopeError("forget needs a scope; without one, all jobs would be meant")
        return forgetting.forget_scope(self._records, scope, now=self.clock())

    def concerned(self, scope: Scope | None, words: Words) -> builtins.list[tuple[Job, int]]:
        """The jobs that `forget` and `forget_words` mean, and how many conversations would go.

        Args:
            scope: of people; None: of no one but those that the words are of.
            words: of memories.
        """
        self._refuse_scoped("concerned")
        return [*forgetting.concerned(self._records, scope, words)]

    def forget_words(self, words: Words) -> ForgottenJobs:
        """Take out answers that name memories, and conversations of their people that say them.

        Danger: as for `forget`.

        Raises:
            StorageError: as for `forget`.
        """
        self._refuse_scoped("forget_words")
        return forgetting.forget_words(self._records, words, now=self.clock())

    # -- inside ---------------------------------------------------------------------------

    def _shows(self, job: Job) -> bool:
        """Whether whoever has this desk may see the job: nothing of it is another's."""
        if not self._scope:
            return True
        return bool(job.scopes) and all(map(self._scope.holds, job.scopes))

    def _refuse_scoped(self, verb: str) -> None:
        if self._scope:
            raise ScopeError(
                f"{verb} is for the jobs of a whole store, and this handle is kept to "
                f"{self._scope}; use the store's own handle"
            )

    def _accepted(self, job: Job, payload: Sequence[Part]) -> Job | None:
        """The job of this id, whole: payload first, then the task. None: it was removed.

        Whoever is killed in between has acknowledged nothing; the next call with the key goes on.
        """
        self._records.open(job)
        if not self._records.create(job):
            there = self._records.find(job.id)
            if there is None:
                return None
            if there.digest != job.digest:
                raise ConflictError(
                    f"the idempotency key of job {job.id} was used with another payload; "
                    "give another call another key",
                    ids=[job.id],
                )
            if not self._halfway(there):
                return there
        self._records.put_payload(job.id, payload)
        now = self._tidy_ended(job.id)
        if now is not None and now.state is JobState.QUEUED:
            self._put(now)
            count("jobs.accepted", plan=now.plan)
        return now

    def _tidy_ended(self, id: str) -> Job | None:
        """The job; a payload that came late, as a worker was faster, does not stay."""
        job = self._records.find(id)
        if job is None or job.state is JobState.DONE:
            self._records.tidy(id)
        return job

    def _halfway(self, job: Job) -> bool:
        """Whether its payload has not come yet."""
        fresh = job.state in (JobState.QUEUED, JobState.WAITING) and job.attempts == 0
        return fresh and self._records.payload(job.id) is None

    def _put(self, job: Job) -> None:
        """Tell the workers. Where the queue fails, they see it by the ledger, a little later."""
        try:
            self._queue.put(job.plan, job.id, priority=job.priority)
        except StorageError as error:
            _LOG.warning("job %s is accepted, and waits for the queue: %s", job.id, error)

    def _again(self, job: Job) -> Job:
        def renewed(now: Job) -> Job | None:
            if now.state not in (JobState.DEAD, JobState.FAILED):
                return None
            state = JobState.QUEUED
            new = replace(now, state=state, attempts=0, error="", due_at=None, ended_at=None)
            return replace(new, retries=now.retries + 1)

        if self._records.payload(job.id) is None:
            raise ConflictError(
                f"job {job.id} is {job.state}, and nothing is left of it to try again",
                ids=[job.id],
            )
        self._records.open(job)
        changed = self._records.change(job.id, renewed)
        if changed is None:
            raise ConflictError(
                f"job {job.id} is {job.state}; only dead and failed ones are tried again",
                ids=[job.id],
            )
        self._put(changed)
        return changed

    def _expected(self, plan: ServicePlan) -> float | None:
        """Seconds in which a job that is queued now is likely to be done."""
        pace = self._records.pace(plan)
        if pace is None:
            return None
        rounds = math.ceil((self._queue.length(plan) + 1) / pace.slots)
        return round(rounds * pace.seconds, 3)


def _digest(payload: Sequence[Part]) -> str:
    """SHA-256 of the payload, however its objects are ordered.

    Raises:
        InvalidInputError: it is no JSON.
    """
    try:
        told = [[scope.names(), part] for scope, part in payload]
        raw = json.dumps(told, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"a payload must be JSON values ({error})") from error
    return hashlib.sha256(raw.encode()).hexdigest()


def _id_of(tenant: str, key: str) -> str:
    """The id of the one job of that key."""
    return str(uuid.uuid5(_NAMES, json.dumps([tenant, key])))


def _plan_of(plan: Any) -> ServicePlan:
    if plan not in list(ServicePlan):
        raise InvalidInputError(f"plan={plan!r}; it is one of {', '.join(ServicePlan)}")
    return ServicePlan(plan)


def _state_of(state: Any) -> JobState:
    if state not in list(JobState):
        raise InvalidInputError(f"state={state!r}; it is one of {', '.join(JobState)}")
    return JobState(state)
