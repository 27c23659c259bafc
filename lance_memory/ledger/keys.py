"""Names as bytes: any text is one, and they are ordered alike in every ledger."""

from __future__ import annotations

__all__ = ["key_of", "named"]


def key_of(name: str) -> bytes:
    """UTF-8, lone surrogates included: no name is refused, no two are mixed up."""
    return name.encode("utf-8", "surrogatepass")


def named(key: bytes) -> str:
    """The inverse of `key_of`."""
    return key.decode("utf-8", "surrogatepass")
