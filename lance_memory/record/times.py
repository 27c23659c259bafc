"""Instants: timezone-aware UTC with microseconds, everywhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from lance_memory.errors import InvalidInputError

__all__ = ["EARLIEST", "LATEST", "Clock", "parse_instant", "storable", "utc", "utc_now"]

Clock = Callable[[], datetime]
"""Gives the present moment, timezone-aware. Tests and replays pass their own."""

EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 1, 1, tzinfo=UTC)
"""Moments of memories lie from the one on and before the other: in any time zone they have a year
from 1 to 9999, which is what Python and Arrow can both say."""


def storable(moment: datetime | None) -> bool:
    """Whether a memory can have that moment, timezone-aware; None: it has none."""
    return moment is None or EARLIEST <= moment < LATEST


def utc_now() -> datetime:
    """The present moment, UTC."""
    return datetime.now(UTC)


def utc(value: datetime, name: str = "time") -> datetime:
    """`value` in UTC.

    Raises:
        InvalidInputError: `value` carries no time zone, so it names no instant.
    """
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidInputError(
            f"{name}={value.isoformat()} has no time zone; give one, "
            "for example datetime(..., tzinfo=UTC) or 2025-01-31T12:00:00+00:00"
        )
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInputError(
            f"{name}={value.isoformat()} lies outside the years 1 to 9999"
        ) from error


def parse_instant(text: str, name: str = "time") -> datetime:
    """An ISO 8601 text with a time zone, as UTC.

    Raises:
        InvalidInputError: not ISO 8601, or without a time zone.
    """
    try:
        value = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInputError(
            f"{name}={text!r} is not an ISO 8601 time such as 2025-01-31T12:00:00+00:00"
        ) from error
    return utc(value, name)
