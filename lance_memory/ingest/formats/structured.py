"""Conversations from JSON: one or one message a line, or a whole document."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.formats.lines import Line, blamed
from lance_memory.ingest.formats.values import (
    conversation,
    is_conversation,
    message_of,
    scope_of,
)
from lance_memory.ingest.message import Conversation, Message
from lance_memory.record.memory import Scope

__all__ = ["LONGEST", "document", "json_lines", "parsed"]

LONGEST = 1_000
"""Messages that are gathered into one conversation, at most: a file may have any number of them."""


def json_lines(lines: Iterable[Line], *, name: str) -> Iterator[Conversation]:
    """The conversations of each line that has any, and one of each run of messages of one scope."""
    run: list[Message] = []
    whose = Scope()
    for number, line in lines:
        if not line.strip():
            continue
        with blamed(name, number):
            values = parsed(line)
            alone = not isinstance(values, list) and not is_conversation(values)
            message = message_of(values) if alone else None
            scope = scope_of(values) if isinstance(values, Mapping) else Scope()
            given = [] if message else _several(values)
        if run and (given or scope != whose or len(run) >= LONGEST):
            yield Conversation(messages=tuple(run), scope=whose)
            run = []
        yield from given
        if message:
            run.append(message)
            whose = scope
    if run:
        yield Conversation(messages=tuple(run), scope=whose)


def document(lines: Iterable[Line], *, name: str) -> Iterator[Conversation]:
    """The conversations of one JSON document: one, a list of them, or a list of messages."""
    text = "\n".join(line for _, line in lines)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        with blamed(name, error.lineno if isinstance(error, json.JSONDecodeError) else 1):
            raise InvalidInputError(_no_json(error)) from None
    with blamed(name, 1):
        yield from _several(values)


def _several(values: object) -> list[Conversation]:
    """Of a list with conversations in it: each of them; of anything else: the one that it is.

    Raises:
        InvalidInputError: one of them is none.
    """
    if not isinstance(values, list) or not any(map(is_conversation, values)):
        return [conversation(values)]
    found = []
    for place, value in enumerate(values):
        try:
            found.append(conversation(value))
        except InvalidInputError as error:
            raise InvalidInputError(f"conversation {place}: {error}") from None
    return found


def parsed(line: str) -> Any:
    """The values that the line says as JSON.

    Raises:
        InvalidInputError: it says none.
    """
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(_no_json(error)) from None


def _no_json(error: Exception) -> str:
    where = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
    what = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
    return f"it is not JSON ({what}{where})"
