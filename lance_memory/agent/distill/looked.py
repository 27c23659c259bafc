"""What a distillation looks at: the memories of one version, and the snapshots that are there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.agent.distill.group import NARROW, SNAPSHOT, Group, Row, rows_of
from lance_memory.agent.distill.marks import Marks
from lance_memory.agent.distill.snapshot import sources_of, told_of
from lance_memory.agent.pinned import pinned
from lance_memory.record.filters import is_live
from lance_memory.record.memory import DISTILLED, SCOPE_LEVELS, Memory, Scope, State
from lance_memory.record.times import utc
from lance_memory.store import MemoryStore

__all__ = ["Looked"]

_IN_TIME: Final = ("retention: ", "strength ")
"""How the reasons begin of what a policy retired, because its time was over."""


class _Source(StrEnum):
    """What became of a memory that a snapshot was made from, where it is not visible any more."""

    PUT_AWAY = "put away"
    REPLACED = "replaced"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The memories of one version, and the snapshots that are there.

    Attributes:
        view: the handle at that version.
        now: the moment.
        rows: the memories that may go in, oldest first.
        became: id → what became of it, of all memories; those that are visible are put away
            once they expire.
        there: key and scope → the snapshot that is visible.
        taken: key and scope → the id of a live memory that is none, and has a snapshot's key.
    """

    view: MemoryStore
    now: datetime
    rows: Sequence[Row]
    became: Mapping[str, _Source]
    there: Mapping[tuple[str, Scope], Memory]
    taken: Mapping[tuple[str, Scope], str]

    @classmethod
    def at(cls, store: MemoryStore, marks: Marks, kinds: Collection[str]) -> Looked:
        """What the handle sees now, of these kinds."""
        view = pinned(store)
        now = utc(view.clock(), "clock()")
        table = view.to_arrow(columns=[*NARROW, "kind", "run", "key"], states="any")
        chosen = table.filter(pc.is_in(table["kind"], pa.array(list(map(str, kinds)))))
        there = {(m.key or "", m.scope): m for m in view.list(source=DISTILLED)}
        return cls(
            view=view,
            now=now,
            rows=rows_of(chosen, now=now, ceilings=marks.ceilings),
            became=_became(table),
            there=there,
            taken={place: id for place, id in _keyed(table, now) if place not in there},
        )

    def known(self, place: tuple[str, Scope]) -> str:
        """The id of the snapshot that is there; "" for none."""
        found = self.there.get(place)
        return "" if found is None else found.id

    def is_fresh(self, group: Group) -> bool:
        """Whether there is a snapshot of these memories, as they are.

        Also where a policy has retired some, or they have expired, and none is new: the snapshot
        keeps what they said. What a person retired, or something took the place of, goes from it.
        """
        found = self.there.get(group.place)
        if found is None:
            return False
        told, sources = told_of(found), sources_of(found)
        if told.get("digest") == group.digest:
            return True
        same = all(sources.get(row.id) == row.content_hash for row in group.rows)
        gone = sources.keys() - {row.id for row in group.rows}
        return same and not told.get("left_out") and all(map(self._stays, gone))

    def orphans(self) -> Iterator[str]:
        """The snapshots all of whose memories were deleted, forgotten, or retired by a person."""
        for memory in self.there.values():
            left = {self.became.get(id, _Source.WRONG) for id in sources_of(memory)}
            if left == {_Source.WRONG}:
                yield memory.id

    def waiting(self, *, done: Iterable[Group], open: Iterable[Group], days: bool) -> Iterator[Row]:
        """The memories that are still to go in.

        Args:
            done: groups whose snapshots say what they say.
            open: groups that snapshots are still to be made of.
            days: snapshots of days are made, so what happened today waits for its end.
        """
        settled = {row.id for group in done for row in group.rows}
        still = {row.id for group in open for row in group.rows}
        today = self.now.date()
        for row in self.rows:
            later = days and row.happened.astimezone(UTC).date() >= today
            if row.id not in settled and (later or row.id in still):
                yield row

    def _stays(self, id: str) -> bool:
        return self.became.get(id) is _Source.PUT_AWAY


def _keyed(table: pa.Table, now: datetime) -> Iterator[tuple[tuple[str, Scope], str]]:
    """Every live memory with the key of a snapshot, by key and scope."""
    named = table.filter(pc.starts_with(table["key"], SNAPSHOT))
    for row in named.to_pylist():
        if is_live(row, now):
            yield (row["key"], Scope(**{level: row[level] for level in SCOPE_LEVELS})), row["id"]


def _became(table: pa.Table) -> dict[str, _Source]:
    columns = (table[name].to_pylist() for name in ("id", "state", "state_reason"))
    return {id: _source(state, reason) for id, state, reason in zip(*columns, strict=True)}


def _source(state: str, reason: str) -> _Source:
    if state in (State.ACTIVE, State.PENDING):
        return _Source.PUT_AWAY
    if state == State.SUPERSEDED:
        return _Source.REPLACED
    in_time = state == State.RETIRED and reason.startswith(_IN_TIME)
    return _Source.PUT_AWAY if in_time else _Source.WRONG
