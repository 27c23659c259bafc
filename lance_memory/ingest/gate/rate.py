"""L1: how many conversations a user may have ingested in a minute."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from lance_memory.errors import InvalidInputError, StorageError
from lance_memory.extras import require
from lance_memory.ingest.gate.layer import Blocked, Look, owner
from lance_memory.ingest.message import Conversation
from lance_memory.ingest.steps import Surroundings
from lance_memory.ledger import RedisPlace, is_redis

if TYPE_CHECKING:
    from limits.storage import Storage

__all__ = ["RateLimit"]

MEMORY: Final = "memory://"
"""In this process."""

PATIENCE: Final = 1.0
"""Seconds in which a Redis server must accept, and answer: callers wait for it."""


class RateLimit:
    """A moving window of a minute of real time, a user's requests in any one of which are bounded.

    Args:
        per_minute: how many; None: any number.
        rates: where they are counted: "memory://", or the URL of a Redis server, as for a ledger.

    Raises:
        InvalidInputError: `rates` is neither.
        MissingExtraError: it is a Redis server, and the extra "redis" is not installed.
    """

    code: Final = "L1"
    reason: Final = "rate_limit_exceeded"
    alone: Final = True

    def __init__(self, per_minute: int | None, *, rates: str = MEMORY) -> None:
        self.per_minute = per_minute
        self._window: Any = None
        if per_minute is not None:
            from limits import RateLimitItemPerMinute
            from limits.strategies import MovingWindowRateLimiter

            self._window = MovingWindowRateLimiter(_storage(rates))
            self._bound = RateLimitItemPerMinute(per_minute, namespace="lance-memory")

    def settled(self, job: str, *, safe: bool) -> None:
        """Nothing is remembered of a job."""

    def look(self, asked: Mapping[int, Conversation], around: Surroundings) -> Look:  # noqa: ARG002 - it has its own clock
        """Each conversation that is judged counts as a request."""
        return _Look(self, asked)

    def hit(self, key: str) -> Blocked | None:
        """Count a request of that user, unless there are too many."""
        if self._window is None or self._window.hit(self._bound, key):
            return None
        wait = self._window.get_window_stats(self._bound, key).reset_time - time.time()
        limit = float(self._bound.amount)
        return Blocked(figures={"limit": limit, "seconds": 60.0, "wait": max(0.0, wait)})


class _Look:
    def __init__(self, layer: RateLimit, asked: Mapping[int, Conversation]) -> None:
        self._layer = layer
        self._asked = asked

    def judge(self, place: int) -> Blocked | None:
        from limits.errors import StorageError as LimitsError

        try:
            return self._layer.hit(owner(self._asked[place]))
        except LimitsError as error:
            found = type(error.storage_error).__name__
            raise StorageError(f"the rates could not be counted ({found})") from error

    def settle(self, place: int, *, passed: bool) -> None:
        """A request is a request, whatever becomes of it."""

    def close(self) -> None:
        """Nothing is held."""


def _storage(rates: str) -> Storage:
    from limits.storage import MemoryStorage

    if rates == MEMORY:
        return MemoryStorage(wrap_exceptions=True)
    if is_redis(rates):
        return _in_redis(RedisPlace.of(rates))
    # Not shown: a password may be in it.
    raise InvalidInputError(
        f"rates takes {MEMORY!r} or a URL like 'redis://localhost:6379/0', and is given neither"
    )


def _in_redis(place: RedisPlace) -> Storage:
    redis = require("redis", "redis")
    from limits.storage import RedisStorage

    once: Any = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
    try:
        storage = RedisStorage(
            _named(place.url),
            key_prefix=f"{place.prefix}:rates",
            wrap_exceptions=True,
            retry=once,
            socket_connect_timeout=PATIENCE,
            socket_timeout=PATIENCE,
        )
        pool: Any = storage.storage.connection_pool
        pool.connection_class(**pool.connection_kwargs)  # an unknown option shows only here
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"the URL of {place.shown} has an option that the Redis client does not take: {error}"
        ) from error
    return storage


def _named(url: str) -> str:
    """A URL as `limits` takes it; it names sockets in its own way."""
    return f"redis+{url}" if url.startswith("unix:") else url
