"""Messages on their way into the table, and whoever must not be overtaken by them.

A process that makes rows of messages reads them, embeds them, commits, and removes them. Whoever
forgets the session in between would find nothing, and then the rows come. So it puts a mark into
the session before it reads, and right before each try to commit it looks which messages are still
there. Whoever takes messages away removes them first, and then waits until no mark is left: what
was committed until then is in the table, to be found; what was not finds its messages gone.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from typing import Final

from lance_memory.ledger import Ledger, numbered

__all__ = ["Settling", "wait_for_rows"]

_PREFIX: Final = "settling:"

_LEASE: Final = 15.0
"""Seconds that a process has from its last look to the end of its commit, which takes milliseconds.
One that was killed is waited for as long."""

_ABANDONED: Final = 3_600.0
"""Seconds after which a mark is nobody's any more: its process was killed."""

_LOOK_AGAIN: Final = 0.02


class Settling:
    """Messages of a session on their way into the table."""

    def __init__(self, ledger: Ledger, space: str) -> None:
        self._ledger, self._space = ledger, space
        self._key = f"{_PREFIX}{secrets.token_hex(8)}"
        self._mark = b""

    def begin(self) -> None:
        """To be called before the messages are read."""
        outdated = time.time() - _ABANDONED
        marks = self._ledger.items(self._space, prefix=_PREFIX)
        self._ledger.remove_all(self._space, [key for key, raw in marks if float(raw) < outdated])
        self._mark = _end()
        self._ledger.put(self._space, self._key, self._mark)

    def still(self, numbers: Iterable[int]) -> list[int]:
        """Those of the messages that are still there; to be called right before each try to commit.

        None is, where somebody who forgets the session has not waited any longer.
        """
        new = _end()
        if not self._ledger.swap(self._space, self._key, old=self._mark, new=new):
            return []
        self._mark = new
        ledger, space = self._ledger, self._space
        return [n for n in numbers if ledger.get(space, numbered(n)) is not None]

    def end(self) -> None:
        """The messages are in the table, or not; nobody needs to wait."""
        self._ledger.remove_all(self._space, [self._key])


def wait_for_rows(ledger: Ledger, space: str) -> None:
    """Until nobody is making rows of the messages of a space; one that was killed is not."""
    while any(float(raw) > time.time() for _, raw in ledger.items(space, prefix=_PREFIX)):
        time.sleep(_LOOK_AGAIN)


def _end() -> bytes:
    return f"{time.time() + _LEASE:.3f}".encode()
