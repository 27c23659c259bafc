"""Conversations from a file, one after the other, in whichever of the known formats it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import chain, islice
from typing import Final

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.formats.lines import Line, Source, lines_of, name_of
from lance_memory.ingest.formats.structured import document, json_lines, parsed
from lance_memory.ingest.formats.transcript import spaced, transcript
from lance_memory.ingest.formats.values import conversation
from lance_memory.ingest.message import Conversation
from lance_memory.record.memory import Scope

__all__ = ["Format", "read_conversations"]

_HEAD: Final = 200
"""Lines that the format is told from."""

_JSON: Final = re.compile(r"\s*(?:\{|\[\s*(?:$|[\[{\"\]]))")


class Format(StrEnum):
    """How a file says conversations."""

    JSONL = "jsonl"
    """A conversation or a message on each line, as chat services write them; fine-tuning files."""

    JSON = "json"
    """One document: a conversation, a list of them, or a list of messages."""

    TRANSCRIPT = "transcript"
    """Lines "Name: text"."""


def read_conversations(
    file: Source,
    *,
    format: Format | str | None = None,
    scope: Scope | None = None,
    source: str = "",
    domain: str = "",
) -> Iterator[Conversation]:
    """The conversations of a file, read as they are asked for; only a JSON document is read whole.

    Messages that stand alone are gathered in conversations of up to 1,000.

    Args:
        file: a path, or lines, such as `sys.stdin`.
        format: None: told from the content.
        scope: whose; levels that a conversation names itself must agree.
        source: a registered back-end event that they come from.
        domain: which routing and overlays apply.

    Raises:
        InvalidInputError: no such format; not in that format, or no message in it: the message
            names the file and line, and quotes nothing of it.
        NotFoundError: there is no such file.
        StorageError: it cannot be read.
        ScopeError: a conversation is of another scope.
    """
    asked = None if format is None else _format(format)
    like = Conversation(messages=(), scope=scope or Scope(), source=source, domain=domain)
    return _all(file, asked, like)


def _all(file: Source, asked: Format | None, like: Conversation) -> Iterator[Conversation]:
    name, empty = name_of(file), True
    for one in _read(lines_of(file), name, asked):
        empty = False
        yield conversation(one, scope=like.scope, source=like.source, domain=like.domain)
    if empty:
        raise InvalidInputError(f"{name or 'the input'} holds no message")


def _format(given: Format | str) -> Format:
    try:
        return Format(given)
    except ValueError:
        known = ", ".join(Format)
        raise InvalidInputError(f"no format {given!r}; there are: {known}") from None


def _read(lines: Iterator[Line], name: str, asked: Format | None) -> Iterator[Conversation]:
    head = list(islice(lines, _HEAD))
    whole = chain(head, lines)
    match asked or _told(head):
        case Format.JSONL:
            return json_lines(whole, name=name)
        case Format.JSON:
            return document(whole, name=name)
        case _:
            return transcript(whole, name=name, spaced=spaced(head))


def _told(head: list[Line]) -> Format:
    first = next((line for _, line in head if line.strip()), "")
    if not _JSON.match(first):
        return Format.TRANSCRIPT
    try:
        parsed(first)
    except InvalidInputError:
        return Format.JSON
    return Format.JSONL
