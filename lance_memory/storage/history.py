"""Versions: their log, the difference between two of them, tags, branches, clones."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lance_memory.errors import ConflictError, InvalidInputError, LanceMemoryError, NotFoundError
from lance_memory.record.memory import Scope
from lance_memory.record.rows import FINGERPRINT
from lance_memory.storage.engine import translated
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.table import TABLE_NAME, Table, refuse_other_things

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "HOLD",
    "RESERVED",
    "Branch",
    "Comparison",
    "LogEntry",
    "all_branches",
    "all_tags",
    "branches",
    "clone",
    "compare",
    "create_branch",
    "create_tag",
    "delete_branch",
    "delete_tag",
    "entries",
    "entry",
    "holding",
    "tags",
    "version_at",
    "versions",
]

RESERVED = "lmem-"
"""Tags and branches whose names begin so are the store's own: no list shows them."""

HOLD = f"{RESERVED}hold-"
"""Tags that keep a version for as long as something reads it; see `holding`."""

_PHYSICAL = {
    "Overwrite": "create",
    "Rewrite": "compact",
    "CreateIndex": "index",
    "Clone": "clone",
    "Restore": "restore",
    "ReserveFragments": "compact",
    "BaseOperation": "compact",  # what pylance makes of the reservation before a compaction
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One version: what was done, by whom, when and why.

    `upkeep` marks the versions that changed no memory (creation, compaction, indices).
    `scopes` lists the scopes that were written to; None: too many to list.
    """

    version: int
    at: datetime
    operation: str
    op_id: str = ""
    actor: str = ""
    reason: str = ""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    upkeep: bool = False
    scopes: tuple[Scope, ...] | None = ()
    manifest: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A line of versions beside main. `parent_version` is where it left `parent`."""

    name: str
    parent: str
    parent_version: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Ids that stand in the later version only, in both but differently, in the earlier only."""

    inserted: tuple[str, ...]
    updated: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.inserted or self.updated or self.removed)


def entries(table: Table) -> Iterator[LogEntry]:
    """The log, newest first; versions that were cleaned up are not in it."""
    for version in reversed(versions(table)):
        yield entry(table, version)


def versions(table: Table) -> list[int]:
    """The versions that are there, ascending, without reading any of them."""
    with translated("list versions"):
        refs = table.latest().dataset.version_refs()
    return sorted(int(ref["version"]) for ref in refs)


def entry(table: Table, version: int) -> LogEntry:
    """The log entry of one version."""
    snapshot = table.at(version)
    try:
        with translated(f"read the transaction of version {version}"):
            transaction = snapshot.dataset.read_transaction(version)
    except TypeError:
        # pylance 14.0.2 cannot give back a compaction that rewrote indices; no change set is one.
        return LogEntry(version=version, at=snapshot.written_at(), operation="compact", upkeep=True)
    found = (transaction.transaction_properties or {}) if transaction else {}
    if "operation" not in found:
        kind = type(transaction.operation).__name__ if transaction else ""
        operation = _PHYSICAL.get(kind, kind or "compact")
        return LogEntry(version=version, at=snapshot.written_at(), operation=operation, upkeep=True)
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


def version_at(table: Table, moment: datetime) -> int:
    """The version that was the newest at `moment`.

    Raises:
        NotFoundError: `moment` lies before the oldest version that is still there.
    """
    found = None
    for made in reversed(list(entries(table))):
        if made.upkeep:  # timed by the engine's clock, and with the contents of the one before
            found = made.version if found is not None or made.at <= moment else None
        elif made.at > moment:  # what follows holds its rows, even where a clock was behind
            break
        else:
            found = made.version
    if found is None:
        raise NotFoundError(f"no version of {table.uri} is as old as {moment.isoformat()}")
    return found


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


def tags(table: Table) -> dict[str, int]:
    """Tag → version, of this branch, without the store's own."""
    return {
        name: version for name, version in all_tags(table).items() if not name.startswith(RESERVED)
    }


def all_tags(table: Table) -> dict[str, int]:
    """Tag → version, of this branch, the store's own included."""
    with translated("list tags"):
        found = table.own().dataset.tags.list()
    branch = None if table.branch == "main" else table.branch
    return {name: int(t["version"]) for name, t in sorted(found.items()) if t["branch"] == branch}


@contextmanager
def holding(table: Table, version: int) -> Iterator[None]:
    """Keep clean-up, of whatever process, from removing `version` while the block lasts.

    By a tag of the store's own. That of a killed process is dropped by clean-up after a day.
    """
    name = f"{HOLD}{uuid.uuid4().hex}"
    _create_tag(table, name, version)
    try:
        yield
    finally:
        with suppress(LanceMemoryError), translated("let go of a version"):
            table.own().dataset.tags.delete(name)


def create_tag(table: Table, name: str, version: int, *, move: bool = False) -> None:
    """Name a version; cleanup never removes it.

    Raises:
        ConflictError: the tag exists, and `move` is not set.
        InvalidInputError: the name has other characters than letters, digits, `.`, `-`, `_`, or
            is one of the store's own.
    """
    _refuse_reserved("tag", name)
    _create_tag(table, name, version, move=move)


def _create_tag(table: Table, name: str, version: int, *, move: bool = False) -> None:
    table.at(version)
    reference: Any = version if table.branch == "main" else (table.branch, version)
    exists = name in all_tags(table)
    if exists and not move:
        raise ConflictError(f"tag {name!r} is on version {all_tags(table)[name]} already")
    with translated(f"tag version {version} as {name!r}"):
        refs = table.own().dataset.tags
        if exists:
            refs.update(name, reference)
        else:
            refs.create(name, reference)


def delete_tag(table: Table, name: str) -> int:
    """Remove a tag, and return the version it was on.

    Raises:
        NotFoundError: no such tag.
    """
    found = tags(table)
    if name not in found:
        raise NotFoundError(f"there is no tag {name!r}; there are: {_listed(found)}")
    with translated(f"remove tag {name!r}"):
        table.own().dataset.tags.delete(name)
    return found[name]


def branches(table: Table) -> list[Branch]:
    """All branches but main and the store's own."""
    return [one for one in all_branches(table) if not one.name.startswith(RESERVED)]


def all_branches(table: Table) -> list[Branch]:
    """All branches but main, the store's own included."""
    with translated("list branches"):
        found = table.own().dataset.branches.list()
    return [
        Branch(
            name=name,
            parent=branch["parent_branch"] or "main",
            parent_version=int(branch["parent_version"]),
            created_at=datetime.fromtimestamp(branch["create_at"], UTC),
        )
        for name, branch in sorted(found.items())
    ]


def create_branch(table: Table, name: str, version: int) -> Table:
    """A branch that starts at `version`.

    Raises:
        ConflictError: there is one of that name.
    """
    if name in {branch.name for branch in branches(table)} or name == "main":
        raise ConflictError(f"there is a branch {name!r} already; name another, or open that one")
    if not name:
        raise InvalidInputError("a branch needs a name")
    _refuse_reserved("branch", name)
    table.at(version)
    reference: Any = version if table.branch == "main" else (table.branch, version)
    with translated(f"create branch {name!r}"):
        table.own().dataset.create_branch(name, reference)
    return table.on_branch(name)


def delete_branch(table: Table, name: str) -> None:
    """Remove a branch and the versions that only it has.

    Raises:
        NotFoundError: no such branch.
        ConflictError: a tag holds one of its versions.
    """
    names = {branch.name for branch in branches(table)}
    if name not in names:
        raise NotFoundError(f"there is no branch {name!r}; there are: {_listed(names)}")
    with translated(f"delete branch {name!r}"):
        table.own().dataset.branches.delete(name)


def clone(table: Table, version: int, uri: str) -> None:
    """A store at `uri` that starts as `version` of this one and shares its data files.

    The version gets a tag of its own, so that clean-up never removes these files.

    Raises:
        ConflictError: there is a store at `uri`.
        StoreFormatError: there is something else.
    """
    refuse_other_things(uri)
    name = (
        f"checkout-v{version}" if table.branch == "main" else f"checkout-{table.branch}-v{version}"
    )
    fresh = name not in tags(table)
    if fresh:
        create_tag(table, name, version)
    reference: Any = version if table.branch == "main" else (table.branch, version)
    target = f"{uri.rstrip('/')}/{TABLE_NAME}"
    try:
        with translated(f"check out version {version} to {uri}"):
            table.at(version).dataset.shallow_clone(
                target, reference, storage_options=table.storage_options
            )
    except LanceMemoryError:
        if fresh:
            delete_tag(table, name)
        raise


def _refuse_reserved(what: str, name: str) -> None:
    if name.startswith(RESERVED):
        raise InvalidInputError(
            f"the {what} {name!r}: names that begin with {RESERVED!r} are the store's own; "
            "choose another"
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
