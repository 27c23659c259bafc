"""What stands beside a store's table: the ledger, and the jobs and counters in it."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from lance_memory.errors import InvalidInputError, NotFoundError, StorageError
from lance_memory.ingest import (
    Order,
    boundary,
    count_inputs,
    forget_inputs,
)
from lance_memory.ingest.order import ORDER
from lance_memory.ingest.sessions import forget_said, forget_sessions, sessions_with
from lance_memory.ingest.users import count_users, forget_users
from lance_memory.jobs import Desk, JobState, Words, open_desk
from lance_memory.ledger import (
    MEMORY,
    Ledger,
    RedisLedger,
    RedisPlace,
    SqliteLedger,
    is_redis,
    open_ledger,
)
from lance_memory.record.memory import Scope
from lance_memory.record.times import Clock
from lance_memory.storage import Durability, Table
from lance_memory.storage.erase.needles import Needles
from lance_memory.storage.opening import MAIN

__all__ = ["Beside"]

_FOLDER = "ingest"
_NOTE = "ingest-elsewhere.json"
_PATIENCE = 60.0
"""Seconds to wait for a job that runs while its scope is forgotten."""

_LOOK_AGAIN = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What stands beside the table of a store.

    Attributes:
        ledger: counters, watermarks, jobs.
        desk: where jobs are handed in; None: there is no place for a queue.
        where: what the store was opened with.
    """

    ledger: Ledger
    desk: Desk | None = None
    where: str | os.PathLike[str] | None = None

    @classmethod
    def of(
        cls,
        table: Table,
        where: str | os.PathLike[str] | None,
        *,
        clock: Clock,
        branch: str = "",
    ) -> Beside:
        """What stands beside a table, for one branch alone; nothing is made before it is used.

        Args:
            table: of the store.
            where: a directory, or the URL of a Redis server, where several stores may be; None: in
                the store's own directory, and of a store in an object store in memory alone.
            clock: the present moment.
            branch: whose; by default the table's.

        Raises:
            InvalidInputError: it is no usable URL.
            MissingExtraError: it is a URL, and the extra "redis" is not installed.
        """
        name = branch or table.branch
        line = "" if name == MAIN else quote(name, safe="")
        store = table.format.store_id
        if where is not None and is_redis(where):
            url = _with_prefix(os.fspath(where), [store, line])
            ledger = open_ledger(url)
            return cls(ledger=ledger, desk=open_desk(ledger, url, clock=clock), where=where)
        local = table.place.local
        if where is None and local is None:
            return cls(ledger=open_ledger(":memory:"))
        own = Path(str(local)) / _FOLDER
        folder = own if where is None else Path(where).expanduser() / store
        if line:
            folder = folder / "branches" / line
        durable = table.durability is Durability.POWER
        ledger = open_ledger(folder / "ledger.sqlite", durable=durable)
        desk = open_desk(ledger, folder / "queue.sqlite", clock=clock)
        return cls(ledger=ledger, desk=desk, where=where)

    def note(self, table: Table) -> None:
        """Note in the store that its jobs are elsewhere, for handles that are not told so."""
        if self.where is None:
            return
        kind = "redis" if is_redis(self.where) else "directory"
        with suppress(StorageError):  # a store that cannot be written to has no jobs
            if not _is_elsewhere(table):
                table.place.write(_NOTE, json.dumps({"ledger": kind}).encode())

    def refuse_elsewhere(self, table: Table) -> None:
        """Refuse what has to know of all jobs, through a handle that does not.

        Raises:
            InvalidInputError: the store was opened with `ledger=` before, and is without it now.
        """
        if self.where is None and _is_elsewhere(table):
            raise InvalidInputError(
                f"the jobs of {table.uri} are not in its directory; open it with the ledger= that "
                "they are in (lmem: --ledger, $LMEM_LEDGER)"
            )

    def lines(self, table: Table, *, clock: Clock) -> Iterator[Beside]:
        """What stands beside each branch of the store, where anything was ever kept."""
        if self.desk is None:  # in memory, for this handle alone
            yield self
            return
        for name in (MAIN, *table.branch_refs()):
            beside = Beside.of(table, self.where, clock=clock, branch=name)
            if beside.used:
                yield beside

    def remove(self) -> None:
        """Remove it all.

        Danger: jobs, counters and watermarks are gone.
        """
        self.close()
        if isinstance(self.ledger, SqliteLedger) and self.ledger.where != MEMORY:
            shutil.rmtree(Path(self.ledger.where).parent, ignore_errors=True)
        elif isinstance(self.ledger, RedisLedger):
            self.ledger.clear()

    @property
    def used(self) -> bool:
        """Whether anything was ever kept here; asking makes nothing."""
        where = self.ledger.where if isinstance(self.ledger, SqliteLedger) else MEMORY
        return where == MEMORY or Path(where).exists()

    @property
    def unwritten(self) -> Ledger | None:
        """For a dry run: an empty one that is gone after it; None: there is something already."""
        return None if self.used else open_ledger(MEMORY)

    def complete(self) -> str | None:
        """The predicate that nothing is missing before a memory; None: every row passes."""
        return boundary(Order(self.ledger)) if self.used else None

    def counted(self, scope: Scope | None, words: Words) -> dict[str, int]:
        """How much forgetting would take out, by what it is; what there is none of is left out.

        Args:
            scope: what is of it goes, see `forget`; None: no scope is forgotten.
            words: what has them goes, see `forget_words`.
        """
        if not self.used:
            return {}
        jobs = [] if self.desk is None else self.desk.concerned(scope, words)
        inputs = users = 0
        if scope is not None and scope == Scope(tenant=scope.tenant, user=scope.user):
            inputs = count_inputs(self.ledger, scope.tenant, scope.user)
            users = count_users(self.ledger, scope.tenant, scope.user)
        sessions = sessions_with(self.ledger, scope, words)
        told = {
            "jobs": len(jobs),
            "conversations": sum(number for _, number in jobs),
            "inputs": inputs,
            "users": users,
            "sessions": len(sessions),
            "messages": sum(len(session.numbers) for session in sessions),
        }
        return {what: number for what, number in told.items() if number}

    def forget(self, scope: Scope) -> None:
        """Take out what is of a scope: conversations, answers, what the gate and sessions remember.

        Jobs that run, and sessions that go into the table, are waited for: what they store is found
        by the forgetting that goes on.
        """
        if not self.used:
            return
        if self.desk is not None:
            _wait_for(self.desk, self.desk.forget(scope).running)
        if scope == Scope(tenant=scope.tenant, user=scope.user):
            forget_inputs(self.ledger, scope.tenant, scope.user)
            forget_users(self.ledger, scope.tenant, scope.user)
        if scope == Scope(tenant=scope.tenant):
            self.ledger.remove(ORDER, scope.tenant)
        forget_sessions(self.ledger, scope)
        self.ledger.scrub()

    def forget_words(self, words: Words) -> None:
        """Take out of jobs and sessions what names memories, and what of their people says them.

        What other people have said in the same words is theirs.
        """
        if not self.used:
            return
        if self.desk is not None:
            self.desk.forget_words(words)
        if forget_said(self.ledger, words):
            self.ledger.scrub()

    def holding(self, words: Words, needles: Needles) -> tuple[int, list[str]]:
        """How many files were looked at, and the jobs, sessions, files that have something still.

        In the bytes of files counts what is in no value any more: a value that has it is one that
        `words` does not mean, so another person's.
        """
        if not self.used:
            return 0, []
        found = [] if self.desk is None else self.desk.concerned(None, words)
        places = [f"job {job.id}" for job, _ in found]
        places += ["a session's messages" for _ in sessions_with(self.ledger, None, words)]
        if not isinstance(self.ledger, SqliteLedger) or self.ledger.where == MEMORY:
            return 0, places
        files = self.ledger.files()
        left = [str(file) for file in files if _left_in(file, self.ledger, needles)]
        return len(files), places + left

    def close(self) -> None:
        """Give back connections; what is used again makes new ones."""
        self.ledger.close()
        if self.desk is not None:
            self.desk.queue.close()


