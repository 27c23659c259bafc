"""Flushing: the messages of a session that matter become episodes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lance_memory.agent.importance import ImportanceAssessor
from lance_memory.ingest import Role
from lance_memory.ingest.sessions import (
    Leaving,
    Said,
    Sessions,
    last_of,
    message_id,
    row_of,
    said_in,
    settled,
)
from lance_memory.record.arguments import real
from lance_memory.record.memory import SAID, Kind, Scope
from lance_memory.record.results import WriteResult
from lance_memory.store import MemoryStore

__all__ = ["exchanges", "flushed"]

_SETTLED = tuple(kind for kind in Kind if kind is not Kind.WORKING)


def flushed(
    store: MemoryStore,
    sessions: Sessions,
    scope: Scope,
    *,
    assess: ImportanceAssessor,
    least: float,
    now: datetime,
) -> WriteResult | None:
    """Make the messages of a session that matter episodes, wherever they are; None: none does.

    Raises:
        InvalidInputError: the assessor gives no number within 0..1.
        EmbeddingError: the embedder failed; the messages are where they were.
    """
    with sessions.settling(scope) as settling:
        leaving = Leaving.of(scope, settling, sessions.since(scope, 1))
        there = said_in(store.list(kinds=Kind.WORKING, source=SAID), scope)
        there_already = _known(store) if leaving.said else set()
        living = last_of((*there, *leaving.said), None, now=now)
        waiting = [said for said in living if message_id(scope, said) not in there_already]
        rows = [
            row_of(scope, said, kind=Kind.EPISODIC, importance=importance, until=None)
            for said, importance in _assessed(waiting, assess)
            if importance >= least
        ]
        known = {n for id in there_already for n in leaving.numbers.get(id, ())}
        return settled(
            sessions,
            [leaving],
            rows,
            promote=lambda batch, fresh: store.promote(batch, fresh=fresh),
            known=known,
            now=now,
        )


def _known(store: MemoryStore) -> set[str]:
    """The ids of what became episodes before; a killed process has left some in the ledger."""
    found = store.to_arrow(columns=["id"], kinds=_SETTLED, source=SAID)
    return set(found["id"].to_pylist())


def _assessed(said: Sequence[Said], assess: ImportanceAssessor) -> list[tuple[Said, float]]:
    """Each with the importance of the exchange that it is part of."""
    found = []
    for exchange in exchanges(said):
        told = assess([one.message for one in exchange])
        importance = real("importance", told, least=0, most=1)
        found += [(one, importance) for one in exchange]
    return found


def exchanges(said: Sequence[Said]) -> list[list[Said]]:
    """The messages by exchange: each begins with the first word of a person after an answer.

    What is said before a person has spoken is of the first exchange.
    """
    found: list[list[Said]] = []
    spoken = answered = False
    for one in said:
        person = one.message.role is Role.USER
        if not found or (person and spoken and answered):
            found.append([])
            spoken = answered = False
        found[-1].append(one)
        spoken |= person
        answered |= spoken and not person
    return found
