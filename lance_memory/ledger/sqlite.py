"""A ledger in one SQLite file, or in memory."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from lance_memory.errors import StorageError
from lance_memory.files import make_private, make_private_file, saving
from lance_memory.ledger.keys import key_of, named
from lance_memory.ledger.place import MEMORY

__all__ = ["SqliteLedger"]

_PATIENCE: Final = 30.0
"""Seconds to wait for another process that writes; each write takes well below a millisecond."""

_PAGE: Final = 500
"""Rows that `items` reads at once, so that it holds up no writer."""

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS entries
    (space BLOB, name BLOB, value BLOB NOT NULL, PRIMARY KEY (space, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sums
    (space BLOB, name BLOB, total INTEGER NOT NULL, PRIMARY KEY (space, name)) WITHOUT ROWID;
"""


class SqliteLedger:
    """Shared by all threads and processes of one machine; for its owner alone (mode 0600).

    What is removed is overwritten in the file (`secure_delete`), and is out of the log beside it
    after `scrub` or the last `close`. A file system without shared memory and locks, such as NFS,
    cannot hold it. A fork makes a connection of its own.

    Args:
        where: the file, which is made where there is none; ":memory:" for one that is this
            object's alone and ends with `close`.
    """

    def __init__(self, where: str | os.PathLike[str]) -> None:
        self.where = os.fspath(where)
        self._open = _Open()

    def get(self, space: str, key: str) -> bytes | None:
        """The value; None: there is none."""
        row = self._row("SELECT value FROM entries WHERE space = ? AND name = ?", space, key)
        return None if row is None else bytes(row[0])

    def put(self, space: str, key: str, value: bytes) -> None:
        """Put a value in the place of whatever is there."""
        self._changed(
            "INSERT INTO entries VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            *(key_of(space), key_of(key), value),
        )

    def swap(self, space: str, key: str, *, old: bytes | None, new: bytes | None) -> bool:
        """Put `new` where `old` is, at once; whether it was. None stands for no value."""
        of = (key_of(space), key_of(key))
        if old is None and new is None:
            return self.get(space, key) is None
        if old is None:
            return self._changed(
                "INSERT INTO entries VALUES (?, ?, ?) ON CONFLICT DO NOTHING", *of, new
            )
        if new is None:
            return self._changed(
                "DELETE FROM entries WHERE space = ? AND name = ? AND value = ?", *of, old
            )
        return self._changed(
            "UPDATE entries SET value = ? WHERE space = ? AND name = ? AND value = ?", new, *of, old
        )

    def add(self, space: str, key: str, amount: int) -> int:
        """Count up, from 0 on, at once; the sum."""
        statement = (
            "INSERT INTO sums VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET total = total + excluded.total RETURNING total"
        )
        with self._connected() as connection:
            values = (key_of(space), key_of(key), amount)
            return int(connection.execute(statement, values).fetchall()[0][0])

    def counted(self, space: str, key: str) -> int:
        """The sum that `add` has made; 0 where it never was."""
        row = self._row("SELECT total FROM sums WHERE space = ? AND name = ?", space, key)
        return 0 if row is None else int(row[0])

    def items(self, space: str, *, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        """The keys that begin with `prefix`, with their values, ordered by key.

        Of values that come and go meanwhile, it may give some and not others.
        """
        begins = key_of(prefix)
        statement = (
            "SELECT name, value FROM entries WHERE space = ? AND name {} ? ORDER BY name LIMIT ?"
        )
        comparison, last = ">=", begins
        while True:
            with self._connected() as connection:
                values = (key_of(space), last, _PAGE)
                page = connection.execute(statement.format(comparison), values).fetchall()
            for name, value in page:
                if not name.startswith(begins):
                    return
                yield named(name), bytes(value)
            if len(page) < _PAGE:
                return
            comparison, last = ">", page[-1][0]

    def remove(self, space: str, key: str) -> None:
        """Remove a value and a counter, if they are there."""
        for table in ("entries", "sums"):
            self._changed(
                f"DELETE FROM {table} WHERE space = ? AND name = ?",  # noqa: S608 - our own names
                *(key_of(space), key_of(key)),
            )

    def scrub(self) -> None:
        """See to it that what was removed is in no file any more.

        Raises:
            StorageError: others read or wrote all the while, so that the log could not be emptied.
        """
        with self._connected() as connection:
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise StorageError(
                f"what was removed from the ledger {self.where} is still in the log beside it, "
                f"because others used it for {_PATIENCE:.0f} s; run it again, or end the workers"
            )

    def close(self) -> None:
        """Give back the connection; the next call makes a new one."""
        with self._mine().lock:
            if self._open.connection is not None:
                self._open.connection.close()
            self._open.connection = None

    def _row(self, statement: str, space: str, key: str) -> Any:
        with self._connected() as connection:
            return connection.execute(statement, (key_of(space), key_of(key))).fetchone()

    def _changed(self, statement: str, *values: bytes | None) -> bool:
        with self._connected() as connection:
            return connection.execute(statement, values).rowcount > 0

    def _mine(self) -> _Open:
        """What this process has open: a connection must not be carried through a fork."""
        if self._open.process != os.getpid():
            _OF_PARENTS.append(self._open)
            self._open = _Open()
        return self._open

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        mine = self._mine()
        try:
            with mine.lock:
                if mine.connection is None:
                    mine.connection = self._connect()
                    weakref.finalize(self, mine.connection.close)
                yield mine.connection
        except sqlite3.Error as error:
            raise StorageError(
                f"the ledger {self.where} could not be read or written ({error}); look at the "
                "free space, the permissions of its directory, and what else has it open"
            ) from error

    def _connect(self) -> sqlite3.Connection:
        if self.where != MEMORY:
            with saving(f"make the ledger {self.where}"):
                make_private(Path(self.where).parent)
                make_private_file(Path(self.where))
        connection = sqlite3.connect(
            self.where, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection


class _Open:
    """The connection of one process, and the lock that its threads take turns with."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.lock = threading.Lock()
        self.connection: sqlite3.Connection | None = None


_OF_PARENTS: Final[list[_Open]] = []
"""Connections from before a fork: to close them here could disturb the process they are of."""


def _prepare(connection: sqlite3.Connection) -> None:
    """Readers beside a writer, nothing readable of what was removed, and the tables."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            # The switch takes a lock that the time-out does not wait for.
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.executescript(_TABLES)
