"""What a layer keeps under a name: finding it, and writing where nobody else has meanwhile.

A name belongs to a scope. A layer writes into the scope of its handle; it finds what that scope
has of the name, else what the only narrower scope has that knows it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, Literal, TypeVar

from lance_memory.errors import AmbiguousError, ConflictError
from lance_memory.record.arguments import whole
from lance_memory.record.filters import Filter, all_of, equals
from lance_memory.record.memory import Kind, Memory, State
from lance_memory.record.rows import to_memories
from lance_memory.record.times import utc
from lance_memory.store import MemoryStore
from lance_memory.wording import some

__all__ = [
    "KeptByAnotherError",
    "StaleVersionError",
    "held",
    "of_key",
    "of_own_scope",
    "persistently",
    "refuse_stale",
]

_T = TypeVar("_T")

_PATIENCE: Final = 10.0
_LONGEST_WAIT: Final = 0.05


class KeptByAnotherError(ConflictError):
    """The key is that of a memory that the layer does not replace. Trying again does not help."""


class StaleVersionError(ConflictError):
    """Another version stands than the caller has read. Trying again does not help."""


def of_key(
    store: MemoryStore, key: str, *, kind: Kind, states: Literal["visible", "any"] = "visible"
) -> list[Memory]:
    """The memories with the key, all of one scope: the handle's, else the only one within it.

    Raises:
        AmbiguousError: the handle's own scope has none, and several within it have one.
    """
    if own := of_own_scope(store, key, kinds=(kind,), states=states):
        return own
    found = store.list(kinds=kind, key=key, states=states)
    scopes = {memory.scope for memory in found}
    if len(scopes) > 1:
        raise AmbiguousError(
            f"{key!r} is kept in {len(scopes)} scopes within {store.scope}: "
            f"{some(sorted(map(str, scopes)))}; ask through a handle that is scoped to one of them",
            candidates=[memory.id for memory in found],
        )
    return found


def of_own_scope(
    store: MemoryStore,
    key: str,
    *,
    kinds: tuple[Kind, ...] = tuple(Kind),
    states: Literal["visible", "live", "any"],
) -> list[Memory]:
    """The memories with the key in the handle's very scope; what narrower ones have is not read."""
    exactly = all_of(*(equals(level, name) for level, name in store.scope.names().items()))
    asked = Filter(kinds=kinds, states=states, equal={"key": key}, also=exactly)
    moment = utc(store.clock(), "clock()")
    return to_memories(store._snapshot().scan(asked.predicate(moment)))


def held(
    store: MemoryStore, key: str, *, is_one: Callable[[Memory], bool], other: str
) -> Memory | None:
    """The live memory that has the key in the handle's own scope, where a new one would stand.

    Args:
        store: the handle.
        key: of the memory.
        is_one: whether a memory is one that the layer keeps.
        other: what one is that is not, for the message: "no procedure".

    Raises:
        KeptByAnotherError: it is none of the layer's, or waits for an approval: nothing can take
            its place.
    """
    found = of_own_scope(store, key, states="live")
    for memory in found:
        if memory.state is State.PENDING:
            raise KeptByAnotherError(
                f"memory {memory.id} has the key {key!r} and is pending; nothing was written: "
                "approve or reject it first",
                ids=[memory.id],
            )
        if not is_one(memory):
            raise KeptByAnotherError(
                f"memory {memory.id} has the key {key!r} and is {other}; nothing was written: "
                "give it another key first",
                ids=[memory.id],
            )
    return found[0] if found else None


def refuse_stale(what: str, standing: int, expected: int | None, *, id: str | None) -> None:
    """Refuse to write over another version than the one that was read.

    Args:
        what: has versions, for the message.
        standing: the version that stands; 0: nothing does.
        expected: the version that was read, 0 for none; None: whichever stands.
        id: of the memory that stands.

    Raises:
        InvalidInputError: `expected` is no version.
        StaleVersionError: it is another one.
    """
    if expected is None or whole("expected_version", expected, least=0) == standing:
        return
    there, wanted = (f"version {one}" if one else "nothing" for one in (standing, expected))
    raise StaleVersionError(
        f"{what}: {there} stands, and not {wanted}; nothing was written: read it again",
        ids=[id] if id else [],
    )


def persistently(attempt: Callable[[], _T]) -> _T:
    """What `attempt` gives, which reads, computes and writes; again, where another was faster.

    Each lost race is somebody else's write, so all of them together always get on; the waits are
    random, so that two do not keep meeting.

    Raises:
        KeptByAnotherError, StaleVersionError: at once, for they stay true.
        ConflictError: others were faster for ten seconds on end; nothing was written.
    """
    end, wait = time.monotonic() + _PATIENCE, 0.002
    while True:
        try:
            return attempt()
        except (KeptByAnotherError, StaleVersionError):
            raise
        except ConflictError:
            if time.monotonic() > end:
                raise
        time.sleep(random.uniform(0, wait))
        wait = min(2 * wait, _LONGEST_WAIT)
