"""A ledger in one SQLite file, or in memory."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from lance_memory.errors import StorageError
from lance_memory.ledger.file import PATIENCE, LedgerFile, at_once
from lance_memory.ledger.keys import LAST, key_of, named, numbered

__all__ = ["SqliteLedger"]

_PAGE: Final = 500
"""Rows that `items` reads at once, so that it holds up no writer."""

_PUT: Final = (
    "INSERT INTO entries VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
)
_COUNT: Final = (
    "INSERT INTO sums VALUES (?, ?, ?) "
    "ON CONFLICT DO UPDATE SET total = total + excluded.total RETURNING total"
)
_SUM: Final = "SELECT total FROM sums WHERE space = ? AND name = ?"
_NEXT_SPACE: Final = (
    "SELECT min(space) FROM ("
    "SELECT min(space) AS space FROM entries WHERE space {0} ?1 "
    "UNION ALL SELECT min(space) AS space FROM sums WHERE space {0} ?1)"
)


class SqliteLedger:
    """Shared by all threads and processes of one machine; for its owner alone (mode 0600).

    What is removed is overwritten in the file (`secure_delete`), and is out of the log beside it
    after `scrub` or the last `close`. A file system without shared memory and locks, such as NFS,
    cannot hold it. A fork makes a connection of its own.

    A file that was removed or replaced meanwhile is noticed by each call, which is then done in the
    one that stands there, or in a new one: nothing is acknowledged that nobody would see.

    Args:
        where: the file, which is made where there is none; ":memory:" for one that is this
            object's alone and ends with `close`.
        durable: each write is on the disk before it returns, so that it survives a power cut too: a
            bare fsync more for each, 0.6 ms on a disk with a safe cache. Otherwise a power cut may
            take the writes of the last moments; what is left is always whole.
    """

    def __init__(self, where: str | os.PathLike[str], *, durable: bool = False) -> None:
        self.where = os.fspath(where)
        self.durable = durable
        self._file = LedgerFile(self.where, durable=durable)

    def get(self, space: str, key: str) -> bytes | None:
        """The value; None: there is none."""
        row = self._row("SELECT value FROM entries WHERE space = ? AND name = ?", space, key)
        return None if row is None else bytes(row[0])

    def put(self, space: str, key: str, value: bytes) -> None:
        """Put a value in the place of whatever is there."""
        self._changed(_PUT, key_of(space), key_of(key), value)

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
        values = (key_of(space), key_of(key), amount)
        return int(self._file.done(lambda c: c.execute(_COUNT, values).fetchall())[0][0])

    def counted(self, space: str, key: str) -> int:
        """The sum that `add` has made; 0 where it never was."""
        row = self._row(_SUM, space, key)
        return 0 if row is None else int(row[0])

    def append(self, space: str, value: bytes) -> int:
        """Put a value under the next number of the space, from 1 on, at once; the number."""
        of = key_of(space)

        def appended(connection: sqlite3.Connection) -> int:
            with at_once(connection):
                found = connection.execute(_COUNT, (of, LAST, 1)).fetchall()
                number = int(found[0][0])
                connection.execute(_PUT, (of, key_of(numbered(number)), value))
            return number

        return self._file.done(appended)

    def appended(self, space: str) -> int:
        """The number that `append` has given last; 0: it gave none."""
        found = self._rows(_SUM, key_of(space), LAST)
        return int(found[0][0]) if found else 0

    def spaces(self, *, prefix: str = "") -> Iterator[str]:
        """The spaces that begin with `prefix` and have a value, a sum or a number, ordered.

        Of spaces that come and go meanwhile, it may give some and not others.
        """
        begins = key_of(prefix)
        comparison, last = ">=", begins
        while (found := self._rows(_NEXT_SPACE.format(comparison), last)[0][0]) is not None:
            if not found.startswith(begins):
                return
            yield named(found)
            comparison, last = ">", found

    def items(
        self, space: str, *, prefix: str = "", start: str = ""
    ) -> Iterator[tuple[str, bytes]]:
        """The keys that begin with `prefix`, from `start` on, with their values, ordered by key.

        Of values that come and go meanwhile, it may give some and not others.
        """
        begins = key_of(prefix)
        statement = (
            "SELECT name, value FROM entries WHERE space = ? AND name {} ? ORDER BY name LIMIT ?"
        )
        comparison, last = ">=", max(begins, key_of(start))
        while True:
            page = self._rows(statement.format(comparison), key_of(space), last, _PAGE)
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

    def remove_all(self, space: str, keys: Iterable[str]) -> None:
        """Remove values, those that are there, at once."""
        of = key_of(space)
        pairs = [(of, key_of(key)) for key in keys]

        def removed(connection: sqlite3.Connection) -> None:
            with at_once(connection):
                connection.executemany("DELETE FROM entries WHERE space = ? AND name = ?", pairs)

        if pairs:
            self._file.done(removed)

    def drop(self, space: str, *, upto: int | None = None) -> bool:
        """Remove a space with all that is in it, at once; its numbers begin at 1 again."""
        of = key_of(space)

        def dropped(connection: sqlite3.Connection) -> bool:
            with at_once(connection):
                last = connection.execute(_SUM, (of, LAST)).fetchall()
                if upto is not None and last and last[0][0] > upto:
                    return False
                for table in ("entries", "sums"):
                    connection.execute(f"DELETE FROM {table} WHERE space = ?", (of,))  # noqa: S608 - our own names
            return True

        return self._file.done(dropped)

    def scrub(self) -> None:
        """See to it that what was removed is in no file any more.

        Raises:
            StorageError: others read or wrote all the while, so that the log could not be emptied.
        """
        busy = self._rows("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
        if busy:
            raise StorageError(
                f"what was removed from the ledger {self.where} is still in the log beside it, "
                f"because others used it for {PATIENCE:.0f} s; run it again, or end the workers"
            )

    def files(self) -> list[Path]:
        """The files that have what is kept, of those that are there: its own, and the log's."""
        names = [self.where, f"{self.where}-wal"]
        return [path for path in map(Path, names) if path.exists()]

    def has(self, word: bytes) -> bool:
        """Whether a name or a value that is there has these bytes in it."""
        statement = (
            "SELECT EXISTS (SELECT 1 FROM entries WHERE instr(value, ?1) OR instr(name, ?1)) "
            "OR EXISTS (SELECT 1 FROM sums WHERE instr(name, ?1))"
        )
        return bool(self._rows(statement, word)[0][0])

    def close(self) -> None:
        """Give back the connection; the next call makes a new one."""
        self._file.close()

    def _row(self, statement: str, space: str, key: str) -> Any:
        return next(iter(self._rows(statement, key_of(space), key_of(key))), None)

    def _rows(self, statement: str, *values: bytes | int) -> list[Any]:
        return self._file.done(lambda c: c.execute(statement, values).fetchall())

    def _changed(self, statement: str, *values: bytes | None) -> bool:
        return self._file.done(lambda c: c.execute(statement, values).rowcount > 0)
