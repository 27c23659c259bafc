"""Which memories of an archive a store has already, which clash, and what becomes of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.errors import ConflictError
from lance_memory.record.filters import any_of, equals, live
from lance_memory.record.identity import derived_id
from lance_memory.record.memory import SCOPE_LEVELS, State
from lance_memory.record.rows import FINGERPRINT, patched
from lance_memory.record.sameness import IDENTITY, Register
from lance_memory.storage import Snapshot
from lance_memory.wording import worded

__all__ = ["ImportConflict", "Merge", "OnConflict", "merge", "renamed"]

_BATCH = 65_536
_NARROW = tuple(dict.fromkeys(["id", *FINGERPRINT, *IDENTITY]))


class OnConflict(StrEnum):
    """What to do with a memory whose id or key is taken by another content."""

    REFUSE = "refuse"
    SKIP = "skip"
    FRESH = "fresh"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportConflict:
    """A memory of the archive whose id or key is another's in the store, or that is one there.

    Attributes:
        id: in the archive.
        reason: what is taken, and by what.
        here: what stands for it in the store from now on: a memory that was there, or its own new
            id. Relationships of the archive are made to point there.
        stored: whether it was stored (under `here`, or without its key).
    """

    id: str
    reason: str
    here: str
    stored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """What becomes of the rows of an archive at one version of the store.

    Attributes:
        take: which rows are inserted, bool [n].
        already_there: how many are there as they are.
        ids: id in the archive → id here, where they differ.
        keyless: ids of rows that are stored without their key.
        conflicts: rows that clash, or whose content is there under another id.
    """

    take: NDArray[np.bool_]
    already_there: int = 0
    ids: Mapping[str, str] = field(default_factory=dict)
    keyless: frozenset[str] = frozenset()
    conflicts: tuple[ImportConflict, ...] = ()
    clashes: tuple[str, ...] = ()

    def same_rows(self, other: Merge) -> bool:
        """Whether the same rows are stored, and under the same ids."""
        return (self.ids, self.keyless) == (other.ids, other.keyless) and np.array_equal(
            self.take, other.take
        )

    def refuse_clashes(self) -> None:
        """For `OnConflict.REFUSE`.

        Raises:
            ConflictError: lists the ids that clash.
        """
        if self.clashes:
            reasons = {c.id: c.reason for c in self.conflicts}
            told = "; ".join(f"{i}: {reasons[i]}" for i in self.clashes[:3])
            clash = worded(
                "{n} [memory of the archive clashes|memories of the archive clash]",
                len(self.clashes),
            )
            raise ConflictError(
                f"{clash} with others here ({told}); "
                'nothing was written: import with on_conflict="skip", which keeps what is here, '
                'or "fresh", which stores them beside it',
                ids=self.clashes,
            )


def merge(snapshot: Snapshot, rows: pa.Table, *, on_conflict: OnConflict, now: datetime) -> Merge:
    """Decide what becomes of each row; writes nothing."""
    return _Merging(snapshot, rows.select(list(_NARROW)), on_conflict, now).done()


class _Merging:
    """One decision on its way: rows by position, first by id, then by key and content."""

    def __init__(
        self, snapshot: Snapshot, rows: pa.Table, on_conflict: OnConflict, now: datetime
    ) -> None:
        self._snapshot = snapshot
        self._rows = rows
        self._on_conflict = on_conflict
        self._now = now
        self._take = np.ones(len(rows), np.bool_)
        self._already = 0
        self._ids: dict[str, str] = {}
        self._keyless: set[str] = set()
        self._conflicts: dict[str, ImportConflict] = {}
        self._clashes: list[str] = []

    def done(self) -> Merge:
        self._by_id()
        self._by_sameness()
        return Merge(
            take=self._take,
            already_there=self._already,
            ids=self._ids,
            keyless=frozenset(self._keyless),
            conflicts=tuple(self._conflicts.values()),
            clashes=tuple(dict.fromkeys(self._clashes)),
        )

    def _by_id(self) -> None:
        """Rows whose id is in the store: as they are, or with another content."""
        present = self._present(self._rows["id"])
        if not present:
            return
        taken = pc.is_in(self._rows["id"], pa.array(present, pa.string())).to_numpy()
        clashing = []
        for position, row in self._values(np.flatnonzero(taken)):
            self._take[position] = False
            if present[row["id"]] == _identity(row):
                self._already += 1
            else:
                clashing.append((position, row))
        anew = {row["id"]: _fresh_id(row) for _, row in clashing}
        fresh = self._on_conflict is OnConflict.FRESH
        there = self._present(pa.array(anew.values(), pa.string())) if fresh else {}
        for position, row in clashing:
            self._clash(position, row, fresh=anew[row["id"]] if fresh else "", there=there)

    def _clash(
        self, position: int, row: Mapping[str, Any], *, fresh: str, there: Mapping[str, Any]
    ) -> None:
        """A row whose id is taken by another content."""
        identifier, reason = row["id"], "the id is taken by another content or a later revision"
        self._clashes.append(identifier)
        if fresh:
            self._ids[identifier] = fresh
            self._take[position] = fresh not in there
            self._already += fresh in there
            if fresh in there:
                return
        self._say(identifier, reason, here=fresh or identifier, stored=bool(fresh))

    def _by_sameness(self) -> None:
        """Rows that are new by id, and may be live memories of the store by key or content."""
        alive = pc.is_in(
            self._rows["state"], pa.array([str(State.ACTIVE), str(State.PENDING)])
        ).to_numpy()
        positions = np.flatnonzero(self._take & alive)
        candidates = self._candidates(self._rows.take(pa.array(positions)))
        if not candidates:
            return
        register, hashes = Register(self._now), {r["id"]: r["content_hash"] for r in candidates}
        for row in candidates:
            register.add(row)
        for position, row in self._values(positions):
            # A register knows its rows by id too, and this one's may be taken.
            holder = register.holder(row) if _live(row, self._now) else None
            if holder is not None and hashes[holder["id"]] != row["content_hash"]:
                self._taken_key(position, row, holder["id"])
                continue
            same = register.find({**row, "id": ""}) if _live(row, self._now) else None
            if same is not None:
                self._take[position] = False
                self._already += 1
                self._ids[row["id"]] = same[0]
                self._say(row["id"], same[1], here=same[0], stored=False)

    def _taken_key(self, position: int, row: Mapping[str, Any], holder: str) -> None:
        """A live row whose key a live memory with another content has."""
        identifier, reason = row["id"], f"the key {row['key']!r} is held by {holder}"
        self._clashes.append(identifier)
        if self._on_conflict is OnConflict.FRESH:
            self._keyless.add(identifier)
            here = self._ids.get(identifier, identifier)
            self._say(identifier, f"{reason}; stored without it", here=here, stored=True)
            return
        self._take[position] = False
        self._ids[identifier] = holder
        self._say(identifier, reason, here=holder, stored=False)

    def _say(self, identifier: str, reason: str, *, here: str, stored: bool) -> None:
        self._conflicts[identifier] = ImportConflict(
            id=identifier, reason=reason, here=here, stored=stored
        )

    def _present(self, ids: pa.Array | pa.ChunkedArray) -> dict[str, tuple[Any, ...]]:
        """What the store has under these ids."""
        columns = ["id", *FINGERPRINT, *SCOPE_LEVELS]
        rows = self._snapshot.by_ids(ids.to_pylist(), columns=columns)
        return {row["id"]: _identity(row) for row in rows.to_pylist()}

    def _candidates(self, rows: pa.Table) -> list[dict[str, Any]]:
        """Rows of the store with a key or a content of `rows`, which may be the same memories."""
        if not len(rows):
            return []
        wanted = {name: rows[name].drop_null() for name in ("key", "content_hash")}
        known = any_of(live(self._now), equals("state", State.SUPERSEDED))
        found: list[dict[str, Any]] = []
        for batch in self._snapshot.batches(known, columns=list(IDENTITY), batch_size=_BATCH):
            masks = [pc.is_in(batch[name], values) for name, values in wanted.items()]
            found += batch.filter(reduce(pc.or_, masks)).to_pylist()
        return found

    def _values(self, positions: NDArray[np.intp]) -> list[tuple[int, dict[str, Any]]]:
        rows = self._rows.take(pa.array(positions)).to_pylist()
        return list(zip(positions.tolist(), rows, strict=True))


def renamed(rows: pa.Table, ids: Mapping[str, str], keyless: Collection[str]) -> pa.Table:
    """Rows of an archive under the ids that they have here, and pointing to those."""
    if not ids and not keyless:
        return rows
    values: dict[str, Any] = {}
    own = rows["id"].to_pylist()
    if keyless:
        keys = rows["key"].to_pylist()
        kept = [None if i in keyless else key for i, key in zip(own, keys, strict=True)]
        values["key"] = pa.array(kept, pa.string())
    if ids:
        values["id"] = pa.array([ids.get(i, i) for i in own], pa.string())
        by = [ids.get(i, i) for i in rows["superseded_by"].to_pylist()]
        values["superseded_by"] = pa.array(by, pa.string())
        edges = [
            None
            if e is None
            else [{**edge, "target": ids.get(edge["target"], edge["target"])} for edge in e]
            for e in rows["relationships"].to_pylist()
        ]
        values["relationships"] = pa.array(edges, rows.schema.field("relationships").type)
    return patched(rows, values)


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in (*FINGERPRINT, *SCOPE_LEVELS))


def _live(row: Mapping[str, Any], now: datetime) -> bool:
    return row["expires_at"] is None or row["expires_at"] > now


def _fresh_id(row: Mapping[str, Any]) -> str:
    """The same for the same content, so that importing again finds it."""
    name = "\0".join(str(row[column]) for column in ("id", *FINGERPRINT, *SCOPE_LEVELS))
    return derived_id(name, row["updated_at"])
