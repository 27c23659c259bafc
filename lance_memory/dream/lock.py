"""One pass at a time over a store, in whatever process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lance_memory.errors import StorageError
from lance_memory.extras import require

__all__ = ["held", "is_held"]

_PATIENCE = 0.2
_LOOK = 0.02


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Holds the lock, or says that somebody else does.

    The operating system keeps it (flock, or its like), so it ends with the process that holds it,
    also when that is killed. The file stays, and means nothing by itself.

    Raises:
        StorageError: the file cannot be made or written to.
    """
    filelock = require("filelock")
    lock = filelock.FileLock(path)
    try:
        # Longer than a moment, because `is_held` holds it for one.
        lock.acquire(timeout=_PATIENCE, poll_interval=_LOOK)
    except filelock.Timeout:
        yield False
        return
    except OSError as error:
        raise StorageError(
            f"{path} cannot be locked ({error}); a pass needs to, so that it is the only one"
        ) from error
    try:
        yield True
    finally:
        lock.release()


def is_held(path: Path) -> bool | None:
    """Whether somebody holds the lock; None where this process may not even ask."""
    if not path.exists():
        return False
    filelock = require("filelock")
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return True
    except OSError:
        return None
    lock.release()
    return False
