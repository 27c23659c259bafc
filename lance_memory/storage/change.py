"""The one write primitive: a change set, and how it becomes exactly one version."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import ConflictError
from lance_memory.record.identity import new_id
from lance_memory.record.memory import SCOPE_LEVELS, Scope
from lance_memory.record.rows import Fingerprint
from lance_memory.storage.described import covered, described
from lance_memory.storage.disk.cut import refuse_cut
from lance_memory.storage.disk.leftovers import remove
from lance_memory.storage.engine import (
    CommitConflictError,
    MissingFileError,
    lance,
    name_of,
    translated,
)
from lance_memory.storage.snapshot import Located, Snapshot

if TYPE_CHECKING:
    from lance import FragmentMetadata, LanceOperation

    from lance_memory.storage.disk.durable import Settling

__all__ = ["Audit", "ChangeSet", "Seen", "commit"]

Seen = Mapping[str, Fingerprint]
"""id → fingerprint of the row that a plan saw."""

_ATTEMPTS = 60
_MAX_SCOPES = 64
_COPIED_ROWS = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Who did what, when and why. Rides in the commit; `log` reads it back."""

    operation: str
    at: datetime
    actor: str = ""
    reason: str = ""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    op_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """Rows to insert, rows to put in the place of others, ids to delete: one version, or nothing.

    Attributes:
        audit: who and why.
        inserts: whole rows under ids that are not in the table.
        updates: whole rows that replace the ones with the same ids.
        deletes: rows that go; only `id` and the scope columns of it are read.
        seen: the revisions that the plan was made from, where it was made at an earlier version.
            Where the table holds another one, or none, the commit raises `ConflictError`.
        looked: the plan has made sure itself that the ids of `inserts` are new.
        afresh: fragments whose rows that stay are written into new files, so that nothing of what
            goes is in a file of this version; every row that goes or is replaced is in one of
            them, as it is at the version that was read. It is for forgetting: the log does not
            name the scopes, and the version is made even where it changes no row.
        noted: the version is made even where it changes no row, for what its audit says.
        warnings: what its caller is to be told beside what was done.
    """

    audit: Audit
    inserts: pa.Table | None = None
    updates: pa.Table | None = None
    deletes: pa.Table | None = None
    seen: Seen = field(default_factory=dict)
    looked: bool = False
    afresh: frozenset[int] | None = None
    noted: bool = False
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.noted or self.afresh is not None or any(self.counts().values())

    def counts(self) -> dict[str, int]:
        """How many rows are inserted, updated, deleted."""
        parts = {"inserted": self.inserts, "updated": self.updates, "deleted": self.deletes}
        return {name: len(rows) if rows is not None else 0 for name, rows in parts.items()}

    def written(self) -> pa.Table | None:
        """The rows that are written, as one table."""
        parts = [rows for rows in (self.inserts, self.updates) if rows]
        if len(parts) == 1:
            return parts[0]
        return pa.concat_tables(parts) if parts else None

    def replaced(self) -> list[str]:
        """The ids whose present rows go."""
        parts = [rows["id"].to_pylist() for rows in (self.updates, self.deletes) if rows]
        return [identifier for part in parts for identifier in part]

    def scopes(self) -> list[Scope]:
        """The distinct scopes touched."""
        levels = list(SCOPE_LEVELS)
        parts = [r for r in (self.inserts, self.updates, self.deletes) if r]
        if not parts:
            return []
        rows = parts[0]
        if len(parts) > 1 or len(rows) > 1:
            several = pa.concat_tables([part.select(levels) for part in parts])
            rows = several.group_by(levels).aggregate([])
        names = zip(*(rows[level].to_pylist() for level in levels), strict=True)
        return [Scope(**dict(zip(levels, those, strict=True))) for those in names]


Plan = Callable[[Snapshot], ChangeSet]
"""Decides, from the rows of one version, what to write. Called again after a lost race."""


