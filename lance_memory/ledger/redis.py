"""A ledger in a Redis server: for more than one machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from lance_memory.errors import InvalidInputError, StorageError
from lance_memory.extras import require
from lance_memory.ledger.keys import LAST, key_of, named
from lance_memory.ledger.place import RedisPlace

__all__ = ["RedisLedger"]

EXTRA: Final = "redis"

_SWAP: Final = """
local found = redis.call('HGET', KEYS[1], ARGV[1])
local there = found ~= false
if there ~= (ARGV[2] == '1') or (there and found ~= ARGV[3]) then return 0 end
if ARGV[4] == '1' then redis.call('HSET', KEYS[1], ARGV[1], ARGV[5])
else redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1
"""

_APPEND: Final = """
local number = redis.call('HINCRBY', KEYS[2], ARGV[1], 1)
redis.call('HSET', KEYS[1], string.format('%016x', number), ARGV[2])
return number
"""

_DROP: Final = """
local last = tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or '0')
if ARGV[2] ~= '' and last > tonumber(ARGV[2]) then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
return 1
"""

_CONNECT: Final = {
    "socket_connect_timeout": 5.0,
    "socket_timeout": 10.0,
    "health_check_interval": 30,
}
"""Seconds; the URL may say otherwise."""

_GLOB: Final = str.maketrans({character: f"\\{character}" for character in "*?[]^-\\"})


class RedisLedger:
    """Shared by all that reach the server; what it survives there is a matter of its settings.

    Each space is one hash of values and one of sums, named `<prefix>:values:<space>` and
    `<prefix>:sums:<space>`.

    Args:
        url: as `RedisPlace.of` takes it.
    """

    def __init__(self, url: str) -> None:
        self.place = RedisPlace.of(url)
        self._redis = require("redis", EXTRA)
        self._client = _client_of(self.place, self._redis)
        self._swap = self._client.register_script(_SWAP)
        self._append = self._client.register_script(_APPEND)
        self._drop = self._client.register_script(_DROP)

    def get(self, space: str, key: str) -> bytes | None:
        """The value; None: there is none."""
        with self._reached():
            found: bytes | None = self._client.hget(self._values(space), key_of(key))
        return found

    def put(self, space: str, key: str, value: bytes) -> None:
        """Put a value in the place of whatever is there."""
        with self._reached():
            self._client.hset(self._values(space), key_of(key), value)

    def swap(self, space: str, key: str, *, old: bytes | None, new: bytes | None) -> bool:
        """Put `new` where `old` is, at once; whether it was. None stands for no value."""
        told = [part for value in (old, new) for part in _optional(value)]
        with self._reached():
            return bool(self._swap(keys=[self._values(space)], args=[key_of(key), *told]))

    def add(self, space: str, key: str, amount: int) -> int:
        """Count up, from 0 on, at once; the sum."""
        with self._reached():
            return int(self._client.hincrby(self._sums(space), key_of(key), amount))

    def counted(self, space: str, key: str) -> int:
        """The sum that `add` has made; 0 where it never was."""
        with self._reached():
            return int(self._client.hget(self._sums(space), key_of(key)) or 0)

    def append(self, space: str, value: bytes) -> int:
        """Put a value under the next number of the space, from 1 on, at once; the number."""
        with self._reached():
            return int(self._append(keys=self._both(space), args=[LAST, value]))

    def appended(self, space: str) -> int:
        """The number that `append` has given last; 0: it gave none."""
        with self._reached():
            return int(self._client.hget(self._sums(space), LAST) or 0)

    def spaces(self, *, prefix: str = "") -> Iterator[str]:
        """The spaces that begin with `prefix` and have a value, a sum or a number, ordered.

        It looks at every name that the server has. Of spaces that come and go meanwhile, it may
        give some and not others.
        """
        found: set[bytes] = set()
        with self._reached():
            for begins in self._both(""):
                pattern = key_of(f"{named(begins).translate(_GLOB)}{prefix.translate(_GLOB)}*")
                names = self._client.scan_iter(match=pattern, count=1000)
                found |= {name.removeprefix(begins) for name in names}
        yield from map(named, sorted(found))

    def items(
        self, space: str, *, prefix: str = "", start: str = ""
    ) -> Iterator[tuple[str, bytes]]:
        """The keys that begin with `prefix`, from `start` on, with their values, ordered by key.

        Of values that come and go meanwhile, it may give some and not others.
        """
        pattern = key_of(f"{prefix.translate(_GLOB)}*")
        with self._reached():
            scan = self._client.hscan_iter(self._values(space), match=pattern, count=1000)
            found: dict[bytes, bytes] = dict(scan)
        begins = key_of(start)
        for key in sorted(key for key in found if key >= begins):
            yield named(key), found[key]

    def remove(self, space: str, key: str) -> None:
        """Remove a value and a counter, if they are there."""
        with self._reached(), self._client.pipeline() as pipeline:
            pipeline.hdel(self._values(space), key_of(key))
            pipeline.hdel(self._sums(space), key_of(key))
            pipeline.execute()

    def remove_all(self, space: str, keys: Iterable[str]) -> None:
        """Remove values, those that are there, at once."""
        if names := [key_of(key) for key in keys]:
            with self._reached():
                self._client.hdel(self._values(space), *names)

    def drop(self, space: str, *, upto: int | None = None) -> bool:
        """Remove a space with all that is in it, at once; its numbers begin at 1 again."""
        most = "" if upto is None else str(upto)
        with self._reached():
            return bool(self._drop(keys=self._both(space), args=[LAST, most]))

    def clear(self) -> None:
        """Remove all values and counters of the prefix. Tasks in its queue name nothing then.

        Danger: they cannot be brought back.
        """
        pattern = key_of(f"{self.place.prefix.translate(_GLOB)}:*")
        with self._reached():
            for name in self._client.scan_iter(match=pattern, count=1000):
                self._client.delete(name)

    def scrub(self) -> None:
        """Nothing: what the server has written to its own files is a matter of its settings."""

    def close(self) -> None:
        """Give back connections; the next call makes new ones."""
        self._client.close()

    def _values(self, space: str) -> bytes:
        return key_of(f"{self.place.prefix}:values:{space}")

    def _both(self, space: str) -> list[bytes]:
        return [self._values(space), self._sums(space)]

    def _sums(self, space: str) -> bytes:
        return key_of(f"{self.place.prefix}:sums:{space}")

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except self._redis.RedisError as error:
            raise StorageError(
                f"the ledger at {self.place.shown} could not be read or written "
                f"({type(error).__name__}: {error}); look at whether the server runs, at its "
                "memory, and at the user and password of the URL"
            ) from error


def _client_of(place: RedisPlace, redis: Any) -> Any:
    # A command whose answer was lost may have been done: to repeat it would count twice, or take
    # a swap that was made for one that was not. So nothing is repeated behind our back.
    once = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
    try:
        return redis.Redis.from_url(place.url, retry=once, **_CONNECT)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"the URL of {place.shown} has an option that the Redis client does not take: {error}"
        ) from error


def _optional(value: bytes | None) -> tuple[bytes, bytes]:
    return (b"0", b"") if value is None else (b"1", value)
