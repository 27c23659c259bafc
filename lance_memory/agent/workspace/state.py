"""All that an agent is told at one moment, and what differs between two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lance_memory.agent.workspace.item import (
    MEMORY_MODE,
    Key,
    WorkspaceItem,
    WorkspacePart,
    changed_lines,
)
from lance_memory.agent.workspace.values import MemoryMode, Skill
from lance_memory.record.compare import same_json
from lance_memory.record.memory import Scope
from lance_memory.wording import counted, shown, some

__all__ = ["ItemChange", "WorkspacePlan", "WorkspaceState", "differences"]

_PLURAL: Final = {WorkspacePart.POLICY: "policies"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceState:
    """What an agent is told at one version of the store.

    Attributes:
        version: of the store.
        scope: whose workspace.
        items: by part and name; of an agent's workspace its tenant's too, where it has none of
            its own.
    """

    version: int
    scope: Scope
    items: tuple[WorkspaceItem, ...] = ()

    @property
    def memory_mode(self) -> MemoryMode:
        """How context is made; "hybrid" where nothing is set."""
        found = (item.value for item in self.items if item.key == MEMORY_MODE)
        return MemoryMode(next(found, MemoryMode.HYBRID))

    @property
    def prompts(self) -> Mapping[str, str]:
        """Name → text."""
        return self._of(WorkspacePart.PROMPT)

    @property
    def skills(self) -> Mapping[str, Skill]:
        """Name → skill, disabled ones too."""
        return {
            item.name: Skill(name=item.name, version=item.version, **item.value)
            for item in self.items
            if item.part is WorkspacePart.SKILL
        }

    @property
    def policies(self) -> Mapping[str, Any]:
        """Name → JSON value."""
        return self._of(WorkspacePart.POLICY)

    @property
    def flags(self) -> Mapping[str, Any]:
        """Name → true, false, a number or a text."""
        return self._of(WorkspacePart.FLAG)

    def __str__(self) -> str:
        counts = Counter(item.part for item in self.items if item.part is not WorkspacePart.SETTING)
        told = [counted(n, part, _PLURAL.get(part, "")) for part, n in sorted(counts.items())]
        return f"memory mode {self.memory_mode}, {', '.join(told) or 'nothing else'}"

    def __repr__(self) -> str:
        return f"<WorkspaceState of {self.scope} version {self.version}: {self}>"

    def _of(self, part: WorkspacePart) -> dict[str, Any]:
        return {item.name: item.value for item in self.items if item.part is part}


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """What becomes of one item.

    Attributes:
        part: of the item.
        name: of the item.
        version: the present one of this workspace's own; 0: there is none.
        before: the value until then; None: there is none.
        after: the value that it gets; None: it is removed.
    """

    part: WorkspacePart
    name: str
    version: int = 0
    before: Any = None
    after: Any = None

    @property
    def key(self) -> Key:
        """Its part and name."""
        return self.part, self.name

    @property
    def lines(self) -> list[str]:
        """What changes, as lines with - and +, and one around each."""
        return changed_lines(self.part, self.before, self.after)

    def __str__(self) -> str:
        return f"{self.part}/{self.name}"

    def __repr__(self) -> str:
        at = f"at version {self.version}" if self.version else "new"
        return f"<ItemChange {self} ({at}): {shown('; '.join(self.lines)) or 'the same'}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspacePlan:
    """What would become of a workspace; `Workspace.apply` makes it one version.

    Attributes:
        version: of the store that it was made at.
        scope: whose workspace.
        added: items that there are none of yet.
        changed: those that get another value.
        removed: those that go.
        same: those that stay as they are.
    """

    version: int
    scope: Scope
    added: tuple[ItemChange, ...] = ()
    changed: tuple[ItemChange, ...] = ()
    removed: tuple[ItemChange, ...] = ()
    same: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    def __str__(self) -> str:
        told = {"added": self.added, "changed": self.changed, "removed": self.removed}
        lines = [f"{what}: {some(changes)}" for what, changes in told.items() if changes]
        return "; ".join([*(lines or ["nothing to change"]), f"{len(self.same)} the same"])

    def __repr__(self) -> str:
        return f"<WorkspacePlan of {self.scope} at version {self.version}: {self}>"


def differences(
    before: Iterable[WorkspaceItem], after: Mapping[Key, Any], *, version: int, scope: Scope
) -> WorkspacePlan:
    """What makes a workspace with these items one with those values, and no others."""
    known = {item.key: item for item in before}
    added, changed, same = [], [], []
    for key, value in sorted(after.items()):
        item = known.get(key)
        if item is None:
            added.append(ItemChange(part=key[0], name=key[1], after=value))
        elif same_json(item.value, value):
            same.append(str(item))
        else:
            changed.append(_change(item, value))
    return WorkspacePlan(
        version=version,
        scope=scope,
        added=tuple(added),
        changed=tuple(changed),
        removed=tuple(_change(item, None) for key, item in known.items() if key not in after),
        same=tuple(same),
    )


def _change(item: WorkspaceItem, after: Any) -> ItemChange:
    return ItemChange(
        part=item.part, name=item.name, version=item.version, before=item.value, after=after
    )
