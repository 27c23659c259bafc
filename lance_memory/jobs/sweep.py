"""What has no task, and needs one: jobs that are due again, and those whose task or worker is lost.

A task that is doubled does no harm: a job is claimed in the ledger.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from lance_memory.jobs.desk import Desk
from lance_memory.jobs.job import Job, JobState, ServicePlan

__all__ = ["put_due", "put_lost"]

_HALFWAY: Final = timedelta(minutes=1)
"""For accepting a job. Then it was not accepted: its caller was killed, and has no answer."""


def put_due(desk: Desk) -> None:
    """Put failed jobs on the queue whose time has come.

    Raises:
        StorageError: the ledger or the queue cannot be reached.
    """
    for id in desk.records.pop_due(desk.clock()):
        job = desk.records.find(id)
        if job is not None and job.ready(desk.clock()):
            desk.queue.put(job.plan, id, priority=job.priority)


def put_lost(desk: Desk) -> None:
    """Put jobs on the queue that a worker may take and no task stands for.

    Raises:
        StorageError: the ledger or the queue cannot be reached.
    """
    ids = list(desk.records.all_open())  # before the queue: what is accepted later has its task
    tasks = {id for plan in ServicePlan for id in desk.queue.jobs(plan)} if ids else set()
    for id in ids:
        if id not in tasks:
            _look_at(desk, id)


def _look_at(desk: Desk, id: str) -> None:
    job = desk.records.find(id)
    if job is None:
        if desk.records.opened_before(id, desk.clock() - _HALFWAY):
            desk.records.tidy(id)
    elif job.state is JobState.DONE:
        desk.records.tidy(id)
    elif job.state is JobState.DEAD:
        desk.records.close(id)
    elif _never_whole(desk, job):
        desk.records.remove(job)
    elif job.ready(desk.clock()):
        desk.queue.put(job.plan, id, priority=job.priority)


def _never_whole(desk: Desk, job: Job) -> bool:
    fresh = job.state is JobState.QUEUED and job.attempts == 0
    old = job.accepted_at + _HALFWAY < desk.clock()
    return fresh and old and desk.records.payload(job.id) is None
