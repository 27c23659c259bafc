"""How much of a resource a tenant has, and how much more of it a change set would make."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.govern.quota.limits import Resource
from lance_memory.record.filters import all_of, equals, is_one_of, present
from lance_memory.record.memory import State
from lance_memory.record.rows import EMBEDDING
from lance_memory.storage import ChangeSet, Snapshot

__all__ = ["Amounts", "counted", "grown", "tenants_in"]

Amounts: TypeAlias = dict[Resource, int]

_IN_USE: Final = (str(State.ACTIVE), str(State.PENDING))
_USED: Final = is_one_of("state", _IN_USE)
_TEXTS: Final = ("content", "metadata")
_BATCH: Final = 8_192


def counted(snapshot: Snapshot, tenant: str, resource: Resource) -> int:
    """How much of a resource the tenant has at a version: rows by the indices, bytes by reading."""
    mine = all_of(equals("tenant", tenant), _USED)
    if resource is Resource.VECTORS:
        return snapshot.count(all_of(mine, present(EMBEDDING)))
    if resource is Resource.BYTES:
        batches = snapshot.batches(mine, columns=_TEXTS, batch_size=_BATCH)
        return sum(_bytes(pa.Table.from_batches([batch])) for batch in batches)
    return snapshot.count(mine)


def grown(
    snapshot: Snapshot, change: ChangeSet, tenants: Collection[str], resources: Collection[Resource]
) -> dict[str, Amounts]:
    """By tenant, how much more of each resource there would be; less is negative.

    Args:
        snapshot: what the change was planned on.
        change: not committed yet.
        tenants: only these.
        resources: only these.
    """
    fresh = [rows for rows in (change.inserts, change.updates) if rows]
    replaced = change.replaced()
    old = []
    if replaced:
        columns = ["tenant", *_columns(resources)]
        old = [snapshot.by_ids(replaced, columns=columns)]
    return {
        tenant: {r: _sum(fresh, tenant, r) - _sum(old, tenant, r) for r in resources}
        for tenant in tenants
    }


def tenants_in(snapshot: Snapshot) -> list[str]:
    """Every tenant of the version that has memories in use, in order."""
    found: set[str] = set()
    for batch in snapshot.batches(_USED, columns=["tenant"], batch_size=_BATCH):
        found.update(pc.unique(batch["tenant"]).to_pylist())
    return sorted(found)


def _columns(resources: Iterable[Resource]) -> list[str]:
    """What has to be read of rows that go."""
    read = {Resource.BYTES: _TEXTS, Resource.VECTORS: (EMBEDDING,)}
    return ["state", *(column for r in resources for column in read.get(r, ()))]


def _sum(tables: Iterable[pa.Table], tenant: str, resource: Resource) -> int:
    return sum(_measured(rows, tenant, resource) for rows in tables)


def _measured(rows: pa.Table, tenant: str, resource: Resource) -> int:
    mine = pc.and_(pc.equal(rows["tenant"], tenant), pc.is_in(rows["state"], pa.array(_IN_USE)))
    if resource is Resource.VECTORS:
        mine = pc.and_(mine, pc.is_valid(rows[EMBEDDING]))
    if resource is Resource.BYTES:
        return _bytes(rows.select(_TEXTS).filter(mine))
    return int(pc.sum(mine).as_py() or 0)


def _bytes(rows: pa.Table) -> int:
    """Of content and metadata; the engine writes JSON in a form of its own, so ours is measured."""
    contents = int(pc.sum(pc.binary_length(rows["content"])).as_py() or 0)
    return contents + sum(_json_bytes(text) for text in rows["metadata"].to_pylist())


def _json_bytes(text: str | None) -> int:
    if text is None or text == "{}":
        return 0
    value: Any = json.loads(text)
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(compact.encode()) if value else 0
