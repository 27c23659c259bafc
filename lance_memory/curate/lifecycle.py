"""Supersede, retire and unretire, as change sets."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.curate.merge import successor_row
from lance_memory.curate.transform.protocol import Derived
from lance_memory.errors import ConflictError
from lance_memory.record.identity import new_id
from lance_memory.record.intake import take_in
from lance_memory.record.memory import Scope, State
from lance_memory.record.rows import EMBEDDING, restored, retired, superseded, to_memories
from lance_memory.storage import Audit, ChangeSet, Snapshot, refuse_taken

__all__ = ["retirement", "reversal", "supersession"]


def supersession(
    sources: pa.Table,
    derived: Derived,
    *,
    vector: NDArray[np.float32],
    relation: str,
    scope: Scope,
    audit: Audit,
) -> ChangeSet:
    """N sources get one successor.

    Raises:
        ConflictError: a source is superseded or retired already.
    """
    _refuse(sources, {State.SUPERSEDED, State.RETIRED}, "supersede")
    members = to_memories(sources.drop_columns([EMBEDDING]))
    members.sort(key=lambda memory: (memory.happened_at, memory.id))
    identifier = new_id(audit.at)
    row: dict[str, Any] = successor_row(
        members, derived, identifier=identifier, now=audit.at, relation=relation
    )
    row[EMBEDDING] = vector
    reason = audit.reason or "superseded"
    return ChangeSet(
        audit=audit,
        inserts=take_in([row], schema=sources.schema, scope=scope, now=audit.at).rows,
        updates=superseded(sources, by=identifier, reason=reason, now=audit.at),
    )


def retirement(rows: pa.Table, *, audit: Audit) -> ChangeSet:
    """Hide memories without a successor; those that are retired stay as they are.

    Raises:
        ConflictError: one is superseded.
    """
    _refuse(rows, {State.SUPERSEDED}, "retire")
    others = rows.filter(pc.not_equal(rows["state"], str(State.RETIRED)))
    return ChangeSet(audit=audit, updates=retired(others, reason=audit.reason, now=audit.at))


def reversal(snapshot: Snapshot, rows: pa.Table, *, audit: Audit) -> ChangeSet:
    """Make retired memories active again.

    Raises:
        ConflictError: one is not retired, or its key was given to another memory since.
    """
    _refuse(rows, set(State) - {State.RETIRED}, "unretire")
    active = restored(rows, reason=audit.reason, now=audit.at)
    refuse_taken(snapshot, active, audit.at)
    return ChangeSet(audit=audit, updates=active)


def _refuse(rows: pa.Table, states: AbstractSet[State], action: str) -> None:
    columns = rows["id"].to_pylist(), rows["state"].to_pylist()
    bad = [(i, state) for i, state in zip(*columns, strict=True) if state in states]
    if bad:
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise ConflictError(
            f"cannot {action} {bad[0][0]}: it is {bad[0][1]}{more}; nothing was written",
            ids=[i for i, _ in bad],
        )
