"""What the verbs that change a workspace answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lance_memory.agent.workspace.item import WorkspaceItem
from lance_memory.agent.workspace.state import ItemChange, WorkspacePlan

__all__ = ["ItemOutcome", "ItemResult", "WorkspaceResult"]


class ItemOutcome(StrEnum):
    """What became of an item."""

    SET = "set"
    UNCHANGED = "unchanged"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """A change of one item that is durable.

    Attributes:
        uri: of the store.
        version: of the store: the one that was made, or found where nothing changed.
        outcome: what became of the item.
        item: as it stands; of a removed one, as it stood.
        before: what was told until then, which may be the tenant's; None: nothing was.
        upkeep: why the last upkeep of the store failed; "" where it did not.
        warnings: which soft limits of a quota are passed.
    """

    uri: str
    version: int
    outcome: ItemOutcome
    item: WorkspaceItem
    before: WorkspaceItem | None = None
    upkeep: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def change(self) -> ItemChange:
        """From what was told to what is."""
        one, before = self.item, self.before
        return ItemChange(
            part=one.part,
            name=one.name,
            version=0 if before is None else before.version,
            before=None if before is None else before.value,
            after=None if self.outcome is ItemOutcome.REMOVED else one.value,
        )

    def __str__(self) -> str:
        told = {
            ItemOutcome.SET: "is at version",
            ItemOutcome.UNCHANGED: "says so already, at version",
            ItemOutcome.REMOVED: "was removed, which was at version",
        }[self.outcome]
        return f"version {self.version}: {self.item} {told} {self.item.version}"

    def __repr__(self) -> str:
        return f"<ItemResult {self}, id {self.item.id}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceResult:
    """A plan that was carried out as version `version` of the store, or had nothing to do.

    `upkeep` and `warnings` are as in `ItemResult`.
    """

    uri: str
    version: int
    plan: WorkspacePlan
    upkeep: str = ""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"version {self.version}: {self.plan}"

    def __repr__(self) -> str:
        return f"<WorkspaceResult {self}>"
