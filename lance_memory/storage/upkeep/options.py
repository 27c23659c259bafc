"""When and how a store is tended by its writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from lance_memory.record.arguments import duration, instance, one_of, whole
from lance_memory.storage.upkeep.retain import Retain

__all__ = ["Upkeep", "UpkeepMode"]


class UpkeepMode(StrEnum):
    """Who does what is due."""

    BACKGROUND = "background"
    INLINE = "inline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """When a write is followed by upkeep, and what it keeps.

    Upkeep merges small fragments, folds new rows into the indices, and removes the versions that
    `retain` does not keep. It changes no answer. It is due once any of the counts below is reached
    since it was done last.

    Attributes:
        mode: "background": in a thread, which a program waits for when it ends, one step at most;
            "inline": the write that finds it due does it before it returns.
        fragments: so many more fragments. Searches read each of them: about 0.5 ms for one.
        unindexed_rows: so many rows were written. From as many on they are folded.
        versions: so many versions were made. From as many on those without a place in the budget
            are removed.
        bytes: so much was written, as Arrow counts it in memory.
        age: so long ago, if something was written since.
        step_rows: one step merges no more rows; `optimize` does.
        retain: which versions are kept.
    """

    mode: UpkeepMode = UpkeepMode.BACKGROUND
    fragments: int = 16
    unindexed_rows: int = 256
    versions: int = 64
    bytes: int = 64 * 2**20
    age: timedelta = timedelta(days=1)
    step_rows: int = 262_144
    retain: Retain = field(default_factory=Retain)

    def __post_init__(self) -> None:
        one_of("mode", self.mode, [mode.value for mode in UpkeepMode])
        object.__setattr__(self, "mode", UpkeepMode(self.mode))
        for name in ("fragments", "unindexed_rows", "versions", "bytes"):
            whole(name, getattr(self, name), least=1)
        whole("step_rows", self.step_rows, least=1_024)
        duration("age", self.age)
        instance("retain", self.retain, Retain, "a Retain")
