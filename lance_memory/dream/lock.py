"""One pass at a time over a store, in whatever process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lance_memory.errors import ConflictError, StorageError
from lance_memory.storage import lock

__all__ = ["held", "is_held"]

_PATIENCE = 0.2
"""Seconds; longer than a moment, because `is_held` holds the lock for one."""


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Holds the lock, or says that somebody else does.

    Raises:
        StorageError: the file cannot be made or written to.
    """
    free = True
    with ExitStack() as until:
        try:
            until.enter_context(lock.held(path, wait=_PATIENCE))
        except ConflictError:
            free = False
        yield free


def is_held(path: Path) -> bool | None:
    """Whether somebody holds the lock; None where this process may not even ask."""
    if not path.exists():
        return False
    try:
        with lock.held(path, wait=0.0):
            return False
    except ConflictError:
        return True
    except StorageError:
        return None
