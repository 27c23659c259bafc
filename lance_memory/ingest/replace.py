"""What an upsert replaces."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import pyarrow as pa

from lance_memory.record.filters import equals, is_one_of
from lance_memory.record.memory import SCOPE_LEVELS, Relationship, State
from lance_memory.record.rows import EMBEDDING, patched, relationship_values
from lance_memory.storage import Snapshot

__all__ = ["Replacement", "replacement"]

UPDATES = "updates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """`row` takes the place of the rows `old`; `known` is the id that says the same already."""

    row: pa.Table
    old: pa.Table
    known: str = ""


def replacement(snapshot: Snapshot, row: pa.Table, *, given: AbstractSet[str]) -> Replacement:
    """Find the rows whose key and scope are `row`'s and that have no successor yet.

    Expired ones count: they must not come back later either. Where the one row found agrees in
    every column that the caller gave, nothing is to be done.
    """
    values = row.select(["key", *SCOPE_LEVELS]).to_pylist()[0]
    same = [equals(name, value) for name, value in values.items()]
    open_states = is_one_of("state", (State.ACTIVE, State.PENDING, State.CONTRADICTED))
    old = snapshot.scan(" AND ".join([*same, open_states]), columns=snapshot.schema.names)
    columns = sorted((given | {"content_hash"}) - {"id", EMBEDDING})
    if len(old) == 1 and old.select(columns).to_pylist() == row.select(columns).to_pylist():
        return Replacement(row=row.slice(0, 0), old=old.slice(0, 0), known=old["id"][0].as_py())
    edges = [Relationship(relation=UPDATES, target=i) for i in old["id"].to_pylist()]
    merged = [*row["relationships"][0].as_py(), *relationship_values(edges)]
    column = pa.array([merged], row.schema.field("relationships").type)
    return Replacement(row=patched(row, {"relationships": column}), old=old)
