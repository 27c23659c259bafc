"""The file of a ledger, and the connections to it: one for each process, also after a fork."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from lance_memory.errors import StorageError
from lance_memory.files import make_private, make_private_file, saving, to_disk
from lance_memory.ledger.place import MEMORY

__all__ = ["PATIENCE", "LedgerFile", "at_once"]

_T = TypeVar("_T")

PATIENCE: Final = 30.0
"""Seconds to wait for another process that writes; each write takes well below a millisecond."""

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS entries
    (space BLOB, name BLOB, value BLOB NOT NULL, PRIMARY KEY (space, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sums
    (space BLOB, name BLOB, total INTEGER NOT NULL, PRIMARY KEY (space, name)) WITHOUT ROWID;
"""


class LedgerFile:
    """The connection of this process, which its threads take turns with.

    Args:
        where: the file, which is made where there is none, or ":memory:".
        durable: each write is on the disk before it returns.
    """

    def __init__(self, where: str, *, durable: bool) -> None:
        self._where = where
        self._durable = durable
        self._open = _Open()

    def close(self) -> None:
        """Give back the connection; the next call makes a new one."""
        mine = self._mine()
        with mine.lock:
            mine.close()

    def done(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        """What the action gives, in the file that is at its place once it is done.

        Raises:
            StorageError: the file cannot be read or written, or its directory is gone.
        """
        mine = self._mine()
        try:
            with mine.lock:
                while True:
                    connection = mine.connection or self._connected(mine)
                    try:
                        made = action(connection)
                    except sqlite3.Error:
                        if mine.file == self._at_place():
                            raise
                    else:
                        if mine.file == self._at_place():
                            return made
                    mine.close()
        except sqlite3.Error as error:
            raise StorageError(
                f"the ledger {self._where} could not be read or written ({error}); look at the "
                "free space, the permissions of its directory, and what else has it open"
            ) from error

    def _mine(self) -> _Open:
        """What this process has open: a connection must not be carried through a fork."""
        if self._open.process != os.getpid():
            _OF_PARENTS.append(self._open)
            self._open = _Open()
        return self._open

    def _at_place(self) -> tuple[int, int] | None:
        """Which file is at its place; None: none is, or it is in memory."""
        if self._where == MEMORY:
            return None
        try:
            found = os.stat(self._where)  # noqa: PTH116 - half the time of Path's, at each call
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _connected(self, mine: _Open) -> sqlite3.Connection:
        """A new connection to the file, which is made where there is none."""
        while True:
            self._make(again=mine.file is not None)
            mine.file = self._at_place()
            mine.connection = self._connect()
            if mine.file == self._at_place():  # else it was replaced between the two
                weakref.finalize(self, mine.connection.close)
                return mine.connection
            mine.close()

    def _make(self, *, again: bool) -> None:
        if self._where == MEMORY:
            return
        directory = Path(self._where).parent
        if again and not directory.parent.is_dir():
            raise StorageError(
                f"the ledger {self._where} was removed while it was open, and so was the directory "
                "that it was in; if that was meant, close this handle, else put it back"
            )
        with saving(f"make the ledger {self._where}"):
            make_private(directory)
            make_private_file(Path(self._where))
            if self._durable:
                _settle_names(directory)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._where, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, durable=self._durable)
        except BaseException:
            connection.close()
            raise
        return connection


class _Open:
    """The connection of one process and its file, and the lock that its threads take turns with."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.lock = threading.Lock()
        self.connection: sqlite3.Connection | None = None
        self.file: tuple[int, int] | None = None

    def close(self) -> None:
        """Give back the connection."""
        if self.connection is not None:
            self.connection.close()
        self.connection = None


_OF_PARENTS: Final[list[_Open]] = []
"""Connections from before a fork: to close them here could disturb the process they are of."""


@contextmanager
def at_once(connection: sqlite3.Connection) -> Iterator[None]:
    """All that the block does, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # else SQLite has undone it by itself
            connection.execute("ROLLBACK")
        raise


def _settle_names(directory: Path) -> None:
    """Put the names that lead into a directory on the disk.

    One above it that this user cannot open is older than the ledger.
    """
    place = Path(os.path.realpath(directory))
    to_disk(place)
    for folder in place.parents:
        with suppress(PermissionError):
            to_disk(folder)


def _prepare(connection: sqlite3.Connection, *, durable: bool) -> None:
    """Readers beside a writer, nothing readable of what was removed, and the tables."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            # The switch takes a lock that the time-out does not wait for.
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    connection.execute("PRAGMA secure_delete = ON")
    connection.executescript(_TABLES)
