"""JSON values as they may be kept: their texts in one form, without secrets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from lance_memory.errors import InvalidInputError
from lance_memory.ingest import Conversation, Message
from lance_memory.record.memory import Scope
from lance_memory.store import MemoryStore

__all__ = ["cleaned_values", "small_enough"]

_LARGEST = 65_536
"""Bytes of a session's context as JSON."""


def cleaned_values(
    store: MemoryStore, scope: Scope, values: Mapping[str, Any], *, now: datetime
) -> dict[str, Any]:
    """The values, their names too, as the first steps of the write path leave texts.

    What these find in one text they take out of all.

    Raises:
        InvalidInputError: they are no JSON.
        RejectedError: a text may not be kept at all.
    """
    plain = _as_json(values)
    texts = list(_texts(plain))
    said = tuple(
        Message(content=text, seq=place, at=now) for place, text in enumerate(texts) if text.strip()
    )
    if not said:
        return plain
    kept = store.cleaned(Conversation(messages=said, scope=scope)).messages
    clean = {message.seq: message.content for message in kept}
    made = iter(
        [clean.get(place, "") if text.strip() else text for place, text in enumerate(texts)]
    )
    cleaned: dict[str, Any] = _mapped(plain, lambda _: next(made))
    return cleaned


def small_enough(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a session's context, unless they are too large for one.

    Raises:
        InvalidInputError: they are.
    """
    size = len(json.dumps(values))
    if size > _LARGEST:
        raise InvalidInputError(
            f"the context would have {size:,} bytes as JSON, and takes {_LARGEST:,}; keep what is "
            "large as a memory, and its id here"
        )
    return values


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(values), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"the values are no JSON: {error}") from error
    return plain


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, names too, in the order of `_mapped`."""
    match value:
        case str():
            yield value
        case dict():
            for name, one in value.items():
                yield name
                yield from _texts(one)
        case list():
            for one in value:
                yield from _texts(one)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed, one after the other."""
    match value:
        case str():
            return change(value)
        case dict():
            return {change(name): _mapped(one, change) for name, one in value.items()}
        case list():
            return [_mapped(one, change) for one in value]
        case _:
            return value
