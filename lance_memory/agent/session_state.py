"""Which sessions something is kept of, and how they stand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lance_memory.agent.recent import Recent
from lance_memory.ingest.sessions import Said, Sessions
from lance_memory.record.memory import SAID, Kind, Scope
from lance_memory.store import MemoryStore

__all__ = ["SessionState", "session_states"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """A session that something is kept of.

    Attributes:
        session: its name.
        scope: whose it is, with that name.
        messages: those that have not ended.
        last_at: when the last of them was said; None: there are none.
        ends_at: when the last of them ends.
        hibernates: whether messages of it are in the table.
    """

    session: str
    scope: Scope
    messages: int
    last_at: datetime | None
    ends_at: datetime | None
    hibernates: bool


def session_states(
    store: MemoryStore, sessions: Sessions, recent: Recent, *, now: datetime
) -> list[SessionState]:
    """The sessions within the scope of a handle of which something is to be seen, by scope."""
    rows = store.list(kinds=Kind.WORKING, source=SAID)
    scopes = {memory.scope for memory in rows if memory.session}
    found = []
    for scope in sorted({*sessions.within(store.scope), *scopes}, key=str):
        messages = recent.last(store.scoped(**scope.given()), scope, None, now=now)
        context = sessions.context(scope)
        if messages or (context is not None and context.until > now):
            found.append(_state(scope, messages, hibernates=scope in scopes))
    return found


def _state(scope: Scope, messages: list[Said], *, hibernates: bool) -> SessionState:
    return SessionState(
        session=scope.session,
        scope=scope,
        messages=len(messages),
        last_at=messages[-1].message.at if messages else None,
        ends_at=max((said.until for said in messages), default=None),
        hibernates=hibernates,
    )
