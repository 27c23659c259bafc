"""What a layer keeps under a name: finding it, and writing where nobody else has meanwhile.

A name belongs to a scope. A layer writes into the scope of its handle; it finds what that scope
has of the name, else what the only narrower scope has that knows it.
"""

from __future__ import annotations

import random
import time
import unicodedata
from collections.abc import Callable
from typing import Literal, TypeVar

from lance_memory.errors import AmbiguousError, ConflictError, InvalidInputError
from lance_memory.record.memory import Kind, Memory, State
from lance_memory.record.times import utc
from lance_memory.record.values import text_value
from lance_memory.store import MemoryStore
from lance_memory.wording import some

__all__ = ["KeptByAnotherError", "checked_name", "holder", "of_key", "persistently"]

_T = TypeVar("_T")

_LONGEST_NAME = 200
_CONTROLS = ("Cc", "Zl", "Zp")
_PATIENCE = 10.0
_LONGEST_WAIT = 0.05


class KeptByAnotherError(ConflictError):
    """The key is that of a memory that the layer does not replace. Trying again does not help."""


def checked_name(what: str, name: object) -> str:
    """The name, if it is a text that a key can be made of.

    Raises:
        InvalidInputError: it is no text, blank, longer than 200 characters, or holds a control
            character or a line break.
    """
    text = text_value(what, name)
    if not text.strip():
        raise InvalidInputError(f"{what} is {text!r:.120}; it takes a text that is not blank")
    if len(text) > _LONGEST_NAME:
        raise InvalidInputError(
            f"{what} has {len(text):,} characters; it takes {_LONGEST_NAME} at most"
        )
    for place, character in enumerate(text):
        if unicodedata.category(character) in _CONTROLS:
            raise InvalidInputError(
                f"{what} holds the control character {character!r} at position {place}; it takes "
                "one line of text"
            )
    return text


def of_key(
    store: MemoryStore, key: str, *, kind: Kind, states: Literal["visible", "any"] = "visible"
) -> list[Memory]:
    """The memories with the key, all of one scope: the handle's, else the only one within it.

    Raises:
        AmbiguousError: the handle's own scope has none, and several within it have one.
    """
    found = store.list(kinds=kind, key=key, states=states)
    own = [memory for memory in found if memory.scope == store.scope] or found
    scopes = sorted({str(memory.scope) for memory in own})
    if len(scopes) > 1:
        raise AmbiguousError(
            f"{key!r} is kept in {len(scopes)} scopes within {store.scope}: {some(scopes)}; ask "
            "through a handle that is scoped to one of them",
            candidates=[memory.id for memory in own],
        )
    return own


def holder(store: MemoryStore, key: str) -> Memory | None:
    """The live memory that has the key in the handle's own scope, where a new one would stand.

    Raises:
        KeptByAnotherError: it waits for an approval, and nothing can take its place.
    """
    moment = utc(store.clock(), "clock()")
    live = store.list(key=key, kinds=tuple(Kind), states=(State.ACTIVE, State.PENDING))
    own = [memory for memory in live if memory.scope == store.scope]
    held = [m for m in own if m.expires_at is None or m.expires_at > moment]
    for memory in held:
        if memory.state is State.PENDING:
            raise KeptByAnotherError(
                f"memory {memory.id} has the key {key!r} and is pending; nothing was written: "
                "approve or reject it first",
                ids=[memory.id],
            )
    return held[0] if held else None


def persistently(attempt: Callable[[], _T]) -> _T:
    """What `attempt` gives, which reads, computes and writes; again, where another was faster.

    Each lost race is somebody else's write, so all of them together always get on; the waits are
    random, so that two do not keep meeting.

    Raises:
        ConflictError: others were faster for ten seconds on end; nothing was written.
    """
    end, wait = time.monotonic() + _PATIENCE, 0.002
    while True:
        try:
            return attempt()
        except ConflictError as error:
            if isinstance(error, KeptByAnotherError) or time.monotonic() > end:
                raise
        time.sleep(random.uniform(0, wait))
        wait = min(2 * wait, _LONGEST_WAIT)
