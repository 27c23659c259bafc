"""Conversations from Python values: messages, texts, and dicts as chat services write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.formats.tidy import role_of
from lance_memory.ingest.message import Conversation, Message, Role, refuse_half
from lance_memory.record.memory import SCOPE_LEVELS, Scope
from lance_memory.record.times import utc

__all__ = [
    "LISTS",
    "conversation",
    "conversations_of",
    "is_conversation",
    "message_of",
    "scope_of",
    "time_of",
]

LISTS: Final = ("messages", "conversations", "conversation")
"""What chat services call the list of messages of one conversation."""

_AT: Final = ("at", "timestamp", "created_at", "time", "date")
_REF: Final = ("ref", "id", "message_id")
_SPEAKER: Final = ("role", "from")
_CONTENT: Final = ("content", "value", "text")
_WORDLESS: Final = frozenset(["tool_calls", "function_call", "refusal", "audio"])
"""Members of a message that may have no content."""

_SESSION: Final = ("session_id", "conversation_id", "thread_id")


def conversation(
    messages: object, *, scope: Scope | None = None, source: str = "", domain: str = ""
) -> Conversation:
    """One conversation of whatever says one.

    Args:
        messages: a `Conversation`; a dict with a list "messages"; or a list (any iterable) of
            `Message`, of texts that a user wrote, and of dicts as chat services have them: "role"
            or "from", "content" (a text, or a list of parts), and optionally "name" or "actor",
            "at", "seq", "ref". One text or message alone is a conversation too.
        scope: whose; levels that the conversation names itself must agree.
        source: a registered back-end event; of a conversation without one.
        domain: of a conversation without one.

    Raises:
        InvalidInputError: none of these; a role that does not exist; a naive time; a name that is
            no Unicode text. No message quotes a content.
        ScopeError: the conversation is of another scope.
    """
    made = _conversation(messages)
    within = (scope or Scope()).narrowed(**made.scope.names())
    whole = replace(made, scope=within, source=made.source or source, domain=made.domain or domain)
    for name, value in {**within.names(), "domain": whole.domain}.items():
        refuse_half(name, value)
    return whole


def conversations_of(
    messages: object, *, scope: Scope | None = None, source: str = "", domain: str = ""
) -> tuple[Conversation, ...]:
    """One conversation, or those of a list of conversations; see `conversation`.

    Raises:
        InvalidInputError: as for `conversation`; or there is nothing at all.
        ScopeError: as for `conversation`.
    """
    single = isinstance(messages, Conversation | Message | Mapping | str | bytes)
    listed = list(messages) if isinstance(messages, Iterable) and not single else messages
    whole = isinstance(listed, list) and any(map(_is_whole, listed))
    several = listed if whole and isinstance(listed, list) else [listed]
    made = [conversation(one, scope=scope, source=source, domain=domain) for one in several]
    if not any(one.messages for one in made):
        raise InvalidInputError("there are no messages; give at least one text")
    return tuple(made)


def _is_whole(value: object) -> bool:
    return isinstance(value, Conversation) or is_conversation(value)


def _conversation(values: object) -> Conversation:
    if isinstance(values, Conversation):
        return values
    if is_conversation(values):
        return _of_mapping(values)
    if isinstance(values, str | Message | Mapping):
        return Conversation(messages=(message_of(values),))
    if isinstance(values, bytes) or not isinstance(values, Iterable):
        raise InvalidInputError(
            f"messages is of type {type(values).__name__}; it takes a Conversation, or a list of "
            "messages, of texts or of dicts with a role and a content"
        )
    return Conversation(messages=tuple(_each(values)))


def is_conversation(values: object) -> bool:
    """Whether the values are a dict with a list of messages."""
    return isinstance(values, Mapping) and any(_is_list(values.get(name)) for name in LISTS)


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _of_mapping(values: Any) -> Conversation:
    name = next(name for name in LISTS if _is_list(values.get(name)))
    return Conversation(
        messages=tuple(_each(values[name])),
        scope=scope_of(values),
        source=_text(values, ("source",)),
        domain=_text(values, ("domain",)),
    )


def _each(values: Iterable[Any]) -> Iterable[Message]:
    for place, value in enumerate(values):
        try:
            yield message_of(value)
        except InvalidInputError as error:
            raise InvalidInputError(f"message {place}: {error}") from None


def scope_of(values: Mapping[str, Any]) -> Scope:
    """The scope that a dict names, in a member "scope" or level by level.

    Raises:
        InvalidInputError: a name that is no text, or a level that does not exist.
    """
    given = values.get("scope") or {}
    if isinstance(given, Scope):
        return given
    if not isinstance(given, Mapping) or not given.keys() <= set(SCOPE_LEVELS):
        raise InvalidInputError(f"scope takes the levels {', '.join(SCOPE_LEVELS)}")
    levels = {**{name: values.get(name) for name in SCOPE_LEVELS}, **given}
    levels["session"] = levels["session"] or _text(values, _SESSION)
    for name, value in levels.items():
        if value is not None and not isinstance(value, str):
            raise InvalidInputError(f"{name} is of type {type(value).__name__}; it takes a text")
    return Scope(**{name: value or "" for name, value in levels.items()})


def message_of(value: object) -> Message:
    """A message of whatever says one; see `conversation`.

    Raises:
        InvalidInputError: it says none.
    """
    if isinstance(value, Message):
        return value
    if isinstance(value, str):
        return Message(content=value)
    if not isinstance(value, Mapping):
        raise InvalidInputError(
            f"it is of type {type(value).__name__}; a message is a text, or a dict with a role "
            "and a content"
        )
    seq = value.get("seq")
    return Message(
        content=_content(value),
        role=next((role_of(value[name]) for name in _SPEAKER if name in value), Role.USER),
        actor=_text(value, ("actor", "name")),
        at=next((time_of(value[name]) for name in _AT if value.get(name) is not None), None),
        seq=seq,
        ref=_text(value, _REF),
    )


def time_of(value: object) -> datetime:
    """A moment: an aware datetime, ISO 8601 text, or seconds since 1970.

    Raises:
        InvalidInputError: it is none, or has no time zone.
    """
    if isinstance(value, datetime):
        return utc(value, "at")
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            return utc(datetime.fromisoformat(value.strip()), "at")
    except InvalidInputError:
        raise
    except (ValueError, OverflowError, OSError):
        pass  # what it is not is said below, without a word of it
    raise InvalidInputError(
        "its time is none; it takes ISO 8601 such as 2025-01-31T12:00:00+00:00, or seconds since "
        "1970"
    )


def _content(value: Mapping[str, Any]) -> str:
    content = next((value[name] for name in _CONTENT if name in value), None)
    if isinstance(content, str):
        return content
    if content is None and not _WORDLESS.isdisjoint(value):
        refusal = value.get("refusal")
        return refusal if isinstance(refusal, str) else ""
    if isinstance(content, list | tuple):
        return "\n".join(filter(None, map(_part, content)))
    if content is None and "content" in value:
        return ""
    raise InvalidInputError("it has no content; that is a text, or a list of parts with texts")


def _part(part: object) -> str:
    """The text of a part; pictures, sounds and files have none."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or "type" not in part:
        raise InvalidInputError("a part of its content is neither a text nor a dict with a type")
    text = next((part[name] for name in ("text", "refusal") if name in part), "")
    if not isinstance(text, str):
        raise InvalidInputError("the text of a part of its content is no text")
    return text


def _text(values: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of the members that is there; numbers are taken as texts."""
    value = next((values[name] for name in names if values.get(name) is not None), "")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InvalidInputError(f"{names[0]} is of type {type(value).__name__}; it takes a text")
    return value
