"""What is remembered beside the table, shared by processes: jobs, counters, watermarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

__all__ = ["Ledger"]


class Ledger(Protocol):
    """Small values by space and key, safe to share between threads and processes.

    Every method raises StorageError where the ledger cannot be reached. A write that has returned
    survives a killed process. What a power cut leaves is a matter of the ledger: see `SqliteLedger`
    and `RedisLedger`.
    """

    def get(self, space: str, key: str) -> bytes | None:
        """The value; None: there is none."""
        ...

    def put(self, space: str, key: str, value: bytes) -> None:
        """Put a value in the place of whatever is there."""
        ...

    def swap(self, space: str, key: str, *, old: bytes | None, new: bytes | None) -> bool:
        """Put `new` where `old` is, at once; whether it was. None stands for no value."""
        ...

    def add(self, space: str, key: str, amount: int) -> int:
        """Count up, from 0 on, at once; the sum. Counters are no values of `get`."""
        ...

    def counted(self, space: str, key: str) -> int:
        """The sum that `add` has made; 0 where it never was."""
        ...

    def append(self, space: str, value: bytes) -> int:
        """Put a value under the next number of the space, from 1 on, at once; the number.

        The key is the number as 16 hex digits (`numbered`), so that `items` gives them in order. No
        number is given twice, also where what it stood for was removed, until `drop`.
        """
        ...

    def appended(self, space: str) -> int:
        """The number that `append` has given last; 0: it gave none."""
        ...

    def items(
        self, space: str, *, prefix: str = "", start: str = ""
    ) -> Iterator[tuple[str, bytes]]:
        """The keys that begin with `prefix`, from `start` on, with their values, ordered by key."""
        ...

    def spaces(self, *, prefix: str = "") -> Iterator[str]:
        """The spaces that begin with `prefix` and have a value, a sum or a number, ordered."""
        ...

    def remove(self, space: str, key: str) -> None:
        """Remove a value and a counter, if they are there."""
        ...

    def remove_all(self, space: str, keys: Iterable[str]) -> None:
        """Remove values, those that are there, at once."""
        ...

    def drop(self, space: str, *, upto: int | None = None) -> bool:
        """Remove a space with all that is in it, at once; its numbers begin at 1 again.

        Args:
            space: which.
            upto: only where `append` has given no greater number by now; whether it was so.
        """
        ...

    def scrub(self) -> None:
        """See to it that what was removed can be read from no file of the ledger's own."""
        ...

    def close(self) -> None:
        """Give back connections; the next call makes new ones."""
        ...
