"""Small files that are whole, or as they were."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, text: str | bytes) -> None:
    """Make `text` (UTF-8) the file's content: after a kill or a power cut it is the old or the new.

    It is written beside the file, put on the disk, and moved to its place; a link stays a link.
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
        with fresh.open("xb") as file:
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
