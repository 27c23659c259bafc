"""The files of an export: they come to be whole, or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_memory.curate.export.manifest import ExportedFile
from lance_memory.curate.export.options import ExportFileType
from lance_memory.curate.export.target import Target
from lance_memory.files import CheckedFile, beside, make_private, saving, write_whole

__all__ = ["Stage", "staged"]

_BATCH_ROWS = 1_000
_BATCH_BYTES = 8 << 20
_BREAKS = re.compile("[\u0085\u2028\u2029]")  # none to JSON, but to many readers of lines


class _Lines:
    """A JSON object on each line."""

    def __init__(self, file: CheckedFile) -> None:
        self._file = file

    def add(self, example: Mapping[str, Any], line: bytes) -> None:  # noqa: ARG002 (columns need it)
        self._file.write(line)

    def close(self) -> None:
        self._file.close()


class _Columns:
    """Parquet, a row group for each thousand examples or 8 MB."""

    def __init__(self, file: CheckedFile, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq  # most exports are lines

        self._file = file
        self._schema = schema
        self._writer = pq.ParquetWriter(file, schema, compression="zstd")
        self._waiting: list[Mapping[str, Any]] = []
        self._bytes = 0

    def add(self, example: Mapping[str, Any], line: bytes) -> None:
        self._waiting.append(example)
        self._bytes += len(line)
        if len(self._waiting) == _BATCH_ROWS or self._bytes > _BATCH_BYTES:
            self._write()

    def close(self) -> None:
        self._write()
        self._writer.close()
        self._file.close()

    def _write(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_pylist(self._waiting, schema=self._schema))
        self._waiting, self._bytes = [], 0


class Stage:
    """Files on their way: written beside their place, and put there at the end."""

    def __init__(self, target: Target, schema: pa.Schema, directory: Path | None) -> None:
        self._target = target
        self._directory = directory
        self._files = {
            split: CheckedFile(directory / name if directory else None)
            for split, name in target.files.items()
        }
        self._sinks = {split: self._sink(file, schema) for split, file in self._files.items()}
        self._examples = dict.fromkeys(self._files, 0)
        self._all = hashlib.sha256()

    def add(self, split: str, example: Mapping[str, Any]) -> None:
        """One more example for this split's file."""
        line = _as_line(example)
        with _saving(self._target):
            self._sinks[split].add(example, line)
        self._all.update(line)
        self._examples[split] += 1

    def finish(self) -> tuple[list[ExportedFile], str]:
        """Closes the files: what each one is, and the SHA-256 of all lines in their order."""
        with _saving(self._target):
            for sink in self._sinks.values():
                sink.close()
        files = [
            ExportedFile(
                name=self._target.files[split],
                examples=self._examples[split],
                bytes=file.size,
                sha256=file.sha256,
            )
            for split, file in self._files.items()
        ]
        return files, self._all.hexdigest()

    def abandon(self) -> None:
        """Lets go of files that are not finished."""
        for split, sink in self._sinks.items():
            self._files[split].abandon()
            sink.close()

    def publish(self, manifest: str) -> None:
        """Puts the files in their place, the manifest last: where it is, all of them are."""
        if self._directory is None:
            return
        with _saving(self._target):
            name, place = self._target.manifest, self._target.directory
            write_whole(self._directory / name, manifest)
            make_private(place)
            for old in (name, *self._target.outdated):
                (place / old).unlink(missing_ok=True)
            for new in (*self._target.files.values(), name):
                (self._directory / new).replace(place / new)

    def _sink(self, file: CheckedFile, schema: pa.Schema) -> _Lines | _Columns:
        lines = self._target.file_type is ExportFileType.JSONL
        return _Lines(file) if lines else _Columns(file, schema)


@contextmanager
def staged(target: Target, schema: pa.Schema, *, dry_run: bool) -> Iterator[Stage]:
    """A stage; whatever ends the block, nothing but published files is left behind.

    Raises:
        StorageError: the files cannot be written.
    """
    with ExitStack() as stack:
        directory = None
        with _saving(target):
            if not dry_run:
                place = target.directory.absolute()
                directory = stack.enter_context(beside(place / target.manifest))
            stage = Stage(target, schema, directory)
        stack.callback(stage.abandon)
        yield stage


def _saving(target: Target) -> AbstractContextManager[None]:
    return saving(f"write the export to {os.fspath(target.directory)!r}")


def _as_line(example: Mapping[str, Any]) -> bytes:
    """The example as one line of JSON, members sorted, UTF-8."""
    text = json.dumps(example, ensure_ascii=False, sort_keys=True, allow_nan=False)
    return (_BREAKS.sub(_escaped, text) + "\n").encode()


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
