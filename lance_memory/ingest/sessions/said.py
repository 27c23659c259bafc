"""A message of a session and the values of one, as they are kept, and what they are called."""

from __future__ import annotations

import json
import uuid
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lance_memory.ingest.message import Conversation, Message
from lance_memory.record.memory import Scope
from lance_memory.record.times import parse_instant

__all__ = ["Said", "SessionContext", "event_of", "last_of", "message_id"]

_NAMES = uuid.UUID("0b8a6d0e-2f0b-5d7c-8d4e-6a6f3c1b9e75")
"""Of the ids that are made from a message: a version 5 UUID needs a namespace, any will do."""

_JSON = json.JSONEncoder(separators=(",", ":"), sort_keys=True)
"""In ASCII, as forgetting looks for texts in the bytes of files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message of a session.

    Attributes:
        number: its place among the messages of the session, from 1 on; it grows with each.
        message: what was said; it has a time.
        noted: when it was appended.
        until: from when on it is not to be seen any more.
    """

    number: int
    message: Message
    noted: datetime
    until: datetime

    def to_bytes(self) -> bytes:
        """As it is kept, under its number."""
        return _packed("said", self.message.to_json(), self.noted, self.until)

    @classmethod
    def from_bytes(cls, raw: bytes, *, number: int) -> Said:
        """The inverse of `to_bytes`."""
        told, noted, until = _unpacked("said", raw)
        return cls(number=number, message=Message.from_json(told), noted=noted, until=until)

    @property
    def named(self) -> bool:
        """Whether the message has a name of its own, so that the same event is known again."""
        return bool(self.message.ref) or self.message.seq is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """The values of a session, when they were noted, and when they end."""

    values: Mapping[str, Any]
    noted: datetime
    until: datetime

    def to_bytes(self) -> bytes:
        """As they are kept."""
        return _packed("values", dict(self.values), self.noted, self.until)

    @classmethod
    def from_bytes(cls, raw: bytes) -> SessionContext:
        """The inverse of `to_bytes`."""
        values, noted, until = _unpacked("values", raw)
        return cls(values=values, noted=noted, until=until)


def event_of(scope: Scope, message: Message) -> str:
    """The name of the event that a message with a time is, as the write path has it."""
    return Conversation(messages=(message,), scope=scope).event(0, job="")


def message_id(scope: Scope, said: Said) -> str:
    """The id of the memory that a message of a session becomes: always the same.

    Of a message that has a name of its own (`ref`, or `seq`) it is made from that, so that the same
    event is one memory; of others from the number too: the same may be said twice.
    """
    message = said.message
    event, number = event_of(scope, message), 0 if said.named else said.number
    told = [*scope.names().values(), event, number, str(message.role), message.content]
    return str(uuid.uuid5(_NAMES, json.dumps(told)))


def last_of(messages: Iterable[Said], count: int | None, *, now: datetime) -> list[Said]:
    """The last of the messages that have not ended, in order, each event once: where it is last."""
    found: list[Said] = []
    seen: set[Hashable] = set()
    for said in reversed([*messages]):
        if count is not None and len(found) >= count:
            break
        name = _name(said)
        if said.until > now and name not in seen:
            seen.add(name)
            found.append(said)
    return found[::-1]


def _name(said: Said) -> Hashable:
    """What is the same of two messages if and only if they become the same memory."""
    message = said.message
    if said.named:
        return (message.ref or message.seq, message.role, message.content)
    return (said.number, message.at, message.role, message.actor, message.content)


def _packed(what: str, value: Any, noted: datetime, until: datetime) -> bytes:
    told = {what: value, "noted": noted.isoformat(), "until": until.isoformat()}
    return _JSON.encode(told).encode()


def _unpacked(what: str, raw: bytes) -> tuple[Any, datetime, datetime]:
    told = json.loads(raw)
    return told[what], parse_instant(told["noted"]), parse_instant(told["until"])
