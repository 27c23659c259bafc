"""Whether files of a store can be read, each as a whole.

The engine has no checksums in its pages. A damaged file is told by an error, by a content that is
not the one that was hashed when it was written, or by the death of the process that reads it: a
wild length in a damaged file makes the engine abort. So the files are read by a process that may.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from lance_memory.errors import StorageError
from lance_memory.storage.engine import lance, translated
from lance_memory.storage.files.tracked import tracked

__all__ = ["OTHER_CONTENTS", "damaged_in", "manifest_name", "unreadable"]

OTHER_CONTENTS = "contents in it are not what was written"
"""What `reading` says of a file that can be read, and whose contents have other hashes."""

_LAST = 2**64 - 1

_READY = b"ready"
"""What the process says first: whatever ends it after that, a file did."""

_QUICK = 256 * 2**20
"""Bytes of a version that are read to name the damaged file in an error: seconds at most."""


def manifest_name(version: int) -> str:
    """The manifest of a version, from its branch's directory on."""
    return f"_versions/{_LAST - version}.manifest"


def damaged_in(dataset: lance.LanceDataset) -> dict[str, str]:
    """Which files of a version on a local disk cannot be read, and why; none if it is large.

    The paths are from the store's directory on.
    """
    with translated("list the files of a version"):
        found = tracked(dataset)
    files = [
        f"{file.base}/{file.path}"
        for file in found
        if file.version == dataset.version and file.kind not in ("manifest", "transaction")
    ]
    there = [file for file in files if "://" not in file and Path(file).is_file()]
    if sum(Path(file).stat().st_size for file in there) > _QUICK:
        return {}
    return {_from_the_store_on(file): why for file, why in unreadable(there).items()}


def unreadable(
    files: Sequence[str], *, storage_options: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Those of the files that cannot be read, or that hold what was not written; and why.

    Args:
        files: paths or URIs of data files, parts of indices, deletion files and manifests.
        storage_options: the engine's.

    Raises:
        StorageError: no process that reads can be started here: nothing is known of the files.
    """
    left, damaged = list(files), {}
    while left:
        read = 0
        for complaint in _complaints(left, storage_options):
            if complaint:
                damaged[left[read]] = complaint
            read += 1
        if read < len(left):
            damaged[left[read]] = "the engine aborts the process that reads it"
        left = left[read + 1 :]
    return damaged


def _from_the_store_on(file: str) -> str:
    start = file.rfind("/", 0, file.rfind(".lance/"))
    return file[start + 1 :]


def _complaints(files: Sequence[str], storage_options: Mapping[str, str] | None) -> Iterator[str]:
    """Of each file, "" where there is nothing to complain of, for as long as the process lives."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    try:
        process = subprocess.Popen(  # noqa: S603 (this interpreter, with words of ours)
            [sys.executable, str(Path(__file__).with_name("reading.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
    except OSError as error:
        raise StorageError(f"no process can be started to read the files ({error})") from error
    with process:
        _give(process.stdin, {"files": list(files), "options": dict(storage_options or {})})
        lines = iter(process.stdout or ())
        if next(lines, b"").strip() != _READY:
            raise StorageError(
                f"the files cannot be read for a check: {sys.executable} does not start as a "
                "Python that has this package's engine; nothing is known of them"
            )
        for line in lines:
            if line.endswith(b"\n"):
                yield json.loads(line)


def _give(pipe: IO[bytes] | None, work: object) -> None:
    """On stdin: options may be secrets, and words of a command line can be seen by others."""
    if pipe is not None:
        with suppress(BrokenPipeError):  # it ended at once, and what it did not say tells of it
            pipe.write(json.dumps(work).encode())
        with suppress(BrokenPipeError):
            pipe.close()
