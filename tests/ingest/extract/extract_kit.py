"""What the tests of extraction share: messages, and how they are read."""

from __future__ import annotations

from datetime import UTC, datetime

from lance_memory.ingest.extract import Reading
from lance_memory.ingest.message import Conversation, Message, Role
from lance_memory.record.memory import Scope

NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)
SCOPE = Scope(tenant="t", user="u", session="s")


def reading(known=tuple):
    return Reading(job="job", now=NOON, known=known)


def talk(*contents, source="", **fields):
    """Messages of the user; ("assistant", text) says another role."""
    pairs = [one if isinstance(one, tuple) else ("user", one) for one in contents]
    messages = tuple(
        Message(content=text, role=Role(role), at=NOON, **fields) for role, text in pairs
    )
    return Conversation(messages=messages, scope=SCOPE, source=source)
