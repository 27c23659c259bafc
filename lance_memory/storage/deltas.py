"""What each version changed, over the whole history: only files that differ are read.

`row_changes` looks for a few rows in many versions; this looks for all rows in all versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lance_memory.storage import history
from lance_memory.storage.log.entry import LogEntry
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.table import Table

__all__ = ["Delta", "deltas"]

_Fragments = dict[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """The rows that a version may have changed, before and after it.

    Attributes:
        entry: what was done. Its operation is "" where several writes lie between this version
            and the one before it that can be read; it is then the last of them.
        before: the rows of files that the version before has and this one has not, or not whole.
        after: the same the other way about. Rows that stand unchanged on both sides are possible.
        first: it is the oldest version that can be read, and `after` all its rows.
    """

    entry: LogEntry
    before: pa.Table
    after: pa.Table
    first: bool = False


def deltas(table: Table, *, until: int, columns: Sequence[str]) -> Iterator[Delta]:
    """The versions up to `until` that changed memories, oldest first; some may have changed none.

    Of each version the manifest is read and the files that it does not share with the one before,
    so all of it costs about what was ever written, and not versions times rows.

    Args:
        table: of the memories.
        until: the last version that counts.
        columns: to read of the rows.

    Raises:
        StorageError: a version is damaged.
    """
    told = {entry.version: entry for entry in history.entries(table)}
    last: Snapshot | None = None
    for version in history.versions(table):
        if version > until:
            return
        snapshot = table.at(version)
        since = last.version if last else 0
        entry = _what_was_done([told[v] for v in sorted(told) if since < v <= version])
        if last is None:
            after = snapshot.scan(columns=columns)
            yield Delta(entry=entry, before=after.slice(0, 0), after=after, first=True)
        elif not _changes_nothing(entry):
            old, new = _fragments(last), _fragments(snapshot)
            yield Delta(
                entry=entry,
                before=last.of_fragments(_other(old, new), columns=columns),
                after=snapshot.of_fragments(_other(new, old), columns=columns),
            )
        last = snapshot


def _what_was_done(entries: Sequence[LogEntry]) -> LogEntry:
    writes = [entry for entry in entries if not _changes_nothing(entry)]
    if len(writes) > 1:
        return replace(writes[-1], operation="", actor="", reason="")
    return writes[-1] if writes else entries[-1]


def _changes_nothing(entry: LogEntry) -> bool:
    return entry.upkeep and entry.operation in history.PHYSICAL


def _fragments(snapshot: Snapshot) -> _Fragments:
    """Each fragment, and which of its rows are gone. Its rows never change, they only go."""
    with snapshot.naming(f"list the fragments of version {snapshot.version}"):
        return {
            fragment.fragment_id: fragment.metadata.deletion_file.json()
            if fragment.metadata.deletion_file
            else ""
            for fragment in snapshot.dataset.get_fragments()
        }


def _other(here: _Fragments, there: _Fragments) -> list[int]:
    return [identifier for identifier, gone in here.items() if there.get(identifier) != gone]
