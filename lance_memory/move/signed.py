"""Manifests: JSON that says what it is, and carries its own checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["checksum", "signed", "told_in"]


def checksum(told: Mapping[str, Any]) -> str:
    """SHA-256 of what is told, in hex."""
    return hashlib.sha256(_text(told).encode()).hexdigest()


def signed(told: Mapping[str, Any]) -> str:
    """What is told, and its checksum, as text."""
    return _text({**told, "checksum": checksum(told)})


def told_in(text: bytes, *, form: str) -> dict[str, Any]:
    """What `signed` was given, which said that its `format` is `form`.

    Raises:
        ValueError, RecursionError: it is something else, or was changed since.
    """
    told = json.loads(text)
    if not isinstance(told, dict) or told.get("format") != form:
        raise ValueError(f"it does not say that it is a {form!r}")
    if told.pop("checksum", None) != checksum(told):
        raise ValueError("its checksum is wrong")
    return told


def _text(told: Mapping[str, Any]) -> str:
    return json.dumps(told, ensure_ascii=False, sort_keys=True, allow_nan=False)
