"""Small values and sums by space and key, shared by processes: in a file, or in Redis."""

from __future__ import annotations

import os

from lance_memory.ledger.place import MEMORY, RedisPlace, is_redis
from lance_memory.ledger.protocol import Ledger
from lance_memory.ledger.redis import RedisLedger
from lance_memory.ledger.sqlite import SqliteLedger

__all__ = [
    "MEMORY",
    "Ledger",
    "RedisLedger",
    "RedisPlace",
    "SqliteLedger",
    "is_redis",
    "open_ledger",
]


def open_ledger(where: str | os.PathLike[str]) -> Ledger:
    """The ledger there; it is made where there is none, at its first use.

    Args:
        where: the path of a SQLite file, ":memory:", or the URL of a Redis server such as
            "redis://localhost:6379/0?prefix=my-agents".

    Raises:
        InvalidInputError: it is no usable URL.
        MissingExtraError: it is a URL, and the extra "redis" is not installed.
    """
    return RedisLedger(os.fspath(where)) if is_redis(where) else SqliteLedger(where)
