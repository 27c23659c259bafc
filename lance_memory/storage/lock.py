"""A lock between processes: one at a time does what has to be done alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lance_memory.errors import ConflictError, StorageError

__all__ = ["FORGET", "UPKEEP", "held"]

UPKEEP = "upkeep.lock"
"""The name of the lock of upkeep: whoever holds it changes no row, and nobody else removes files.

Who also takes a table's `writing` takes this one first: upkeep, which holds it, may wait for that.
"""

FORGET = "forget.lock"
"""The name of the lock of whoever forgets, and of whoever writes what another version or line has:
it could write again what is being forgotten. Taken before `UPKEEP`."""


@contextmanager
def held(path: Path, *, wait: float | None) -> Iterator[None]:
    """Hold the lock while the block lasts.

    The operating system keeps it (flock, or its like), so it ends with the process that holds it,
    also when that is killed. The file stays, and means nothing by itself.

    Args:
        path: the file, on a local disk; made where there is none.
        wait: seconds at most; None: as long as it takes.

    Raises:
        ConflictError: another process, or another thread of this one, holds it.
        StorageError: the file cannot be made or written to, or its file system has no locks.
    """
    from filelock import FileLock, Timeout  # loads asyncio, and most handles never lock anything

    lock = FileLock(path)
    try:
        lock.acquire(timeout=-1 if wait is None else wait)
    except Timeout as error:
        raise ConflictError(f"another process holds {path}; nothing was done: try again") from error
    except (OSError, NotImplementedError) as error:
        raise StorageError(
            f"{path} cannot be locked ({error}); what needs it was not done: make it writable"
        ) from error
    try:
        yield
    finally:
        lock.release()
