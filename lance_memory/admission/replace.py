"""What an upsert replaces."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from lance_memory.errors import ConflictError
from lance_memory.record.compare import differing
from lance_memory.record.filters import all_of, equals, is_one_of
from lance_memory.record.memory import SCOPE_LEVELS, Relationship, State
from lance_memory.record.rows import patched, relationship_values, superseded, to_memories
from lance_memory.storage import Audit, ChangeSet, Snapshot

__all__ = ["Replacement", "replacement"]

UPDATES = "updates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """`row` takes the place of the rows `old`; `known` is the id that says the same already."""

    row: pa.Table
    old: pa.Table
    known: str = ""

    def change(self, audit: Audit) -> ChangeSet:
        """The new row in, the old ones superseded by it; nothing where it is known."""
        by = self.row["id"][0].as_py() if self.row else ""
        old = superseded(self.old, by=by, reason="updated", now=audit.at)
        return ChangeSet(audit=audit, inserts=self.row, updates=old, looked=True)


def replacement(
    snapshot: Snapshot, row: pa.Table, *, given: AbstractSet[str], now: datetime
) -> Replacement:
    """Find the rows whose key and scope are `row`'s and that have no successor yet.

    Expired ones count: they must not come back later either. Where the one row found lives on and
    agrees in every column that the caller gave, nothing is to be done.

    Raises:
        ConflictError: the caller gave an id, and it is taken.
    """
    values = row.select(["key", *SCOPE_LEVELS]).to_pylist()[0]
    same = [equals(name, value) for name, value in values.items()]
    open_states = is_one_of("state", (State.ACTIVE, State.PENDING, State.CONTRADICTED))
    old = snapshot.scan(all_of(*same, open_states), columns=snapshot.schema.names)
    if len(old) == 1 and _agree(old, row, given, now):
        return Replacement(row=row.slice(0, 0), old=old.slice(0, 0), known=old["id"][0].as_py())
    if "id" in given and len(snapshot.by_ids(row["id"].to_pylist(), columns=["id"])):
        identifier = row["id"][0].as_py()
        raise ConflictError(
            f"id {identifier!r} is taken; upsert makes a new memory: leave the id out",
            ids=[identifier],
        )
    edges = [Relationship(relation=UPDATES, target=i) for i in old["id"].to_pylist()]
    merged = [*row["relationships"][0].as_py(), *relationship_values(edges)]
    column = pa.array([merged], row.schema.field("relationships").type)
    return Replacement(row=patched(row, {"relationships": column}), old=old)


def _agree(old: pa.Table, row: pa.Table, given: AbstractSet[str], now: datetime) -> bool:
    """Whether both say the same in the content, the state and every other column given."""
    one, other = to_memories(old)[0], to_memories(row)[0]
    if one.expires_at is not None and one.expires_at <= now:
        return False
    return not differing(one, other, given | {"content", "state"})
