"""Files and directories that only their owner reads, whole on the disk or not there."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from lance_memory.errors import InvalidInputError, StorageError
from lance_memory.storage import absolute

__all__ = [
    "Checked",
    "beside",
    "copied",
    "local_place",
    "make_private",
    "new_file",
    "safe_name",
    "saving",
    "settle",
]

_CHUNK = 1 << 20
_LONGEST_NAME = 1_024


class Checked:
    """A new private file that knows its size and SHA-256; on the disk once it is closed."""

    def __init__(self, path: Path) -> None:
        self._file = new_file(path)
        self._sha256 = hashlib.sha256()
        self.size = 0
        self.closed = False

    @property
    def sha256(self) -> str:
        """Of what was written so far, in hex."""
        return self._sha256.hexdigest()

    def write(self, data: Any) -> int:
        """Writes a whole buffer; its length in bytes."""
        self._sha256.update(data)
        length = memoryview(data).nbytes
        self.size += length
        self._file.write(data)
        return length

    def flush(self) -> None:
        """What is on its way reaches the disk when the file is closed."""

    def close(self) -> None:
        """Puts everything on the disk."""
        if not self.closed:
            self.closed = True
            with self._file as file:
                file.flush()
                os.fsync(file.fileno())


def new_file(path: Path) -> BinaryIO:
    """A file that was not there, for its owner alone."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def make_private(directory: Path) -> None:
    """Make a directory, and those above it that are missing, for its owner alone."""
    if not directory.is_dir():
        make_private(directory.parent)
        with suppress(FileExistsError):
            directory.mkdir(mode=0o700)


def copied(source: BinaryIO, target: Path, *, limit: int | None = None) -> tuple[str, int]:
    """Copy a stream into a new private file: its SHA-256 and size. Stops beyond `limit` bytes."""
    file = Checked(target)
    try:
        while chunk := source.read(_CHUNK):
            file.write(chunk)
            if limit is not None and file.size > limit:
                break
    finally:
        file.close()
    return file.sha256, file.size


@contextmanager
def beside(place: Path) -> Iterator[Path]:
    """A private directory on the file system of `place`; it is gone when the block ends."""
    there = next(p for p in (place.parent, *place.parent.parents) if p.is_dir())
    fresh = there / f".{secrets.token_hex(8)}.new"
    fresh.mkdir(mode=0o700)
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def settle(fresh: Path, place: Path) -> None:
    """Move a finished file or directory to its place, where nothing or an empty directory is.

    Raises:
        OSError: something came to be there meanwhile.
    """
    make_private(place.parent)
    if fresh.is_dir():
        fresh.rename(place)  # over an empty directory, and over nothing else
    else:
        os.link(fresh, place)  # unlike a rename, it never replaces what is there
    directory = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def local_place(path: str | os.PathLike[str], what: str) -> Path:
    """The path, absolute.

    Raises:
        InvalidInputError: it is a URI: `what` lies on a local disk.
    """
    text = absolute(path)
    if "://" in text:
        raise InvalidInputError(
            f"{text} is a URI, and {what} lies on a local disk; name a path, and copy it from there"
        )
    return Path(text)


def safe_name(name: object) -> bool:
    """Whether a manifest's name is a plain relative path that stays where it is taken from."""
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        return False
    parts = PurePosixPath(name).parts
    plain = not any(mark in name for mark in ("\\", ":", "\0"))
    return plain and name == "/".join(parts) and not {"/", "..", "."} & set(parts)


@contextmanager
def saving(what: str) -> Iterator[None]:
    """The operating system's failures as the package's own.

    Raises:
        StorageError: says what could not be done.
    """
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"could not {what}: {error}") from error
