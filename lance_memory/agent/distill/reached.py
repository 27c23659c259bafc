"""Up to where a pass has looked, so that the next one reads what can have changed since.

What can: sessions and days of memories that were written since, of which the log names the versions
and the table the files; of memories that have expired since; of the day that was not over then; of
events that something was missing before; and what was left unmade. Where that does not tell
everything - memories were deleted, too much has happened, the history is another one - there is
nothing for it but to read all again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.agent.distill.group import NARROW, SNAPSHOT, Group, Named, named_in, row_of
from lance_memory.agent.distill.looked import Looked, Sight
from lance_memory.agent.distill.options import DistillOptions, SnapshotOf
from lance_memory.agent.distill.wanted import Wanted
from lance_memory.errors import NotFoundError, StorageError
from lance_memory.record.filters import (
    Filter,
    all_of,
    any_of,
    beyond,
    equals,
    expired_by,
    is_one_of,
    learned_at,
    none_of,
)
from lance_memory.record.memory import DISTILLED, SCOPE_LEVELS, Scope, State
from lance_memory.record.times import parse_instant
from lance_memory.storage import LogEntry, history
from lance_memory.store import MemoryStore

__all__ = ["Reached"]

_SPACE: Final = "distill"
"""Of the ledger. What is under it tells versions, times and numbers, and no name."""

_FORM: Final = 1
"""Of the notes; those of another form are not found."""

_LOOK: Final = 1_000
"""Versions in between whose log is read, 0.5 ms each; of more, all is read again."""

_FEW: Final = 5_000
"""Memories that are read sooner than it is found out which of them matter."""

_MOST_OPEN: Final = 200
"""Groups that a pass may leave open; with more, the next one begins where this one did."""

_MOST_WANTED: Final = 2_000
"""Sessions and days that are asked for by name; of more, all is read."""

_STILL: Final = frozenset(
    [
        *("add", "approve", "archive", "consolidate", "embed", "expire", "hibernate", "ingest"),
        *("promote", "reject", "retain", "retire", "revoke", "share", "supersede", "unretire"),
        "upsert",
    ]
)
"""Writes that leave every memory that was there in its day."""

_MOVING: Final = frozenset(["answer", "import", "overlay", "revert", "rollback", "update"])
"""Writes that may not. What is in neither set changes rows in ways that their files do not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Where a pass that left nothing unseen has looked.

    Attributes:
        version: that it read.
        write: what made it, so that the version of another history is told from it.
        fragment: the greatest number of a fragment of it; what is written later has greater ones.
        at: its moment.
        open: of each group that it left unmade, when one of the memories was learned.
        ceilings: the tenants, as hashes, of whom not everything could go in → up to where it could.
    """

    version: int
    write: str
    fragment: int
    at: datetime
    open: tuple[datetime, ...] = ()
    ceilings: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, store: MemoryStore, options: DistillOptions) -> Reached | None:
        """What the last pass through such a handle has noted; asking makes no ledger."""
        ledger = store._whole_ledger()
        raw = ledger.get(_SPACE, _key(store, options)) if store._beside.used else None
        if raw is None:
            return None
        told = json.loads(raw)
        times = {"at": parse_instant(told["at"]), "open": tuple(map(parse_instant, told["open"]))}
        return cls(**{**told, **times})

    @classmethod
    def of(cls, sight: Sight, left: Collection[Group]) -> Reached | None:
        """After a pass that left these groups unmade; None: it cannot be noted, as of too many."""
        view = sight.view
        if len(left) > _MOST_OPEN:
            return None
        try:
            write = _told(history.entry(view._table, view.version))
        except (NotFoundError, StorageError):  # cleaned up meanwhile, or damaged
            return None
        return cls(
            version=view.version,
            write=write,
            fragment=max(view._snapshot().fragment_ids, default=-1),
            at=sight.now,
            open=tuple(sorted({group.rows[-1].created for group in left})),
            ceilings={_hashed(tenant): up_to for tenant, up_to in sight.marks.ceilings.items()},
        )

    def note(self, store: MemoryStore, options: DistillOptions) -> None:
        """Note it for the next pass; one that does not find it reads more, and makes the same."""
        with suppress(StorageError):  # the snapshots are made, whatever becomes of the note
            store._whole_ledger().put(_SPACE, _key(store, options), self._raw())

    def looked(self, sight: Sight, options: DistillOptions) -> Looked | None:
        """What can have changed since; None: that cannot be told, or is not worth it."""
        if sight.now < self.at or is_small(sight):
            return None
        news = _News.between(sight, self)
        if news is None:
            return None
        of = tuple(SnapshotOf(one) for one in options.of)
        named, lost = _Seeds(sight=sight, of=of).named([*news.tables, self._due(sight, of)])
        wanted = Wanted.of(named)
        if len(wanted) > _MOST_WANTED:
            return None
        return Looked.of(sight, wanted, asked_for=lost)

    def _due(self, sight: Sight, of: Collection[SnapshotOf]) -> pa.Table:
        """The memories that time has changed since, or that were left."""
        known = {_hashed(tenant): tenant for tenant in sight.marks.contiguous}
        held = [beyond(known[name], n) for name, n in self.ceilings.items() if name in known]
        ended = all_of(expired_by(sight.now), none_of(expired_by(self.at)))
        kinds = any_of(is_one_of("kind", sight.kinds), equals("source", DISTILLED))
        due = [f"({ended})", learned_at(self.open), *held]
        if SnapshotOf.DAY in of:
            day = datetime.combine(self.at.date(), time(), UTC)
            due.append(str(Filter(states="any", since=day).predicate(None)))
        return sight.scan(all_of(kinds, any_of(*due)), columns=_COLUMNS)

    def _raw(self) -> bytes:
        told = {
            "version": self.version,
            "write": self.write,
            "fragment": self.fragment,
            "at": self.at.isoformat(),
            "open": [moment.isoformat() for moment in self.open],
            "ceilings": dict(self.ceilings),
        }
        return json.dumps(told).encode()


_COLUMNS: Final = (*NARROW, "kind", "run", "key", "revision")


def is_small(sight: Sight) -> bool:
    """Whether everything that the handle sees is soon read."""
    return sight.view._snapshot().count(sight.view._boundary()) <= _FEW


@dataclass(frozen=True, slots=True, kw_only=True)
class _News:
    """The rows that were written since, as they are and, where one may have moved, as they were."""

    tables: tuple[pa.Table, ...] = ()

    @classmethod
    def between(cls, sight: Sight, reached: Reached) -> _News | None:
        """Since then; None: it cannot be told."""
        view = sight.view
        entries = _entries(view, reached)
        if entries is None:
            return None
        mine = [entry for entry in entries if _concerns(entry, view.scope)]
        if any(entry.operation not in _STILL | _MOVING or entry.deleted for entry in mine):
            return None
        if not mine:
            return cls()
        new = _written(sight, reached.fragment)
        if not any(entry.operation in _MOVING for entry in mine):
            return cls(tables=(new,))
        ids = new.filter(pc.greater(new["revision"], 1))["id"].to_pylist()
        try:
            was = view._table.at(reached.version).by_ids(ids, columns=_COLUMNS)
        except (NotFoundError, StorageError):  # cleaned up: nobody knows in which days they were
            return cls(tables=(new,)) if not ids else None
        return cls(tables=(new, was))


def _entries(view: MemoryStore, reached: Reached) -> list[LogEntry] | None:
    """What was done since; None: too much, or that version is none of this history."""
    newest = view.version
    many = newest - reached.version
    if not 0 <= many <= _LOOK:
        return None
    found: list[LogEntry] = []
    try:
        for entry in history.entries(view._table):
            if entry.version < reached.version:
                break
            if entry.version <= newest:
                found.append(entry)
    except (NotFoundError, StorageError):  # the log has a hole
        return None
    if len(found) != many + 1 or _told(found[-1]) != reached.write:
        return None
    return found[:-1]


def _concerns(entry: LogEntry, scope: Scope) -> bool:
    if entry.upkeep and entry.operation in history.PHYSICAL:
        return False
    return not entry.scopes or any(map(scope.holds, entry.scopes))


def _written(sight: Sight, after: int) -> pa.Table:
    """The rows of the handle's scope in later fragments: those written since, and merged ones."""
    snapshot = sight.view._snapshot()
    table = snapshot.of_fragments(
        [number for number in snapshot.fragment_ids if number > after], columns=_COLUMNS
    )
    for level, name in sight.view.scope.given().items():
        table = table.filter(pc.equal(table[level], name))
    return table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seeds:
    """From rows that may have changed to the sessions and days that they are of."""

    sight: Sight
    of: tuple[SnapshotOf, ...]

    def named(self, tables: Iterable[pa.Table]) -> tuple[set[Named], bool]:
        """The sessions and days, and whether a memory may be gone that others were made from."""
        found: set[Named] = set()
        lost = False
        for table in tables:
            for values in table.to_pylist():
                if values["source"] == DISTILLED:
                    found.update(self._of_snapshot(values))
                elif values["kind"] in self.sight.kinds or values["revision"] > 1:
                    found.update(named_in(row_of(values), self.of, within=self.sight.view.scope))
                    lost |= values["state"] != State.ACTIVE
        return found, lost

    def _of_snapshot(self, values: Mapping[str, Any]) -> Iterator[Named]:
        for of in self.of:
            head = f"{SNAPSHOT}{of}/"
            name = (values["key"] or "").removeprefix(head)
            if name != values["key"] and (of is SnapshotOf.SESSION or _is_day(name)):
                yield of, name, Scope(**{level: values[level] for level in SCOPE_LEVELS})


def _key(store: MemoryStore, options: DistillOptions) -> str:
    """The same for handles of one scope that make the same of the same kinds."""
    of, kinds = sorted(map(str, options.of)), sorted(map(str, options.kinds))
    told = [_FORM, store.scope.names(), of, kinds, options.min_sources]
    return _hashed(json.dumps(told))


def _is_day(name: str) -> bool:
    with suppress(ValueError):
        return date.fromisoformat(name).isoformat() == name
    return False


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _told(entry: LogEntry) -> str:
    return f"{entry.operation} {entry.op_id} {entry.at.isoformat()}"
