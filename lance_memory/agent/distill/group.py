"""Which memories belong together: those of one session, of one day, near to a question, of a tag.

Pure: narrow columns go in, groups come out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.agent.distill.options import SnapshotOf
from lance_memory.record.memory import DISTILLED, Scope, State

__all__ = [
    "NARROW",
    "OWNER",
    "SNAPSHOT",
    "Group",
    "Named",
    "Place",
    "Row",
    "by_owner",
    "groups",
    "named_in",
    "row_of",
    "rows_of",
]

SNAPSHOT: Final = "snapshot:"
"""How the keys of snapshots begin."""

OWNER: Final = ("tenant", "user", "agent")
"""The levels that no snapshot crosses."""

NARROW: Final = (
    *("id", "content_hash", "state", "state_reason", "expires_at", "source", "seq", "importance"),
    *("event_at", "created_at", "updated_at"),
    *OWNER,
    "session",
)
"""The columns that groups are made from."""

Place: TypeAlias = tuple[str, Scope]
"""Key and scope of a snapshot: what it is unique by."""

Named: TypeAlias = tuple[SnapshotOf, str, Scope]
"""What a group is of, its name, and the scope of its snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A memory, without what it says."""

    id: str
    content_hash: str
    happened: datetime
    created: datetime
    updated: datetime
    seq: int | None
    importance: float
    owner: Scope
    session: str

    @property
    def day(self) -> date:
        """On which it happened, in UTC."""
        return self.happened.astimezone(UTC).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Memories of one owner that a snapshot is to be made of, oldest first.

    Attributes:
        of: what they have in common.
        name: which: the session, the day as 2025-01-31, the question, the tag.
        scope: of the snapshot.
        rows: all of them.
    """

    of: SnapshotOf
    name: str
    scope: Scope
    rows: tuple[Row, ...]

    @property
    def key(self) -> str:
        """Of the snapshot."""
        return f"{SNAPSHOT}{self.of}/{self.name}"

    @property
    def named(self) -> Named:
        """What it is of, its name, and the scope of its snapshot."""
        return self.of, self.name, self.scope

    @property
    def place(self) -> Place:
        """Where the snapshot stands."""
        return self.key, self.scope

    @property
    def digest(self) -> str:
        """The same for the same memories with the same contents."""
        told = "\n".join(sorted(f"{row.id} {row.content_hash}" for row in self.rows))
        return hashlib.sha256(told.encode()).hexdigest()[:32]

    @property
    def last(self) -> datetime:
        """When the latest happened."""
        return self.rows[-1].happened

    def chosen(self, most: int) -> list[str]:
        """The ids of as many of the memories: the most important ones, then the newest."""
        first = sorted(self.rows, key=lambda r: (-r.importance, -r.happened.timestamp(), r.id))
        kept = {row.id for row in first[:most]}
        return [row.id for row in self.rows if row.id in kept]

    def has_news(self, since: datetime) -> bool:
        """Whether one of them was learned or changed then or later."""
        return any(row.updated >= since for row in self.rows)


def rows_of(table: pa.Table, *, now: datetime, ceilings: Mapping[str, int]) -> list[Row]:
    """The visible memories among `NARROW` rows that nothing is missing before, oldest first.

    Args:
        table: rows of whatever state.
        now: decides what has expired.
        ceilings: tenant → the greatest `seq` that may go in, where events are outstanding.
    """
    active = pc.equal(table["state"], str(State.ACTIVE))
    own = pc.not_equal(table["source"], DISTILLED)
    ends = pc.greater(table["expires_at"], pa.scalar(now, table["expires_at"].type))
    visible = pc.and_(pc.and_(active, own), pc.fill_null(ends, fill_value=True))
    found = [row_of(values) for values in table.filter(visible).to_pylist()]
    complete = [row for row in found if _is_complete(row, ceilings)]
    return sorted(complete, key=lambda row: (row.happened, row.id))


def named_in(row: Row, of: Collection[SnapshotOf], *, within: Scope) -> Iterator[Named]:
    """The session and the day that a memory belongs to.

    Args:
        row: the memory.
        of: sessions, days, or both.
        within: the handle's scope, which the snapshots' lie in.
    """
    if SnapshotOf.SESSION in of and row.session:
        scope = _scoped(row.owner, within, session=row.session)
        yield SnapshotOf.SESSION, row.session, scope
    if SnapshotOf.DAY in of:
        yield SnapshotOf.DAY, row.day.isoformat(), _scoped(row.owner, within)


def groups(
    rows: Iterable[Row], of: Collection[SnapshotOf], *, within: Scope, until: date | None
) -> Iterator[Group]:
    """The sessions and days of the rows.

    Args:
        rows: oldest first.
        of: sessions, days, or both.
        within: the handle's scope, which the snapshots' lie in.
        until: days from this one on are not over yet; None: all are taken.
    """
    found: dict[Named, list[Row]] = {}
    for row in rows:
        for named in named_in(row, of, within=within):
            if named[0] is SnapshotOf.SESSION or until is None or row.day < until:
                found.setdefault(named, []).append(row)
    for (kind, name, scope), mine in found.items():
        yield Group(of=kind, name=name, scope=scope, rows=tuple(mine))


def by_owner(rows: Iterable[Row], of: SnapshotOf, name: str, *, within: Scope) -> Iterator[Group]:
    """The rows as a group for each owner; for topics and tags."""
    found: dict[Scope, list[Row]] = {}
    for row in rows:
        found.setdefault(_scoped(row.owner, within), []).append(row)
    for scope, mine in found.items():
        yield Group(of=of, name=name, scope=scope, rows=tuple(mine))


def row_of(values: Mapping[str, object]) -> Row:
    """The memory of a row of `NARROW` columns."""
    event, created = values["event_at"], values["created_at"]
    seq, importance = values["seq"], values["importance"]
    happened, updated = event or created, values["updated_at"]
    assert isinstance(happened, datetime)  # noqa: S101 - the columns' types
    assert isinstance(created, datetime)  # noqa: S101
    assert isinstance(updated, datetime)  # noqa: S101
    return Row(
        id=str(values["id"]),
        content_hash=str(values["content_hash"]),
        happened=happened,
        created=created,
        updated=updated,
        seq=seq if isinstance(seq, int) else None,
        importance=importance if isinstance(importance, float) else 0.0,
        owner=Scope(**{level: str(values[level]) for level in OWNER}),
        session=str(values["session"]),
    )


def _is_complete(row: Row, ceilings: Mapping[str, int]) -> bool:
    ceiling = ceilings.get(row.owner.tenant)
    return row.seq is None or ceiling is None or row.seq <= ceiling


def _scoped(owner: Scope, within: Scope, **levels: str) -> Scope:
    """The snapshot's scope: its owner's, and whatever else the handle is kept to."""
    return Scope(**{**owner.names(), **levels, **within.given()})
