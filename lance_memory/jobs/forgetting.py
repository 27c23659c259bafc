"""Taking people and memories out of jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from lance_memory.jobs.job import Job, JobState
from lance_memory.jobs.records import Part, Records
from lance_memory.record.memory import Scope

__all__ = ["FORGOTTEN", "ForgottenJobs", "Words", "concerned", "forget_scope", "forget_words"]

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


class Words:
    """What tells of memories: their ids, and of their people, what they say.

    Args:
        ids: of memories, wherever they are named.
        texts: of them, in conversations of these people.
        of: tenants and users; other people may have said the same, and that is theirs.
    """

    def __init__(
        self, ids: Collection[str], texts: Collection[str], *, of: Collection[Scope]
    ) -> None:
        self._ids, self._texts = _told(ids), _told(texts)
        self._people = {(scope.tenant, scope.user) for scope in of}

    @property
    def people(self) -> Collection[Scope]:
        """The tenants and users whose texts they are."""
        return [Scope(tenant=tenant, user=user) for tenant, user in sorted(self._people)]

    def is_one(self, id: str) -> bool:
        """Whether it is the id of one of the memories."""
        return json.dumps(id)[1:-1] in self._ids

    def named(self, job: Job) -> bool:
        """Whether the answer of a job names one of the memories."""
        return job.answer is not None and _has(job.answer, self._ids)

    def said(self, part: Part) -> bool:
        """Whether it is a conversation of these people in which a text is."""
        mine = (part[0].tenant, part[0].user) in self._people
        return mine and _has(part[1], self._texts)


def concerned(records: Records, scope: Scope | None, words: Words) -> Iterator[tuple[Job, int]]:
    """The jobs that have something of a scope or of memories, and how many conversations of it."""

    def inside(one: Scope) -> bool:
        return scope is not None and scope.holds(one)

    for job in records.named(""):
        payload = records.payload(job.id) or []
        parts = sum(inside(part[0]) or words.said(part) for part in payload)
        if parts or words.named(job) or any(map(inside, job.scopes)):
            yield job, parts


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


def forget_words(records: Records, words: Words, *, now: datetime) -> ForgottenJobs:
    """See `Desk.forget_words`."""
    return _forget(
        records,
        goes=words.said,
        meant=lambda job: words.named(job) or any(map(words.said, records.payload(job.id) or [])),
        change=lambda job: (
            replace(job, answer=_without_what_is_known(job)) if words.named(job) else job
        ),
        now=now,
    )


def _told(words: Collection[str]) -> tuple[str, ...]:
    """As they stand within a text of JSON."""
    return tuple(json.dumps(word, ensure_ascii=False)[1:-1] for word in words)


def _has(values: object, words: Collection[str]) -> bool:
    told = json.dumps(values, ensure_ascii=False)
    return any(word in told for word in words)


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
