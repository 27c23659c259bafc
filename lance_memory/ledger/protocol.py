"""What is remembered beside the table, shared by processes: jobs, counters, watermarks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

__all__ = ["Ledger"]


class Ledger(Protocol):
    """Small values by space and key, safe to share between threads and processes.

    Every method raises StorageError where the ledger cannot be reached. A write that has returned
    survives a killed process.
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

    def items(self, space: str, *, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        """The keys that begin with `prefix`, with their values, ordered by key."""
        ...

    def remove(self, space: str, key: str) -> None:
        """Remove a value and a counter, if they are there."""
        ...

    def scrub(self) -> None:
        """See to it that what was removed can be read from no file of the ledger's own."""
        ...

    def close(self) -> None:
        """Give back connections; the next call makes new ones."""
        ...
