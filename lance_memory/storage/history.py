"""What was done to a table: the log of its versions, and the difference between two of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lance_memory.errors import LanceMemoryError, NotFoundError, StorageError
from lance_memory.record.memory import Scope
from lance_memory.record.rows import FINGERPRINT
from lance_memory.storage.engine import MissingFileError, UnexplainedError, translated
from lance_memory.storage.files.readable import manifest_name
from lance_memory.storage.log.audit import AuditLog
from lance_memory.storage.log.entry import LogEntry
from lance_memory.storage.naming import all_branches
from lance_memory.storage.rewritten import place_of
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.table import Table

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "PHYSICAL",
    "Comparison",
    "LogEntry",
    "compare",
    "entries",
    "entry",
    "last_write",
    "readable",
    "version_at",
    "versions",
]

_PHYSICAL = {
    "Overwrite": "create",
    "Rewrite": "compact",
    "CreateIndex": "index",
    "Clone": "clone",
    "Restore": "restore",
    "UpdateConfig": "pause",  # writers wait for a switch of the vectors
    "ReserveFragments": "compact",
    "BaseOperation": "compact",  # what pylance makes of the reservation before a compaction
}

PHYSICAL = frozenset({"compact", "index", "pause"})
"""Operations of versions that hold the memories of the one before. Others may have come from
elsewhere, such as a restore or an append through the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Ids that stand in the later version only, in both but differently, in the earlier only."""

    inserted: tuple[str, ...]
    updated: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.inserted or self.updated or self.removed)


def entries(table: Table, *, until: int | None = None) -> Iterator[LogEntry]:
    """The log, newest first; of versions that were cleaned up what the audit has kept.

    Args:
        table: whose.
        until: the last version that counts; by default the newest.
    """
    audit = AuditLog.of(table)
    kept: dict[int, LogEntry] | None = None
    above = (table.latest().version if until is None else until) + 1
    there = [version for version in versions(table) if version < above]
    for version in [*reversed(there), 0]:
        if version < above - 1:
            if kept is None:
                kept = {one.version: one for one in _kept(table, audit)}
            yield from (kept[v] for v in sorted(kept, reverse=True) if version < v < above)
        above = version
        if version:
            yield _entry_or_kept(table, version, audit)


def _entry_or_kept(table: Table, version: int, audit: AuditLog) -> LogEntry:
    try:
        return entry(table, version)
    except (NotFoundError, MissingFileError):
        for one in _kept(table, audit):  # it was cleaned up since the versions were listed
            if one.version == version:
                return one
        raise
    except StorageError:
        kept = {one.version: one for one in audit.entries(table.branch)}
        return kept.get(version) or LogEntry(
            version=version, at=_not_after(table, version), operation="damaged", readable=False
        )


def _kept(table: Table, audit: AuditLog) -> list[LogEntry]:
    """What the audit has kept of this branch; a rewritten version can be read."""
    there = _rewritten(table)
    return [replace(one, readable=one.version in there) for one in audit.entries(table.branch)]


def _rewritten(table: Table) -> set[int]:
    places = (place_of(one.name, 0) for one in all_branches(table))
    return {version for branch, version in places if branch == table.branch and version}


def _not_after(table: Table, version: int) -> datetime:
    """When the next version that tells it was made; of one that does not tell."""
    for later in (v for v in versions(table) if v > version):
        with suppress(LanceMemoryError):
            return entry(table, later).at
    return datetime.now(UTC)


def versions(table: Table) -> list[int]:
    """The versions that are there, ascending, without reading any of them."""
    with translated("list versions"):
        refs = table.latest().dataset.version_refs()
    return sorted(int(ref["version"]) for ref in refs)


def readable(table: Table) -> list[int]:
    """The versions that can be read, ascending: those that are there, and rewritten ones."""
    return sorted({*versions(table), *_rewritten(table)})


def entry(table: Table, version: int) -> LogEntry:
    """The log entry of one version.

    Raises:
        NotFoundError: there is no such version.
        StorageError: its manifest is damaged; says which file that is.
    """
    snapshot = table.at(version)
    if snapshot.stands_for is not None:
        for one in _kept(table, AuditLog.of(table)):
            if one.version == version:
                return one
        return LogEntry(version=version, at=snapshot.written_at(), operation="rewritten")
    try:
        with translated(f"read the transaction of version {version}"):
            transaction = snapshot.dataset.read_transaction(version)
    except UnexplainedError as error:
        raise _damaged(table, version, error) from error
    except TypeError:
        # pylance 14.0.2 cannot give back a compaction that rewrote indices; no change set is one.
        return LogEntry(version=version, at=snapshot.written_at(), operation="compact", upkeep=True)
    found = (transaction.transaction_properties or {}) if transaction else {}
    if "operation" not in found:
        kind = type(transaction.operation).__name__ if transaction else ""
        operation = _PHYSICAL.get(kind, kind or "compact")
        return LogEntry(version=version, at=snapshot.written_at(), operation=operation, upkeep=True)
    try:
        return _told(version, found)
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(table, version, error) from error


def _damaged(table: Table, version: int, error: Exception) -> StorageError:
    return StorageError(
        f"could not read who made version {version}: damaged: {manifest_name(version)} of "
        f"{table.home} ({error}); other versions can be read"
    )


def _told(version: int, found: Mapping[str, str]) -> LogEntry:
    """The entry that a transaction's properties tell of."""
    scopes = json.loads(found["scopes"])
    return LogEntry(
        version=version,
        at=datetime.fromisoformat(found["at"]),
        operation=found["operation"],
        op_id=found["op_id"],
        actor=found["actor"],
        reason=found["reason"],
        **json.loads(found["counts"]),
        scopes=None if scopes is None else tuple(Scope(**levels) for levels in scopes),
        manifest=json.loads(found["manifest"]) or None,
    )


