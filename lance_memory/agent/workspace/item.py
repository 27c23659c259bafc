"""One thing that an agent is told: its part, its name, its value, and the row that keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, TypeAlias

from lance_memory.agent.workspace.values import checked_name, checked_value
from lance_memory.errors import InvalidInputError, StoreFormatError
from lance_memory.record.arguments import one_of
from lance_memory.record.memory import Kind, Memory, Scope, State

__all__ = [
    "MEMORY_MODE",
    "Key",
    "WorkspaceItem",
    "WorkspacePart",
    "item_of",
    "key_of",
    "named",
    "row_of",
]

_PREFIX: Final = "workspace:"
_MEMBER: Final = "workspace"
_SOURCE: Final = "workspace"


class WorkspacePart(StrEnum):
    """What sort of thing an agent is told."""

    PROMPT = "prompt"
    SKILL = "skill"
    SETTING = "setting"
    POLICY = "policy"
    FLAG = "flag"


Key: TypeAlias = tuple[WorkspacePart, str]
"""WorkspacePart and name."""

MEMORY_MODE: Final[Key] = (WorkspacePart.SETTING, "memory_mode")
"""The one setting that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceItem:
    """One version of one thing that an agent is told.

    Attributes:
        part: what sort of thing.
        name: its name within the part.
        version: 1, 2, 3, ... of this item.
        value: a JSON value: of a prompt its text; of a skill `text`, `kind`, `enabled`.
        scope: whose: a tenant's, an agent's, or an agent's of a tenant.
        id: of the memory that keeps it.
        by: who set it.
        at: when.
        reason: why.
        until: when something took its place, or it was removed; None: it stands.
        removed: it was removed, and nothing took its place.
    """

    part: WorkspacePart
    name: str
    version: int
    value: Any
    scope: Scope = field(default_factory=Scope)
    id: str = ""
    by: str = ""
    at: datetime | None = None
    reason: str = ""
    until: datetime | None = None
    removed: bool = False

    @property
    def key(self) -> Key:
        """Its part and name."""
        return self.part, self.name

    @property
    def text(self) -> str:
        """What a person reads: the text of a prompt or a skill, else the value as JSON."""
        return text_of(self.part, self.value)

    def __str__(self) -> str:
        return f"{self.part}/{self.name}"


def text_of(part: WorkspacePart, value: Any) -> str:
    """The text of a prompt or a skill, else the value as JSON."""
    if part is WorkspacePart.PROMPT:
        return str(value)
    if part is WorkspacePart.SKILL:
        return str(value["text"])
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)


def named(part: WorkspacePart | str, name: str) -> Key:
    """A part and a name, checked.

    Raises:
        InvalidInputError: there is no such part, or the name is none.
    """
    chosen = WorkspacePart(one_of("part", part, WorkspacePart))
    if chosen is WorkspacePart.SETTING and name != MEMORY_MODE[1]:
        raise InvalidInputError(f"there is no setting {name!r}; there is: {MEMORY_MODE[1]}")
    return chosen, checked_name(name)


def key_of(key: Key) -> str:
    """The memory's key."""
    return f"{_PREFIX}{key[0]}/{key[1]}"


def row_of(key: Key, value: Any, *, version: int, by: str, reason: str) -> dict[str, Any]:
    """The memory of a new version.

    Its content begins with a heading, so that no two items have the same: equal contents of one
    scope are one memory. What counts is the value in its metadata.

    Raises:
        InvalidInputError: the value is not one of that part.
    """
    part, name = key
    checked = checked_value(part, value)
    told = {"part": part, "name": name, "version": version, "value": checked}
    return {
        "key": key_of(key),
        "content": f"{part} {name}\n\n{text_of(part, checked)}",
        "kind": Kind.WORKSPACE,
        "source": _SOURCE,
        "metadata": {_MEMBER: {**told, "by": by, "reason": reason}},
    }


def item_of(memory: Memory) -> WorkspaceItem | None:
    """The item that a memory keeps; None: it is of another part, such as a grant.

    Raises:
        StoreFormatError: it has the key of an item, and was written by something else.
    """
    part, _, name = (memory.key or "").removeprefix(_PREFIX).partition("/")
    if not (memory.key or "").startswith(_PREFIX) or part not in set(WorkspacePart):
        return None
    told = memory.metadata.get(_MEMBER)
    version = told.get("version") if isinstance(told, Mapping) else None
    if not isinstance(told, Mapping) or not isinstance(version, int) or "value" not in told:
        raise StoreFormatError(
            f"memory {memory.id} has the key {memory.key!r}, and holds no such item: something "
            "else has written it; retire it, and set the item again"
        )
    stands = memory.state is State.ACTIVE
    return WorkspaceItem(
        part=WorkspacePart(part),
        name=name,
        version=version,
        value=told["value"],
        scope=memory.scope,
        id=memory.id,
        by=str(told.get("by", "")),
        at=memory.created_at,
        reason=str(told.get("reason", "")),
        until=None if stands else memory.state_at,
        removed=memory.state is State.RETIRED,
    )
