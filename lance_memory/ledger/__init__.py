"""Small values and sums by space and key, shared by processes: in a file, or in Redis."""

from __future__ import annotations

import os

from lance_memory.ledger.keys import numbered
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
    "numbered",
    "open_ledger",
]


def open_ledger(where: str | os.PathLike[str], *, durable: bool = False) -> Ledger:
    """The ledger there; it is made where there is none, at its first use.

    Args:
        where: the path of a SQLite file, ":memory:", or the URL of a Redis server such as
            "redis://localhost:6379/0?prefix=my-agents".
        durable: of a file: each write survives a power cut too; see `SqliteLedger`. What a server
            does is a matter of its settings (`appendfsync always`).

    Raises:
        InvalidInputError: it is no usable URL.
        MissingExtraError: it is a URL, and the extra "redis" is not installed.
    """
    if is_redis(where):
        return RedisLedger(os.fspath(where))
    return SqliteLedger(where, durable=durable)
