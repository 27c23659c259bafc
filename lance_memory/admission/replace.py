"""What upserts replace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import pyarrow as pa

from lance_memory.errors import ConflictError, RejectedError
from lance_memory.record.compare import differing
from lance_memory.record.filters import all_of, is_live, is_one_of, present
from lance_memory.record.memory import SCOPE_LEVELS, Relationship, State
from lance_memory.record.rows import patched, relationship_values, superseded, to_memories
from lance_memory.record.values import named
from lance_memory.storage import Audit, ChangeSet, Snapshot

__all__ = ["Given", "Replacements", "refuse_twins", "replacements"]

UPDATES = "updates"

_OPEN = (State.ACTIVE, State.PENDING, State.CONTRADICTED)
_MANY_KEYS = 2_000
"""Beyond as many keys, one pass over the column beats a predicate that lists them."""

Place: TypeAlias = tuple[str, ...]
"""Key and scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a caller says of one memory that is to replace another.

    Attributes:
        columns: those that are given.
        expected: the id that is live under the key, "" for none; None: any.
    """

    columns: AbstractSet[str]
    expected: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacements:
    """`rows` take the place of the rows `old`; the successor of each is in `by`.

    `known` has, by their positions, the rows of the batch that say what is there already, and the
    id that says it.
    """

    rows: pa.Table
    old: pa.Table
    by: Sequence[str]
    known: Mapping[int, str]

    def change(self, audit: Audit, gone: pa.Table | None = None) -> ChangeSet:
        """The new rows in, the old ones superseded by them; nothing of what is known.

        Args:
            audit: of the commit.
            gone: rows that are retired in the same commit.

        Raises:
            ConflictError: one of them is replaced as well.
        """
        by = pa.array(self.by, pa.string())
        old = superseded(self.old, by=by, reason="updated", now=audit.at)
        twice = sorted({*old["id"].to_pylist()} & {*(gone["id"].to_pylist() if gone else ())})
        if twice:
            raise ConflictError(
                f"memory {twice[0]} is to be retired, and is replaced; nothing was written: leave "
                "out one of the two",
                ids=twice,
            )
        updates = pa.concat_tables([old, gone]) if gone else old
        return ChangeSet(audit=audit, inserts=self.rows, updates=updates, looked=True)


def replacements(
    snapshot: Snapshot, rows: pa.Table, *, given: Sequence[Given], now: datetime
) -> Replacements:
    """Find the rows whose key and scope are one of `rows`' and that have no successor yet.

    Expired ones count: they must not come back later either. Where the one row found lives on and
    agrees in every column that the caller gave, nothing is to be done.

    Args:
        snapshot: where to look.
        rows: what is to be stored; no two have one key and scope.
        given: what the caller said of each.
        now: decides what has expired.

    Raises:
        ConflictError: the caller gave an id, and it is taken; or another memory than the expected
            one is live under a key.
    """
    places = list(_places(rows))
    old = _standing(snapshot, places)
    whose: dict[Place, list[int]] = {}
    for number, place in enumerate(_places(old)):
        whose.setdefault(place, []).append(number)
    known: dict[int, str] = {}
    merged: list[list[dict[str, Any]]] = []
    by: dict[int, str] = {}
    for number, (place, told) in enumerate(zip(places, given, strict=True)):
        mine = whose.get(place, [])
        before, row = old.take(pa.array(mine, pa.int64())), rows.slice(number, 1)
        if told.expected is not None:
            _refuse_other(before, place[0], told.expected, now)
        if len(mine) == 1 and _agree(before, row, told.columns, now):
            known[number] = before["id"][0].as_py()
            continue
        by.update(dict.fromkeys(mine, row["id"][0].as_py()))
        merged.append(_updating(row, before))
    fresh = rows.filter(pa.array([n not in known for n in range(len(rows))], pa.bool_()))
    _refuse_taken_ids(snapshot, fresh, [g for n, g in enumerate(given) if n not in known])
    column = pa.array(merged, rows.schema.field("relationships").type)
    return Replacements(
        rows=patched(fresh, {"relationships": column}),
        old=old.take(pa.array(list(by), pa.int64())),
        by=tuple(by.values()),
        known=known,
    )


def refuse_twins(rows: pa.Table) -> None:
    """Refuse two rows of one batch that would have the same key in the same scope.

    Raises:
        RejectedError: names them.
    """
    first: dict[Place, int] = {}
    for number, place in enumerate(_places(rows)):
        other = first.setdefault(place, number)
        if other != number:
            raise RejectedError(
                f"{named([other, number])}: both have the key {place[0]!r}; give each its own",
                rows=[other, number],
            )


def _places(rows: pa.Table) -> Iterator[Place]:
    columns = (rows[name].to_pylist() for name in ("key", *SCOPE_LEVELS))
    return zip(*columns, strict=True)


def _standing(snapshot: Snapshot, places: Sequence[Place]) -> pa.Table:
    """The rows that have one of these keys in one of these scopes, and no successor."""
    keys = sorted({place[0] for place in places})
    named_so = is_one_of("key", keys) if len(keys) <= _MANY_KEYS else present("key")
    levels = [
        is_one_of(level, sorted(names))
        for number, level in enumerate(SCOPE_LEVELS, start=1)
        if len(names := {place[number] for place in places}) == 1
    ]
    predicate = all_of(named_so, *levels, is_one_of("state", _OPEN))
    found = snapshot.scan(predicate, columns=snapshot.schema.names)
    wanted = set(places)
    return found.filter(pa.array([place in wanted for place in _places(found)], pa.bool_()))


def _updating(row: pa.Table, old: pa.Table) -> list[dict[str, Any]]:
    """The relationships of a row, and those to what it takes the place of."""
    edges = [Relationship(relation=UPDATES, target=i) for i in sorted(old["id"].to_pylist())]
    return [*row["relationships"][0].as_py(), *relationship_values(edges)]


def _refuse_taken_ids(snapshot: Snapshot, rows: pa.Table, given: Sequence[Given]) -> None:
    ids = rows["id"].to_pylist()
    chosen = [i for i, told in zip(ids, given, strict=True) if "id" in told.columns]
    taken = snapshot.by_ids(chosen, columns=["id"])["id"].to_pylist() if chosen else []
    if taken:
        raise ConflictError(
            f"id {taken[0]!r} is taken; upsert makes a new memory: leave the id out", ids=taken
        )


def _refuse_other(old: pa.Table, key: str, expected: str, now: datetime) -> None:
    held = [row["id"] for row in old.to_pylist() if is_live(row, now)]
    if held != ([expected] if expected else []):
        found = held[0] if held else "none"
        raise ConflictError(
            f"the live memory of the key {key!r} is {found}, not {expected or 'none'}; nothing was "
            "written: read it again",
            ids=held,
        )


def _agree(old: pa.Table, row: pa.Table, given: AbstractSet[str], now: datetime) -> bool:
    """Whether both say the same in the content, the state and every other column given."""
    one, other = to_memories(old)[0], to_memories(row)[0]
    if one.expires_at is not None and one.expires_at <= now:
        return False
    return not differing(one, other, given | {"content", "state"})
