"""Messages of a session as rows of the table, and back."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from lance_memory.ingest.message import Message, Role
from lance_memory.ingest.sessions.said import Said, event_of, message_id
from lance_memory.record.memory import SAID, Kind, Memory, Scope
from lance_memory.record.times import LATEST

__all__ = ["row_of", "said_in"]

_OWN: Final = "working"
"""Member of the metadata that says what no column does."""


def row_of(
    scope: Scope, said: Said, *, kind: Kind, importance: float, until: datetime | None
) -> dict[str, Any]:
    """The columns of the memory that a message becomes: always under the same id."""
    message = said.message
    return {
        "id": message_id(scope, said),
        "content": message.content,
        **scope.names(),
        "kind": kind,
        "role": str(message.role),
        "actor": message.actor,
        "event_at": message.at,
        "seq": message.seq,
        "importance": importance,
        "created_at": said.noted,
        "expires_at": until,
        "source": SAID,
        "source_ref": event_of(scope, message),
        "metadata": {_OWN: {"number": said.number, "ref": bool(message.ref)}},
    }


def said_in(memories: Iterable[Memory], scope: Scope) -> tuple[Said, ...]:
    """The messages of a session that memories are, by number."""
    found = [_said(memory) for memory in memories if memory.scope == scope]
    return tuple(sorted(found, key=lambda said: said.number))


def _said(memory: Memory) -> Said:
    own = memory.metadata.get(_OWN)
    number, ref = (own.get("number"), own.get("ref")) if isinstance(own, dict) else (0, True)
    return Said(
        number=number if isinstance(number, int) else 0,
        message=Message(
            content=memory.content,
            role=Role(memory.role) if memory.role in set(Role) else Role.USER,
            actor=memory.actor,
            at=memory.happened_at,
            seq=memory.seq,
            ref=memory.source_ref if ref else "",
        ),
        noted=memory.created_at,
        until=memory.expires_at or LATEST,
    )
