"""What a caller gave to reach a service, and what it answered: is it of the right form?"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from lance_memory.errors import InvalidInputError

__all__ = ["OPENAI", "base_of", "form_of", "key_of"]

OPENAI: Final = "https://api.openai.com/v1"


def base_of(url: str) -> str:
    """The base URL without slashes at its end.

    Raises:
        InvalidInputError: it is no URL of http, or holds a user, a password, a query or a
            fragment; it is then not shown.
    """
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of a port or an IPv6 address
        fits = False
    if not fits or any(character.isspace() for character in url):
        raise InvalidInputError(f"base_url must be like {OPENAI!r}; found {url!r}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        # Not shown: a password or a key may be in it.
        raise InvalidInputError(
            f"base_url of {parts.hostname} must hold no user, password, query or fragment; "
            "pass a key as api_key"
        )
    return url.rstrip("/")


def key_of(key: str | None) -> str | None:
    """The key without white space around it (a line end from a file); None for none.

    Raises:
        InvalidInputError: no header can hold it.
    """
    stripped = key.strip() if key else ""
    if not (stripped.isascii() and stripped.isprintable()):
        raise InvalidInputError("api_key must be printable ASCII; found other characters in it")
    return stripped or None


def form_of(answer: Any) -> str:
    """An object by the names of its fields, another value by its type; no contents."""
    if isinstance(answer, dict):
        return f"an object with the fields {sorted(map(str, answer))[:10]}"
    return f"a value of the type {type(answer).__name__}"
