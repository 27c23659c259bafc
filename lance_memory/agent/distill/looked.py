"""What a distillation looks at: memories of one version, and the snapshots that are there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.agent.distill.fate import FATE, Fate, fates
from lance_memory.agent.distill.group import (
    NARROW,
    SNAPSHOT,
    Group,
    Place,
    Row,
    groups,
    named_in,
    rows_of,
)
from lance_memory.agent.distill.marks import Marks
from lance_memory.agent.distill.options import SnapshotOf
from lance_memory.agent.distill.snapshot import sources_of, told_of
from lance_memory.agent.distill.wanted import Wanted
from lance_memory.record.filters import (
    all_of,
    any_of,
    equals,
    is_one_of,
    live,
    prefixed,
    visible,
)
from lance_memory.record.memory import DISTILLED, SCOPE_LEVELS, Memory, Scope
from lance_memory.record.rows import to_memories
from lance_memory.store import MemoryStore

__all__ = ["Looked", "Sight"]

_NIGHTLY: Final = (SnapshotOf.SESSION, SnapshotOf.DAY)
_ASKED_FOR: Final = (SnapshotOf.TOPIC, SnapshotOf.TAG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Through what a pass looks: a handle at one version and moment, and which memories it means.

    Attributes:
        view: the handle at that version.
        now: the moment.
        kinds: of memories that go in.
        marks: the numbered events, as they were before that version was read.
    """

    view: MemoryStore
    now: datetime
    kinds: tuple[str, ...]
    marks: Marks

    def scan(self, predicate: str | None, *, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of the handle's scope that pass, of every state."""
        within = all_of(self.view._boundary(), predicate)
        return self.view._snapshot().scan(within, columns=columns)

    def rows(self, table: pa.Table) -> list[Row]:
        """Those of `NARROW` rows that may go in, oldest first."""
        return rows_of(table, now=self.now, ceilings=self.marks.ceilings)

    def snapshots(self, predicate: str | None = None) -> dict[Place, Memory]:
        """The visible snapshots that pass, by key and scope."""
        mine = all_of(equals("source", DISTILLED), visible(self.now), predicate)
        return {(m.key or "", m.scope): m for m in to_memories(self.scan(mine))}

    def standing(self, of: Collection[SnapshotOf]) -> int:
        """How many visible snapshots of sessions and days there are that this handle would make."""
        within = self.view.scope
        parts = {
            SnapshotOf.SESSION: all_of(_of(SnapshotOf.SESSION), equals("run", within.run)),
            SnapshotOf.DAY: all_of(
                _of(SnapshotOf.DAY), equals("session", within.session), equals("run", within.run)
            ),
        }
        mine = all_of(equals("source", DISTILLED), visible(self.now))
        asked = any_of(*(f"({part})" for kind, part in parts.items() if kind in of and part))
        return self.view._snapshot().count(all_of(self.view._boundary(), mine, asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Memories of one version, and the snapshots that are there.

    Attributes:
        sight: through what they were seen.
        rows: the memories that may go in, oldest first.
        became: id → what became of it, of every source of a snapshot that is there.
        there: key and scope → the snapshot that is visible.
        taken: key and scope → the id of a live memory that is none, and has a snapshot's key.
        wanted: the sessions and days of which everything is among the rows; None: of all.
    """

    sight: Sight
    rows: Sequence[Row]
    became: Mapping[str, Fate]
    there: Mapping[Place, Memory]
    taken: Mapping[Place, str]
    wanted: Wanted | None = None

    @classmethod
    def everything(cls, sight: Sight) -> Looked:
        """All that the handle sees."""
        table = sight.scan(None, columns=[*NARROW, "kind"])
        chosen = table.filter(pc.is_in(table["kind"], pa.array(list(sight.kinds))))

        def states(ids: Collection[str]) -> pa.Table:
            return table.filter(pc.is_in(table["id"], pa.array(list(ids), pa.string())))

        keyed = prefixed("key", SNAPSHOT)
        rows = sight.rows(chosen)
        return cls._of(sight, rows, there=sight.snapshots(), keyed=keyed, states=states)

    @classmethod
    def some(
        cls,
        sight: Sight,
        rows: Sequence[Row],
        keys: Collection[str],
        *,
        wanted: Wanted | None = None,
        asked_for: bool = False,
    ) -> Looked:
        """Some memories, and the snapshots with these keys.

        Args:
            sight: through what they are seen.
            rows: the memories.
            keys: of snapshots.
            wanted: as in `Looked`.
            asked_for: all snapshots of topics and tags too, of which nobody knows from a memory
                whether it went in.
        """
        keyed = is_one_of("key", keys)
        others = [_of(kind) for kind in _ASKED_FOR] if asked_for else []
        there = sight.snapshots(any_of(keyed, *others))

        def states(ids: Collection[str]) -> pa.Table:
            return sight.view._snapshot().by_ids(ids, columns=FATE)

        return cls._of(sight, rows, there=there, keyed=keyed, states=states, wanted=wanted)

    @classmethod
    def of(cls, sight: Sight, wanted: Wanted, *, asked_for: bool = False) -> Looked:
        """All memories of some sessions and days, and their snapshots."""
        mine = all_of(is_one_of("kind", sight.kinds), wanted.predicate())
        within, every = sight.view.scope, tuple(SnapshotOf)
        rows = [
            row
            for row in sight.rows(sight.scan(mine, columns=NARROW))
            if any(wanted.has(named) for named in named_in(row, every, within=within))
        ]
        return cls.some(sight, rows, wanted.keys(), wanted=wanted, asked_for=asked_for)

    @classmethod
    def _of(
        cls,
        sight: Sight,
        rows: Sequence[Row],
        *,
        there: Mapping[Place, Memory],
        keyed: str,
        states: Callable[[Collection[str]], pa.Table],
        wanted: Wanted | None = None,
    ) -> Looked:
        """With what became of the sources of the snapshots, and who else has their keys."""
        sources = {id for memory in there.values() for id in sources_of(memory)}
        held = sight.scan(all_of(keyed, live(sight.now)), columns=["id", "key", *SCOPE_LEVELS])
        ceilings, now = sight.marks.ceilings, sight.now
        return cls(
            sight=sight,
            rows=rows,
            became=fates(states(sources), kinds=sight.kinds, ceilings=ceilings, now=now),
            there=there,
            taken={place: id for place, id in _keyed(held) if place not in there},
            wanted=wanted,
        )

    def groups(self, of: Collection[SnapshotOf], *, until: date | None) -> Iterator[Group]:
        """The sessions and days whose memories are all among the rows; see `group.groups`."""
        for group in groups(self.rows, of, within=self.sight.view.scope, until=until):
            if self.wanted is None or self.wanted.has(group.named):
                yield group

    def known(self, place: Place) -> str:
        """The id of the snapshot that is there; "" for none."""
        found = self.there.get(place)
        return "" if found is None else found.id

    def is_fresh(self, group: Group) -> bool:
        """Whether there is a snapshot of these memories, as they are.

        Also where a policy has retired some, or they have expired, and none is new: the snapshot
        keeps what they said. What a person retired, or something took the place of, goes from it,
        and what belongs elsewhere by now, such as to another day.
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

    def orphans(self) -> dict[Place, str]:
        """The ids of the snapshots that say what is wrong, and that nothing can be made of anew.

        All of their memories were deleted, or retired by a person; or some of them, and the rest
        is hidden too.
        """
        within = self.sight.view.scope
        named = {n for row in self.rows for n in named_in(row, _NIGHTLY, within=within)}
        full = {(f"{SNAPSHOT}{of}/{name}", scope) for of, name, scope in named}
        found = {}
        for place, memory in self.there.items():
            became = {self.became.get(id, Fate.WRONG) for id in sources_of(memory)}
            hidden = Fate.STANDING not in became and place not in full
            if became == {Fate.WRONG} or (Fate.WRONG in became and hidden):
                found[place] = memory.id
        return found

    def waiting(self, *, done: Iterable[Group], open: Iterable[Group], days: bool) -> Iterator[Row]:
        """The memories that are still to go in.

        Args:
            done: groups whose snapshots say what they say.
            open: groups that snapshots are still to be made of.
            days: snapshots of days are made, so what happened today waits for its end.
        """
        settled = {row.id for group in done for row in group.rows}
        still = {row.id for group in open for row in group.rows}
        today = self.sight.now.date()
        for row in self.rows:
            if row.id not in settled and ((days and row.day >= today) or row.id in still):
                yield row

    def beside(self, some: Iterable[Group], of: Collection[SnapshotOf]) -> list[Group]:
        """The sessions and days that memories of these groups are in too, and that are fresh.

        Those that were looked at already are left out.
        """
        if self.wanted is None:
            return []
        within = self.sight.view.scope
        every = {n for g in some for row in g.rows for n in named_in(row, of, within=within)}
        others = {named for named in every if not self.wanted.has(named)}
        if not others:
            return []
        more = Looked.of(self.sight, Wanted.of(others))
        return [g for g in more.groups(of, until=self.sight.now.date()) if more.is_fresh(g)]

    def _stays(self, id: str) -> bool:
        return self.became.get(id) is Fate.PUT_AWAY


def _of(kind: SnapshotOf) -> str:
    return prefixed("key", f"{SNAPSHOT}{kind}/")


def _keyed(table: pa.Table) -> Iterator[tuple[Place, str]]:
    for row in table.to_pylist():
        yield (row["key"], Scope(**{level: row[level] for level in SCOPE_LEVELS})), row["id"]
