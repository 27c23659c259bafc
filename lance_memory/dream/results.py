"""What became of a pass, and where a dreamer stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from lance_memory.curate import ConsolidationPlan
from lance_memory.errors import LanceMemoryError, StoppedError

__all__ = ["DreamOutcome", "DreamResult", "DreamStatus", "Running", "failure", "success"]


class DreamOutcome(StrEnum):
    """What became of a pass."""

    CONSOLIDATED = "consolidated"
    NOTHING = "nothing"
    PLANNED = "planned"
    BUSY = "busy"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamResult:
    """One pass.

    Attributes:
        outcome: "consolidated": it made a version; "nothing": it found nothing to do; "planned":
            a dry run; "busy": another pass was under way; "stopped": by `stop`, or Ctrl-C;
            "failed". All but the first changed no memory.
        at: when it began.
        trigger: why, such as "dream: idle 10m"; the log shows it as the reason.
        version: the version it made, else the one it found; None where none could be read.
        clusters: how many memories it put in the place of their sources.
        skipped: clusters that it left alone.
        failed: those of them whose transform failed, or lost too much.
        rows_saved: by how many the number of visible memories fell.
        cut: why it ended before all clusters were looked at; empty: it did not.
        seconds: how long it took.
        reason: why it failed, or who is under way.
        also: what came of what it was to do beside; empty: nothing was. It may have made a version
            of its own, whatever became of the pass.
        plan: what it did or would do, with the reasons; not kept in the status.
        error: what made it fail; not kept in the status.
    """

    outcome: DreamOutcome
    at: datetime
    version: int | None = None
    trigger: str = ""
    clusters: int = 0
    skipped: int = 0
    failed: int = 0
    rows_saved: int = 0
    cut: str = ""
    seconds: float = 0.0
    reason: str = ""
    also: str = ""
    plan: ConsolidationPlan | None = field(default=None, repr=False, compare=False)
    error: LanceMemoryError | None = field(default=None, repr=False, compare=False)

    def manifest(self) -> Mapping[str, Any]:
        """All but the plan and the error, as JSON values."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.compare}
        return {**values, "outcome": str(self.outcome), "at": self.at.isoformat()}


def success(
    plan: ConsolidationPlan,
    *,
    outcome: DreamOutcome,
    at: datetime,
    trigger: str,
    version: int,
    seconds: float,
    also: str = "",
) -> DreamResult:
    """A pass that was carried through, or planned."""
    return DreamResult(
        outcome=outcome,
        at=at,
        version=version,
        trigger=trigger,
        clusters=len(plan.accepted),
        skipped=len(plan.skipped),
        failed=len(plan.failed),
        rows_saved=plan.rows_saved,
        cut=plan.cut,
        seconds=round(seconds, 3),
        also=also,
        plan=plan,
    )


def failure(
    error: Exception,
    *,
    at: datetime,
    trigger: str = "",
    version: int | None = None,
    seconds: float = 0.0,
    also: str = "",
) -> DreamResult:
    """A pass that failed, or was stopped."""
    stopped = isinstance(error, StoppedError)
    known = isinstance(error, LanceMemoryError)
    return DreamResult(
        outcome=DreamOutcome.STOPPED if stopped else DreamOutcome.FAILED,
        at=at,
        version=version,
        trigger=trigger,
        seconds=round(seconds, 3),
        reason=str(error) if known else f"{type(error).__name__}: {error}",
        also=also,
        error=error if isinstance(error, LanceMemoryError) else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A pass that is under way: in which process, since when, why, and over which memories."""

    pid: int
    host: str
    since: datetime
    trigger: str
    about: str

    def __str__(self) -> str:
        since = self.since.isoformat(timespec="seconds")
        return f"process {self.pid} on {self.host}, since {since}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamStatus:
    """Where a dreamer's store stands.

    Attributes:
        about: the branch, scope and filter that this is about.
        running: the pass that is under way in the store, of whatever process.
        lost: the pass that was under way when its process was killed; the next one clears it.
        last: the last pass over the same memories.
        new_rows: memories that were written since the last pass that began at the newest one.
        unfinished: passes ended at their bounds, and the next one goes on.
        next_cron: when the cadence makes the next pass due.
        retry_at: after failures of this dreamer: no pass begins before.
    """

    about: str
    running: Running | None
    lost: Running | None
    last: DreamResult | None
    new_rows: int
    unfinished: bool
    next_cron: datetime | None
    retry_at: datetime | None
