"""One thing that an agent is told: its part, its name, its value, and the row that keeps it."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, TypeAlias

from lance_memory.agent.workspace.values import checked_value, file_name
from lance_memory.errors import InvalidInputError, StoreFormatError
from lance_memory.record.arguments import mapping, one_of, whole
from lance_memory.record.keys import WORKSPACE
from lance_memory.record.memory import Kind, Memory, Scope, State
from lance_memory.wording import shown

__all__ = [
    "MEMORY_MODE",
    "Key",
    "WorkspaceItem",
    "WorkspacePart",
    "changed_lines",
    "item_of",
    "key_of",
    "lines_of",
    "named",
    "row_of",
]

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

    def __repr__(self) -> str:
        gone = "" if self.until is None else ", removed" if self.removed else ", superseded"
        return (
            f"<WorkspaceItem {self} version {self.version}{gone}: {shown(self.text)!r}; "
            f"{self.scope}, id {self.id}>"
        )


def text_of(part: WorkspacePart, value: Any) -> str:
    """The text of a prompt or a skill, else the value as JSON."""
    if part is WorkspacePart.PROMPT:
        return str(value)
    if part is WorkspacePart.SKILL:
        return str(value["text"])
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)


def changed_lines(part: WorkspacePart, before: Any, after: Any) -> list[str]:
    """What differs between two values of an item, as lines with - and +, and one around each.

    None stands for no value. Of a skill its kind and its switch are lines too.
    """
    old, new = (lines_of(part, value) for value in (before, after))
    found = difflib.unified_diff(old, new, lineterm="", n=1)
    return [line for line in [*found][2:] if not line.startswith("@@")]  # without the file names


def lines_of(part: WorkspacePart, value: Any) -> list[str]:
    """What versions of an item are compared by; none of no value."""
    if value is None:
        return []
    lines = text_of(part, value).splitlines()
    if part is WorkspacePart.SKILL:
        kind = [f"kind: {value['kind']}"] if value["kind"] else []
        return [*kind, f"enabled: {'yes' if value['enabled'] else 'no'}", *lines]
    return lines


def named(part: WorkspacePart | str, name: str) -> Key:
    """A part and a name, checked.

    Raises:
        InvalidInputError: there is no such part, or the name is none.
    """
    chosen = WorkspacePart(one_of("part", part, WorkspacePart))
    if chosen is WorkspacePart.SETTING and name != MEMORY_MODE[1]:
        raise InvalidInputError(f"there is no setting {name!r}; there is: {MEMORY_MODE[1]}")
    return chosen, file_name("name", name)


def key_of(key: Key) -> str:
    """The memory's key."""
    return f"{WORKSPACE}{key[0]}/{key[1]}"


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

    What something else has written is none either, once it stands no more: so retiring it helps.

    Raises:
        StoreFormatError: it has the key of an item, and was written by something else: what it
            holds is no value of that part.
    """
    key = memory.key or ""
    part, _, name = key.removeprefix(WORKSPACE).partition("/")
    if not key.startswith(WORKSPACE) or part not in set(WorkspacePart):
        return None
    stands = memory.state is State.ACTIVE
    try:
        told = mapping("metadata", memory.metadata.get(_MEMBER), "what an item says")
        version = whole("version", told.get("version"), least=1)
        value = checked_value(part, told.get("value"))
    except InvalidInputError as error:
        if not stands:
            return None
        raise StoreFormatError(
            f"memory {memory.id} has the key {memory.key!r}, and holds no such item ({error}): "
            "something else has written it; retire it, and set the item again"
        ) from error
    return WorkspaceItem(
        part=WorkspacePart(part),
        name=name,
        version=version,
        value=value,
        scope=memory.scope,
        id=memory.id,
        by=str(told.get("by", "")),
        at=memory.created_at,
        reason=str(told.get("reason", "")),
        until=None if stands else memory.state_at,
        removed=memory.state is State.RETIRED,
    )