def _wait_for(desk: Desk, jobs: Iterable[str]) -> None:
    """Until none of the jobs runs; one whose worker is lost does not: it can commit nothing.

    Raises:
        StorageError: one still does.
    """
    end = time.monotonic() + _PATIENCE
    for id in jobs:
        while (job := desk.find(id)) and job.state is JobState.RUNNING:
            if job.ready(desk.clock()):
                break
            if time.monotonic() > end:
                raise StorageError(
                    f"job {id} is of what is to be forgotten, and still runs; no memory was "
                    "forgotten yet: run it again when it has ended"
                )
            time.sleep(_LOOK_AGAIN)


def _left_in(file: Path, ledger: SqliteLedger, needles: Needles) -> bool:
    """Whether the bytes of a file have something that no value of the ledger has."""
    try:
        raw = file.read_bytes()
    except FileNotFoundError:  # a log that went meanwhile
        return False
    return any(not ledger.has(word) for word in needles.every(raw))


def _is_elsewhere(table: Table) -> bool:
    try:
        table.place.read(_NOTE)
    except NotFoundError:
        return False
    return True


def _with_prefix(url: str, names: Sequence[str]) -> str:
    """The URL of a Redis server with a prefix for these names alone."""
    prefix = quote(".".join([RedisPlace.of(url).prefix, *filter(None, names)]), safe="")
    return f"{url}{'&' if '?' in url else '?'}prefix={prefix}"
