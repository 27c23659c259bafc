"""Where a ledger or a queue is: a file on this machine, or a Redis server."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from lance_memory.errors import InvalidInputError

__all__ = ["MEMORY", "RedisPlace", "is_redis"]

MEMORY: Final = ":memory:"
"""In place of a path: in this object's memory, and gone with it."""

_SCHEMES: Final = ("redis", "rediss", "unix")
_PREFIX: Final = "lance-memory"
_EXAMPLE: Final = "redis://localhost:6379/0?prefix=my-agents"


def is_redis(where: str | os.PathLike[str]) -> bool:
    """Whether it names a Redis server; otherwise it is a path."""
    return not isinstance(where, Path) and os.fspath(where).partition("://")[0] in _SCHEMES


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisPlace:
    """A Redis server, and what all names of ours begin with there.

    Attributes:
        url: for the client library, password included; show it to nobody.
        prefix: of the names. Stores that share a server and a prefix share their jobs.
        shown: the server without user and password, for messages.
    """

    url: str
    prefix: str
    shown: str

    @classmethod
    def of(cls, url: str) -> RedisPlace:
        """From `redis://[[user]:password@]host[:port][/db][/prefix][?prefix=...]`.

        `rediss://` is the same over TLS, `unix://path?prefix=...` a socket. Other options of the
        query (`socket_timeout`, ...) go to the client library.

        Raises:
            InvalidInputError: it is no such URL; no password is shown.
        """
        try:
            parts = urlsplit(url)
            host = f"{parts.hostname or 'localhost'}:{parts.port or 6379}"
        except ValueError as error:  # of a port or an IPv6 address
            raise InvalidInputError(f"that is no URL of a Redis server like {_EXAMPLE}") from error
        if parts.scheme not in _SCHEMES:
            raise InvalidInputError(f"a Redis URL is like {_EXAMPLE}; found {parts.scheme!r}")
        options = dict(parse_qsl(parts.query))
        path, named = _divided(parts.scheme, parts.path)
        prefix = options.pop("prefix", "") or named or _PREFIX
        plain = urlunsplit(parts._replace(path=path, query=urlencode(options)))
        shown = f"{host}{path}"
        if parts.scheme == "unix":  # urlunsplit writes no // before a path alone
            plain = plain.replace("unix:", "unix://", 1) if not parts.netloc else plain
            shown = path
        return cls(url=plain, prefix=prefix, shown=f"{parts.scheme}://{shown}")


def _divided(scheme: str, path: str) -> tuple[str, str]:
    """The part of a path that the client library knows, the number of a database, and the rest."""
    if scheme == "unix":
        return path, ""
    first, _, rest = path.strip("/").partition("/")
    if first.isdecimal():
        return f"/{first}", unquote(rest)
    return "", unquote(path.strip("/"))
