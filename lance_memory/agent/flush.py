"""Flushing: the messages of a session that matter become episodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from lance_memory.agent.importance import Heuristic, ImportanceAssessor
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
from lance_memory.record.filters import Where
from lance_memory.record.memory import SAID, Kind, Scope
from lance_memory.record.results import WriteResult
from lance_memory.store import MemoryStore

__all__ = ["Flushed", "Flushing", "LeftOut", "exchanges", "flushed"]

_SETTLED = tuple(kind for kind in Kind if kind is not Kind.WORKING)


class LeftOut(StrEnum):
    """Why a message became no episode."""

    SMALL_TALK = "small_talk"
    """Nothing is said in its exchange. It stays in working memory, and ends with its time."""

    UNIMPORTANT = "unimportant"
    """Its exchange is below what was asked for. It stays too."""

    ALREADY_THERE = "already_there"
    """It became one before."""

    ENDED = "ended"
    """Its time was over, and nothing showed it any more."""

    TAKEN_AWAY = "taken_away"
    """It was cleared or forgotten while it was on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed(WriteResult):
    """What became of the messages of a session.

    Attributes:
        left: how many became no episode, by the reason.
        planned: it was a dry run, and nothing was written.
    """

    left: Mapping[LeftOut, int] = field(default_factory=dict)
    planned: bool = False

    @property
    def kept(self) -> int:
        """How many messages are episodes now, or would be."""
        return self.inserted + self.updated

    def __str__(self) -> str:
        told = [f"{self.kept:,} {'to keep' if self.planned else 'kept'}"]
        told += [f"{number:,} {reason.replace('_', ' ')}" for reason, number in self.left.items()]
        return f"version {self.version}: {', '.join(told)}"

    def __repr__(self) -> str:
        return f"<Flushed {self}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushing:
    """Which messages become episodes.

    Attributes:
        assess: says how much an exchange matters.
        least: what matters less stays; None: what is small talk to the `Heuristic` stays, and
            nothing that another assessor looks at.
        dry_run: write nothing.
    """

    assess: ImportanceAssessor
    least: float | None = None
    dry_run: bool = False

    def chosen(
        self, said: Sequence[Said], *, before: str = ""
    ) -> tuple[list[tuple[Said, float]], Counter[LeftOut]]:
        """Those that become episodes, with the importance of their exchange; and those that stay.

        Args:
            said: in order.
            before: what was said before them.

        Raises:
            InvalidInputError: the assessor gives no number within 0..1.
        """
        found: list[tuple[Said, float]] = []
        left = Counter[LeftOut]()
        for exchange in exchanges(said):
            messages = [one.message for one in exchange]
            importance = real("importance", self.assess(messages), least=0, most=1)
            if self.least is not None and importance < self.least:
                left[LeftOut.UNIMPORTANT] += len(exchange)
            elif (
                self.least is None
                and isinstance(self.assess, Heuristic)
                and self.assess.is_small_talk(messages, before=before)
            ):
                left[LeftOut.SMALL_TALK] += len(exchange)
            else:
                found += [(one, importance) for one in exchange]
            before = messages[-1].content
        return found, left


def flushed(
    store: MemoryStore, sessions: Sessions, scope: Scope, how: Flushing, *, now: datetime
) -> Flushed:
    """Make the messages of a session that matter episodes, wherever they are.

    Raises:
        InvalidInputError: the assessor gives no number within 0..1.
        EmbeddingError: the embedder failed; the messages are where they were.
    """
    if how.dry_run:
        hibernating = said_in(store.list(kinds=Kind.WORKING, source=SAID), scope)
        plan = _Plan.of(store, scope, how, hibernating, sessions.since(scope, 1), now=now)
        return _told(store, plan, None, dry_run=True)
    with sessions.settling(scope) as settling:
        leaving = Leaving.of(scope, settling, sessions.since(scope, 1))
        hibernating = said_in(store.list(kinds=Kind.WORKING, source=SAID), scope)
        plan = _Plan.of(store, scope, how, hibernating, leaving.said, now=now)
        made = settled(
            sessions,
            [leaving],
            plan.rows,
            promote=lambda batch, fresh: store.promote(batch, fresh=fresh),
            known={n for id in plan.known for n in leaving.numbers.get(id, ())},
            now=now,
        )
    return _told(store, plan, made, dry_run=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What a flush would do.

    Attributes:
        rows: of the messages that become episodes.
        known: ids of those that became episodes before.
        asleep: ids of those that are rows already, as working ones.
        left: how many become no episode, and why.
    """

    rows: Sequence[Mapping[str, Any]]
    known: Collection[str]
    asleep: Collection[str]
    left: Counter[LeftOut]

    @classmethod
    def of(
        cls,
        store: MemoryStore,
        scope: Scope,
        how: Flushing,
        hibernating: Sequence[Said],
        said: Sequence[Said],
        *,
        now: datetime,
    ) -> _Plan:
        """Of the messages of a session that are in the table, and in the ledger."""
        known = _known(store) if said else set()
        living = last_of((*hibernating, *said), None, now=now)
        waiting = [one for one in living if message_id(scope, one) not in known]
        chosen, left = how.chosen(waiting, before=_before(store, waiting[0]) if waiting else "")
        left[LeftOut.ALREADY_THERE] += len(living) - len(waiting)
        left[LeftOut.ENDED] += sum(one.until <= now for one in said)
        rows = [
            row_of(scope, one, kind=Kind.EPISODIC, importance=importance, until=None)
            for one, importance in chosen
        ]
        asleep = {message_id(scope, one) for one in hibernating}
        return cls(rows=rows, known=known, asleep=asleep, left=left)


def _told(store: MemoryStore, plan: _Plan, made: WriteResult | None, *, dry_run: bool) -> Flushed:
    """What was made, or would be, and what became of the rest."""
    ids = tuple(dict.fromkeys(str(row["id"]) for row in plan.rows))
    left = Counter(plan.left)
    if dry_run or made is None:
        asleep = sum(id in plan.asleep for id in ids)
        made = WriteResult(
            uri=store.uri,
            version=store.version,
            operation="promote",
            ids=ids,
            inserted=len(ids) - asleep,
            updated=asleep,
        )
    left[LeftOut.TAKEN_AWAY] += len(ids) - len(made.ids)
    return Flushed(
        **{one.name: getattr(made, one.name) for one in fields(made)},
        left={reason: left[reason] for reason in LeftOut if left[reason]},
        planned=dry_run,
    )


def _known(store: MemoryStore) -> set[str]:
    """The ids of what became episodes before; a killed process has left some in the ledger."""
    found = store.to_arrow(columns=["id"], kinds=_SETTLED, source=SAID)
    return set(found["id"].to_pylist())


def _before(store: MemoryStore, first: Said) -> str:
    """What was said last before a message, of what became an episode already; "" for nothing."""
    earlier: Where = {"kinds": Kind.EPISODIC, "source": SAID}
    if first.message.at is not None:
        earlier["until"] = first.message.at
    last = store.list(limit=1, newest_first=True, **earlier)
    return last[0].content if last else ""


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
