"""Files that come to be whole on the disk, know their checksums, and stay where they belong."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lance_memory.errors import InvalidInputError
from lance_memory.files import make_private, new_file, store_around, to_disk
from lance_memory.storage import absolute

__all__ = [
    "copied",
    "digest",
    "local_place",
    "refuse_inside_a_store",
    "safe_name",
    "settle",
]

_CHUNK = 1 << 20
_LONGEST_NAME = 1_024


def digest(
    source: BinaryIO, *, limit: int | None = None, to: Callable[[bytes], object] | None = None
) -> tuple[str, int]:
    """Read a stream: its SHA-256 in hex, and its size in bytes. Stops beyond `limit` bytes.

    `to` is given each part of it.
    """
    sha256, size = hashlib.sha256(), 0
    while (limit is None or size <= limit) and (chunk := source.read(_CHUNK)):
        sha256.update(chunk)
        size += len(chunk)
        if to is not None:
            to(chunk)
    return sha256.hexdigest(), size


def copied(source: BinaryIO, target: Path, *, limit: int | None = None) -> tuple[str, int]:
    """Copy a stream into a new private file, as `digest` reads it."""
    with new_file(target) as file:
        found = digest(source, limit=limit, to=file.write)
    to_disk(target)
    return found


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
    to_disk(place.parent)


def local_place(path: str | os.PathLike[str], what: str) -> Path:
    """The path, absolute.

    Raises:
        InvalidInputError: it is no path, or a URI: `what` lies on a local disk.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidInputError(f"path={path!r:.120}; {what} takes a path")
    text = absolute(path)
    if "://" in text:
        raise InvalidInputError(
            f"{text} is a URI, and {what} lies on a local disk; name a path, and copy it from there"
        )
    return Path(text)


def refuse_inside_a_store(path: Path, what: str) -> None:
    """Refuse to put something among the files of a store, by whatever links it is reached.

    Raises:
        InvalidInputError: `path` is a store, or inside of one.
    """
    above = store_around(path)
    if above is not None:
        raise InvalidInputError(
            f"{path} is inside the store {above}; {what} lies elsewhere, best on another disk"
        )


def safe_name(name: object) -> bool:
    """Whether a manifest's name is a plain relative path that stays where it is taken from."""
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        return False
    parts = PurePosixPath(name).parts
    plain = not any(mark in name for mark in ("\\", ":", "\0"))
    return plain and name == "/".join(parts) and not {"/", "..", "."} & set(parts)
