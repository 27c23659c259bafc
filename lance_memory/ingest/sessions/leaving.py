"""Messages leave the ledger once they are in the table: those of idle sessions, as working rows.

A process that is killed in between loses and doubles nothing: messages leave the ledger after the
version is there, and a row has the same id whoever makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from lance_memory.ingest.sessions.kept import Sessions
from lance_memory.ingest.sessions.said import Said, last_of, message_id
from lance_memory.ingest.sessions.settling import Settling
from lance_memory.ingest.sessions.turned import row_of
from lance_memory.record.memory import Kind, Scope
from lance_memory.record.results import WriteResult

__all__ = ["Leaving", "Promote", "hibernated", "settled"]

Ids: TypeAlias = Callable[[], Collection[str]]
Promote: TypeAlias = Callable[[Sequence[Mapping[str, Any]], Ids], WriteResult]
"""Commits rows; asks for the ids of those that may be stored right before each try."""

_NEUTRAL = 0.5
"""Importance of a row of which nothing was assessed: what every memory has by default."""


@dataclass(slots=True, kw_only=True)
class Leaving:
    """Messages of a session that are about to leave the ledger.

    Attributes:
        scope: the session's.
        settling: its mark there.
        said: all of its messages, those that have ended too.
        numbers: id of a memory → the messages that become it.
        gone: the messages that are in the table for certain once the commit has returned.
    """

    scope: Scope
    settling: Settling
    said: Sequence[Said]
    numbers: dict[str, list[int]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, scope: Scope, settling: Settling, said: Sequence[Said]) -> Leaving:
        """With what its messages become."""
        made = cls(scope=scope, settling=settling, said=said)
        for one in said:
            made.numbers.setdefault(message_id(scope, one), []).append(one.number)
        return made

    def fresh(self, ids: AbstractSet[str]) -> list[str]:
        """Those of the ids whose messages are still there; asked right before a try to commit."""
        mine = {id: numbers for id, numbers in self.numbers.items() if id in ids}
        there = set(self.settling.still(n for numbers in mine.values() for n in numbers))
        self.gone = there
        return [id for id, numbers in mine.items() if there.intersection(numbers)]


def hibernated(
    sessions: Sessions,
    within: Scope,
    *,
    without: Collection[str] = (),
    promote: Promote,
    idle: timedelta,
    now: datetime,
) -> WriteResult | None:
    """Put the messages of idle sessions into the table as working rows, and let go of what ended.

    Args:
        sessions: where they are.
        within: whose.
        without: tenants whose sessions are left alone.
        promote: commits.
        idle: how long nothing was said.
        now: the present moment.

    Returns:
        What was committed; None: there was nothing.
    """
    every = _asleep(sessions, within, idle=idle, now=now)
    found = [(scope, any_left) for scope, any_left in every if scope.tenant not in without]
    with ExitStack() as marked:
        leaving, rows = list[Leaving](), list[dict[str, Any]]()
        for scope in (scope for scope, any_left in found if any_left):
            settling = marked.enter_context(sessions.settling(scope))
            leaving.append(Leaving.of(scope, settling, sessions.since(scope, 1)))
            living = last_of(leaving[-1].said, None, now=now)
            if living:
                sessions.note_rows(scope, max(said.until for said in living))
            rows += [
                row_of(scope, said, kind=Kind.WORKING, importance=_NEUTRAL, until=said.until)
                for said in living
            ]
        made = settled(sessions, leaving, rows, promote=promote, now=now)
    _let_go(sessions, (scope for scope, _ in found), now=now)
    return made


def settled(
    sessions: Sessions,
    leaving: Sequence[Leaving],
    rows: Sequence[Mapping[str, Any]],
    *,
    promote: Promote,
    known: Collection[int] = (),
    now: datetime,
) -> WriteResult | None:
    """Commit the rows, and then take away the messages that they are, and those that have ended.

    Args:
        sessions: where the messages are.
        leaving: the messages, session by session.
        rows: what some of them become.
        promote: commits.
        known: numbers of messages that are in the table already.
        now: the present moment.

    Returns:
        What was committed; None: there was nothing.
    """
    unique = {row["id"]: row for row in rows}

    def fresh() -> list[str]:
        return [id for one in leaving for id in one.fresh(unique.keys())]

    made = promote([*unique.values()], fresh) if unique else None
    taken = made is not None and made.updated > 0
    for one in leaving:
        ended = {said.number for said in one.said if said.until <= now}
        numbers = one.gone | ended | {*known}
        sessions.remove(one.scope, numbers)
        taken |= bool(numbers)
    if taken:
        sessions.touch()
    return made


def _asleep(
    sessions: Sessions, within: Scope, *, idle: timedelta, now: datetime
) -> Iterator[tuple[Scope, bool]]:
    """The sessions in which nothing was said for a while, and whether anything is in the ledger."""
    for scope in sessions.within(within):
        noted = sessions.last_noted(scope)
        if noted is None or now - noted >= idle:
            yield scope, noted is not None


def _let_go(sessions: Sessions, scopes: Iterable[Scope], *, now: datetime) -> None:
    """Remove the sessions of which nothing is to be seen any more, down to their names."""
    gone = False
    for scope in scopes:
        number = sessions.mark(scope).number
        context, rows = sessions.context(scope), sessions.rows_until(scope)
        ends = [end for end in (context.until if context else None, rows) if end is not None]
        if all(end <= now for end in ends) and not sessions.since(scope, 1):
            gone |= sessions.drop(scope, upto=number)
    if gone:
        sessions.touch()
