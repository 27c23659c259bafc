"""Reads files of a store to see whether they can be read: a script that `readable` runs.

It imports nothing of the package, which takes longer than most of its work.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import lance
import pyarrow.ipc
from lance.file import LanceFileReader

_HASHED = ("content", "content_hash")
_ROWS = 8_192
_LAST = 2**64 - 1
_PLACE_IN_SOURCE = re.compile(r", /(?:home|root|rustc)/[^\s,]*")


def main() -> None:
    """A complaint for each file that stdin names, as a line of JSON; "" where there is none.

    A line "ready" comes first: without it, no file is to blame for the end of this process.
    """
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    work = json.loads(sys.stdin.buffer.read())
    for file in work["files"]:
        try:
            why = _complaint(file, work["options"] or None)
        except BaseException as error:  # noqa: BLE001 (a panic of the engine is no Exception)
            why = f"the engine says: {_PLACE_IN_SOURCE.sub('', str(error)).strip()}"
        sys.stdout.write(json.dumps(why) + "\n")
        sys.stdout.flush()


def _complaint(file: str, options: dict[str, str] | None) -> str:
    """What is wrong with a file, "" for nothing; raises what reading it raises."""
    if file.endswith((".lance", ".idx")):
        return _of_columns(file, options)
    if file.endswith(".manifest"):
        return _of_version(file, options)
    if file.endswith(".arrow") and "://" not in file:
        with pyarrow.ipc.open_file(Path(file).read_bytes()) as deleted:
            deleted.read_all()
    return ""


def _of_columns(file: str, options: dict[str, str] | None) -> str:
    """Of a data file or a part of an index: every page of it."""
    wrong = 0
    for batch in LanceFileReader(file, options).read_all(batch_size=_ROWS).to_batches():
        if set(_HASHED) <= set(batch.schema.names):
            wrong += sum(_hash(a) != b for a, b in zip(*_columns(batch), strict=True))
    return f"{wrong} contents in it are not what was written (their hashes differ)" if wrong else ""


def _columns(batch: Any) -> tuple[list[str], list[str]]:
    content, written = (batch[name].to_pylist() for name in _HASHED)
    return content, written


def _hash(text: str) -> str:
    """As `record.identity.content_hash`."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _of_version(file: str, options: dict[str, str] | None) -> str:
    """Of a manifest: the version opens, and the deletions that it names can be read."""
    home, _, name = file.partition("/_versions/")
    number = _LAST - int(name.removesuffix(".manifest"))
    dataset = lance.dataset(home, version=number, storage_options=options)
    with suppress(TypeError):  # pylance cannot give back a compaction that rewrote indices
        dataset.read_transaction(number)
    dataset.to_table(columns=[], with_row_address=True)
    return ""


if __name__ == "__main__":
    main()
