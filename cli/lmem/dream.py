"""dream: consolidation in the background, in the foreground of a terminal or of a service."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.clustering import Bounding, Clustering, Guarding, Transforming
from lmem.command import Call, Command
from lmem.options import Filters, Scoped, duration
from lmem.output import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import (
        DistillResult,
        Dreamer,
        DreamResult,
        DreamStatus,
        Execution,
        MemoryStore,
        Transform,
        Triggers,
    )

__all__ = ["register"]

_OFTEN = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggering:
    """When a pass is due; any one of them."""

    idle: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Nobody wrote for so long: 10m, 2h, ... (the default)."),
    ] = None
    new_rows: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=10**9, help="So many were written since.")
    ] = None
    cron: Annotated[
        str | None, typer.Option(metavar="CRON", help="A cadence in UTC, such as '0 3 * * *'.")
    ] = None

    def triggers(self) -> Triggers:
        """As the library's; its default, where none is named."""
        from lance_memory import Dreamer, Triggers

        idle = None if self.idle is None else duration(self.idle, "--idle")
        if idle is None and self.new_rows is None and self.cron is None:
            return Dreamer.TRIGGERS
        return Triggers(idle=idle, new_rows=self.new_rows, cron=self.cron)


def dream(
    call: Call,
    *,
    scope: Scoped,
    filters: Filters,
    triggering: Triggering,
    clustering: Clustering,
    transforming: Transforming,
    guarding: Guarding,
    bounding: Bounding,
    once: Annotated[bool, typer.Option("--once", help="One pass now, and be done.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what a pass would do now.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="What runs, what the last pass did, what is new.")
    ] = False,
    distill: Annotated[
        bool,
        typer.Option("--distill", help="Make snapshots of sessions and days first, in each pass."),
    ] = False,
    show: Annotated[int, typer.Option(metavar="N", min=0, help="Clusters to show at most.")] = 20,
) -> None:
    """Consolidate in the background, when a trigger says so, until Ctrl-C or SIGTERM.

    A line for each pass; a pass is one version. Of all processes one makes a pass at a time, and
    only where something is new since the last one. A pass considers 20,000 memories, makes 500
    of clusters, takes 120 s and gives a call 60 s (a program or an endpoint 120 s), unless options
    say otherwise; where it ends before the oldest memory, the next ones go on below. A pass commits
    without asking, with --once too; --dry-run shows it first.
    """
    if status and (once or dry_run):
        raise typer.BadParameter("--status goes with neither --once nor --dry-run")
    passes: SimpleQueue[DreamResult] = SimpleQueue()
    triggers = triggering.triggers()
    from lance_memory import Dreamer

    execution = transforming.execution(patience=Dreamer.EXECUTION.timeout)
    with transforming.opened() as transform:
        named = transform if transforming.named else None
        dreamer = Dreamer(
            call.open(scope),
            triggers=triggers,
            options=clustering.options(),
            transform=transform,
            execution=execution,
            guard=guarding.guard(),
            bounds=bounding.bounds(Dreamer.BOUNDS),
            every=min(_OFTEN, triggers.idle or _OFTEN),
            told=passes.put,
            also=partial(_distilled, named, execution) if distill else None,
            **filters.where(),
        )
        if status:
            _show_status(call, dreamer.status())
        elif dry_run:
            _show_plan(call, dreamer, show)
        elif once:
            with _terminated_by(KeyboardInterrupt()), call.out.progress("dreaming"):
                done = _done(dreamer.once())
            _told(call, done)
        else:
            call.out.note(f"waiting for {triggers}; Ctrl-C ends it")
            _until_ended(call, dreamer, passes)


def register(app: TyperGroup) -> None:
    """Add this command to `app`."""
    app.add_command(Command(dream))


def _distilled(
    transform: Transform | None, execution: Execution, store: MemoryStore
) -> DistillResult:
    """By the transform that was named, else by the distiller's own."""
    from lance_memory import Distiller

    given = () if transform is None else (transform,)
    return Distiller(store, *given, execution=execution).distill()


def _until_ended(call: Call, dreamer: Dreamer, passes: SimpleQueue[DreamResult]) -> None:
    with _terminated_by(typer.Exit(0)), dreamer:
        while True:
            _told(call, passes.get())
            sys.stdout.flush()


@contextmanager
def _terminated_by(ending: BaseException) -> Iterator[None]:
    """SIGTERM raises `ending` inside, so that what is under way is put in order."""

    def end(*_: object) -> None:
        raise ending

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _done(result: DreamResult) -> DreamResult:
    """A pass that was made; one that was not is an error."""
    from lance_memory import ConflictError, DreamOutcome

    if result.outcome is DreamOutcome.BUSY:
        raise ConflictError(f"{result.reason}; nothing was done")
    if result.error is not None:
        raise result.error
    return result


def _told(call: Call, result: DreamResult) -> None:
    version = [] if result.version is None else [result.version]
    call.out.show(
        result.manifest(), human=lambda: call.draw.line(_line(call, result)), quiet=version
    )


def _line(call: Call, result: DreamResult) -> str:
    count = call.draw.count
    clusters = count(result.clusters, "cluster", "clusters")
    saved = count(result.rows_saved, "row", "rows")
    what = {
        "consolidated": f"version {result.version}: {clusters}, {saved} saved",
        "nothing": f"nothing to consolidate, version {result.version} stays",
        "stopped": "stopped, nothing was written",
    }.get(result.outcome, f"{result.outcome}: {result.reason}")
    asked = count(result.clusters + result.skipped, "cluster", "clusters")
    failed = f"; {result.failed} of {asked} failed" if result.failed else ""
    cut = f"; not all was looked at: {result.cut}" if result.cut else ""
    why = f"{result.trigger or 'dream'}, {result.seconds:.1f} s"
    also = f"; distilled: {result.also}" if result.also else ""
    return f"{result.at:%Y-%m-%d %H:%M:%S}  {what}{failed}{cut}{also} ({why})"


def _show_plan(call: Call, dreamer: Dreamer, show: int) -> None:
    with call.out.progress("planning"):
        plan = dreamer.once(dry_run=True).plan
    assert plan is not None  # noqa: S101 (a dry run that does not raise has one)
    call.out.show(
        plan.document(),
        human=lambda: call.draw.cluster_plan(plan, show=show),
        quiet=[plan.rows_saved],
    )
    call.out.note("dry run: nothing was written")


def _show_status(call: Call, status: DreamStatus) -> None:
    last = status.last and status.last.manifest()
    document: dict[str, Any] = {**plain(replace(status, last=None)), "last": last}

    def drawn() -> RenderableType:
        table: RenderableType = call.draw.pairs(
            {
                "about": status.about,
                "running": status.running or "no",
                "killed": status.lost,
                "last": status.last and _line(call, status.last),
                "new rows": status.new_rows,
                "unfinished": "passes ended at their bounds" if status.unfinished else "",
                "next cron": status.next_cron,
            }
        )
        return table

    quiet = "running" if status.running else "resting"
    call.out.show(document, human=drawn, quiet=[quiet])