def commit(
    latest: Callable[[], Snapshot],
    plan: Plan,
    *,
    published: Callable[[Snapshot], None],
    home: str,
    storage_options: dict[str, str] | None,
    settling: Settling | None = None,
) -> tuple[ChangeSet, Snapshot]:
    """Plan at the latest version, verify, write, publish; plan again when somebody was faster.

    The files of attempts that lost are removed from a local disk at the end: they may hold what
    another process is forgetting. None is where it is unclear whether an attempt was committed.

    Args:
        latest: gives the newest version.
        plan: see `Plan`. An empty change set writes nothing.
        published: is told of the new version.
        home: the directory of the branch's files.
        storage_options: the engine's options for the table's store.
        settling: puts what is committed on the disk; None: the operating system does, in time.

    Returns:
        The change set that was committed, and the version it made (or read, if it is empty).

    Raises:
        ConflictError: a row changed since the plan saw it, or the race was lost too often.
        StorageError: the disk is full, or the files cannot be written.
    """
    written = _Written(storage_options)
    try:
        return _committed(latest, plan, published, home=home, written=written, settling=settling)
    finally:
        written.discard(home)


def _committed(
    latest: Callable[[], Snapshot],
    plan: Plan,
    published: Callable[[Snapshot], None],
    *,
    home: str,
    written: _Written,
    settling: Settling | None,
) -> tuple[ChangeSet, Snapshot]:
    change: ChangeSet | None = None
    for attempt in range(_ATTEMPTS):
        snapshot = latest()
        try:
            change = plan(snapshot)
            if not change:
                if change.seen:  # nothing is left to do, but maybe because of what others did
                    _verify(change, [], [], snapshot.locate([*change.seen]))
                if settling is not None:
                    settling.after(snapshot)
                return change, snapshot
            operation = _operation(snapshot, change, written)
            refuse_cut(_new_fragments(operation), home)
            transaction = _transaction(snapshot, operation, change)
            files = _new_files(snapshot, transaction)
            if settling is not None:
                settling.before(snapshot, files)
            with written.published(files):
                dataset = _publish(snapshot, transaction, change, written.storage_options)
        except MissingFileError:
            if latest().version == snapshot.version or attempt == _ATTEMPTS - 1:
                raise
            continue  # clean-up took the files of the version that was read
        except CommitConflictError:
            time.sleep(random.uniform(0, min(0.002 * 2**attempt, 0.05)))
            continue
        made = snapshot.followed_by(dataset)
        published(made)
        if settling is not None:
            settling.after(made)
        return change, made
    name = f" {change.audit.operation}" if change else ""
    raise ConflictError(
        f"could not commit{name}: other writers were faster {_ATTEMPTS} times; nothing was "
        "written: try again"
    )


@contextmanager
def tried(
    snapshot: Snapshot,
    change: ChangeSet,
    *,
    home: str,
    storage_options: dict[str, str] | None,
) -> Iterator[Snapshot]:
    """What `change` would make of the snapshot: a detached version, gone when the block ends.

    It is in no list of versions, no reader sees it, and its files are removed from a local disk;
    those of a killed process, or in an object store, stay until clean-up finds them.

    Args:
        snapshot: the version that it was planned at.
        change: what would be committed; see `ChangeSet`.
        home: the directory of the branch's files.
        storage_options: the engine's options for the table's store.

    Raises:
        ConflictError: the change was planned at another version.
        StorageError: the store cannot be written to.
    """
    operation = _operation(snapshot, change, _Written(storage_options))
    transaction = _transaction(snapshot, operation, change)
    leftovers = _new_files(snapshot, transaction)
    try:
        dataset = _publish(snapshot, transaction, change, storage_options, detached=True)
        leftovers.append(f"_versions/d{dataset.version}.manifest")
        yield snapshot.sibling(dataset)
    finally:
        for name in leftovers:
            remove(home, name)


def _new_files(snapshot: Snapshot, transaction: lance.Transaction) -> list[str]:
    """The files that only this transaction has, from the branch's directory on."""
    operation = transaction.operation
    first = isinstance(operation, lance.LanceOperation.Merge)
    updated = [] if first else operation.updated_fragments
    names = [f"data/{name_of(f)}" for fragment in _new_fragments(operation) for f in fragment.files]
    for fragment in updated:
        deletion = fragment.deletion_file
        if deletion is not None and deletion.read_version == snapshot.version:
            names.append(deletion.path(fragment.id))
    return [*names, f"_transactions/{snapshot.version}-{transaction.uuid}.txn"]


def _new_fragments(operation: LanceOperation.BaseOperation) -> list[FragmentMetadata]:
    first = isinstance(operation, lance.LanceOperation.Merge)
    return list(operation.fragments if first else operation.new_fragments)


