"""Taking people and memories out of jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from lance_memory.jobs.job import Job, JobState
from lance_memory.jobs.records import Part, Records
from lance_memory.record.memory import Scope

__all__ = ["FORGOTTEN", "ForgottenJobs", "count_of", "forget_scope", "forget_words"]

FORGOTTEN: Final = "forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenJobs:
    """What of the jobs was forgotten.

    Attributes:
        jobs: how many had something of the scope.
        parts: how many conversations were taken out of payloads.
        running: those that a worker has read already: wait for them, then forget once more what
            they may have stored.
    """

    jobs: int
    parts: int
    running: tuple[str, ...]


def forget_scope(records: Records, scope: Scope, *, now: datetime) -> ForgottenJobs:
    """See `Desk.forget`."""
    return _forget(
        records,
        goes=lambda part: scope.holds(part[0]),
        meant=lambda job: any(map(scope.holds, job.scopes)),
        change=lambda job: replace(
            job,
            scopes=tuple(one for one in job.scopes if not scope.holds(one)),
            answer=_without_what_is_known(job),
        ),
        now=now,
    )


def count_of(records: Records, scope: Scope) -> tuple[int, int]:
    """See `Desk.count_of`."""
    jobs = [job for job in records.named("") if any(map(scope.holds, job.scopes))]
    parts = [part for job in jobs for part in records.payload(job.id) or []]
    return len(jobs), sum(scope.holds(of) for of, _ in parts)


def forget_words(
    records: Records, ids: Collection[str], texts: Collection[str], *, of: Scope, now: datetime
) -> ForgottenJobs:
    """See `Desk.forget_words`."""

    def has(values: object, words: Collection[str]) -> bool:
        told = json.dumps(values, ensure_ascii=False)
        return any(json.dumps(word, ensure_ascii=False)[1:-1] in told for word in words)

    def goes(part: Part) -> bool:
        same = (part[0].tenant, part[0].user) == (of.tenant, of.user)
        return same and has(part[1], texts)

    def meant(job: Job) -> bool:
        return has(job.answer, ids) or any(map(goes, records.payload(job.id) or []))

    return _forget(
        records,
        goes=goes,
        meant=meant,
        change=lambda job: (
            replace(job, answer=_without_what_is_known(job)) if has(job.answer, ids) else job
        ),
        now=now,
    )


def _without_what_is_known(job: Job) -> Mapping[str, Any] | None:
    """The answer without what it tells; by what else was held, the rest of the job is done."""
    held = not job.state.ended and job.answer is not None and "known" in job.answer
    return {**(job.answer or {}), "known": None} if held else None


def _forget(
    records: Records,
    *,
    goes: Callable[[Part], bool],
    meant: Callable[[Job], bool],
    change: Callable[[Job], Job],
    now: datetime,
) -> ForgottenJobs:
    jobs = [job for job in records.named("") if meant(job)]
    parts, running = 0, []
    for job in jobs:
        gone, left = records.cut(job.id, goes)
        parts += gone

        def without(known: Job, left: int = left, gone: int = gone) -> Job:
            changed = change(known)
            if left or not gone or known.state.ended or known.state is JobState.RUNNING:
                return changed
            dead = JobState.DEAD
            return replace(changed, state=dead, error=FORGOTTEN, due_at=None, ended_at=now)

        kept = records.change(job.id, without)
        if kept is not None and kept.state is JobState.RUNNING:
            running.append(job.id)
    records.ledger.scrub()
    return ForgottenJobs(jobs=len(jobs), parts=parts, running=tuple(running))
