"""From what was resolved to rows: new ones, and what changes of those that are there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.ingest.candidate import Candidate
from lance_memory.ingest.resolve.board import Board
from lance_memory.ingest.resolve.held import EXTRACTED, Held
from lance_memory.record.intake import take_in
from lance_memory.record.memory import Scope
from lance_memory.record.rows import EMBEDDING, changed, to_memories
from lance_memory.record.values import converted
from lance_memory.storage import Audit, ChangeSet, Snapshot

__all__ = ["change_of", "fresh_row", "rewritten"]


def fresh_row(
    candidate: Candidate, *, place: int, vector: NDArray[np.float32] | None
) -> dict[str, Any]:
    """The columns of the memory that a candidate becomes, but for how it stands."""
    claim = candidate.claim
    tags = [str(candidate.category), *([claim.attribute] if claim else []), *candidate.tags]
    own = {
        "category": str(candidate.category),
        "claim": None if claim is None else claim.to_json(),
        "domain": candidate.domain,
        "source": candidate.source,
        "place": place,
        "sure": float(candidate.confidence),
    }
    return {
        "id": candidate.id,
        "content": candidate.content,
        **candidate.scope.names(),
        "kind": str(candidate.category.kind),
        "role": str(candidate.role),
        "actor": candidate.actor,
        "tags": list(dict.fromkeys(tags)),
        "importance": candidate.importance / 10,
        "confidence": candidate.confidence,
        "event_at": candidate.event_at,
        "valid_from": candidate.valid_from,
        "valid_to": candidate.valid_to,
        "seq": candidate.seq,
        "source": EXTRACTED,
        "source_ref": candidate.event,
        "metadata": {**candidate.metadata, **{k: v for k, v in own.items() if v not in (None, "")}},
        EMBEDDING: vector,
    }


def change_of(
    snapshot: Snapshot, boards: Sequence[Board], *, audit: Audit, now: datetime
) -> ChangeSet:
    """Everything that is new or different, as one change set."""
    fresh = [_row(held) for board in boards for held in board.fresh]
    old = [held for board in boards for held in board.changed()]
    rows = take_in(fresh, schema=snapshot.schema, scope=Scope(), now=now).rows if fresh else None
    return ChangeSet(audit=audit, inserts=rows, updates=rewritten(snapshot, old, now=now))


def rewritten(snapshot: Snapshot, old: Sequence[Held], *, now: datetime) -> pa.Table | None:
    """The whole rows of stored memories as they stand now, each one revision on."""
    if not old:
        return None
    rows = snapshot.by_ids([held.id for held in old], columns=snapshot.schema.names)
    place = {held.id: held for held in old}
    held_in_order = [place[identifier] for identifier in rows["id"].to_pylist()]
    metadata = [memory.metadata for memory in to_memories(rows.drop_columns([EMBEDDING]))]
    moved = [held.before[:2] != (held.state, held.reason) for held in held_in_order]
    stamps = zip(rows["state_at"].to_pylist(), moved, strict=True)
    columns: dict[str, list[Any]] = {
        "state": [str(held.state) for held in held_in_order],
        "state_reason": [held.reason for held in held_in_order],
        "state_at": [now if new else stamp for stamp, new in stamps],
        "superseded_by": [held.by for held in held_in_order],
        "relationships": [_edges(held) for held in held_in_order],
        "expires_at": [held.expires_at for held in held_in_order],
        "confidence": [held.confidence for held in held_in_order],
    }
    values = {
        name: pa.array(column, snapshot.schema.field(name).type) for name, column in columns.items()
    }
    told = [{**known, **_heard(held)} for known, held in zip(metadata, held_in_order, strict=True)]
    field = snapshot.schema.field("metadata")
    values["metadata"] = _json(told, field)
    return changed(rows, values, now=now)


def _row(held: Held) -> dict[str, Any]:
    row = dict(held.fresh or {})
    row["metadata"] = {**row["metadata"], **_heard(held)}
    return {
        **row,
        "state": str(held.state),
        "state_reason": held.reason,
        "superseded_by": held.by,
        "relationships": list(held.edges),
        "expires_at": held.expires_at,
        "confidence": held.confidence,
    }


def _heard(held: Held) -> dict[str, Any]:
    heard = {"heard": [one.to_json() for one in held.heard]} if held.heard else {}
    return {**heard, **({"settled": held.settled} if held.settled else {})}


def _edges(held: Held) -> list[dict[str, str]]:
    return [{"relation": e.relation, "target": e.target, "note": e.note} for e in held.edges]


def _json(values: list[dict[str, Any]], field: pa.Field) -> pa.Array:
    texts = pa.array(converted("metadata", values), field.type.storage_type)
    return pa.ExtensionArray.from_storage(field.type, texts)
