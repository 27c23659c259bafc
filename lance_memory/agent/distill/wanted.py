"""Which sessions and days are to be read whole, and how they are asked for in one scan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from lance_memory.agent.distill.group import SNAPSHOT, Named
from lance_memory.agent.distill.options import SnapshotOf
from lance_memory.record.filters import Filter, any_of, is_one_of

__all__ = ["Wanted"]

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Sessions and days.

    Attributes:
        sessions: their names.
        days: in UTC.
        named: those of the names that are meant, each of one owner; None: everybody's.
    """

    sessions: frozenset[str] = frozenset()
    days: frozenset[date] = frozenset()
    named: frozenset[Named] | None = None

    @classmethod
    def of(cls, named: Collection[Named]) -> Wanted:
        """These, each of its owner."""
        return cls(
            sessions=frozenset(name for of, name, _ in named if of is SnapshotOf.SESSION),
            days=frozenset(date.fromisoformat(n) for of, n, _ in named if of is SnapshotOf.DAY),
            named=frozenset(named),
        )

    def __len__(self) -> int:
        return len(self.sessions) + len(self.days)

    def has(self, named: Named) -> bool:
        """Whether a group is one of them."""
        if self.named is not None:
            return named in self.named
        of, name, _ = named
        if of is SnapshotOf.SESSION:
            return name in self.sessions
        return of is SnapshotOf.DAY and date.fromisoformat(name) in self.days

    def keys(self) -> set[str]:
        """Of their snapshots."""
        days = {f"{SNAPSHOT}{SnapshotOf.DAY}/{day.isoformat()}" for day in self.days}
        return days | {f"{SNAPSHOT}{SnapshotOf.SESSION}/{name}" for name in self.sessions}

    def predicate(self) -> str:
        """Passes every memory of them; of sessions and days of the same name, everybody's."""
        spans = [_within(first, after) for first, after in _spans(self.days)]
        sessions = [is_one_of("session", sorted(self.sessions))] if self.sessions else []
        return any_of(*sessions, *spans)


def _spans(days: Iterable[date]) -> Iterator[tuple[date, date]]:
    """Runs of days, each as its first and its last."""
    first = last = None
    for day in sorted(days):
        if first is None or last is None:
            first = day
        elif day - last > _DAY:
            yield first, last
            first = day
        last = day
    if first is not None and last is not None:
        yield first, last


def _within(first: date, last: date) -> str:
    since = datetime.combine(first, time(), UTC)
    begun = Filter(states="any", since=since)
    if last < date.max:
        begun = replace(begun, until=datetime.combine(last + _DAY, time(), UTC))
    return f"({begun.predicate(None)})"
