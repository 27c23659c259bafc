"""What stands beside a store's table: the ledger, and the jobs and counters in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from lance_memory.ingest import Order, boundary, forget_inputs
from lance_memory.ingest.users import USERS, user_key
from lance_memory.jobs import Desk, open_desk
from lance_memory.ledger import MEMORY, Ledger, RedisPlace, SqliteLedger, is_redis, open_ledger
from lance_memory.record.memory import Scope
from lance_memory.record.times import Clock
from lance_memory.storage import Table

__all__ = ["Beside"]

_FOLDER = "ingest"
_PATIENCE = 60.0
"""Seconds to wait for a job that runs while its scope is forgotten."""


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
    def of(cls, table: Table, where: str | os.PathLike[str] | None, *, clock: Clock) -> Beside:
        """What stands beside a table, for its branch alone; nothing is made before it is used.

        Args:
            table: of the store, on a branch.
            where: a directory, or the URL of a Redis server; None: in the store's own directory,
                and of a store in an object store in memory alone.
            clock: the present moment.

        Raises:
            InvalidInputError: it is no usable URL.
            MissingExtraError: it is a URL, and the extra "redis" is not installed.
        """
        branch = "" if table.branch == "main" else quote(table.branch, safe="")
        if where is not None and is_redis(where):
            url = _of_branch(os.fspath(where), branch)
            ledger = open_ledger(url)
            return cls(ledger=ledger, desk=open_desk(ledger, url, clock=clock), where=where)
        local = table.place.local
        if where is None and local is None:
            return cls(ledger=open_ledger(":memory:"))
        folder = Path(where).expanduser() if where is not None else Path(str(local)) / _FOLDER
        folder /= branch
        ledger = open_ledger(folder / "ledger.sqlite")
        desk = open_desk(ledger, folder / "queue.sqlite", clock=clock)
        return cls(ledger=ledger, desk=desk, where=where)

    @property
    def used(self) -> bool:
        """Whether anything was ever kept here; asking makes nothing."""
        where = self.ledger.where if isinstance(self.ledger, SqliteLedger) else MEMORY
        return where == MEMORY or Path(where).exists()

    def complete(self) -> str | None:
        """The predicate that nothing is missing before a memory; None: every row passes."""
        return boundary(Order(self.ledger)) if self.used else None

    def forget(self, scope: Scope) -> None:
        """Take out what is of a scope: queued conversations, answers, what the gate remembers.

        Jobs that run are waited for: what they store is found by the forgetting that goes on.
        """
        if not self.used:
            return
        if self.desk is not None:
            for job in self.desk.forget(scope).running:
                self.desk.wait(job, timeout=_PATIENCE)
        if scope.user:
            forget_inputs(self.ledger, scope.tenant, scope.user)
            self.ledger.remove(USERS, user_key(scope.tenant, scope.user))
        self.ledger.scrub()

    def forget_words(self, words: Sequence[str]) -> None:
        """Take out of jobs what says one of these ids or texts."""
        if self.used and self.desk is not None:
            self.desk.forget_words(words)

    def close(self) -> None:
        """Give back connections; what is used again makes new ones."""
        self.ledger.close()
        if self.desk is not None:
            self.desk.queue.close()


def _of_branch(url: str, branch: str) -> str:
    """The URL of a Redis server with a prefix of the branch's own."""
    if not branch:
        return url
    prefix = quote(f"{RedisPlace.of(url).prefix}.{branch}", safe="")
    return f"{url}{'&' if '?' in url else '?'}prefix={prefix}"
