"""Rows that wait in a file, so that many of them take little memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

__all__ = ["aside"]


def aside(parts: Iterable[pa.Table], schema: pa.Schema, path: Path) -> pa.Table:
    """The parts as one table of `schema` that lies in a file, mapped into memory."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for part in parts:
            writer.write_table(part.cast(schema))
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()
