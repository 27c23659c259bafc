"""Is it new? The same memory added twice is one memory.

Two rows are the same memory when they have the same id; or the same key in the same scope,
while the first is live; or the same content, actor, role and event time in the same scope, while
the first is live and has no other key. With an event time the rows are one event, which stays
known also after it was consolidated away: importing a conversation again stores nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import ConflictError
from lance_memory.ingest.known import KnownContents
from lance_memory.record.filters import any_of, is_live, is_one_of
from lance_memory.record.intake import Taken
from lance_memory.record.memory import SCOPE_LEVELS, State
from lance_memory.record.rows import one_array
from lance_memory.storage import Snapshot

__all__ = ["Admitted", "admit"]

_IDENTITY = (
    *("id", "key", "content_hash", "actor", "role", "event_at"),
    *SCOPE_LEVELS,
    *("state", "expires_at"),
)
_FEW = 200
"""Up to as many rows, their hashes are listed in a predicate; beyond, columns are compared."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """`rows` are new; `known` maps the other positions to (id that is there, reason)."""

    rows: pa.Table
    known: Mapping[int, tuple[str, str]]


def admit(
    snapshot: Snapshot, taken: Taken, *, known_contents: KnownContents, now: datetime
) -> Admitted:
    """Part the rows that are new from the ones that `snapshot`, or the batch itself, holds.

    Raises:
        ConflictError: an id of the batch is taken by another content.
    """
    rows = taken.rows
    if not len(rows):
        return Admitted(rows=rows, known={})
    named = "id" in taken.given or rows["key"].null_count < len(rows)
    look = named or known_contents.may_hold(snapshot, rows)
    candidates = _candidates(snapshot, taken) if look else []
    if not candidates and _all_distinct(rows):
        return Admitted(rows=rows, known={})
    register = _Register(now)
    for row in candidates:
        register.add(row)
    known: dict[int, tuple[str, str]] = {}
    for i, row in enumerate(rows.select(list(_IDENTITY)).to_pylist()):
        found = register.find(row)
        if found is None:
            register.add(row)
        else:
            known[i] = found
    if not known:
        return Admitted(rows=rows, known={})
    keep = pa.array([i not in known for i in range(len(rows))], pa.bool_())
    return Admitted(rows=rows.filter(keep), known=known)


def _candidates(snapshot: Snapshot, taken: Taken) -> list[Row]:
    """The rows of the table that share an id, a key or a content hash with the batch."""
    rows, columns = taken.rows, list(_IDENTITY)
    names = [name for name in ("id", "key") if name in taken.given] + ["content_hash"]
    wanted = {name: one_array(rows[name].drop_null()) for name in names}
    if len(rows) <= _FEW:
        parts = [is_one_of(n, values.to_pylist()) for n, values in wanted.items() if len(values)]
        few: list[Row] = snapshot.scan(any_of(*parts), columns=columns).to_pylist()
        return few
    found: list[Row] = []
    for batch in snapshot.batches(None, columns=columns, batch_size=65_536):
        masks = [pc.is_in(batch[name], values) for name, values in wanted.items()]
        found += batch.filter(reduce(pc.or_, masks)).to_pylist()
    return found


def _all_distinct(rows: pa.Table) -> bool:
    def distinct(name: str) -> bool:
        values = rows[name].drop_null()
        return bool(pc.count_distinct(values).as_py() == len(values))

    return distinct("content_hash") and distinct("key")


class _Register:
    """The memories that are known so far, by each of their identities."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._by_id: dict[str, Row] = {}
        self._by_key: dict[tuple[Any, ...], Row] = {}
        self._by_content: dict[tuple[Any, ...], Row] = {}

    def add(self, row: Row) -> None:
        self._by_id[row["id"]] = row
        if is_live(row, self._now):
            if row["key"] is not None:
                self._by_key.setdefault(_key(row), row)
            self._add_content(row)
        elif row["event_at"] is not None and row["state"] == State.SUPERSEDED:
            self._add_content(row)

    def _add_content(self, row: Row) -> None:
        """One without a key is the same as any; one with a key only as those with that key."""
        for key in {None, row["key"]}:
            self._by_content.setdefault((key, *_content(row)), row)

    def find(self, row: Row) -> tuple[str, str] | None:
        same = self._by_id.get(row["id"])
        if same is not None:
            if any(same[name] != row[name] for name in ("content_hash", *SCOPE_LEVELS)):
                raise ConflictError(
                    f"id {row['id']!r} is taken by a memory with another content or scope; "
                    "change it with update(), or add under another id",
                    ids=[row["id"]],
                )
            return same["id"], "a memory with this id and content is there"
        if row["key"] is not None:
            same = self._by_key.get(_key(row))
            if same is not None:
                return same["id"], "a live memory with this key is there"
        same = self._by_content.get((row["key"], *_content(row)))
        return (same["id"], f"the same content is there ({same['state']})") if same else None


def _key(row: Row) -> tuple[Any, ...]:
    return (row["key"], *(row[level] for level in SCOPE_LEVELS))


def _content(row: Row) -> tuple[Any, ...]:
    levels: Iterable[Any] = (row[level] for level in SCOPE_LEVELS)
    return (row["content_hash"], row["actor"], row["role"], row["event_at"], *levels)
