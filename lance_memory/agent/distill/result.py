"""What became of a distillation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lance_memory.agent.distill.snapshot import DistilledSnapshot, Refused
from lance_memory.html import Told
from lance_memory.wording import counted

__all__ = ["DistillResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillResult(Told):
    """Snapshots that were made, or would be, as one version.

    Attributes:
        uri: of the store.
        version: the one that was made, or found where nothing was.
        planned: it was a dry run, and nothing was written.
        snapshots: those that are new, or new of something.
        refused: what nothing was made of, because the transform failed or lost too much.
        unchanged: how many snapshots say what their memories say, and stay.
        small: how many of the sessions, days, ... that were looked at have too few memories.
        left: how many are left for the next time, because `max_snapshots` was reached.
        retired: ids of snapshots that say what was deleted, forgotten, or retired by a person, and
            of whose memories none is left to make them anew of.
        read: how many memories it looked at; where little has changed, few of a long history.
        watermarks: tenant → up to which event all went into snapshots, where that was noted.
        upkeep: as in `WriteResult`.
    """

    uri: str
    version: int
    planned: bool = False
    snapshots: tuple[DistilledSnapshot, ...] = ()
    refused: tuple[Refused, ...] = ()
    unchanged: int = 0
    small: int = 0
    left: int = 0
    retired: tuple[str, ...] = ()
    read: int = 0
    watermarks: Mapping[str, int] = field(default_factory=dict)
    upkeep: str = ""

    def __str__(self) -> str:
        made = counted(len(self.snapshots), "snapshot")
        told = [f"{made} {'to make' if self.planned else 'made'}", f"{self.unchanged} unchanged"]
        more = {
            "refused": len(self.refused),
            "left": self.left,
            "too small": self.small,
            "retired": len(self.retired),
        }
        told += [f"{number} {what}" for what, number in more.items() if number]
        return f"version {self.version}: {', '.join(told)}"

    def __repr__(self) -> str:
        return f"<DistillResult {self}>"
