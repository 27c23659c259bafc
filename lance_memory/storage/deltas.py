"""What each version changed, over the whole history: only files that differ are read.

`row_changes` looks for a few rows in many versions; this looks for all rows in all versions.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import NotFoundError
from lance_memory.record.rows import FINGERPRINT, one_array
from lance_memory.storage import history
from lance_memory.storage.engine import MissingFileError
from lance_memory.storage.log.entry import LogEntry
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.table import Table

__all__ = ["Delta", "deltas"]

_TRIES = 8
_PAUSE = 0.05  # seconds
_Fragments = dict[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """The rows that a version may have changed, before and after it.

    Attributes:
        entry: what was done. Its operation is "" where several writes lie between this version
            and the one before it that can be read; it is then the last of them.
        before: the rows of files that the version before has and this one has not, or not whole,
            but for those that stand in this one as they were; all rows, where one was rewritten.
        after: the same the other way about. Rows that stand unchanged on both sides are possible.
        first: it is the oldest version that can be read, and `after` all its rows.
    """

    entry: LogEntry
    before: pa.Table
    after: pa.Table
    first: bool = False


def deltas(table: Table, *, until: int, columns: Sequence[str]) -> list[Delta]:
    """The versions up to `until` that changed memories, oldest first; some may have changed none.

    Of each version the manifest is read and the files that it does not share with the one before,
    so all of it costs about what was ever written, and not versions times rows. Where clean-up
    takes a version away while it is read, it begins again.

    Args:
        table: of the memories.
        until: the last version that counts.
        columns: to read of the rows: the id and `FINGERPRINT` among them.

    Raises:
        StorageError: a version is damaged.
    """
    for _ in range(_TRIES):
        versions = history.versions(table)
        try:
            return [*_read(table, until=until, columns=columns)]
        except MissingFileError:
            time.sleep(_PAUSE)  # the files of a version go before it does
            if versions == history.versions(table):
                raise
    return [*_read(table, until=until, columns=columns)]


def _read(table: Table, *, until: int, columns: Sequence[str]) -> Iterator[Delta]:
    told = {entry.version: entry for entry in history.entries(table)}
    numbers = sorted(told)
    last: Snapshot | None = None
    old: _Fragments = {}
    nothing = pa.table({})
    seen = 0  # of the numbers: those of versions up to the last one
    for version in history.readable(table):
        if version > until:
            return
        try:
            snapshot = table.at(version)
        except NotFoundError:  # upkeep has cleaned it up since it was listed
            continue
        since, seen = seen, bisect_right(numbers, version)
        entry = _what_was_done([told[v] for v in numbers[since:seen]])
        new = _fragments(snapshot)
        if last is None:
            after = snapshot.scan(columns=columns)
            nothing = after.slice(0, 0)
            yield Delta(entry=entry, before=nothing, after=after, first=True)
        elif last.stands_for or snapshot.stands_for:  # their files are others, the rows are not
            before, after = (one.scan(columns=columns) for one in (last, snapshot))
            yield Delta(entry=entry, before=before, after=after)
        elif not _changes_nothing(entry):
            gone, come = _other(old, new), _other(new, old)
            before = last.of_fragments(gone, columns=columns) if gone else nothing
            after = snapshot.of_fragments(come, columns=columns) if come else nothing
            if set(gone) & set(come):
                before, after = _without_kept(before, after)
            yield Delta(entry=entry, before=before, after=after)
        last, old = snapshot, new


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


def _without_kept(before: pa.Table, after: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both without the rows that stand in both as they were.

    Of a large fragment that lost one row all others stay: many versions of them would fill memory.
    """
    both = pc.is_in(before["id"], value_set=one_array(after["id"]))
    had, has = (
        rows.filter(pc.is_in(rows["id"], value_set=one_array(before["id"].filter(both))))
        for rows in (before, after)
    )
    order = [("id", "ascending")]
    old, new = (rows.sort_by(order).select(["id", *FINGERPRINT]) for rows in (had, has))
    same = pc.equal(old[FINGERPRINT[0]], new[FINGERPRINT[0]])
    for name in FINGERPRINT[1:]:
        same = pc.and_(same, pc.equal(old[name], new[name]))
    kept = one_array(old["id"].filter(same))
    left, come = (
        rows.filter(pc.invert(pc.is_in(rows["id"], value_set=kept))) for rows in (before, after)
    )
    return left, come


def _other(here: _Fragments, there: _Fragments) -> list[int]:
    return [identifier for identifier, gone in here.items() if there.get(identifier) != gone]
