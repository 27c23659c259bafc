"""How often and how long to wait for a service that is busy."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from lance_memory.errors import InvalidInputError

__all__ = ["Retry", "asked_wait"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """At most `attempts` tries of one request, with growing waits between them, in seconds.

    The first wait is `first_wait`, each later one twice the one before, none longer than
    `longest_wait`; chance shortens each by up to a half, so that clients do not come in step.
    Where the service names a wait (Retry-After), that is taken; one longer than `longest_wait`
    ends the tries at once.

    Raises InvalidInputError for attempts below 1 or a negative wait.
    """

    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 20.0

    def __post_init__(self) -> None:
        if type(self.attempts) is not int or self.attempts < 1:
            raise InvalidInputError(
                f"attempts={self.attempts!r}; it takes a whole number from 1 on"
            )
        for name in ("first_wait", "longest_wait"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value < float("inf"):
                raise InvalidInputError(f"{name}={value!r}; it takes a number from 0 on")

    def wait(self, failed: int) -> float:
        """Seconds to wait after the `failed`-th failure, counted from 1."""
        full: float = min(self.first_wait * 2.0 ** (failed - 1), self.longest_wait)
        return full * random.uniform(0.5, 1.0)


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds, from 0 on, that Retry-After asks for (RFC 9110 10.2.3); None without it."""
    asked = headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdigit():
        return float(asked)
    try:
        moment = parsedate_to_datetime(asked)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
