"""Taking people and memories out of what was said just now."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from lance_memory.ingest.sessions.kept import Sessions
from lance_memory.ingest.sessions.said import message_id
from lance_memory.ledger import Ledger
from lance_memory.record.memory import Scope

__all__ = ["SessionPart", "Telling", "forget_said", "forget_sessions", "sessions_with"]


class Telling(Protocol):
    """What tells of memories: their ids, and of their people, what they say."""

    @property
    def people(self) -> Collection[Scope]:
        """Their tenants and users; other people may have said the same, and that is theirs."""
        ...

    def is_one(self, id: str) -> bool:
        """Whether it is the id of one of them."""
        ...

    def said(self, part: tuple[Scope, Any], /) -> bool:
        """Whether JSON values of a scope are those people's, and say one of them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPart:
    """What of a session tells of memories.

    Attributes:
        scope: the session's.
        numbers: of the messages that do.
        context: whether its values do.
    """

    scope: Scope
    numbers: tuple[int, ...]
    context: bool

    def __bool__(self) -> bool:
        return bool(self.numbers) or self.context


def sessions_with(ledger: Ledger, scope: Scope | None, words: Telling) -> list[SessionPart]:
    """The sessions that have something of a scope, then all of it, or of memories."""
    sessions = Sessions(ledger)
    inside = [] if scope is None else list(sessions.within(scope))
    whole = [
        SessionPart(
            scope=one,
            numbers=tuple(said.number for said in sessions.since(one, 1)),
            context=sessions.context(one) is not None,
        )
        for one in inside
    ]
    return [*whole, *(one for one in _telling(sessions, words) if one.scope not in inside)]


def forget_sessions(ledger: Ledger, scope: Scope) -> None:
    """Remove all that is kept of the sessions of a scope, down to their names.

    Rows that are being made of it are waited for: the forgetting that goes on finds them.
    """
    sessions = Sessions(ledger)
    if found := list(sessions.within(scope)):
        sessions.take_away(found, whole=True)


def forget_said(ledger: Ledger, words: Telling) -> bool:
    """Remove of what people said just now what is, or says, a memory; whether anything was.

    Rows that are being made of it are waited for, as above.
    """
    sessions = Sessions(ledger)
    found = list(_telling(sessions, words))
    for one in found:
        sessions.remove(one.scope, one.numbers)
        if one.context:
            sessions.set_context(one.scope, lambda _: None)
    if found:
        sessions.wait_for_rows(one.scope for one in found)
    return bool(found)


def _telling(sessions: Sessions, words: Telling) -> Iterator[SessionPart]:
    scopes = {scope for one in words.people for scope in sessions.within(one)}
    for scope in sorted(scopes, key=str):
        numbers = tuple(
            said.number
            for said in sessions.since(scope, 1)
            if words.said((scope, said.message.to_json())) or words.is_one(message_id(scope, said))
        )
        context = sessions.context(scope)
        spoken = context is not None and words.said((scope, dict(context.values)))
        if numbers or spoken:
            yield SessionPart(scope=scope, numbers=numbers, context=spoken)
