"""Names as bytes: any text is one, and they are ordered alike in every ledger."""

from __future__ import annotations

__all__ = ["LAST", "key_of", "named", "numbered"]

LAST = b"\xff"
"""Of the number that `append` has given last: no name becomes these bytes."""


def key_of(name: str) -> bytes:
    """UTF-8, lone surrogates included: no name is refused, no two are mixed up."""
    return name.encode("utf-8", "surrogatepass")


def numbered(number: int) -> str:
    """The key of what was appended under a number: 16 hex digits, so that they sort by number."""
    return f"{number:016x}"


def named(key: bytes) -> str:
    """The inverse of `key_of`."""
    return key.decode("utf-8", "surrogatepass")
