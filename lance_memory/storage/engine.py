"""The engine, and its failures in our words.

pylance raises bare OSError and ValueError that are told apart by their text. Everything the
package asks of the engine happens inside `translated`, so no caller ever reads such a text.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lance_memory.errors import (
    ConflictError,
    InvalidInputError,
    LanceMemoryError,
    NotFoundError,
    StorageError,
)

# The engine's own log lines are for its developers; ours go through Python's logging.
os.environ.setdefault("LANCE_LOG", "error")
os.environ.setdefault("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")  # of index statistics

import lance
import pyarrow as pa
from lance.commit import CommitConflictError

if TYPE_CHECKING:
    from lance.fragment import DataFile

__all__ = [
    "IN_FLIGHT",
    "CommitConflictError",
    "MissingFileError",
    "NoSpaceError",
    "UnexplainedError",
    "lance",
    "name_of",
    "translated",
]


IN_FLIGHT = 0.25
"""Seconds between the last commit and the removal of versions that are as young.

pylance 14.0.2 takes a number for a version when no file has it. A writer that has chosen one, while
others make that version and the next, and remove it again, would make it once more, below the
newest, where nobody looks: an acknowledged write would be lost (seen in 1 of 240 runs of a process
that appends beside one that deletes). Choosing and writing are some milliseconds apart; a process
that stands still for longer in between is not helped.
"""


class MissingFileError(StorageError):
    """A file of the version that was read is not there: cleaned up since, or damaged."""


def name_of(file: DataFile) -> str:
    """The name of a data file, within `data`.

    pylance 14.0.2 makes a class each time that it is asked for it, which takes longer than a look
    at the file.
    """
    name: str = file._path
    return name


class NoSpaceError(StorageError):
    """The disk is full."""


class UnexplainedError(StorageError):
    """The engine's words do not say what it means; often a damaged file. It may have panicked."""


_MEANINGS: tuple[tuple[type[LanceMemoryError], tuple[int, ...], tuple[str, ...], str], ...] = (
    (
        NoSpaceError,
        (errno.ENOSPC, errno.EDQUOT),
        ("no space left", "storage full", "disk quota", "os error 28"),
        "no space left; nothing was written: free some",
    ),
    (
        StorageError,
        (errno.EACCES, errno.EROFS, errno.EPERM),
        ("permission denied", "read-only file system", "operation not permitted", "os error 13"),
        "no permission to write there; nothing was written",
    ),
    (NotFoundError, (), ("ref not found",), "no such tag or branch"),
    (
        ConflictError,
        (),
        ("commit conflict", "too many concurrent writers"),
        "another writer was faster; try again",
    ),
    (
        ConflictError,
        (),
        ("ref conflict", "already exists"),
        "it is there already, or a tag or another branch holds it",
    ),
    (
        InvalidInputError,
        (),
        ("ref is invalid",),
        "a tag or branch name has letters, digits, '.', '-' and '_'",
    ),
)
_GONE = ("not found", "no such file")
_FILE = re.compile(r"[\w.-]+\.lance/(?:tree/[^\s:()]+/)?_?[a-z]+/[^\s:(),]+")
"""A file of a table in the engine's words, from the store's directory on."""

_PLACE_IN_SOURCE = re.compile(r", /(?:home|root|rustc)/[^\s,]*")


@contextmanager
def translated(action: str, *, absent: type[LanceMemoryError] = MissingFileError) -> Iterator[None]:
    """Run engine calls; their failures come out as the package's own errors.

    Args:
        action: what was asked, as in "open /data/store"; it opens the message.
        absent: what a missing file means: a damaged or cleaned-up store, unless the caller asks
            for something that may not be there (`NotFoundError`).

    Raises:
        NotFoundError, InvalidInputError, ConflictError, StorageError: see `errors`.
        StorageError: also where the engine panics, which Python could not catch as an Exception.
        CommitConflictError: left as it is, for the commit loop, which alone handles it.
    """
    try:
        yield
    except (LanceMemoryError, CommitConflictError):
        raise
    except (OSError, ValueError, RuntimeError, NotImplementedError, pa.ArrowException) as error:
        raise _translation(action, error, absent) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # pyo3's: no Exception, and nowhere to import
            raise
        told = f"could not {action}: the engine gave up: {_short(error)}"
        raise UnexplainedError(told) from error


def _translation(action: str, error: Exception, absent: type[LanceMemoryError]) -> LanceMemoryError:
    text = str(error).lower()
    code = getattr(error, "errno", None)
    for kind, codes, signs, meaning in _MEANINGS:
        if code in codes or any(sign in text for sign in signs):
            return kind(f"could not {action}: {meaning}")
    if any(sign in text for sign in _GONE):
        named = _FILE.search(str(error))
        return absent(
            f"could not {action}: not found; a file is missing: the version was cleaned up, or the "
            f"store is damaged ({named[0] if named else _short(error)})"
        )
    return UnexplainedError(f"could not {action}: the engine says: {_short(error)}")


def _short(error: BaseException) -> str:
    """The engine's message without the places in its source."""
    return _PLACE_IN_SOURCE.sub("", str(error)).strip()
