"""Files that are whole, or as they were, and for their owner alone."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from lance_memory.errors import StorageError

__all__ = [
    "BACKUPS",
    "CONTENTS",
    "CheckedFile",
    "beside",
    "holds_backups",
    "make_private",
    "make_private_file",
    "new_file",
    "saving",
    "store_around",
    "to_disk",
    "write_whole",
]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_OWN_FILE, _OWN_DIRECTORY = 0o600, 0o700
_TABLE = "memories.lance"

BACKUPS, CONTENTS = "backups", "files"
"""What a directory of backups consists of: their manifests, and what is in them."""


def store_around(path: str | os.PathLike[str]) -> Path | None:
    """The store that a path is in, by whatever links; its files are not to be mixed with others."""
    place = Path(os.path.realpath(path))
    return next((one for one in (place, *place.parents) if (one / _TABLE).is_dir()), None)


def holds_backups(directory: Path) -> bool:
    """Whether it is a directory that backups are kept in, and so no store."""
    return all((directory / name).is_dir() for name in (BACKUPS, CONTENTS))


def make_private(directory: Path) -> None:
    """Make a directory that is missing, for its owner alone; those above it as the umask says.

    One that is there is left as it is.

    Raises:
        OSError: it cannot be made.
    """
    if not directory.is_dir():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            directory.mkdir(mode=_OWN_DIRECTORY)


def new_file(path: Path) -> BinaryIO:
    """A file that was not there, for its owner alone.

    Raises:
        OSError: it is there, or cannot be made.
    """
    return os.fdopen(os.open(path, _NEW, _OWN_FILE), "wb")


def to_disk(path: Path) -> None:
    """Put a file's content, or a directory's names, on the disk, and wait until they are there.

    Raises:
        OSError: it is not there, or the disk failed: what is on it then is unknown.
    """
    if os.name == "nt" and path.is_dir():  # Windows opens none, and keeps names in its own journal
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        _flush(handle)
    finally:
        os.close(handle)


def _flush(handle: int) -> None:
    """On macOS, fsync ends in the memory of the disk; another call ends on it."""
    try:
        from fcntl import F_FULLFSYNC, fcntl  # type: ignore[attr-defined,unused-ignore]
    except ImportError:
        os.fsync(handle)
    else:
        fcntl(handle, F_FULLFSYNC)


class CheckedFile:
    """A new private file that knows its size and SHA-256; on the disk once it is closed.

    Without a path, of a rehearsal, those are all there is of it.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: BinaryIO | None = None if path is None else new_file(path)
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
        if self._file is not None:
            self._file.write(data)
        return length

    def flush(self) -> None:
        """What is on its way reaches the disk when the file is closed."""

    def close(self) -> None:
        """Puts everything on the disk."""
        if self._file is not None and self._path is not None and not self.closed:
            self._file.close()
            to_disk(self._path)
        self.closed = True

    def abandon(self) -> None:
        """Lets go of the file; what is still written goes nowhere."""
        if self._file is not None:
            self._file.close()
        self._file = None


def make_private_file(path: Path) -> None:
    """Make an empty file where there is none, for its owner alone.

    For libraries that would make it as the umask says. One that is there is left as it is.

    Raises:
        OSError: it cannot be made.
    """
    if not path.exists():
        with suppress(FileExistsError):  # another process was faster
            new_file(path).close()


@contextmanager
def beside(place: Path) -> Iterator[Path]:
    """A private directory on the file system of `place`; it is gone when the block ends.

    Raises:
        OSError: it cannot be made.
    """
    there = next(p for p in (place.parent, *place.parent.parents) if p.is_dir())
    fresh = there / f".{secrets.token_hex(8)}.new"
    fresh.mkdir(mode=_OWN_DIRECTORY)
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


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


def write_whole(path: Path, text: str | bytes) -> None:
    """Make `text` (UTF-8) the file's content: after a kill or a power cut it is the old or the new.

    It is written beside the file, put on the disk, and moved to its place; a link stays a link,
    and a file keeps its mode. A new one is for its owner alone.
    What is no file, such as a pipe, is written to.

    Raises:
        OSError: it cannot be written; the file is as it was, and nothing lies beside it.
    """
    place = Path(os.path.realpath(path))
    content = text.encode() if isinstance(text, str) else text
    try:
        if place.exists() and not place.is_file():
            place.write_bytes(content)
        else:
            _replace(place, content)
    except OSError as error:  # of the file beside it, which nobody named
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _replace(place: Path, content: bytes) -> None:
    fresh = place.with_name(f".{secrets.token_hex(8)}.new")
    try:
        with new_file(fresh) as file:
            file.write(content)
        to_disk(fresh)
        if place.exists():
            shutil.copymode(place, fresh)
        fresh.replace(place)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
