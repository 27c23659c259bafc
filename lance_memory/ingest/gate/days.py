"""What the ledger holds by days, so that what is too old is found without reading the rest."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta

from lance_memory.ledger import Ledger

__all__ = ["day_key", "outdated"]


def day_key(day: date, name: str) -> str:
    """A key that is ordered by its day."""
    return f"{day.isoformat()}/{name}"


def outdated(
    ledger: Ledger, space: str, *, now: datetime, kept: timedelta
) -> Iterator[tuple[str, str]]:
    """The keys of days that ended longer than `kept` ago, and their names; the oldest first."""
    first = (now - kept).date().isoformat()
    for key, _ in ledger.items(space):
        day, _, name = key.partition("/")
        if day >= first:
            return
        yield key, name
