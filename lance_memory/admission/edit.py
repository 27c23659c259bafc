"""An update in place: the same memory, one revision on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from lance_memory.errors import ConflictError, InvalidInputError
from lance_memory.record.compare import differing
from lance_memory.record.intake import Fields, take_in
from lance_memory.record.memory import SCOPE_LEVELS, Scope
from lance_memory.record.rows import changed, to_memories
from lance_memory.storage import Snapshot, refuse_taken

__all__ = ["check_changes", "edited", "refuse_changed"]

_CHANGEABLE = (Fields.__annotations__.keys() | {"content"}) - {"id", "state", *SCOPE_LEVELS}


def check_changes(values: Mapping[str, Any]) -> None:
    """Refuse columns that never change, or that other verbs change.

    Raises:
        InvalidInputError: names them, or says that nothing is to be changed.
    """
    fixed = sorted(values.keys() - _CHANGEABLE)
    if fixed:
        raise InvalidInputError(
            f"update cannot change {', '.join(fixed)}; a state changes through retire, unretire "
            "and supersede, and id and scope stay"
        )
    if not values:
        raise InvalidInputError("update changes nothing; give at least one column")


def edited(
    snapshot: Snapshot, old: pa.Table, values: Mapping[str, Any], *, scope: Scope, now: datetime
) -> pa.Table | None:
    """The row `old` with `values`, as its next revision; None where they change nothing.

    Raises:
        RejectedError: a value is malformed.
        ConflictError: the row would be live with a key that another memory has.
    """
    merged = {**old.drop_columns(["content_hash"]).to_pylist()[0], **values}
    new = take_in([merged], schema=snapshot.schema, scope=scope, now=now).rows
    if not differing(to_memories(old)[0], to_memories(new)[0]):
        return None
    refuse_taken(snapshot, new, now)
    return changed(new, {}, now=now)


def refuse_changed(old: pa.Table, revision: int | None) -> None:
    """Refuse to change a memory that has another revision than the one that was read.

    Raises:
        ConflictError: it has another.
    """
    id, found = old["id"][0].as_py(), old["revision"][0].as_py()
    if revision is not None and found != revision:
        raise ConflictError(
            f"memory {id} has revision {found} by now, not {revision}; nothing was written: read "
            "it again",
            ids=[id],
        )
