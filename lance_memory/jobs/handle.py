"""One queue as huey has it; the only module that knows huey.

It takes 0.1 s to import, so that the queue loads it when it is first asked or told something.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from huey import Huey, PriorityRedisHuey
from huey.consumer import Consumer
from huey.registry import Message
from huey.serializer import Serializer
from huey.storage import SqliteStorage

from lance_memory.files import make_private, make_private_file, saving
from lance_memory.jobs.job import ServicePlan
from lance_memory.ledger import RedisPlace

__all__ = ["close", "made", "threads"]

_PATIENCE: Final = 30.0
"""Seconds to wait for another process that writes."""

_LOOK: Final = {"initial_delay": 0.05, "max_delay": 0.5}
"""Seconds between two looks at an empty queue in a file; Redis tells by itself."""


def made(where: str | RedisPlace, plan: ServicePlan, work: Callable[[str], object]) -> Any:
    """A handle of a queue that gives what it takes to `work`: each consumer has its own."""
    handle = _in_file(where, plan) if isinstance(where, str) else _in_redis(where, plan)

    @handle.task(name="work")  # type: ignore[untyped-decorator, unused-ignore]
    def run(job: str) -> None:
        work(job)

    handle.work = run
    return handle


def threads(handle: Any, *, workers: int) -> Any:
    """A consumer that is not started yet, with so many threads, over a handle of its own."""
    return _Consumer(handle, workers=workers, periodic=False, scheduler_interval=60, **_LOOK)


def close(handle: Any) -> None:
    """Give back its connections."""
    if isinstance(handle.storage, SqliteStorage):
        handle.storage.close()
    else:
        handle.storage.conn.close()
        handle.storage.pool.disconnect()


def _in_file(path: str, plan: ServicePlan) -> Huey:
    with saving(f"make the queue {path}"):
        make_private(Path(path).parent)
        make_private_file(Path(path))
    return Huey(
        str(plan),
        storage_class=_File,
        filename=path,
        timeout=_PATIENCE,
        results=False,
        serializer=_Json(),
    )


def _in_redis(place: RedisPlace, plan: ServicePlan) -> Huey:
    return PriorityRedisHuey(
        f"{place.prefix}.{plan}",
        url=place.url,
        clean_name=False,  # else names that differ in a hyphen would be one
        results=False,
        serializer=_Json(),
    )


class _Consumer(Consumer):  # type: ignore[misc, unused-ignore]
    def _set_signal_handlers(self) -> None:
        """Signals are the program's business."""


class _File(SqliteStorage):  # type: ignore[misc, unused-ignore]
    def _create_connection(self) -> sqlite3.Connection:
        """Without a sync at each task: a power cut may lose some, and the ledger knows them."""
        connection: sqlite3.Connection = super()._create_connection()
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection


class _Json(Serializer):  # type: ignore[misc, unused-ignore]
    """Tasks as JSON: who can write to the queue can name jobs, and not make us run anything."""

    def _serialize(self, data: Message) -> bytes:
        return json.dumps(data).encode()

    def _deserialize(self, data: bytes) -> Message:
        return Message(*json.loads(bytes(data)))
