"""A key is unique among the live memories of a scope."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import ConflictError
from lance_memory.record.filters import all_of, is_live, is_one_of, live, present
from lance_memory.record.memory import SCOPE_LEVELS
from lance_memory.storage.snapshot import Snapshot

__all__ = ["refuse_taken", "taken"]

_MANY_KEYS = 2_000
"""Beyond as many keys, one pass over the column beats a predicate that lists them."""


def taken(
    snapshot: Snapshot, rows: pa.Table, now: datetime, *, leaving: Collection[str] = ()
) -> dict[str, str]:
    """Which rows would be live with a key that another live memory of their scope has: id → its id.

    The memories `leaving` do not count: the same change takes their rows away.
    """
    will = _live_keys(rows, now)
    keys = sorted({place[0] for place in will.values()})
    if not keys:
        return {}
    one_of = is_one_of("key", keys) if len(keys) <= _MANY_KEYS else present("key")
    columns = ["id", "state", "expires_at", "key", *SCOPE_LEVELS]
    held = snapshot.scan(all_of(live(now), one_of), columns=columns)
    gone = {*leaving, *will}
    places = {i: place for i, place in _live_keys(held, now).items() if i not in gone}
    holder = {place: identifier for identifier, place in places.items()}
    first = {i: holder.setdefault(place, i) for i, place in will.items()}
    return {identifier: other for identifier, other in first.items() if other != identifier}


def refuse_taken(
    snapshot: Snapshot, rows: pa.Table, now: datetime, *, leaving: Collection[str] = ()
) -> None:
    """Refuse rows of which `taken` tells.

    Raises:
        ConflictError: names the key and the memory that has it.
    """
    for identifier, other in taken(snapshot, rows, now, leaving=leaving).items():
        key = rows.filter(pc.equal(rows["id"], identifier))["key"][0].as_py()
        raise ConflictError(
            f"key {key!r} is held by {other}; nothing was written: retire or delete that one first",
            ids=[other],
        )


def _live_keys(rows: pa.Table, now: datetime) -> dict[str, tuple[str, ...]]:
    """Id → key and scope, of the rows that are live and have a key."""
    columns = ["id", "state", "expires_at", "key", *SCOPE_LEVELS]
    return {
        row["id"]: tuple(row[name] for name in ("key", *SCOPE_LEVELS))
        for row in rows.select(columns).to_pylist()
        if row["key"] is not None and is_live(row, now)
    }
