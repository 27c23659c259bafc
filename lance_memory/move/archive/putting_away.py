"""Old memories as a file, so that they can be retired: first the file, which is read back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_memory.errors import (
    ConflictError,
    InvalidInputError,
    LanceMemoryError,
    StorageError,
)
from lance_memory.files import CheckedFile, beside, saving
from lance_memory.move.archive.export import ArchiveSource, export_archive, stored_batches
from lance_memory.move.archive.files import MANIFEST, Archive, archive_place
from lance_memory.move.private import settle
from lance_memory.record.identity import content_hashes
from lance_memory.record.rows import FINGERPRINT, Fingerprint
from lance_memory.record.times import parse_instant
from lance_memory.storage.naming import holding

__all__ = ["ArchiveResult", "file_in", "place_to_put_away", "put_away", "retiring"]

_TOLD = ("id", *FINGERPRINT, "content")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveResult:
    """Memories that were written to a file and retired.

    Attributes:
        uri: the store.
        version: that was made; the one that was found, in a dry run or where nothing was retired.
        path: the file or directory.
        memories: how many are in it, or would be.
        retired: how many were hidden by this version; 0 in a dry run.
        upkeep: why the last upkeep of the store failed; "" where it did not.
    """

    uri: str
    version: int
    path: str
    memories: int
    retired: int = 0
    upkeep: str = ""


def put_away(source: ArchiveSource, path: Path, *, some: bool = False) -> dict[str, Fingerprint]:
    """Write the memories to `path`, read them back, and say which content of which they are.

    Where the same memories are at `path` already, as after a kill, they are only read back.

    Args:
        source: the memories.
        path: where they go.
        some: some of them being at `path` is enough: then these alone are said. For what becomes
            more with time, so that a call that was killed is not the same any more.

    Raises:
        InvalidInputError: something else is at `path`.
        StorageError: it cannot be written, or does not read back as what was written.
    """
    wanted = _chosen(source)
    if not wanted:  # nothing to put away is no reason for a file
        return {}
    if path.exists():
        there = _found(path) or {}
        known = {i: seen for i, seen in there.items() if wanted.get(i) == seen}
        if there == wanted or (some and known):
            return known
        raise InvalidInputError(
            f"something else is at {path}; nothing was written: name another place"
        )
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        export_archive(source, path, dry_run=False)
    else:
        held = holding(source.table, source.snapshot.version)
        with saving(f"write {path}"), beside(path) as folder, held:
            file = CheckedFile(folder / "whole")
            write(source, file)
            file.close()
            settle(folder / "whole", path)
    if _found(path) != wanted:
        raise StorageError(
            f"{path} does not read back as what was written to it; nothing was retired: check the "
            "disk, and remove the file"
        )
    return wanted


def place_to_put_away(path: str | os.PathLike[str]) -> Path:
    """Where `put_away` writes.

    Raises:
        InvalidInputError: it is a URI, or ends like another kind of file.
    """
    place, _ = archive_place(path, files=(*_WRITERS, ".zip"))
    return place


@contextmanager
def retiring(path: Path) -> Iterator[None]:
    """Errors of the block, in which what was put away is retired, say that the file is there.

    Raises:
        ConflictError, StorageError: those of the block.
    """
    try:
        yield
    except (ConflictError, StorageError) as error:
        reason = str(error).replace("; nothing was written", "")  # the file was
        told = (
            f"{path} is written and whole, and no memory was retired: {reason}; the same call goes "
            "on from the file, while these are the memories that it is asked for"
        )
        if isinstance(error, ConflictError):
            raise ConflictError(told, ids=error.ids) from error
        raise StorageError(told) from error


def file_in(path: str | os.PathLike[str], *, prefix: str, name: str) -> Path:
    """Where `put_away` writes: the file at `path`, or in the directory there a .zip of that name.

    Args:
        path: a file x.jsonl, x.parquet or x.zip; or a directory, which need not be there.
        prefix: what a name in a directory begins with; it may be another the next time.
        name: what it ends with: the same for the same memories, and so is the file.

    Raises:
        InvalidInputError: as `place_to_put_away`; or the directory is an archive itself.
    """
    place, ending = archive_place(path, files=(*_WRITERS, ".zip"))
    if ending:
        return place
    if (place / MANIFEST).exists():
        raise InvalidInputError(
            f"{place} is an archive itself; name a directory that archives are kept in, or a file"
        )
    known = sorted(place.glob(f"*-{name}.zip"))
    return known[0] if known else place / f"{prefix}-{name}.zip"


def _chosen(source: ArchiveSource) -> dict[str, Fingerprint]:
    if source.ids is not None:
        return source.snapshot.locate(source.ids).fingerprints()
    rows = source.snapshot.scan(source.predicate, columns=["id", *FINGERPRINT])
    return {row["id"]: _fingerprint(row) for row in rows.to_pylist()}


def _lines(source: ArchiveSource, file: CheckedFile) -> None:
    for batch in stored_batches(source):
        for row in batch.to_pylist():
            row["metadata"] = json.loads(row["metadata"] or "{}")
            file.write((json.dumps(row, ensure_ascii=False, default=_iso) + "\n").encode())


def _columns(source: ArchiveSource, file: CheckedFile) -> None:
    import pyarrow.parquet as pq  # most processes never need it

    batches = stored_batches(source)
    first = next(batches)
    with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


_WRITERS = {".jsonl": _lines, ".parquet": _columns}


def _found(path: Path) -> dict[str, Fingerprint] | None:
    """The memories at `path`; None: it is no such file, or is not whole."""
    found: dict[str, Fingerprint] = {}
    count = 0
    try:
        for rows in _read_back(path):
            texts = [row["content"] for row in rows]
            if content_hashes(texts) != [row["content_hash"] for row in rows]:
                return None
            found.update((row["id"], _fingerprint(row)) for row in rows)
            count += len(rows)
    except (LanceMemoryError, OSError, pa.ArrowException, ValueError, KeyError, TypeError):
        return None
    return found if count == len(found) else None


def _read_back(path: Path) -> Iterator[list[dict[str, Any]]]:
    import pyarrow.parquet as pq  # most processes never need it

    ending = path.suffix.lower()
    if ending == ".jsonl":
        with path.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                row = json.loads(line)
                yield [{**row, "updated_at": parse_instant(row["updated_at"], "updated_at")}]
    elif ending == ".parquet":
        with pq.ParquetFile(path) as parquet:
            for batch in parquet.iter_batches(columns=list(_TOLD)):
                yield batch.to_pylist()
    else:
        yield from _of_archive(Archive(path))


def _of_archive(archive: Archive) -> Iterator[list[dict[str, Any]]]:
    import pyarrow.parquet as pq  # most processes never need it

    for file in archive.manifest.files:
        archive.check(file)
        with archive.reading(file.name) as stream, pq.ParquetFile(stream) as parquet:
            for batch in parquet.iter_batches(columns=list(_TOLD)):
                yield batch.to_pylist()


def _fingerprint(row: dict[str, Any]) -> Fingerprint:
    return row["revision"], row["updated_at"], row["content_hash"]


def _iso(value: datetime) -> str:
    return value.isoformat()
