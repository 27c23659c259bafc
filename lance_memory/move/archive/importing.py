"""import-store: an archive becomes one version of a store, or nothing of it does."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.errors import StoreFormatError
from lance_memory.files import saving
from lance_memory.html import Told
from lance_memory.move.archive.export import BATCH_ROWS
from lance_memory.move.archive.files import Archive, ArchiveManifest
from lance_memory.move.archive.incoming import Incoming, take_in_archive
from lance_memory.move.archive.merging import ImportConflict, Merge, OnConflict, merge, renamed
from lance_memory.move.archive.rules import refuse_unsound
from lance_memory.record.aside import aside
from lance_memory.record.memory import Scope
from lance_memory.record.rows import EMBEDDING, patched, vector_array
from lance_memory.record.soundness import COLUMNS
from lance_memory.storage import Audit, ChangeSet, Plan, Snapshot, Table

__all__ = ["ImportPlan", "ImportResult", "import_archive"]

_CHUNK = 256

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """What became of an archive.

    Attributes:
        uri: the store.
        version: that was made; the one that was found, where nothing was stored.
        stored: memories that are new.
        already_there: memories that the store has, as they are or under another id.
        outside: memories outside the handle's scope, which were left out.
        embedded: memories that got a vector of the store's own model.
        conflicts: what clashed, and what became of it.
        dry_run: nothing was written; this is what would be.
        manifest: the archive's.
        upkeep: why the last upkeep of the store failed; "" where it did not.
        warnings: as in `WriteResult`.
    """

    uri: str
    version: int
    stored: int
    already_there: int
    outside: int
    embedded: int
    conflicts: tuple[ImportConflict, ...]
    dry_run: bool
    manifest: ArchiveManifest
    upkeep: str = ""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        told = {
            "already there": self.already_there,
            "outside the scope": self.outside,
            "embedded anew": self.embedded,
            "in conflict": len(self.conflicts),
        }
        more = "".join(f", {n:,} {name}" for name, n in told.items() if n)
        trial = "dry run: " if self.dry_run else ""
        return f"{trial}version {self.version}: {self.stored:,} stored{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan(Told):
    """How an archive is to be taken in.

    Attributes:
        scope: what lies outside is left out.
        on_conflict: see `OnConflict`.
        embed: makes the vectors anew, where the archive's are of another model; None: refused.
        now: decides which memories are live.
        audit: makes the record of the commit.
        commit: commits what was planned; see `Writing`.
        progress: called with (embedded, to embed).
    """

    scope: Scope
    on_conflict: OnConflict
    embed: Embed | None
    now: datetime
    audit: Callable[[ArchiveManifest], Audit]
    commit: Callable[[Plan], tuple[ChangeSet, Snapshot, str]]
    progress: Progress | None = None


def import_archive(table: Table, path: Path, plan: ImportPlan, *, dry_run: bool) -> ImportResult:
    """Check an archive, decide what is new in it, and store that; see `import_store`."""
    archive = Archive(path)
    try:
        anew = _of_another_model(table, archive, plan)
        with saving(f"read {path}"), tempfile.TemporaryDirectory(prefix="lance-memory-") as folder:
            incoming = take_in_archive(
                archive, schema=table.schema, scope=plan.scope, folder=Path(folder), anew=anew
            )
            coming = _Coming(table, incoming, plan, archive, Path(folder), anew=anew)
            return coming.looked_at() if dry_run else coming.stored()
    finally:
        archive.close()


def _of_another_model(table: Table, archive: Archive, plan: ImportPlan) -> bool:
    """Whether the vectors have to be made anew.

    Raises:
        StoreFormatError: they are of another model, and that was not asked for.
    """
    here, there = table.format, archive.manifest
    pairs = [(f.embedding_model, f.dimension, f.metric) for f in (here, there)]
    if pairs[0] == pairs[1]:
        return False
    if plan.embed is None:
        raise StoreFormatError(
            f"{archive.path} has vectors of the model {there.embedding_model!r} "
            f"({there.dimension} numbers), and {table.uri} those of {here.embedding_model!r} "
            f"({here.dimension}); vectors of two models cannot be compared: import with embed=True "
            "to embed the memories anew, or into a new store, and change its model with "
            "`lmem reembed`"
        )
    return True


class _Coming:
    """Checked rows, and the store that they are for."""

    def __init__(
        self,
        table: Table,
        incoming: Incoming,
        plan: ImportPlan,
        archive: Archive,
        folder: Path,
        *,
        anew: bool,
    ) -> None:
        self._table = table
        self._incoming = incoming
        self._plan = plan
        self._path = archive.path
        self._manifest = archive.manifest
        self._folder = folder
        self._anew = anew
        self._vectors: dict[int, NDArray[np.float32]] = {}
        self._kept: tuple[Merge, pa.Table] | None = None

    def looked_at(self) -> ImportResult:
        """What would become of them."""
        snapshot = self._table.latest()
        found = self._merged(snapshot)
        return replace(self._result(found, snapshot), dry_run=True)

    def stored(self) -> ImportResult:
        """Store what is new, as one version."""
        merged = self._merged(self._table.latest())
        if self._plan.on_conflict is OnConflict.REFUSE:
            merged.refuse_clashes()
        self._embed_missing(merged)  # before the commit, because it takes long

        def change(snapshot: Snapshot) -> ChangeSet:
            nonlocal merged
            merged = self._merged(snapshot)
            if self._plan.on_conflict is OnConflict.REFUSE:
                merged.refuse_clashes()
            rows = self._rows(merged)
            audit = self._plan.audit(self._manifest)
            return ChangeSet(audit=audit, inserts=rows, looked=True)

        done, written, failed = self._plan.commit(change)
        found = self._result(merged, written)
        return replace(found, upkeep=failed, warnings=done.warnings)

    def _merged(self, snapshot: Snapshot) -> Merge:
        rows, plan = self._incoming.rows, self._plan
        found = merge(snapshot, rows, on_conflict=plan.on_conflict, now=plan.now)
        taken = rows.select(COLUMNS).filter(pa.array(found.take))
        refuse_unsound(
            renamed(taken, found.ids, found.keyless),
            snapshot,
            where=str(self._path),
            moment=max(plan.now, self._manifest.at),
        )
        return found

    def _result(self, merged: Merge, snapshot: Snapshot) -> ImportResult:
        return ImportResult(
            uri=self._table.uri,
            version=snapshot.version,
            stored=int(merged.take.sum()),
            already_there=merged.already_there,
            outside=self._incoming.outside,
            embedded=int((merged.take & self._incoming.had_vector).sum()) if self._anew else 0,
            conflicts=merged.conflicts,
            dry_run=False,
            manifest=self._manifest,
        )

    def _embed_missing(self, merged: Merge) -> None:
        """Vectors of the store's model for the rows that are taken and had one of another."""
        if not self._anew or self._plan.embed is None:
            return
        wanted = np.flatnonzero(merged.take & self._incoming.had_vector).tolist()
        lacking = [position for position in wanted if position not in self._vectors]
        texts = self._incoming.rows["content"]
        for start in range(0, len(lacking), _CHUNK):
            chunk = lacking[start : start + _CHUNK]
            vectors = self._plan.embed(texts.take(pa.array(chunk)).to_pylist())
            self._vectors.update(zip(chunk, vectors, strict=True))
            if self._plan.progress is not None:
                self._plan.progress(start + len(chunk), len(lacking))

    def _rows(self, merged: Merge) -> pa.Table:
        """The rows to insert; on the disk, unless they are the incoming ones as they are."""
        rows = self._incoming.rows
        if merged.take.all() and not (merged.ids or merged.keyless or self._anew):
            return rows
        if self._kept is not None and self._kept[0].same_rows(merged):
            return self._kept[1]
        self._embed_missing(merged)
        number = len(list(self._folder.iterdir()))
        made = aside(self._ready(merged), rows.schema, self._folder / f"ready-{number}.arrow")
        self._kept = merged, made
        return made

    def _ready(self, merged: Merge) -> Iterator[pa.Table]:
        """The rows that are taken, a batch at a time, as they are to be stored."""
        rows = self._incoming.rows
        for start in range(0, len(rows), BATCH_ROWS):
            part = rows.slice(start, BATCH_ROWS)
            if self._anew:
                part = patched(part, {EMBEDDING: self._column(start, len(part))})
            taken = part.filter(pa.array(merged.take[start : start + len(part)]))
            yield renamed(taken, merged.ids, merged.keyless)

    def _column(self, start: int, length: int) -> pa.Array:
        """The new vectors of a stretch of rows; null where there is none."""
        vectors = np.zeros((length, self._table.format.dimension), np.float32)
        valid = np.zeros(length, np.bool_)
        for offset in range(length):
            vector = self._vectors.get(start + offset)
            if vector is not None:
                vectors[offset], valid[offset] = vector, True
        return vector_array(vectors, valid=valid)
