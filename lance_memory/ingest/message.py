"""What is ingested: messages, as somebody said them, and the conversation they are of."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from lance_memory.errors import InvalidInputError
from lance_memory.record.memory import Scope
from lance_memory.record.times import parse_instant, utc

__all__ = ["Conversation", "Message", "Role", "refuse_half"]

_HALF = re.compile("[\ud800-\udfff]")


class Role(StrEnum):
    """Who speaks, as chat services name it."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message.

    Attributes:
        content: what was said.
        role: who speaks, as chat services name it.
        actor: the speaker's name, where it is known.
        at: when, timezone-aware; None: not known, taken for the moment of ingestion.
        seq: its place among the tenant's messages, which grows by one from message to message.
        ref: the caller's own id of the event; it names the same event for ever.
    """

    content: str
    role: Role = Role.USER
    actor: str = ""
    at: datetime | None = None
    seq: int | None = None
    ref: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.content, str):
            raise InvalidInputError(f"content is {self.content!r}; a message is a text")
        if self.at is not None:
            object.__setattr__(self, "at", utc(self.at, "at"))
        if self.seq is not None and (type(self.seq) is not int or not 0 <= self.seq < 1 << 63):
            raise InvalidInputError(f"seq is {self.seq!r}; it takes a whole number from 0 on")
        for name in ("actor", "ref"):
            refuse_half(name, getattr(self, name))

    def to_json(self) -> dict[str, Any]:
        """As JSON values, without what is not given."""
        values = {
            "content": self.content,
            "role": str(self.role),
            "actor": self.actor,
            "at": self.at.isoformat() if self.at else None,
            "seq": self.seq,
            "ref": self.ref,
        }
        return {name: value for name, value in values.items() if value not in (None, "")}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Message:
        """The inverse of `to_json`."""
        at = parse_instant(values["at"]) if "at" in values else None
        role = Role(values.get("role", Role.USER))
        return cls(**{"content": "", **values, "role": role, "at": at})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Messages of one session, in order, and whose they are.

    Attributes:
        messages: in the order in which they were said.
        scope: whose. The session is the conversation's own.
        source: a registered back-end event that this comes from, such as "billing"; empty: people
            talking.
        domain: which routing and overlays apply, such as "education"; empty: the general ones.
    """

    messages: tuple[Message, ...]
    scope: Scope = field(default_factory=Scope)
    source: str = ""
    domain: str = ""

    @property
    def text(self) -> str:
        """What was said, a line for each message."""
        return "\n".join(message.content for message in self.messages)

    def event(self, place: int, *, job: str) -> str:
        """The name of the event that the message at `place` is: the same on every replay.

        That is the caller's ref; else the session and `seq`; else a digest of who said what when;
        and of a message without a time, its place in the job.
        """
        message = self.messages[place]
        if message.ref:
            return message.ref
        if message.seq is not None:
            return f"{self.scope.session or 'seq'}#{message.seq}"
        told = [str(message.role), message.actor, message.content]
        when = message.at.isoformat() if message.at else f"{job}#{place}"
        raw = json.dumps([*self.scope.names().values(), *told, when], ensure_ascii=False)
        return hashlib.blake2b(raw.encode(), digest_size=12).hexdigest()

    def with_contents(self, contents: tuple[str, ...]) -> Conversation:
        """The same messages with other contents."""
        pairs = zip(self.messages, contents, strict=True)
        return replace(self, messages=tuple(replace(m, content=text) for m, text in pairs))

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "messages": [message.to_json() for message in self.messages],
            "scope": self.scope.given(),
            "source": self.source,
            "domain": self.domain,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Conversation:
        """The inverse of `to_json`."""
        return cls(
            messages=tuple(Message.from_json(message) for message in values["messages"]),
            scope=Scope(**values["scope"]),
            source=values["source"],
            domain=values["domain"],
        )


def refuse_half(name: str, value: object) -> None:
    """Refuse a lone surrogate, as from a file name that could not be decoded.

    Raises:
        InvalidInputError: there is one, or it is no text.
    """
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} is {value!r}; it takes a text")
    if found := _HALF.search(value):
        raise InvalidInputError(
            f"{name} holds a lone surrogate at position {found.start()}, which is no Unicode "
            "text; decode it with errors='replace'"
        )