def last_write(table: Table, version: int) -> LogEntry | None:
    """What made the memories of a version: its own entry, or that of the write below upkeep's.

    It may be of a version that was cleaned up; None where what is between them is not known.
    """
    for below, made in enumerate(entries(table, until=version)):
        if made.version != version - below:
            return None
        if not (made.upkeep and made.operation in PHYSICAL):
            return made
    return None


def version_at(table: Table, moment: datetime) -> int:
    """The version that was the newest at `moment`, or one with the same contents.

    Raises:
        NotFoundError: `moment` lies before the oldest version, or what was the newest then has
            been cleaned up.
    """
    found: list[LogEntry] = []  # versions of equal contents, as they were at `moment`
    for made in reversed(list(entries(table))):
        if made.upkeep:  # timed by the engine's clock, and with the contents of the one before
            found += [made] if found or made.at <= moment else []
        elif made.at > moment:  # what follows holds its rows, even where a clock was behind
            break
        else:
            found = [made]
    if not found:
        raise NotFoundError(f"no version of {table.uri} is as old as {moment.isoformat()}")
    readable = [made.version for made in found if made.readable]
    if not readable:
        raise NotFoundError(
            f"version {found[0].version} of {table.uri}, the newest at {moment.isoformat()}, was "
            "cleaned up and cannot be read any more; `lmem log` lists what can"
        )
    return readable[-1]


def compare(before: Snapshot, after: Snapshot, predicate: str | None = None) -> Comparison:
    """What changed between two versions, by id, revision, update time and content hash.

    Narrow columns are read of each side; the predicate must depend on columns that never
    change (the scope), so that a row stands on both sides or on its own merits.
    """
    import polars as pl  # a quarter of the package's import time, for this alone

    old, new = (_fingerprints(side, predicate) for side in (before, after))
    joined = old.join(new, on="id", how="full", suffix="_new")
    gone = joined.filter(pl.col("id_new").is_null())
    born = joined.filter(pl.col("id").is_null())
    differs = pl.any_horizontal(pl.col(n) != pl.col(f"{n}_new") for n in FINGERPRINT)
    changed = joined.filter(pl.col("id").is_not_null() & pl.col("id_new").is_not_null() & differs)
    return Comparison(
        inserted=tuple(sorted(born["id_new"].to_list())),
        updated=tuple(sorted(changed["id"].to_list())),
        removed=tuple(sorted(gone["id"].to_list())),
    )


def _fingerprints(snapshot: Snapshot, predicate: str | None) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(snapshot.scan(predicate, columns=["id", *FINGERPRINT]))
