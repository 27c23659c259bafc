"""The messages of sessions, and their context, in a ledger.

A session has a space of its own, so that reading one touches no other. In it, a message stands
under its number, "context" has the values of the session, "rows" says until when messages of it may
be seen in the table, and "settling:..." that some are on their way there.

The messages are what the first steps of the write path have left (`MemoryStore.cleaned`).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from lance_memory.ingest.sessions.said import Said, SessionContext
from lance_memory.ingest.sessions.settling import Settling, wait_for_rows
from lance_memory.ledger import Ledger, numbered
from lance_memory.record.memory import SCOPE_LEVELS, Scope
from lance_memory.record.times import parse_instant

__all__ = ["SessionMark", "Sessions"]

_Change = Callable[[SessionContext | None], SessionContext | None]

_SPACE: Final = "working:"
_STAMPS, _STAMP = "working", "stamp"
_CONTEXT, _ROWS = "context", "rows"
_NUMBERS: Final = "0"
"""What the keys of messages begin with, and the other keys do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMark:
    """What is another one as soon as the messages of a session are.

    Attributes:
        stamp: drawn anew with everything that takes messages away, of whatever session; None:
            nobody has begun.
        number: of the last message.
    """

    stamp: bytes | None
    number: int


class Sessions:
    """The messages of sessions in a ledger. Safe for any threads and processes.

    A session is a scope that names one.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    # -- messages -------------------------------------------------------------------------

    def append(self, scope: Scope, said: Said) -> int:
        """Add a message to a session, whatever number it has; its number."""
        return self._ledger.append(_space(scope), said.to_bytes())

    def since(self, scope: Scope, number: int) -> list[Said]:
        """The messages from a number on, in order; those that have ended too."""
        found = self._ledger.items(_space(scope), prefix=_NUMBERS, start=numbered(number))
        return [Said.from_bytes(raw, number=int(key, 16)) for key, raw in found]

    def remove(self, scope: Scope, numbers: Iterable[int]) -> None:
        """Remove messages; `touch` is to follow."""
        self._ledger.remove_all(_space(scope), map(numbered, numbers))

    def mark(self, scope: Scope) -> SessionMark:
        """What is another one as soon as the messages of a session are; two short reads."""
        stamp = self._ledger.get(_STAMPS, _STAMP)
        return SessionMark(stamp=stamp, number=self._ledger.appended(_space(scope)))

    def touch(self) -> None:
        """Say to all processes that messages went: what they remember of sessions is outdated."""
        self._ledger.put(_STAMPS, _STAMP, _drawn())

    def begin(self) -> None:
        """See to it that there is a stamp, so that one ledger is told from another."""
        self._ledger.swap(_STAMPS, _STAMP, old=None, new=_drawn())

    # -- sessions -------------------------------------------------------------------------

    def within(self, scope: Scope) -> Iterator[Scope]:
        """The sessions that lie within a scope and that anything is kept of."""
        for space in self._ledger.spaces(prefix=_beginning(scope)):
            found = _scope(space)
            if scope.holds(found):
                yield found

    def last_noted(self, scope: Scope) -> datetime | None:
        """When something was noted of a session last; None: nothing is there."""
        number = self._ledger.appended(_space(scope))
        raw = self._ledger.get(_space(scope), numbered(number))
        last = self.since(scope, 1)[-1:] if raw is None else [Said.from_bytes(raw, number=number)]
        context = self.context(scope)
        times = [said.noted for said in last] + ([context.noted] if context else [])
        return max(times, default=None)

    def drop(self, scope: Scope, *, upto: int) -> bool:
        """Remove a session, unless something was said meanwhile; its numbers begin at 1 again."""
        return self._ledger.drop(_space(scope), upto=upto)

    # -- context --------------------------------------------------------------------------

    def context(self, scope: Scope) -> SessionContext | None:
        """The values of a session, ended or not; None: there are none."""
        raw = self._ledger.get(_space(scope), _CONTEXT)
        return None if raw is None else SessionContext.from_bytes(raw)

    def set_context(
        self, scope: Scope, change: Callable[[SessionContext | None], SessionContext | None]
    ) -> None:
        """Put what `change` makes of the values in their place, at once; None: remove them."""
        while True:
            old = self._ledger.get(_space(scope), _CONTEXT)
            made = change(None if old is None else SessionContext.from_bytes(old))
            new = None if made is None else made.to_bytes()
            if self._ledger.swap(_space(scope), _CONTEXT, old=old, new=new):
                return

    # -- rows -----------------------------------------------------------------------------

    def rows_until(self, scope: Scope) -> datetime | None:
        """Until when messages of a session may be seen in the table; None: nobody has looked."""
        raw = self._ledger.get(_space(scope), _ROWS)
        return None if raw is None else parse_instant(raw.decode())

    def note_rows(self, scope: Scope, until: datetime) -> None:
        """Messages of a session are about to be in the table, or are there, and end then.

        Of a session that has none it is noted with a time that is over.
        """
        while True:
            old = self._ledger.get(_space(scope), _ROWS)
            last = until if old is None else max(until, parse_instant(old.decode()))
            if self._ledger.swap(_space(scope), _ROWS, old=old, new=last.isoformat().encode()):
                return

    @contextmanager
    def settling(self, scope: Scope) -> Iterator[Settling]:
        """For whoever reads messages, makes rows of them and removes them; see `Settling`."""
        mine = Settling(self._ledger, _space(scope))
        mine.begin()
        try:
            yield mine
        finally:
            mine.end()

    def take_away(self, scopes: Iterable[Scope], *, whole: bool) -> None:
        """Remove all that is kept of sessions, and wait for those that are making rows of it.

        Args:
            scopes: the sessions.
            whole: also their numbers, and with that the last byte of their names.
        """
        every = list(scopes)
        for scope in every:
            found = self._ledger.items(_space(scope), prefix=_NUMBERS)
            self._ledger.remove_all(_space(scope), [*(key for key, _ in found), _CONTEXT])
        self.wait_for_rows(every)
        for scope in every if whole else ():
            self._ledger.drop(_space(scope))
        self.touch()

    def wait_for_rows(self, scopes: Iterable[Scope]) -> None:
        """To be called once messages were removed, and before their rows are looked for."""
        self.touch()
        for scope in scopes:
            wait_for_rows(self._ledger, _space(scope))


def _drawn() -> bytes:
    return secrets.token_bytes(12)


@lru_cache(maxsize=4_096)
def _space(scope: Scope) -> str:
    return f"{_SPACE}{json.dumps(list(scope.names().values()), separators=(',', ':'))}"


def _scope(space: str) -> Scope:
    names = json.loads(space.removeprefix(_SPACE))
    return Scope(**dict(zip(SCOPE_LEVELS, names, strict=True)))


def _beginning(scope: Scope) -> str:
    """What the spaces of all sessions within a scope begin with: its first levels, up to a gap."""
    names = list(scope.names().values())
    given = names.index("") if "" in names else len(names)
    listed = json.dumps(names[:given], separators=(",", ":"))[:-1]
    return f"{_SPACE}{listed}{',' if 0 < given < len(names) else ''}"
