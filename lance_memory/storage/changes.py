"""When memories changed: found by halving the versions, so that few of them are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

from lance_memory.record.compare import COLUMNS, differing
from lance_memory.record.memory import Memory, Scope
from lance_memory.record.results import MemoryChange
from lance_memory.record.rows import EMBEDDING, Fingerprint, to_memories
from lance_memory.storage import history
from lance_memory.storage.table import Table

__all__ = ["RowChange", "changes_of", "row_changes"]

_TOLD = tuple(name for name in COLUMNS if name not in ("revision", "updated_at", EMBEDDING))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A version that changed some of the rows.

    Attributes:
        version: which.
        ids: of the rows that it changed, made or took away.
        first: it is the oldest version that can be read, and has them: what changed them before, or
            there, was cleaned up.
    """

    version: int
    ids: tuple[str, ...]
    first: bool = False


def row_changes(table: Table, ids: Collection[str], *, until: int) -> list[RowChange]:
    """The readable versions up to `until` that changed rows with these ids, oldest first.

    Of n versions and c changes it reads about c·log2(n). What was changed, and put back to the very
    same revision by a rollback, between two versions that it reads is not seen.

    Raises:
        StorageError: a version that it has to read is damaged.
    """
    versions = [v for v in history.readable(table) if v <= until]

    @cache
    def at(place: int) -> Mapping[str, Fingerprint]:
        return table.at(versions[place]).locate(ids).fingerprints()

    def between(low: int, high: int) -> list[RowChange]:
        before, after = at(low), at(high)
        if before == after:
            return []
        if high - low > 1:
            middle = (low + high) // 2
            return between(low, middle) + between(middle, high)
        changed = [i for i in sorted({*before, *after}) if before.get(i) != after.get(i)]
        return [RowChange(version=versions[high], ids=tuple(changed))]

    if not versions:
        return []
    oldest = tuple(sorted(at(0)))
    known = [RowChange(version=versions[0], ids=oldest, first=True)] if oldest else []
    return known + between(0, len(versions) - 1)


def changes_of(
    table: Table, ids: Collection[str], *, until: int, within: Scope
) -> list[MemoryChange]:
    """The changes of memories, oldest first, each with the memory before and after it.

    Args:
        table: of the memories.
        ids: of the memories.
        until: the last version that counts.
        within: where a write touched other scopes too, its reason is not told.
    """
    last: dict[str, Memory] = {}
    found: list[MemoryChange] = []
    for change in row_changes(table, ids, until=until):
        entry = history.entry(table, change.version)
        rows = to_memories(table.at(change.version).by_ids(change.ids))
        there = {memory.id: memory for memory in rows}
        told = not within or (entry.scopes is not None and all(map(within.holds, entry.scopes)))
        for identifier in change.ids:
            before, after = last.get(identifier), there.get(identifier)
            found.append(
                MemoryChange(
                    id=identifier,
                    version=change.version,
                    at=after.updated_at if change.first and after else entry.at,
                    operation="" if change.first else entry.operation,
                    actor="" if change.first else entry.actor,
                    reason=entry.reason if told and not change.first else "",
                    before=before,
                    after=after,
                    columns=differing(before, after, _TOLD) if before and after else (),
                    lost=after.revision if change.first and after else 0,
                )
            )
        last |= there
    return found
