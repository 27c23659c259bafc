"""Memories as Arrow rows: to and from values, and the few changes that a row goes through.

Rows are changed column by column, so a pass over 20,000 memories never builds 20,000 objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.record.memory import Kind, Memory, Relationship, State

__all__ = [
    "EMBEDDING",
    "FINGERPRINT",
    "Fingerprint",
    "changed",
    "embeddings",
    "fixed_texts",
    "one_array",
    "patched",
    "relationship_values",
    "repeated",
    "restored",
    "retired",
    "superseded",
    "to_memories",
    "valid_vectors",
    "vector_array",
    "with_vectors",
]

EMBEDDING = "embedding"
_SCORES = ("importance", "confidence", "quality")

FINGERPRINT = ("revision", "updated_at", "content_hash")
"""The columns that name one content of a row for good. A revision alone does not: after a rollback
the same number is given again; the hash tells them apart should a clock stand still."""

Fingerprint: TypeAlias = tuple[int, datetime, str]


def to_memories(rows: pa.Table) -> list[Memory]:
    """The rows as values, in order; `embedding` where that column was read."""
    vectors = embeddings(rows) if EMBEDDING in rows.column_names else None
    plain = rows.drop_columns([EMBEDDING]) if vectors is not None else rows
    present = valid_vectors(rows) if vectors is not None else None
    memories = []
    for i, row in enumerate(plain.to_pylist()):
        for name in _SCORES:
            row[name] = _as_written(row[name])
        row["kind"] = Kind(row["kind"])
        row["state"] = State(row["state"])
        row["metadata"] = json.loads(row["metadata"] or "{}")
        row["tags"] = tuple(row["tags"] or ())
        row["relationships"] = tuple(
            Relationship(relation=r["relation"], target=r["target"], note=r["note"] or "")
            for r in row["relationships"] or ()
        )
        if vectors is not None and present is not None and present[i]:
            row[EMBEDDING] = vectors[i]
        memories.append(Memory(**row))
    return memories


@lru_cache(maxsize=4_096)
def _as_written(score: float | None) -> float | None:
    """A float32 as the shortest number that is stored as it: 0.9, and not 0.8999999761581421."""
    return None if score is None else float(str(np.float32(score)))


def embeddings(rows: pa.Table) -> NDArray[np.float32]:
    """The embedding column, float32 [n, d]; rows of zeros where a memory has none."""
    column = one_array(rows[EMBEDDING])
    dimension = column.type.list_size
    filled = np.zeros((len(column), dimension), dtype=np.float32)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    filled[valid] = column.drop_null().flatten().to_numpy().reshape(-1, dimension)
    return filled


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array; copied only where it has several chunks."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def valid_vectors(rows: pa.Table) -> NDArray[np.bool_]:
    """Which rows have an embedding, bool [n]."""
    column = rows[EMBEDDING]
    if not column.null_count:
        return np.ones(len(column), dtype=np.bool_)
    return np.asarray(column.is_valid().to_numpy(), dtype=np.bool_)


def vector_array(
    vectors: NDArray[np.float32], *, valid: NDArray[np.bool_] | None = None
) -> pa.FixedSizeListArray:
    """Float32 [n, d] as the type of the embedding column; null where `valid` [n] is false."""
    flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel())
    mask = None if valid is None else pa.array(~valid)
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1], mask=mask)


def with_vectors(
    rows: pa.Table,
    vectors: NDArray[np.float32],
    *,
    valid: NDArray[np.bool_],
    schema: pa.Schema,
) -> pa.Table:
    """`rows` with the vectors float32 [n, d] of another model, null where not `valid`.

    Args:
        rows: whole rows.
        vectors: one for each row.
        valid: which rows have one, bool [n].
        schema: of a table of that model.
    """
    columns = [
        vector_array(vectors, valid=valid) if name == EMBEDDING else rows[name]
        for name in schema.names
    ]
    return pa.table(columns, schema=schema)


def patched(rows: pa.Table, values: Mapping[str, Any]) -> pa.Table:
    """`rows` with whole columns replaced: a scalar for all rows, or an array of them."""
    for name, value in values.items():
        field = rows.schema.field(name)
        ready = isinstance(value, pa.Array | pa.ChunkedArray)
        column = value if ready else repeated(value, field.type, len(rows))
        rows = rows.set_column(rows.schema.get_field_index(name), field, column)
    return rows


def changed(rows: pa.Table, values: Mapping[str, Any], *, now: datetime) -> pa.Table:
    """`patched`, as one more revision of each row.

    `updated_at` moves forward even under a clock that does not, so that a revision and its
    time name one content for good.
    """
    tick = pa.scalar(1, pa.duration("us"))
    later = pc.add(rows["updated_at"], tick)
    present = pa.scalar(now, rows.schema.field("updated_at").type)
    stamp = pc.if_else(pc.less(later, present), present, later)
    bumped = {"revision": pc.add(rows["revision"], 1), "updated_at": stamp}
    return patched(rows, {**values, **bumped})


def superseded(rows: pa.Table, *, by: str | pa.Array, reason: str, now: datetime) -> pa.Table:
    """The rows with a successor `by` (one id, or one for each row)."""
    values = {"superseded_by": by, **_state(State.SUPERSEDED, reason, now)}
    return changed(rows, values, now=now)


def retired(rows: pa.Table, *, reason: str, now: datetime) -> pa.Table:
    """The rows hidden without a successor."""
    return changed(rows, _state(State.RETIRED, reason, now), now=now)


def restored(rows: pa.Table, *, reason: str, now: datetime) -> pa.Table:
    """The rows active again, without a successor."""
    values = {"superseded_by": None, **_state(State.ACTIVE, reason, now)}
    return changed(rows, values, now=now)


def _state(state: State, reason: str, now: datetime) -> dict[str, Any]:
    return {"state": str(state), "state_at": now, "state_reason": reason}


def fixed_texts(data: bytes, width: int) -> pa.Array:
    """ASCII texts that are all of one width, as a column."""
    ends = np.arange(0, len(data) + 1, width, dtype=np.int32)
    return pa.StringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(data))


def repeated(value: Any, kind: pa.DataType, size: int) -> pa.Array:
    """An array of `size` times `value`."""
    if value is None:
        return pa.nulls(size, kind)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array([value] * size, kind.storage_type))
    if pa.types.is_nested(kind):
        return pa.array([value] * size, kind)
    return pa.repeat(pa.scalar(value, kind), size)


def relationship_values(edges: Iterable[Relationship]) -> list[dict[str, str]]:
    """Relationships as the values of their column."""
    return [{"relation": e.relation, "target": e.target, "note": e.note} for e in edges]
