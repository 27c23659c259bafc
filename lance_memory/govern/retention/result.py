"""What became of a retention pass."""

from __future__ import annotations

from dataclasses import dataclass, field

from lance_memory.govern.retention.plan import RetentionPlan
from lance_memory.html import Told
from lance_memory.wording import counted, worded

__all__ = ["RetentionResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionResult(Told):
    """What was put away and retired.

    Attributes:
        uri: the store.
        version: that was made; the one that was found, where nothing was retired.
        plan: what was due.
        retired: how many were hidden by this version.
        path: the file that they are in; "" where none was asked for, or nothing was due.
        archived: how many memories are in it.
        changed: how many were changed by others meanwhile, and stay.
        left: how many are due and not in the file, which a call that was killed has left; the
            next call takes them.
        upkeep: as in `WriteResult`.
    """

    uri: str
    version: int
    plan: RetentionPlan = field(repr=False)
    retired: int = 0
    path: str = ""
    archived: int = 0
    changed: int = 0
    left: int = 0
    upkeep: str = ""

    def __str__(self) -> str:
        if not self.plan:
            return f"nothing is due; version {self.version} stays"
        told = counted(self.retired, "memory", "memories")
        parts = [f"version {self.version}: retired {told} of {self.plan.considered:,}"]
        if self.path:
            parts.append(f"{self.archived:,} in {self.path}")
        if self.changed:
            parts.append(worded("{n} changed meanwhile, and [stays|stay]", self.changed))
        if self.left:
            parts.append(f"{self.left:,} left for the next call")
        return "; ".join(parts)
