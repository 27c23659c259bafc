"""The audit: the log entries of versions that were cleaned up, in a side table of their own.

Clean-up takes a version's transaction away with it, and the record of who did what and why was in
there. So the entries are kept here first, and the versions removed then: a process that is killed
in between has kept too much, never too little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.record.filters import equals
from lance_memory.record.identity import new_ids
from lance_memory.storage.journal import Journal
from lance_memory.storage.log.entry import LogEntry, as_json, from_json

if TYPE_CHECKING:
    from lance_memory.storage.table import Table

__all__ = ["AuditLog"]

_NAME = "audit"
_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("op_id", pa.string(), nullable=False),
        pa.field("entry", pa.string(), nullable=False),
    ]
)
_NAMED = ("branch", "version", "op_id")


class AuditLog:
    """The entries of a store's cleaned versions, of every branch. Thread-safe.

    The side table `audit` has one row for each. It grows by a few hundred bytes for a version that
    goes, and its files and its own versions stay few.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @classmethod
    def of(cls, table: Table) -> AuditLog:
        """The audit beside a table."""
        options = table.storage_options
        return cls(Journal(table.uri, _NAME, schema=_SCHEMA, storage_options=options))

    def keep(self, branch: str, entries: Sequence[LogEntry]) -> None:
        """Keep the entries of versions that are about to be cleaned up.

        What is kept already, under the same branch, version and operation, is not kept again.

        Raises:
            StorageError: the disk is full or cannot be written to; nothing was kept.
        """
        rows = self._journal.scan(equals("branch", branch), columns=_NAMED[1:])
        known = set(zip(*(rows[name].to_pylist() for name in _NAMED[1:]), strict=True))
        fresh = [one for one in entries if (one.version, one.op_id) not in known]
        if fresh:
            self._append([(branch, one) for one in fresh])
            self._journal.settle()  # their versions go next
            self._journal.upkeep(keep=None)

    def entries(self, branch: str) -> list[LogEntry]:
        """The entries that were kept of a branch, newest version first, one for each."""
        rows = self._journal.scan(equals("branch", branch), columns=["id", "version", "entry"])
        kept = rows.sort_by([("version", "descending"), ("id", "descending")])
        found: dict[int, str] = {}
        for version, text in zip(*(kept[n].to_pylist() for n in ("version", "entry")), strict=True):
            found.setdefault(version, text)
        return [from_json(text) for text in found.values()]

    def rewrite(self, change: Callable[[LogEntry], LogEntry | None]) -> int:
        """Change kept entries of every branch, or drop them where `change` gives None; how many.

        What is replaced or dropped is gone from the files too. After a kill some entries may be
        there twice, old and new, until it is called again: the new ones count.

        Raises:
            ConflictError: another process's upkeep holds the audit.
            StorageError: the disk is full or cannot be written to.
        """
        rows = self._journal.scan().to_pylist()
        gone: set[str] = set()
        fresh: list[tuple[str, LogEntry]] = []
        for row in rows:
            entry = from_json(row["entry"])
            changed = change(entry)
            if changed != entry:
                gone.add(row["id"])
                fresh += [] if changed is None else [(row["branch"], changed)]
        if fresh:
            self._append(fresh)
        return self._remove(gone)

    def drop(self, branch: str) -> int:
        """Remove the entries of a branch that is gone, whose name can be used again; how many."""
        return self._remove(
            set(self._journal.scan(equals("branch", branch), columns=["id"])["id"].to_pylist())
        )

    def _append(self, entries: Sequence[tuple[str, LogEntry]]) -> None:
        ids = new_ids(len(entries), datetime.now(UTC))
        rows = [
            {
                "id": identifier,
                "branch": branch,
                "version": entry.version,
                "op_id": entry.op_id,
                "entry": as_json(entry),
            }
            for identifier, (branch, entry) in zip(ids, entries, strict=True)
        ]
        self._journal.append(pa.Table.from_pylist(rows, schema=_SCHEMA))

    def _remove(self, ids: set[str]) -> int:
        if not ids:
            return 0
        wanted = pa.array(sorted(ids), pa.string())

        def chosen(rows: pa.Table) -> NDArray[np.bool_]:
            mask: NDArray[np.bool_] = pc.is_in(rows["id"], wanted).to_numpy()
            return mask

        return self._journal.delete(chosen, columns=["id"])
