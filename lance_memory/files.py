"""Small files that are whole, or as they were."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["make_private", "new_file", "write_whole"]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_OWN_FILE, _OWN_DIRECTORY = 0o600, 0o700


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
