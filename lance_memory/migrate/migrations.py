"""The schema's numbered steps, and how a store takes those that it has not taken yet."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from lance_memory.record.schema import MIGRATIONS, SCHEMA_VERSION, STORE_ID, StoreFormat
from lance_memory.record.times import Clock, utc, utc_now
from lance_memory.record.values import text_value
from lance_memory.storage import Audit, Snapshot, Table, absolute, naming, say

__all__ = [
    "ALL",
    "Applied",
    "Migration",
    "MigrationResult",
    "MigrationStep",
    "applied",
    "migrate_store",
]

_SCHEMA = "lance_memory.schema_version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the schema.

    Attributes:
        number: the schema version that it leads to.
        title: what it does, in a few words.
        apply: the metadata that it changes on a line of versions, given the store's main line. It
            is asked again where another writer was faster, so it decides and writes nothing.
    """

    number: int
    title: str
    apply: Callable[[StoreFormat], Mapping[str, str]]


def _identify(main: StoreFormat) -> Mapping[str, str]:
    """The branches take the id of main, which is migrated first."""
    return {STORE_ID: main.store_id or str(uuid.uuid4())}


ALL: tuple[Migration, ...] = (
    Migration(
        number=2,
        title="give the store an id, by which backups and archives know it",
        apply=_identify,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A migration that a line of versions went through. What was made later never needed it."""

    number: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationStep:
    """A migration of one branch; `version` is what it made, None as long as it is only planned."""

    branch: str
    number: int
    title: str
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationResult:
    """What a migration did, or would do; no steps: the store is up to date."""

    uri: str
    schema_version: int
    steps: tuple[MigrationStep, ...]

    def __bool__(self) -> bool:
        return bool(self.steps)


def applied(snapshot: Snapshot) -> tuple[Applied, ...]:
    """The migrations that this version went through, oldest first."""
    told = (snapshot.schema.metadata or {}).get(MIGRATIONS.encode(), b"[]")
    return tuple(
        Applied(number=int(one["number"]), at=datetime.fromisoformat(one["at"]))
        for one in json.loads(told)
    )


def migrate_store(
    path: str | os.PathLike[str],
    *,
    dry_run: bool = False,
    clock: Clock = utc_now,
    author: str = "",
    storage_options: Mapping[str, str] | None = None,
) -> MigrationResult:
    """Bring a store of an earlier schema up to date, with its branches; no memory changes.

    Until then it opens, and can only be read. Each step is one version, and `log` shows it. Earlier
    versions stay what they are, and can be read and rolled back to. Handles that are open meanwhile
    write nothing any more: open the store again. It is safe to run it again, after whatever, and
    twice at once.

    Args:
        path: as for `MemoryStore.open`.
        dry_run: only say what would be done.
        clock: gives the present moment, timezone-aware.
        author: who does it; `log` shows it.
        storage_options: the object store's, as Lance takes them.

    Raises:
        NotFoundError: there is no store.
        StoreFormatError: something else is there, or the store is from a later release.
        ConflictError: writers were faster again and again; nothing is half done, run it again.
        StorageError: the store cannot be written to.
    """
    table = Table.open(absolute(path), storage_options=storage_options)
    if dry_run:
        return _plan(table)
    return _apply(table, clock=clock, author=text_value("author", author))


def _plan(table: Table) -> MigrationResult:
    """What would be done, on main and on every branch."""
    steps = [
        MigrationStep(branch=line.branch, number=migration.number, title=migration.title)
        for line in _lines(table)
        for migration in _ahead(line.latest().format)
    ]
    return MigrationResult(uri=table.uri, schema_version=SCHEMA_VERSION, steps=tuple(steps))


def _apply(table: Table, *, clock: Clock, author: str) -> MigrationResult:
    """Step by step; where another process has taken one meanwhile, the next."""
    done: list[MigrationStep] = []
    for line in _lines(table):
        for migration in _ahead(line.latest().format):
            made = _taken(line, migration, main=table, clock=clock, author=author)
            if made is not None:
                done.append(
                    MigrationStep(
                        branch=line.branch,
                        number=migration.number,
                        title=migration.title,
                        version=made.version,
                    )
                )
    return MigrationResult(uri=table.uri, schema_version=SCHEMA_VERSION, steps=tuple(done))


def _taken(
    line: Table, migration: Migration, *, main: Table, clock: Clock, author: str
) -> Snapshot | None:
    """The version that the step made; None: another process has taken it."""
    now = utc(clock(), "clock()")

    def plan(snapshot: Snapshot) -> Mapping[str, str]:
        if snapshot.format.schema_version >= migration.number:
            return {}
        record = [*applied(snapshot), Applied(number=migration.number, at=now)]
        return {
            **migration.apply(main.latest().format),
            _SCHEMA: str(migration.number),
            MIGRATIONS: json.dumps(
                [{"number": one.number, "at": one.at.astimezone(UTC).isoformat()} for one in record]
            ),
        }

    def audit() -> Audit:
        manifest = {"migration": migration.number, "title": migration.title}
        return Audit(operation="migrate", at=now, actor=author, manifest=manifest)

    return say(line, plan, audit=audit)


def _lines(table: Table) -> list[Table]:
    """Main first: its id is the store's."""
    return [table, *(table.on_branch(one.name) for one in naming.branches(table))]


def _ahead(fmt: StoreFormat) -> list[Migration]:
    return [migration for migration in ALL if migration.number > fmt.schema_version]
