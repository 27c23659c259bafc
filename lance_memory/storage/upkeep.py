"""Upkeep: compaction, folding new rows into indices, version clean-up. No memory changes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from lance_memory.errors import ConflictError, StorageError
from lance_memory.storage import indices
from lance_memory.storage.described import described
from lance_memory.storage.engine import CommitConflictError, NoSpaceError, translated

if TYPE_CHECKING:
    from lance_memory.storage.table import Table

__all__ = ["UpkeepResult", "optimize"]

T = TypeVar("T")
_ATTEMPTS = 6
_POLITE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepResult:
    """What one upkeep run did.

    `version` is the newest version afterwards. `index_refused` says why no vector index was
    installed where one was to be built, as when it failed its check; "" where nothing was refused.
    """

    version: int
    fragments_before: int
    fragments_after: int
    indices_built: tuple[str, ...]
    versions_removed: int
    bytes_removed: int
    index_refused: str = ""


def optimize(
    table: Table,
    *,
    clean_older_than: timedelta | None,
    ensure_index: Callable[[Table], Sequence[str]],
) -> UpkeepResult:
    """Compact small fragments, build and fold indices, and remove old versions if asked.

    Args:
        table: the table.
        clean_older_than: remove the versions older than this that no tag holds; None: none.
        ensure_index: builds the vector index where there should be one; the names it built. Where
            it fails its check, or cannot be written, the rest is done all the same.

    Raises:
        ConflictError: writers changed the rows that were being compacted. Nothing is lost;
            run it again.
    """
    before = _fragments(table)
    try:
        _undisturbed(table, lambda: _compact(table))
        built = _undisturbed(table, lambda: indices.create_missing(table.own()))
        indexed, refused = _ensured(table, ensure_index)
        _undisturbed(table, lambda: _fold(table))
    except NoSpaceError:
        _clean(table, clean_older_than)  # this is what makes room
        raise
    versions, freed = _clean(table, clean_older_than)
    return UpkeepResult(
        version=table.latest().version,
        fragments_before=before,
        fragments_after=_fragments(table),
        indices_built=(*built, *indexed),
        versions_removed=versions,
        bytes_removed=freed,
        index_refused=refused,
    )


def _ensured(
    table: Table, ensure_index: Callable[[Table], Sequence[str]]
) -> tuple[Sequence[str], str]:
    """The indices that were built, and why one was not."""
    try:
        return ensure_index(table), ""
    except NoSpaceError:
        raise
    except StorageError as error:
        return (), str(error)


def _undisturbed(table: Table, step: Callable[[], T]) -> T:
    """Run a step again while writers keep changing what it works on; a few times.

    After two lost races the writers of this handle wait for the next try: a loop of adds
    would win every time, since a compaction takes longer than an add.
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


def _fragments(table: Table) -> int:
    return len(table.latest().fragment_ids)


def _compact(table: Table) -> None:
    with translated("compact"):
        dataset = table.own().dataset
        # Of an index whose files are another branch's or store's, pylance 14.0.2 writes the
        # remapped copy here and goes on looking for it there: nothing could be read any more.
        segments = [part for index in described(dataset).values() for part in index.segments]
        dataset.optimize.compact_files(
            materialize_deletions=True,
            materialize_deletions_threshold=0.1,
            defer_index_remap=any(part.base_id is not None for part in segments),
        )


def _fold(table: Table) -> None:
    with translated("fold new rows into the indices"):
        dataset = table.own().dataset
        dataset.optimize.optimize_indices()


def _clean(table: Table, older_than: timedelta | None) -> tuple[int, int]:
    if older_than is None:
        return 0, 0
    with translated("remove old versions"):
        stats = table.own().dataset.cleanup_old_versions(
            older_than=older_than, error_if_tagged_old_versions=False
        )
    return int(stats.old_versions), int(stats.bytes_removed)
