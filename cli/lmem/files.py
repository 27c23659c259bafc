"""What `import` reads: JSONL, JSON, CSV, Parquet, Arrow; and the files that plans are kept in."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

__all__ = [
    "Batch",
    "InputFormat",
    "read_batch",
    "read_json",
    "read_plan",
    "rejected_in",
    "remove_store",
    "save_plan",
]


class InputFormat(StrEnum):
    """How a file of memories is written."""

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


_SUFFIXES = {
    ".jsonl": InputFormat.JSONL,
    ".ndjson": InputFormat.JSONL,
    ".json": InputFormat.JSON,
    ".csv": InputFormat.CSV,
    ".parquet": InputFormat.PARQUET,
    ".arrow": InputFormat.ARROW,
    ".feather": InputFormat.ARROW,
    ".ipc": InputFormat.ARROW,
}
_JSON_COLUMNS = {"metadata", "relationships", "embedding"}
_NUMBERS: dict[str, Callable[[str], float]] = {
    **dict.fromkeys(("importance", "confidence", "quality"), float),
    **dict.fromkeys(("seq", "revision"), int),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The memories of one file. `lines` says where each began, in a file that has lines."""

    source: str
    rows: Any
    lines: tuple[int, ...] = ()


def read_batch(path: str, form: InputFormat | None) -> Batch:
    """The memories in a file, or in stdin where `path` is "-"; JSONL unless told otherwise.

    Raises:
        RejectedError: the file is malformed; names the line.
    """
    if path == "-":
        source, form = "stdin", form or InputFormat.JSONL
        data = sys.stdin.buffer.read()
    else:
        source, form = path, form or _by_suffix(path)
        data = _bytes(path)
    return _READERS[form](source, data)


@contextmanager
def rejected_in(batch: Batch) -> Iterator[None]:
    """Rejections inside name the line of the file."""
    from lance_memory import RejectedError

    try:
        yield
    except RejectedError as error:
        place, text = batch.source, str(error)
        if batch.lines and error.rows:
            place = f"{place} line {batch.lines[error.rows[0]]}"
            text = re.sub(r"^rows? [^:]*: ", "", text)  # positions in the batch
        raise RejectedError(f"{place}: {text}; nothing was stored", rows=error.rows) from error


def _by_suffix(path: str) -> InputFormat:
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise typer.BadParameter(
            f"{path!r} has none of the suffixes {' '.join(_SUFFIXES)}; say --input-format"
        )
    return _SUFFIXES[suffix]


def read_plan(path: str) -> str:
    """The text of a saved plan, or what stdin holds."""
    data = sys.stdin.buffer.read() if path == "-" else _bytes(path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{path!r} is no saved plan: it is not UTF-8") from error


def read_json(path: str) -> Any:
    """What a file of JSON says, or what stdin does."""
    data = sys.stdin.buffer.read() if path == "-" else _bytes(path)
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{path!r} is no JSON that can be read: {error}") from error


def save_plan(path: str, text: str) -> None:
    """Write the text of a plan, whole or not at all."""
    from lance_memory.files import store_around, write_whole

    with _named(path):
        store = store_around(path)
        if store is not None:
            raise typer.BadParameter(
                f"{path!r} is inside the store {store}; save the plan elsewhere"
            )
        write_whole(Path(path), text)


def remove_store(uri: str, *, keep_directory: bool) -> None:
    """Remove a local store, and the directory it is in unless that holds something else.

    Danger: nothing of it can be brought back.
    """
    if "://" in uri:
        return
    shutil.rmtree(Path(uri) / "memories.lance", ignore_errors=True)
    if not keep_directory:
        with suppress(OSError):  # not empty
            Path(uri).rmdir()


def _bytes(path: str) -> bytes:
    with _named(path):
        return Path(path).read_bytes()


@contextmanager
def _named(path: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # a NUL in the name
        raise typer.BadParameter(f"{path!r} is no file name: {error}") from error


def _jsonl(source: str, data: bytes) -> Batch:
    rows, lines = [], []
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if raw.strip():
            rows.append(_parsed(raw, source, number))
            lines.append(number)
    return Batch(source=source, rows=rows, lines=tuple(lines))


def _json(source: str, data: bytes) -> Batch:
    rows = _parsed(data.removeprefix(b"\xef\xbb\xbf"), source, 1)
    if not isinstance(rows, list):
        raise _rejected(source, 1, f"a {type(rows).__name__}; it takes an array of memories")
    return Batch(source=source, rows=rows)


def _parsed(raw: bytes, source: str, line: int) -> Any:
    try:
        return json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise _rejected(source, line, f"not UTF-8 ({error})") from error
    except json.JSONDecodeError as error:
        place = line + error.lineno - 1
        raise _rejected(source, place, f"not JSON ({error.msg}, column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise _rejected(source, line, f"not JSON that can be read ({error})") from error


def _csv(source: str, data: bytes) -> Batch:
    csv.field_size_limit(2**31 - 1)
    reader = None
    try:
        reader = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        rows, lines = [], []
        begins = 2
        for cells in reader:
            rows.append(_csv_row(cells, source, begins))
            lines.append(begins)
            begins = reader.line_num + 1
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _rejected(source, line, f"not UTF-8 ({error})") from error
    except csv.Error as error:
        line = reader.line_num if reader else 1
        raise _rejected(source, line, f"not CSV ({error})") from error
    return Batch(source=source, rows=rows, lines=tuple(lines))


def _csv_row(cells: dict[str | Any, Any], source: str, line: int) -> dict[str, Any]:
    if None in cells:
        raise _rejected(source, line, "more cells than the header has names")
    return {name: _cell(name, text, source, line) for name, text in cells.items() if text}


def _cell(name: str, text: str, source: str, line: int) -> Any:
    if name in _JSON_COLUMNS or (name == "tags" and text.lstrip().startswith("[")):
        return _parsed(text.encode(), f"{source}: column {name},", line)
    if name == "tags":
        return [tag.strip() for tag in text.split(";") if tag.strip()]
    try:
        return _NUMBERS.get(name, str)(text)
    except ValueError:
        return text  # the library says what it expected


def _parquet(source: str, data: bytes) -> Batch:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return Batch(source=source, rows=pq.read_table(pa.BufferReader(data)))
    except (pa.ArrowException, OSError) as error:
        raise _rejected(source, 0, f"not Parquet ({error})") from error


def _arrow(source: str, data: bytes) -> Batch:
    import pyarrow as pa

    opened = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
    try:
        return Batch(source=source, rows=opened(pa.BufferReader(data)).read_all())
    except (pa.ArrowException, OSError) as error:
        raise _rejected(source, 0, f"not Arrow IPC ({error})") from error


def _rejected(source: str, line: int, found: str) -> Exception:
    from lance_memory import RejectedError

    place = f"{source} line {line}" if line else source
    return RejectedError(f"{place} is {found}; nothing was stored")


_READERS: dict[InputFormat, Callable[[str, bytes], Batch]] = {
    InputFormat.JSONL: _jsonl,
    InputFormat.JSON: _json,
    InputFormat.CSV: _csv,
    InputFormat.PARQUET: _parquet,
    InputFormat.ARROW: _arrow,
}
