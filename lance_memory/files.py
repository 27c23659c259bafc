"""Files that are whole, or as they were, and for their owner alone."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from lance_memory.errors import StorageError

__all__ = ["beside", "make_private", "new_file", "saving", "store_around", "write_whole"]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_OWN_FILE, _OWN_DIRECTORY = 0o600, 0o700
_TABLE = "memories.lance"


def store_around(path: str | os.PathLike[str]) -> Path | None:
    """The store that a path is in, by whatever links; its files are not to be mixed with others."""
    place = Path(os.path.realpath(path))
    return next((one for one in (place, *place.parents) if (one / _TABLE).is_dir()), None)


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
            file.flush()
            os.fsync(file.fileno())
        if place.exists():
            shutil.copymode(place, fresh)
        fresh.replace(place)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
