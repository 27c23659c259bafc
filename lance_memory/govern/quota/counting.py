"""How much of a resource a tenant has, and how much more of it a change set would make."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.govern.quota.limits import Resource
from lance_memory.record.filters import REMEMBERED, all_of, equals, is_one_of, present
from lance_memory.record.memory import Kind, State
from lance_memory.record.rows import EMBEDDING
from lance_memory.record.soundness import FOLLOWED
from lance_memory.storage import ChangeSet, Snapshot

__all__ = ["Amounts", "counted", "grown", "handed_over", "tenants_in"]

Amounts: TypeAlias = dict[Resource, int]

_IN_USE: Final = (str(State.ACTIVE), str(State.PENDING))
_USED: Final = is_one_of("state", _IN_USE)
_PLAIN: Final = ("content", "key", "role", "actor", "source_ref")
_EDGE: Final = ("relation", "target", "note")
_TEXTS: Final = (*_PLAIN, "tags", "relationships", "metadata")
_BATCH: Final = 8_192


def counted(snapshot: Snapshot, tenant: str, resource: Resource) -> int:
    """How much of a resource the tenant has at a version: rows by the indices, bytes by reading.

    What agents are told, their workspace, is none of it: it is bounded by the number of its items,
    and a tenant that is full must be able to change its policies.
    """
    mine = all_of(equals("tenant", tenant), _USED, REMEMBERED)
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


def handed_over(change: ChangeSet, tenant: str) -> int:
    """Bytes of the edges by which a tenant's memories take the place of those that go with them.

    Each "consolidates" or "updates" of a memory that the same change puts out of use, once and
    without its note. They are what it takes to make room: short memories that become one would
    else be longer than they were.
    """
    if not change.updates:
        return 0
    gone = set(_of(change.updates, tenant, in_use=False)["id"].to_pylist())
    if not gone:
        return 0
    fresh = [_of(rows, tenant) for rows in (change.inserts, change.updates) if rows]
    lists = (edges for rows in fresh for edges in rows["relationships"].to_pylist())
    found = {
        (edge["relation"], edge["target"])
        for edges in lists
        for edge in edges or ()
        if edge["relation"] in FOLLOWED and edge["target"] in gone
    }
    return sum(len(text.encode()) for edge in found for text in edge)


def tenants_in(snapshot: Snapshot) -> list[str]:
    """Every tenant of the version that has memories in use, in order."""
    found: set[str] = set()
    for batch in snapshot.batches(all_of(_USED, REMEMBERED), columns=["tenant"], batch_size=_BATCH):
        found.update(pc.unique(batch["tenant"]).to_pylist())
    return sorted(found)


def _columns(resources: Iterable[Resource]) -> list[str]:
    """What has to be read of rows that go."""
    read = {Resource.BYTES: _TEXTS, Resource.VECTORS: (EMBEDDING,)}
    return ["state", "kind", *(column for r in resources for column in read.get(r, ()))]


def _sum(tables: Iterable[pa.Table], tenant: str, resource: Resource) -> int:
    return sum(_measured(rows, tenant, resource) for rows in tables)


def _measured(rows: pa.Table, tenant: str, resource: Resource) -> int:
    mine = _mask(rows, tenant)
    if resource is Resource.VECTORS:
        mine = pc.and_(mine, pc.is_valid(rows[EMBEDDING]))
    if resource is Resource.BYTES:
        return _bytes(rows.select(_TEXTS).filter(mine))
    return int(pc.sum(mine).as_py() or 0)


def _of(rows: pa.Table, tenant: str, *, in_use: bool = True) -> pa.Table:
    return rows.select(["id", "relationships"]).filter(_mask(rows, tenant, in_use=in_use))


def _mask(rows: pa.Table, tenant: str, *, in_use: bool = True) -> pa.ChunkedArray:
    """Which rows are the tenant's, and in use or not."""
    used = pc.is_in(rows["state"], pa.array(_IN_USE))
    counts = pc.not_equal(rows["kind"], str(Kind.WORKSPACE))
    mine = pc.and_(pc.equal(rows["tenant"], tenant), counts)
    return pc.and_(mine, used if in_use else pc.invert(used))


def _bytes(rows: pa.Table) -> int:
    """Of what was written into the rows, in UTF-8: see `Resource`."""
    edges = pc.list_flatten(rows["relationships"])
    texts = [
        *(rows[name] for name in _PLAIN),
        pc.list_flatten(rows["tags"]),
        *(pc.struct_field(edges, name) for name in _EDGE),
    ]
    plain = sum(int(pc.sum(pc.binary_length(text)).as_py() or 0) for text in texts)
    return plain + sum(_json_bytes(text) for text in rows["metadata"].to_pylist())


def _json_bytes(text: str | None) -> int:
    """Of metadata, as compact JSON: the engine writes it in a form of its own."""
    if text is None or text == "{}":
        return 0
    value: Any = json.loads(text)
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(compact.encode()) if value else 0
