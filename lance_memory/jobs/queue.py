"""The queues, one for each plan.

A task is the id of a job and nothing else: what is true of a job stands in the ledger. So a queue
may lose a task, or have it twice, and may be deleted.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lance_memory.errors import StorageError
from lance_memory.extras import require
from lance_memory.jobs.job import ServicePlan
from lance_memory.ledger import RedisPlace, is_redis

__all__ = ["Consumers", "Queue"]

Work = Callable[[str], object]
"""Is given the id of a job."""


class Queue:
    """Ids of jobs, by plan, the greater priority first.

    Args:
        where: the path of a SQLite file, or the URL of a Redis server as `RedisPlace.of` takes it.
            Nothing is opened or made before the first use.

    Every method raises StorageError where the queue cannot be reached.
    """

    def __init__(self, where: str | os.PathLike[str]) -> None:
        self._where = os.fspath(where)
        self._redis = RedisPlace.of(self._where) if is_redis(where) else None
        self._errors: tuple[type[Exception], ...] = (sqlite3.Error,)
        if self._redis:
            self._errors = (require("redis", "redis").RedisError,)
        self._opened: dict[ServicePlan, Any] = {}

    def put(self, plan: ServicePlan, job: str, *, priority: int = 0) -> None:
        """Put a job at the end of its plan's queue, behind those of no lesser priority."""
        with self._reached():
            huey = self._of(plan)
            huey.enqueue(huey.work.s(job, priority=priority))

    def length(self, plan: ServicePlan) -> int:
        """How many tasks are on it."""
        with self._reached():
            return int(self._of(plan).storage.queue_size())

    def jobs(self, plan: ServicePlan) -> set[str]:
        """All that are on it; reads the whole queue."""
        with self._reached():
            huey = self._of(plan)
            return {_job_of(huey.deserialize_task(data)) for data in huey.storage.enqueued_items()}

    def take(self, plan: ServicePlan) -> str | None:
        """Take the first off; None: there is none."""
        with self._reached():
            huey = self._of(plan)
            task = huey.dequeue() if huey.storage.queue_size() else None
            return None if task is None else _job_of(task)

    def consume(self, slots: Mapping[ServicePlan, int], work: Work) -> Consumers:
        """Start threads, so many for each plan, that take jobs and give them to `work`."""
        from lance_memory.jobs.handle import threads

        with self._reached():
            consumers = [
                threads(self._made(plan, work), workers=number) for plan, number in slots.items()
            ]
        for consumer in consumers:
            consumer.start()
        return Consumers(consumers)

    def close(self) -> None:
        """Give back connections; the next call makes new ones."""
        for huey in self._opened.values():
            _close(huey)
        self._opened = {}

    def _of(self, plan: ServicePlan) -> Any:
        if plan not in self._opened:
            self._opened[plan] = self._made(plan, lambda _: None)
        return self._opened[plan]

    def _made(self, plan: ServicePlan, work: Work) -> Any:
        from lance_memory.jobs.handle import made

        return made(self._redis or self._where, plan, work)

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            shown = self._redis.shown if self._redis else self._where
            raise StorageError(
                f"the queue {shown} could not be read or written ({error}); "
                "look at the server, or at the file's space and permissions. A damaged file may be "
                "deleted while no worker runs: they put on a new one what the ledger knows"
            ) from error


class Consumers:
    """The threads that work."""

    def __init__(self, consumers: list[Any]) -> None:
        self._consumers = consumers

    def look_after(self) -> None:
        """Start a thread in the place of one that has died."""
        for consumer in self._consumers:
            consumer.check_worker_health()

    def stop(self, within: float) -> bool:
        """Let them end what they do, for so many seconds at most; whether they all have ended."""
        end = time.monotonic() + within
        for consumer in self._consumers:
            consumer.stop_flag.set()
        for consumer in self._consumers:
            for thread in (consumer.scheduler, *(each for _, each in consumer.worker_threads)):
                thread.join(max(0.0, end - time.monotonic()))
        ended = not any(
            thread.is_alive() for one in self._consumers for _, thread in one.worker_threads
        )
        if ended:
            for consumer in self._consumers:
                _close(consumer.huey)
        return ended


def _job_of(task: Any) -> str:
    return str(task.args[0])


def _close(huey: Any) -> None:
    from lance_memory.jobs.handle import close

    close(huey)
