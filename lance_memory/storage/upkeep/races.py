"""How upkeep meets writers, and how versions are removed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar

from lance_memory.errors import ConflictError
from lance_memory.storage.engine import CommitConflictError, MissingFileError, translated

if TYPE_CHECKING:
    from lance_memory.storage.table import Table

__all__ = ["remove_versions", "undisturbed"]

T = TypeVar("T")
_ATTEMPTS = 6
_POLITE = 2


def undisturbed(table: Table, step: Callable[[], T]) -> T:
    """Run a step again while writers keep changing what it works on; a few times.

    After two lost races the writers of this handle wait for the next try: a loop of adds
    would win every time, since a compaction takes longer than an add.

    Raises:
        ConflictError: writers, of other processes too, were faster each time.
    """
    for attempt in range(_ATTEMPTS):
        try:
            with table.writing if attempt >= _POLITE else nullcontext():
                return step()
        except (CommitConflictError, ConflictError):
            time.sleep(random.uniform(0, 0.01 * 2**attempt))
    raise ConflictError(
        f"upkeep was overtaken by writers {_ATTEMPTS} times; nothing is lost: run it again"
    )


def remove_versions(table: Table, numbers: Iterable[int]) -> tuple[int, int]:
    """Remove exactly these versions, and the files that only they need; how many, and the bytes.

    Those that a tag is on stay. What is kept is put on the disk first: until then what goes may be
    all that a power cut leaves.

    Raises:
        StorageError: a file cannot be removed, or the disk failed.

    Danger: they can no longer be read.
    """
    versions = sorted(numbers)
    if not versions:
        return 0, 0
    table.settle()
    for attempt in range(_ATTEMPTS):
        try:
            with translated(f"remove versions of {table.branch}"):
                stats = table.own().dataset.cleanup_old_versions(
                    versions=versions, error_if_tagged_old_versions=False
                )
            break
        except MissingFileError:  # a tag that was listed was removed before it was read
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(random.uniform(0, 0.01 * 2**attempt))
    return int(stats.old_versions), int(stats.bytes_removed)
