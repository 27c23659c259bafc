"""Work that is done later, by other threads, processes or machines: accepted, queued, retried."""

from __future__ import annotations

import os

from lance_memory.jobs.desk import Desk, ForgottenJobs, PurgeResult
from lance_memory.jobs.forgetting import FORGOTTEN, Words
from lance_memory.jobs.job import Job, JobState, ServicePlan
from lance_memory.jobs.queue import Queue
from lance_memory.jobs.records import Part
from lance_memory.jobs.worker import SLOTS, Run, Worker
from lance_memory.ledger import Ledger
from lance_memory.record.times import Clock, utc_now

__all__ = [
    "FORGOTTEN",
    "SLOTS",
    "Desk",
    "ForgottenJobs",
    "Job",
    "JobState",
    "Part",
    "PurgeResult",
    "Run",
    "ServicePlan",
    "Words",
    "Worker",
    "open_desk",
]


def open_desk(ledger: Ledger, queue: str | os.PathLike[str], *, clock: Clock = utc_now) -> Desk:
    """The desk over a ledger and a queue.

    Args:
        ledger: has all that is true of the jobs.
        queue: the path of a SQLite file, which is made at its first use, or the URL of a Redis
            server, where it may be the ledger's own.
        clock: the present moment.

    Raises:
        InvalidInputError: it is no usable URL.
        MissingExtraError: it is a URL, and the extra "redis" is not installed.
    """
    return Desk(ledger, Queue(queue), clock=clock)
