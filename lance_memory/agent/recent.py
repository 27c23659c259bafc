"""The recent messages of sessions: from this process's memory, the ledger, and the table."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lance_memory.agent.hot import HotTier
from lance_memory.ingest.sessions import Said, SessionMark, Sessions, last_of, said_in
from lance_memory.record.memory import SAID, Kind, Scope, State
from lance_memory.record.times import EARLIEST
from lance_memory.store import MemoryStore

__all__ = ["Recent"]

_WINDOW: Final = 16
"""As many of the last messages are read at once, at least."""

_MOST: Final = 256
"""As many of the last messages are held of a session, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """The last messages of a session in the ledger.

    Attributes:
        mark: of the session when they were read, or earlier.
        messages: in order; those that have ended too.
        whole: whether there are none before them.
        rows: until when some may be seen in the table; None: nobody has looked.
    """

    mark: SessionMark
    messages: tuple[Said, ...]
    whole: bool
    rows: datetime | None

    def cut(self) -> _Held:
        """What is held of it."""
        if len(self.messages) <= _MOST:
            return self
        return replace(self, messages=self.messages[-_MOST:], whole=False)


class Recent:
    """Reads the messages of sessions.

    Of each session the last ones are held. Two short reads of the ledger say whether they still are
    the last ones, whoever wrote: where messages came, those alone are read, and where some went,
    all.
    """

    def __init__(self, sessions: Sessions, hot: HotTier) -> None:
        self._sessions = sessions
        self._hot = hot

    def last(
        self, store: MemoryStore, scope: Scope, count: int | None, *, now: datetime
    ) -> list[Said]:
        """The last messages of a session that have not ended, oldest first, each event once.

        Args:
            store: a handle that is kept to the session.
            scope: the session's.
            count: at most so many; None: all.
            now: the present moment.
        """
        held = self._current(store, scope, count or _WINDOW)
        found = last_of(held.messages, count, now=now)
        if _enough(found, count):
            return found
        if not held.whole:
            held = self._read(scope, held.mark, since=1)
            self._hot.keep(_key(store, scope), held.cut())
        may_be = held.rows is None or held.rows > now
        rows = self._rows(store, scope, held) if may_be else ()
        return last_of((*rows, *held.messages), count, now=now)

    def rows(self, store: MemoryStore, scope: Scope) -> tuple[Said, ...]:
        """The messages of a session that are in the table, by number; those that have ended too."""
        return self._hot.read(
            store,
            ("hibernated", scope),
            lambda: said_in(
                store.list(kinds=Kind.WORKING, source=SAID, states=State.ACTIVE), scope
            ),
        )

    def _rows(self, store: MemoryStore, scope: Scope, held: _Held) -> tuple[Said, ...]:
        found = self.rows(store, scope)
        if held.rows is None and held.mark.number:  # to read of a session leaves no trace of it
            until = max((said.until for said in found), default=EARLIEST)
            self._sessions.note_rows(scope, until)
            self._hot.keep(_key(store, scope), replace(held, rows=until).cut())
        return found

    def _current(self, store: MemoryStore, scope: Scope, count: int) -> _Held:
        """The last messages in the ledger, as they are now: as many as are asked for, or more."""
        key, mark = _key(store, scope), self._sessions.mark(scope)
        held = self._hot.find(key)
        if isinstance(held, _Held) and held.mark == mark:
            self._hot.tell("recent", scope.tenant, hit=True)
            return held
        self._hot.tell("recent", scope.tenant, hit=False)
        if isinstance(held, _Held) and _only_longer(held.mark, mark):
            made = self._longer(scope, held, mark)
        else:
            made = self._read(scope, mark, since=max(1, mark.number + 1 - max(count, _WINDOW)))
        self._hot.keep(key, made.cut())
        return made

    def _longer(self, scope: Scope, held: _Held, mark: SessionMark) -> _Held:
        new = self._sessions.since(scope, held.mark.number + 1)
        return replace(held, mark=_upto(mark, new), messages=(*held.messages, *new))

    def _read(self, scope: Scope, mark: SessionMark, *, since: int) -> _Held:
        messages = self._sessions.since(scope, since)
        return _Held(
            mark=_upto(mark, messages),
            messages=tuple(messages),
            whole=since == 1,
            rows=self._sessions.rows_until(scope),  # after the messages, as they go there
        )


def _enough(found: list[Said], count: int | None) -> bool:
    return count is not None and len(found) >= count


def _only_longer(before: SessionMark, now: SessionMark) -> bool:
    """Whether nothing but appending has happened."""
    return before.stamp == now.stamp and before.number < now.number


def _upto(mark: SessionMark, read: list[Said]) -> SessionMark:
    """With what came since the mark was read, which is among what was read after it."""
    return replace(mark, number=max([mark.number, *(said.number for said in read)]))


def _key(store: MemoryStore, scope: Scope) -> Hashable:
    return (store.store_id, store.uri, store.branch_name, scope, "recent")
