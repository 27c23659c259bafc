"""One value of one column: what a caller may write, and what the column holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from lance_memory.errors import InvalidInputError, RejectedError
from lance_memory.record.memory import SCOPE_LEVELS, Relationship
from lance_memory.record.rows import EMBEDDING, relationship_values
from lance_memory.record.times import parse_instant, utc

__all__ = ["TIMES", "converted", "json_text", "named", "text_value"]


def converted(column: str, values: Sequence[Any]) -> list[Any]:
    """The values as the column takes them.

    Raises:
        RejectedError: says which row holds what, and what the column takes.
    """
    convert = _CONVERT.get(column)
    if convert is None:
        return list(values)
    ready = []
    for row, value in enumerate(values):
        try:
            ready.append(None if value is None else convert(column, value))
        except InvalidInputError as error:
            raise RejectedError(f"{named([row])}: {error}", rows=[row]) from error
    return ready


def named(rows: Sequence[int]) -> str:
    """Row positions for a message: the first five, and how many more."""
    shown = ", ".join(str(row) for row in rows[:5])
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return f"row{'s' if len(rows) != 1 else ''} {shown}{more}"


def text_value(name: str, value: Any) -> str:
    """The value, if it is a Unicode text."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} is {value!r}; it takes a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"{name} holds a lone surrogate at position {error.start}, which is no Unicode text; "
            "decode it with errors='replace'"
        ) from error
    return value


def _written(name: str, value: Any) -> str:
    text = text_value(name, value)
    if not text.strip():
        raise InvalidInputError(f"{name} is {text!r}; it takes a text that is not blank")
    return text


def _instant(name: str, value: Any) -> datetime:
    if isinstance(value, str):
        return parse_instant(value, name)
    if isinstance(value, datetime):
        return utc(value, name)
    raise InvalidInputError(f"{name} is {value!r}; it takes an aware datetime or an ISO 8601 text")


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInputError(f"{name} is {value!r}; it takes a whole number")
    return value


def json_text(name: str, value: Any) -> str:
    """A mapping, or JSON text of one, as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise InvalidInputError(f"{name} is a text that is not JSON: {error}") from error
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInputError(f"{name} is {value!r}; it takes a mapping with text keys")
    if _deeper(value, _DEEPEST):
        raise InvalidInputError(f"{name} is nested deeper than {_DEEPEST} levels")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
        json.loads(text, parse_int=_whole_number)
    except (TypeError, ValueError, RecursionError) as error:  # UnicodeError is a ValueError
        raise InvalidInputError(f"{name} cannot be written as JSON: {error}") from error
    return text


def _deeper(value: Any, levels: int) -> bool:
    """Whether lists and mappings are nested deeper; reading such needs a deep stack everywhere."""
    level = [value]
    for _ in range(levels):
        containers = [v for v in level if isinstance(v, Mapping | list | tuple)]
        if not containers:
            return False
        level = [i for c in containers for i in (c.values() if isinstance(c, Mapping) else c)]
    return True


def _whole_number(digits: str) -> int:
    """The engine keeps whole numbers in 64 bits, and rounds what is longer."""
    number = int(digits)
    if not -(2**63) <= number < 2**64:
        raise ValueError(f"{digits} does not fit into 64 bits; write it as a text")
    return number


def _tags(name: str, value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInputError(f"{name} is {value!r}; it takes a list of texts")
    return list(dict.fromkeys(_written(name, tag) for tag in value))


def _relationships(name: str, value: Any) -> list[dict[str, str]]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise InvalidInputError(f"{name} is {value!r}; it takes a list of Relationship values")
    return [_edge(name, item) for item in value]


def _edge(name: str, item: Any) -> dict[str, str]:
    edge = relationship_values([item])[0] if isinstance(item, Relationship) else item
    if not isinstance(edge, Mapping) or not {"relation", "target"} <= edge.keys():
        raise InvalidInputError(f"{name} holds {item!r}; it takes Relationship values")
    return {
        "relation": _written(f"{name}.relation", edge["relation"]),
        "target": _written(f"{name}.target", edge["target"]),
        "note": text_value(f"{name}.note", edge.get("note") or ""),
    }


def _vector(name: str, value: Any) -> list[float]:
    try:
        with np.errstate(over="ignore"):  # too large for float32 is infinite, and refused as that
            array = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} is not a sequence of numbers: {error}") from error
    if array.ndim != 1:
        raise InvalidInputError(f"{name} has shape {list(array.shape)}; it takes one dimension")
    return [float(number) for number in array]


_DEEPEST = 100

TIMES = (
    *("created_at", "updated_at", "state_at", "event_at"),
    *("valid_from", "valid_to", "expires_at"),
)
_TEXTS = (
    *SCOPE_LEVELS,
    *("kind", "role", "actor", "state", "state_reason", "superseded_by", "source", "source_ref"),
)

_CONVERT: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(TIMES, _instant),
    **dict.fromkeys(_TEXTS, text_value),
    **dict.fromkeys(("id", "key", "content"), _written),
    "metadata": json_text,
    "seq": _whole,
    "revision": _whole,
    "tags": _tags,
    "relationships": _relationships,
    EMBEDDING: _vector,
}
