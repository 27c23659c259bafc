"""Upkeep: compaction, folding new rows into indices, version clean-up. No memory changes.

`optimize` does all that there is to do; the steps that follow writes (see `tender`) are the same
ones in bounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lance.optimize import Compaction, CompactionOptions

from lance_memory.errors import NotFoundError, StorageError
from lance_memory.html import Told
from lance_memory.storage import history, indices, naming
from lance_memory.storage.described import covered, described
from lance_memory.storage.disk.cut import refuse_cut
from lance_memory.storage.disk.leftovers import remove
from lance_memory.storage.engine import NoSpaceError, translated
from lance_memory.storage.lock import UPKEEP
from lance_memory.storage.log.audit import AuditLog
from lance_memory.storage.log.entry import LogEntry
from lance_memory.storage.upkeep.races import remove_versions, undisturbed
from lance_memory.storage.upkeep.retain import Retain, to_clean
from lance_memory.storage.upkeep.tiers import FRAGMENTS, SEGMENTS, Fragment, chosen, tail
from lance_memory.wording import counted, ranges

if TYPE_CHECKING:
    from lance_memory.storage.snapshot import Snapshot
    from lance_memory.storage.table import Table

__all__ = [
    "UpkeepPlan",
    "UpkeepResult",
    "alone",
    "alone_anyway",
    "clean",
    "compact",
    "fold",
    "optimize",
    "plan",
    "unfolded_rows",
]

_PATIENCE = 60.0
"""Seconds that `optimize` waits for another process's step, which is bounded."""

_CONSOLIDATE = "consolidate"
_STALE_HOLD = timedelta(days=1)
_STALE_TRIAL = timedelta(days=7)
"""As the engine waits before it removes other files that no version refers to."""

