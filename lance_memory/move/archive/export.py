"""export-store: every column of every memory, as Parquet files with checksums."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from lance_memory.files import CheckedFile, beside, saving
from lance_memory.move.archive.files import (
    MANIFEST,
    ArchivedFile,
    ArchiveManifest,
    archive_place,
    packed,
    refuse_present,
)
from lance_memory.record.filters import Filter
from lance_memory.record.schema import read_format
from lance_memory.storage import Snapshot, Table
from lance_memory.storage.naming import holding

__all__ = [
    "BATCH_ROWS",
    "ArchiveSource",
    "archive_schema",
    "export_archive",
    "stored_batches",
]

BATCH_ROWS = 4_096
"""Rows in memory at a time, and in a row group."""

_FILE_ROWS = 16 * BATCH_ROWS
"""Rows of a file, so that damage to one is told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSource:
    """What an archive is made from: the memories that pass `filter` at `snapshot`.

    Of `ids`, where they are given: these, which are chosen in a way that no filter says.
    """

    table: Table
    snapshot: Snapshot
    filter: Filter
    moment: datetime
    ids: tuple[str, ...] | None = None

    @property
    def predicate(self) -> str | None:
        """Which rows."""
        return self.filter.predicate(self.moment)

    def count(self) -> int:
        """How many."""
        return self.snapshot.count(self.predicate)

    def manifest(self, files: list[ArchivedFile], states: Counter[str]) -> ArchiveManifest:
        """What is said of an archive of these files."""
        fmt = read_format(self.snapshot.schema, self.table.uri)
        return ArchiveManifest(
            version=self.snapshot.version,
            branch=self.table.branch,
            at=self.moment,
            memories=states.total(),
            states=dict(sorted(states.items())),
            scope=self.filter.scope.names(),
            filtered=self.ids is not None
            or self.filter != Filter(scope=self.filter.scope, states="any"),
            embedding_model=fmt.embedding_model,
            dimension=fmt.dimension,
            metric=fmt.metric,
            schema_version=fmt.schema_version,
            store_id=fmt.store_id,
            files=tuple(files),
        )


def export_archive(
    source: ArchiveSource, path: str | os.PathLike[str], *, dry_run: bool
) -> ArchiveManifest:
    """Write the archive; see `MemoryView.export_store`."""
    path, ending = archive_place(path)
    refuse_present(path)
    if dry_run:
        states: Counter[str] = Counter()
        for batch in source.snapshot.batches(
            source.predicate, columns=["state"], batch_size=65_536
        ):
            states.update(batch["state"].to_pylist())
        return source.manifest([], states)
    with (
        saving(f"write {path}"),
        beside(path) as folder,
        holding(source.table, source.snapshot.version),
    ):
        directory = folder / "archive"
        directory.mkdir(mode=0o700)
        manifest = source.manifest(*_written(source, directory))
        said = CheckedFile(directory / MANIFEST)
        said.write(manifest.to_json().encode())
        said.close()
        packed(directory, path, ending)
    return manifest


def _written(source: ArchiveSource, directory: Path) -> tuple[list[ArchivedFile], Counter[str]]:
    """The memories as Parquet files: which, and how many memories there are of each state."""
    import pyarrow.parquet as pq  # most processes never need it

    schema = archive_schema(source.snapshot.schema)
    files: list[ArchivedFile] = []
    states: Counter[str] = Counter()
    for number, batches in enumerate(_in_files(source)):
        file = CheckedFile(directory / f"memories-{number:05d}.parquet")
        rows = 0
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += len(batch)
                states.update(batch["state"].to_pylist())
        file.close()
        name = f"memories-{number:05d}.parquet"
        files.append(ArchivedFile(name=name, memories=rows, bytes=file.size, sha256=file.sha256))
    return files, states


def _in_files(source: ArchiveSource) -> Iterator[Iterator[pa.RecordBatch]]:
    """The rows as the batches of one file after the other."""
    batches = stored_batches(source)
    waiting = next(batches, None)
    while waiting is not None:

        def of_one_file() -> Iterator[pa.RecordBatch]:
            nonlocal waiting
            rows = 0
            while waiting is not None and rows < _FILE_ROWS:
                rows += len(waiting)
                yield waiting
                waiting = next(batches, None)

        yield of_one_file()


def stored_batches(source: ArchiveSource) -> Iterator[pa.RecordBatch]:
    """The memories, every column of them, a batch in memory at a time."""
    schema, names = archive_schema(source.snapshot.schema), source.snapshot.schema.names
    if source.ids is not None:
        for rows in source.snapshot.batches_by_ids(
            source.ids, columns=names, batch_size=BATCH_ROWS
        ):
            yield from (_as_stored(batch, schema) for batch in rows.combine_chunks().to_batches())
        return
    for batch in source.snapshot.batches(source.predicate, columns=names, batch_size=BATCH_ROWS):
        yield _as_stored(batch, schema)


def archive_schema(schema: pa.Schema) -> pa.Schema:
    """The store's columns as any reader of Parquet has them: JSON as text."""
    fields = [
        field.with_type(pa.string()) if isinstance(field.type, pa.BaseExtensionType) else field
        for field in schema
    ]
    return pa.schema([field.remove_metadata() for field in fields])


def _as_stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [batch[name] for name in schema.names]
    plain = [c.storage if isinstance(c, pa.ExtensionArray) else c for c in columns]
    arrays = [c.cast(field.type) for c, field in zip(plain, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