def _transaction(
    snapshot: Snapshot, operation: LanceOperation.BaseOperation, change: ChangeSet
) -> lance.Transaction:
    return lance.Transaction(
        read_version=snapshot.version,
        operation=operation,
        transaction_properties=properties(change),
    )


def _publish(
    snapshot: Snapshot,
    transaction: lance.Transaction,
    change: ChangeSet,
    storage_options: dict[str, str] | None,
    *,
    detached: bool = False,
) -> lance.LanceDataset:
    with translated(f"commit {change.audit.operation}"):
        return lance.LanceDataset.commit(
            snapshot.dataset,
            transaction,
            max_retries=_ATTEMPTS if detached else 0,  # to find a free number; else a race is lost
            storage_options=storage_options,
            detached=detached,
        )


def _operation(
    snapshot: Snapshot, change: ChangeSet, written: _Written
) -> LanceOperation.BaseOperation:
    """The engine operation that does all of `change`, and that a rival writer conflicts with.

    Two inserts of the same new id would both commit, because an append conflicts with nothing.
    So every change set names the table's lowest fragment as updated, unchanged if need be:
    change sets then exclude each other on it, the loser plans again, and sees the winner's
    rows (design/002-one-commit.md).
    """
    rows = change.written()
    fragments = written.fragments(rows, snapshot) if rows else []
    removed, updated = ([], []) if change.afresh is not None else _masked(snapshot, change)
    if not snapshot.fragment_ids:
        return _first_rows(snapshot, fragments)
    if change.afresh:
        gone = frozenset(change.replaced())
        removed = sorted(change.afresh)
        fragments += [f for i in sorted(change.afresh) for f in written.rest(snapshot, i, gone)]
    lowest = min(snapshot.fragment_ids)
    if lowest not in {*removed, *(fragment.id for fragment in updated)}:
        updated.append(snapshot.fragment(lowest).metadata)
    return lance.LanceOperation.Update(
        removed_fragment_ids=removed,
        updated_fragments=updated,
        new_fragments=fragments,
        update_mode="rewrite_rows",
    )


def _first_rows(
    snapshot: Snapshot, fragments: list[FragmentMetadata]
) -> LanceOperation.BaseOperation:
    """Rows for a table without fragments: a Merge, which conflicts with every other write.

    It keeps the fragment ids that it is given, so they start above all that an index has seen.
    """
    seen = [fragment for one in described(snapshot.dataset).values() for fragment in covered(one)]
    start = max(seen, default=-1) + 1
    numbered = [replace(fragment, id=start + i) for i, fragment in enumerate(fragments)]
    return lance.LanceOperation.Merge(
        fragments=numbered, schema=snapshot.dataset.lance_schema, preserves_nullability=False
    )


def _masked(snapshot: Snapshot, change: ChangeSet) -> tuple[list[int], list[FragmentMetadata]]:
    """Deletion vectors over the old rows: fragments that end empty, and the others' new metadata.

    Verifies every row on the way.
    """
    gone = change.replaced()
    fresh = change.inserts["id"].to_pylist() if change.inserts and not change.looked else []
    if not gone and not change.seen and not fresh:
        return [], []
    located = snapshot.locate([*dict.fromkeys([*gone, *change.seen, *fresh])])
    _verify(change, gone, fresh, located)
    mask = pc.is_in(located.rows["id"], pa.array(gone, pa.string())).to_numpy()
    addresses = located.addresses[mask]
    removed: list[int] = []
    updated: list[FragmentMetadata] = []
    with translated(f"write {change.audit.operation}"):
        fragment_ids = addresses >> np.uint64(32)
        offsets = addresses & np.uint64(0xFFFF_FFFF)
        for fragment_id in np.unique(fragment_ids).tolist():
            mine = offsets[fragment_ids == fragment_id]
            rest = snapshot.fragment(fragment_id).delete_rows(mine.tolist())
            if rest is None:
                removed.append(fragment_id)
            else:
                updated.append(rest)
    return removed, updated