_FLOOR = 4_096
"""Index segments of up to as many rows are merged at each fold: a search reads every segment."""


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

    def __str__(self) -> str:
        built = ", ".join(self.indices_built) or "none"
        refused = f"; no vector index: {self.index_refused}" if self.index_refused else ""
        return (
            f"version {self.version}: {counted(self.fragments_before, 'fragment')} before, "
            f"{self.fragments_after} now; indices built: {built}; "
            f"{counted(self.versions_removed, 'version')} of "
            f"{self.bytes_removed / 1e3:,.0f} kB removed{refused}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepPlan(Told):
    """What an upkeep run would do to the store as it is at `version`.

    Attributes:
        fragments: how many there are.
        fragments_to_compact: how many of them would be written again.
        rows_to_fold: index name → rows that would be folded into it.
        indices_to_build: the names of those that are missing.
        versions_to_remove: which, ascending.
        bytes_to_remove: what that would free by itself.
    """

    version: int
    fragments: int
    fragments_to_compact: int
    rows_to_fold: Mapping[str, int] = field(default_factory=dict)
    indices_to_build: tuple[str, ...] = ()
    versions_to_remove: tuple[int, ...] = ()
    bytes_to_remove: int = 0

    def __str__(self) -> str:
        """What would be done, a line for each step."""
        gone = self.versions_to_remove
        folded = [f"{name} {rows}" for name, rows in self.rows_to_fold.items()]
        size = f" ({self.bytes_to_remove / 1e3:,.0f} kB)" if gone else ""
        again = counted(self.fragments, "fragment")
        return "\n".join(
            (
                f"{self.fragments_to_compact} of {again} would be written again",
                f"indices would be built: {', '.join(self.indices_to_build) or 'none'}",
                f"rows would be folded into: {', '.join(folded) or 'none'}",
                f"{counted(len(gone), 'untagged version')} would go{size}: {ranges(gone)}",
            )
        )

    def __bool__(self) -> bool:
        return bool(
            self.fragments_to_compact
            or self.rows_to_fold
            or self.indices_to_build
            or self.versions_to_remove
        )


def alone(table: Table, *, wait: float | None = _PATIENCE) -> AbstractContextManager[None]:
    """No other upkeep of the store runs while the block lasts, of whatever process.

    In an object store there is no such lock: there steps of two processes meet as writers do.

    Raises:
        ConflictError: another one still ran after so many seconds.
        StorageError: the newest version is torn, or there can be no lock in the store's directory.
    """
    table.refuse_writes()
    return alone_anyway(table, wait=wait)


def alone_anyway(table: Table, *, wait: float | None = _PATIENCE) -> AbstractContextManager[None]:
    """As `alone`, also with a store that is torn, which is then mended."""
    return table.place.alone(UPKEEP, wait=wait)


def optimize(
    table: Table,
    *,
    clean_older_than: timedelta | None,
    retain: Retain | None = None,
    ensure_index: Callable[[Table], Sequence[str]],
) -> UpkeepResult:
    """Compact small fragments, build and fold indices, and remove old versions.

    Args:
        table: the table.
        clean_older_than: remove the versions older than this that no tag holds; None: none.
        retain: remove the versions that this budget does not keep; None: none.
        ensure_index: builds the vector index where there should be one; the names it built. Where
            it fails its check, or cannot be written, the rest is done all the same.

    Raises:
        ConflictError: writers changed the rows that were being compacted. Nothing is lost;
            run it again.
    """
    before = _fragments(table)

    def cleaned() -> tuple[int, int]:
        return clean(table, retain, older_than=clean_older_than)

    with alone(table):
        try:
            compact(table)
            built = undisturbed(table, lambda: indices.create_missing(table.own()))
            indexed, refused = _ensured(table, ensure_index)
            fold(table)
            compact(table)  # fragments that are in one segment now
        except NoSpaceError:
            cleaned()  # this is what makes room
            raise
        versions, freed = cleaned()
    return UpkeepResult(
        version=table.latest().version,
        fragments_before=before,
        fragments_after=_fragments(table),
        indices_built=(*built, *indexed),
        versions_removed=versions,
        bytes_removed=freed,
        index_refused=refused,
    )


def plan(
    table: Table,
    *,
    clean_older_than: timedelta | None,
    retain: Retain | None,
    wants_index: Callable[[Table], Sequence[str]],
) -> UpkeepPlan:
    """What `optimize` would do now; nothing is written. See there for the arguments."""
    snapshot = table.own()
    gone = _removable(table, retain, clean_older_than, now=datetime.now(UTC))
    return UpkeepPlan(
        version=snapshot.version,
        fragments=len(snapshot.fragment_ids),
        fragments_to_compact=_would_compact(snapshot),
        rows_to_fold={n: rows for n, rows in indices.unindexed_rows(snapshot).items() if rows},
        indices_to_build=(*indices.missing(snapshot), *wants_index(table)),
        versions_to_remove=tuple(gone),
        bytes_to_remove=_would_free(snapshot, gone),
    )


def compact(table: Table, *, most: int | None = None, parts: int = FRAGMENTS) -> int:
    """Write small and thinned-out fragments again, as few; how many there are then.

    Those that writers have added meanwhile do not count.

    Args:
        table: the table.
        most: only as far as `tiers.chosen` goes, to fragments of so many rows. The lowest
            fragment stays, as every change set names it: so no add is disturbed. None: all.
        parts: about as many fragments of one index segment are left at most, as far as `most` lets
            them be merged.
    """
    return undisturbed(table, lambda: _compact(table, most, parts))


def fold(table: Table, *, most: int | None = None, parts: int = SEGMENTS) -> None:
    """Make the rows that indices do not cover part of them.

    They become a segment of their own, together with the youngest segments that are not larger;
    so an index is not written as a whole for a few rows.

    Args:
        table: the table.
        most: no segment of more rows is made; None: of whatever it takes.
        parts: about as many segments are left at most, as far as `most` lets them be merged.
    """
    undisturbed(table, lambda: _fold(table, most, parts))


def unfolded_rows(table: Table) -> int:
    """How many rows the index that is furthest behind does not cover."""
    snapshot = table.own()
    rows = {one.id: one.rows for one in _described(snapshot)}
    behind = [rows.keys() - covered(index) for index in described(snapshot.dataset).values()]
    return max((sum(rows[number] for number in new) for new in behind), default=0)


def clean(
    table: Table,
    retain: Retain | None,
    *,
    older_than: timedelta | None = None,
    least: int = 1,
) -> tuple[int, int]:
    """Remove versions, and what only they refer to; how many, and how many bytes.

    What a killed process has left behind goes too, after some days. The log entries of what is
    removed are kept in the audit first.

    Args:
        table: the table.
        retain: those that this budget does not keep; None: none.
        older_than: those that are older, even if the budget keeps them; None: none.
        least: do nothing for fewer versions.
    """
    now = datetime.now(UTC)
    _drop_stale_holds(table, now)
    _drop_stale_trials(table, now)
    gone = _removable(table, retain, older_than, now=now)
    if len(gone) < max(1, least):
        return 0, 0
    told = list(_entries(table, gone))
    AuditLog.of(table).keep(table.branch, told)
    return remove_versions(table, (entry.version for entry in told))


# -- inside -------------------------------------------------------------------------------


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


def _fragments(table: Table) -> int:
    return len(table.latest().fragment_ids)


def _compact(table: Table, most: int | None, parts: int) -> int:
    snapshot = table.own()
    there = len(snapshot.fragment_ids)
    excluded = [] if most is None else _excluded(snapshot, most, parts)
    if most is not None and len(excluded) == there:
        return there
    with translated("compact"):
        # Of an index whose files are another branch's or store's, pylance 14.0.2 writes the
        # remapped copy here and goes on looking for it there: nothing could be read any more.
        segments = [p for index in described(snapshot.dataset).values() for p in index.segments]
        options: CompactionOptions = {
            "materialize_deletions": True,
            "materialize_deletions_threshold": 0.1,
            "defer_index_remap": any(part.base_id is not None for part in segments),
            "excluded_fragment_ids": excluded,
        }
        tasks = Compaction.plan(snapshot.dataset, options).tasks
        rewrites = [task.execute(snapshot.dataset) for task in tasks]
        for one in rewrites:
            refuse_cut(one.new_fragments, table.home)
        written = [file.path for one in rewrites for f in one.new_fragments for file in f.files]
        # The engine commits by itself, and acknowledged rows are in these files from then on.
        table.settle_files(f"{table.home}/data/{path}" for path in written)
        if not rewrites:
            return there
        done = Compaction.commit(snapshot.dataset, rewrites, options)
        return there - int(done.fragments_removed) + int(done.fragments_added)


def _would_compact(snapshot: Snapshot) -> int:
    with translated("plan a compaction"):
        planned = Compaction.plan(snapshot.dataset, {"materialize_deletions_threshold": 0.1})
        return sum(len(task.fragments) for task in planned.tasks)


def _excluded(snapshot: Snapshot, most: int, parts: int) -> list[int]:
    """The fragments that a compaction in bounds leaves as they are."""
    fragments = _described(snapshot)
    lowest = min((one.id for one in fragments), default=None)
    again = chosen(fragments, most=most, spared=lowest, parts=parts)
    return [one.id for one in fragments if one.id not in again]


def _described(snapshot: Snapshot) -> list[Fragment]:
    """The fragments, and which index segments have their rows."""
    segments: dict[int, list[str]] = defaultdict(list)
    for index in described(snapshot.dataset).values():
        for segment in index.segments:
            for number in segment.fragment_ids:
                segments[int(number)].append(str(segment.uuid))
    with translated(f"read version {snapshot.version}"):
        parts = [fragment.metadata for fragment in snapshot.dataset.get_fragments()]
    return [
        Fragment(
            id=part.id,
            rows=part.num_rows,
            deleted=part.num_deletions,
            covered_by=frozenset(segments[part.id]),
        )
        for part in parts
    ]


def _fold(table: Table, most: int | None, parts: int) -> None:
    rows = {one.id: one.rows for one in _described(table.own())}
    together: dict[int, list[str]] = defaultdict(list)
    for name, index in described(table.own().dataset).items():
        new = rows.keys() - covered(index)
        sizes = [sum(rows.get(int(n), 0) for n in part.fragment_ids) for part in index.segments]
        every = [*sizes, sum(rows[n] for n in new)] if new else sizes
        merged = tail(every, floor=_FLOOR, most=most, parts=parts)
        if new or merged:
            together[merged - 1 if new and merged else merged].append(name)
    for count, names in together.items():
        # The engine commits by itself and tries for half a minute where writers are faster, which
        # a loop of adds always is once there are many fragments: so this handle's writers wait.
        with table.writing, translated("fold new rows into the indices"):
            table.own().dataset.optimize.optimize_indices(
                index_names=names, num_indices_to_merge=count
            )
    indices.drop_left_over(table.own())  # the vectors may have been switched, where nothing locks


def _removable(
    table: Table, retain: Retain | None, older_than: timedelta | None, *, now: datetime
) -> list[int]:
    """The versions that go, ascending."""
    if retain is None and older_than is None:
        return []
    numbers = history.versions(table)
    if older_than is None and retain is not None and len(numbers) <= retain.last:
        return []
    pinned = _pinned(table)
    times = {}
    for number in numbers:
        with suppress(NotFoundError, StorageError):  # removed meanwhile, or damaged: it stays
            times[number] = table.at(number).written_at()
    gone: set[int] = set()
    if retain is not None:
        surplus = to_clean(times, retain, now=now, pinned=pinned)
        passes = [one.version for one in _entries(table, surplus) if one.operation == _CONSOLIDATE]
        gone.update(to_clean(times, retain, now=now, pinned=pinned, passes=passes))
    if older_than is not None:
        gone |= {number for number, at in times.items() if now - at >= older_than}
    return sorted(gone - {*pinned})


def _entries(table: Table, versions: Sequence[int]) -> Iterator[LogEntry]:
    """The log entries of versions; one that cannot tell it is left out, and so left alone."""
    for version in versions:
        with suppress(NotFoundError, StorageError):
            yield history.entry(table, version)


def _pinned(table: Table) -> Collection[int]:
    """The newest version, the tagged ones, and those that branches started from."""
    starts = {b.parent_version for b in naming.all_branches(table) if b.parent == table.branch}
    return {table.latest().version, *naming.all_tags(table).values(), *starts}


def _would_free(snapshot: Snapshot, versions: list[int]) -> int:
    if not versions:
        return 0
    with translated("look at old versions"):
        told = snapshot.dataset.explain_cleanup_old_versions(
            versions=versions, error_if_tagged_old_versions=False
        )
    return int(told.stats.bytes_removed)


def _drop_stale_holds(table: Table, now: datetime) -> None:
    """Let go of the versions that a killed reader held; see `naming.holding`."""
    with translated("list tags"):
        tags = table.tag_refs()
    for name, tag in tags.items():
        if name.startswith(naming.HOLD) and now - tag["created_at"] > _STALE_HOLD:
            with suppress(NotFoundError), translated(f"let go of {name}"):
                table.own().dataset.tags.delete(name)


def _drop_stale_trials(table: Table, now: datetime) -> None:
    """Remove the versions that a process was killed while it tried; see `change.tried`.

    The engine's clean-up removes their files and not themselves.
    """
    if "://" in table.home:
        return
    for manifest in Path(table.home, "_versions").glob("d*.manifest"):
        with suppress(OSError):  # a trial that ends just now removes its own
            made = datetime.fromtimestamp(manifest.stat().st_mtime, UTC)
            if now - made > _STALE_TRIAL:
                remove(table.home, f"_versions/{manifest.name}")
