"""The rows of an archive on their way in: each one checked, and put aside on the disk.

They wait in an Arrow file that is mapped into memory, so an archive of any size takes little of it,
and nothing of the store is touched before the last row was looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.errors import InvalidInputError, LanceMemoryError, RejectedError
from lance_memory.move.archive.export import BATCH_ROWS, archive_schema
from lance_memory.move.archive.files import Archive, ArchivedFile
from lance_memory.record.aside import aside
from lance_memory.record.checks import check
from lance_memory.record.identity import content_hashes
from lance_memory.record.memory import Scope
from lance_memory.record.rows import EMBEDDING, valid_vectors
from lance_memory.record.schema import arrow_schema
from lance_memory.record.values import json_text

__all__ = ["Incoming", "take_in_archive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """Checked rows of an archive, as rows of the store that takes them.

    Attributes:
        rows: mapped from a file; without vectors where the store has those of another model.
        had_vector: which rows of the archive have one, bool [n].
        outside: rows of the archive that lie outside the scope asked for, and are not among these.
    """

    rows: pa.Table
    had_vector: NDArray[np.bool_]
    outside: int


def take_in_archive(
    archive: Archive, *, schema: pa.Schema, scope: Scope, folder: Path, anew: bool
) -> Incoming:
    """Read the whole archive and check it: files first, then rows.

    Args:
        archive: opened.
        schema: of the store's table.
        scope: rows outside are left out.
        folder: where the rows wait.
        anew: the vectors are of another model, and are left out.

    Raises:
        StorageError: names the file that is damaged.
        RejectedError: names the file whose rows no store could hold.
    """
    for file in archive.manifest.files:
        archive.check(file)
    found: list[NDArray[np.bool_]] = []
    ids: list[pa.ChunkedArray] = []
    outside = 0

    def rows() -> Iterator[pa.Table]:
        nonlocal outside
        for file in archive.manifest.files:
            for part in _checked(archive, file):
                ids.append(part["id"])
                inside = _within(part, scope)
                outside += len(part) - len(inside)
                found.append(valid_vectors(inside))
                yield _as_rows(inside, schema, anew=anew)

    table = aside(rows(), schema, folder / "incoming.arrow")
    _refuse_doubled(archive, ids)
    had = np.concatenate(found) if found else np.zeros(0, np.bool_)
    return Incoming(rows=table, had_vector=had, outside=outside)


def _checked(archive: Archive, file: ArchivedFile) -> Iterator[pa.Table]:
    """The rows of a file, a batch at a time, every value looked at."""
    import pyarrow.parquet as pq  # most processes never need it

    expected = archive_schema(arrow_schema(archive.manifest.format))
    rows = 0
    try:
        with archive.reading(file.name) as stream, pq.ParquetFile(stream) as parquet:
            _refuse_columns(archive, file, parquet.schema_arrow, expected)
            for batch in parquet.iter_batches(BATCH_ROWS):
                part = pa.Table.from_batches([batch]).cast(expected)
                part.validate(full=True)
                _check(part)
                rows += len(part)
                yield part
    except RejectedError as error:
        raise RejectedError(f"{archive.named(file.name)}: {error}; nothing was written") from error
    except LanceMemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise archive.damaged(file.name, f"it cannot be read as Parquet: {error}") from error
    if rows != file.memories:
        raise archive.damaged(file.name, f"it has {rows} memories of {file.memories}")


def _refuse_columns(
    archive: Archive, file: ArchivedFile, found: pa.Schema, expected: pa.Schema
) -> None:
    if not found.equals(expected):
        here, wanted = ({f.name: f for f in schema} for schema in (found, expected))
        names = [*wanted, *(name for name in here if name not in wanted)]
        differ = [
            f"{name} is {_type_of(here.get(name))}, not {_type_of(wanted.get(name))}"
            for name in names
            if not (name in here and name in wanted and here[name].equals(wanted[name]))
        ]
        told = ", ".join(differ[:4]) or "they are in another order"
        raise archive.damaged(file.name, f"its columns are others: {told}")


def _type_of(field: pa.Field | None) -> str:
    if field is None:
        return "missing"
    return str(field.type) if field.nullable else f"{field.type} without nulls"


def _check(rows: pa.Table) -> None:
    """What must hold of rows of any store."""
    names = set(rows.column_names)
    for field in rows.schema:
        if not field.nullable and rows[field.name].null_count:
            raise RejectedError(f"{field.name} is missing in a memory; every one has it")
    check(rows, names, unseen=names)
    if rows["content_hash"].to_pylist() != content_hashes(rows["content"].to_pylist()):
        raise RejectedError("content_hash is not that of the content")
    for text in rows["metadata"].to_pylist():
        _check_metadata(text)
    _check_relationships(rows["relationships"])


def _check_metadata(text: str | None) -> None:
    if text not in (None, "{}"):
        try:
            json_text("metadata", text)
        except InvalidInputError as error:
            raise RejectedError(str(error)) from error


def _check_relationships(column: pa.ChunkedArray) -> None:
    edges = pc.list_flatten(column)
    for name in ("relation", "target"):
        values = pc.struct_field(edges, name)
        blank = pc.equal(pc.utf8_trim_whitespace(values), "")
        if edges.null_count or values.null_count or pc.any(blank).as_py():
            raise RejectedError(f"relationships has an edge without a {name}")


def _within(rows: pa.Table, scope: Scope) -> pa.Table:
    for level, name in scope.given().items():
        rows = rows.filter(pc.equal(rows[level], name))
    return rows


def _as_rows(part: pa.Table, schema: pa.Schema, *, anew: bool) -> pa.Table:
    """As rows of the store's table."""
    columns = []
    for field in schema:
        if field.name == EMBEDDING and anew:
            columns.append(pa.nulls(len(part), field.type))
        elif isinstance(field.type, pa.BaseExtensionType):
            column = part[field.name].combine_chunks()
            whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            columns.append(pa.ExtensionArray.from_storage(field.type, whole))
        else:
            columns.append(part[field.name])
    return pa.table(columns, schema=schema)


def _refuse_doubled(archive: Archive, ids: list[pa.ChunkedArray]) -> None:
    chunks = [chunk for column in ids for chunk in column.chunks]
    whole = pa.chunked_array(chunks, pa.string())
    if pc.count_distinct(whole).as_py() != len(whole):
        raise RejectedError(
            f"{archive.path}: an id stands there twice; nothing was written: use another copy"
        )