def _verify(change: ChangeSet, gone: list[str], fresh: list[str], located: Located) -> None:
    """Refuse the change when a row is not the one that the plan saw, or a new id is taken."""
    there = set(located.rows["id"].to_pylist())
    bad = [i for i in gone if i not in there] + [i for i in fresh if i in there]
    if change.seen:
        found = located.fingerprints()
        bad += [i for i, seen in change.seen.items() if found.get(i) != seen]
    if bad:
        bad = sorted(set(bad))
        raise ConflictError(
            f"could not commit {change.audit.operation}: {len(bad)} of the memories it is about "
            f"were changed or deleted since it was planned ({', '.join(bad[:3])}); nothing was "
            "written: read and plan again",
            ids=bad,
        )


class _Written:
    """Data files of one commit; a repeated attempt with the same rows does not write them again.

    It knows the files of all attempts, so that those of no version can be removed.
    """

    def __init__(self, storage_options: dict[str, str] | None) -> None:
        self.storage_options = storage_options
        self._files: set[str] = set()
        self._committed: frozenset[str] = frozenset()
        self._unclear = False
        self._rows: pa.Table | None = None
        self._fragments: list[FragmentMetadata] = []
        self._rests: dict[tuple[str, frozenset[str]], list[FragmentMetadata]] = {}

    @contextmanager
    def published(self, files: list[str]) -> Iterator[None]:
        """Commit these files in the block; how that ends decides what `discard` removes."""
        self._files.update(files)
        try:
            yield
        except CommitConflictError:
            raise
        except BaseException:
            self._unclear = True  # it may be committed, whatever became of the answer
            raise
        self._committed = frozenset(files)

    def discard(self, home: str) -> None:
        """Remove the files that no version has; none, where a commit may have gone through."""
        if not self._unclear:
            for name in self._files - self._committed:
                with suppress(OSError):  # clean-up finds it in time, and what was done stands
                    remove(home, name)

    def _noted(self, fragments: list[FragmentMetadata]) -> list[FragmentMetadata]:
        self._files.update(f"data/{name_of(file)}" for one in fragments for file in one.files)
        return fragments

    def fragments(self, rows: pa.Table, snapshot: Snapshot) -> list[FragmentMetadata]:
        if self._rows is None or not rows.equals(self._rows):
            with translated("write rows"):
                self._fragments = self._noted(
                    lance.fragment.write_fragments(
                        rows,
                        snapshot.dataset,
                        mode="append",
                        storage_options=self.storage_options,
                    )
                )
            self._rows = rows
        return list(self._fragments)

    def rest(
        self, snapshot: Snapshot, fragment: int, gone: frozenset[str]
    ) -> list[FragmentMetadata]:
        """The fragment's rows but those with the ids `gone`, in new files."""
        old = snapshot.fragment(fragment)
        known = (json.dumps(old.metadata.to_json()), gone)
        if known not in self._rests:
            with translated("write rows afresh"):
                self._rests[known] = self._noted(_copied(snapshot, old, gone, self.storage_options))
        return self._rests[known]


def _copied(
    snapshot: Snapshot,
    fragment: lance.LanceFragment,
    gone: frozenset[str],
    storage_options: dict[str, str] | None,
) -> list[FragmentMetadata]:
    away = pa.array(sorted(gone), pa.string())
    parts = (
        batch.filter(pc.invert(pc.is_in(batch["id"], away)))
        for batch in fragment.to_batches(columns=snapshot.schema.names, batch_size=_COPIED_ROWS)
    )
    first = next((part for part in parts if len(part)), None)
    if first is None:
        return []
    reader = pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], parts))
    copied: list[FragmentMetadata] = lance.fragment.write_fragments(
        reader, snapshot.dataset, mode="append", storage_options=storage_options
    )
    return copied


def properties(change: ChangeSet) -> dict[str, str]:
    """The audit record as transaction properties."""
    audit = change.audit
    return {
        "operation": audit.operation,
        "op_id": audit.op_id or new_id(audit.at),
        "at": audit.at.astimezone(UTC).isoformat(),
        "actor": audit.actor,
        "reason": audit.reason,
        "counts": json.dumps(change.counts()),
        "scopes": json.dumps(None if change.afresh is not None else _listed(change.scopes())),
        "manifest": json.dumps(audit.manifest, ensure_ascii=False) if audit.manifest else "{}",
    }


def _listed(scopes: list[Scope]) -> list[dict[str, str]] | None:
    """The scopes for the log, so that a scoped handle finds its own; None: too many to list."""
    return [scope.names() for scope in scopes] if len(scopes) <= _MAX_SCOPES else None
