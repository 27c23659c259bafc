"""consolidate, apply, optimize: what keeps a store small and quick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from lmem.clustering import Bounding, Clustering, Guarding, Transforming
from lmem.command import Call, Command, approved
from lmem.files import read_plan, save_plan
from lmem.options import Filters, Gate, Reasoned, Scoped, duration
from lmem.output import complain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import ConsolidationPlan, MemoryStore, WriteResult

__all__ = ["register"]

Show = Annotated[int, typer.Option(metavar="N", min=0, help="Clusters to show at most.")]


def consolidate(
    call: Call,
    scope: Scoped,
    filters: Filters,
    gate: Reasoned,
    *,
    clustering: Clustering,
    transforming: Transforming,
    guarding: Guarding,
    bounding: Bounding,
    plan: Annotated[
        str | None, typer.Option("--plan", metavar="FILE", help="Save the plan for apply.")
    ] = None,
    show: Show = 20,
) -> None:
    """Turn clusters of memories into one each.

    One version for the whole pass; the sources are hidden, linked and kept.
    """
    store = call.open(scope)
    with transforming.opened() as transform, call.out.progress("planning"):
        found = store.consolidate(
            clustering.options(),
            transform,
            execution=transforming.execution(),
            guard=guarding.guard(),
            bounds=bounding.bounds(),
            dry_run=True,
            **filters.where(),
        )
    if plan:
        save_plan(plan, found.to_json())
        call.out.note(f"saved the plan to {plan}; `lmem apply {plan}` carries it out")
    _applied(call, store, found, gate, show)


def apply(
    call: Call,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help='A saved plan; "-" reads stdin.')],
    scope: Scoped,
    gate: Reasoned,
    *,
    show: Show = 20,
) -> None:
    """Carry out a plan that consolidate saved.

    `lmem consolidate --dry-run --plan FILE` saves one. A plan whose memories have been
    changed since is refused.
    """
    from lance_memory import ConsolidationPlan

    found = ConsolidationPlan.from_json(read_plan(file))
    _applied(call, call.open(scope), found, gate, show)


def optimize(
    call: Call,
    gate: Gate,
    *,
    clean_older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Remove all untagged versions older than 30d, 12h, ..."),
    ] = None,
    index: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Vector index to build where it pays and there is none: auto, none, or a kind "
            "that `lmem index build` takes.",
        ),
    ] = "auto",
) -> None:
    """Compact, index, and remove the versions that are not kept.

    Changes no memory. Kept are the last 128 versions, fewer the older they are, and all tagged
    ones: writes remove the others by and by. With a vector index, vector search is approximate;
    `auto` trains it on a GPU where one works. One that fails its check is not installed, and the
    rest is done (exit code 1).
    """
    age = None if clean_older_than is None else duration(clean_older_than, "--clean-older-than")
    store, wanted = call.open(), None if index == "none" else index
    if age is not None or gate.dry_run:
        plan = store.optimize(clean_older_than=age, index=wanted, dry_run=True)
        if not plan.versions_to_remove:
            age = None
        agreed = (age is None and not gate.dry_run) or approved(
            call,
            gate,
            plan=plan,
            human=lambda: call.draw.line(str(plan)),
            quiet=plan.versions_to_remove,
            question="remove them for good? They can no longer be read or rolled back to.",
        )
        if not agreed:
            return
    with call.out.progress("optimizing"):
        result = store.optimize(clean_older_than=age, index=wanted)
    call.out.show(result, human=lambda: call.draw.record(result), quiet=[result.version])
    if result.index_refused:
        complain(f"the vector index was not installed: {result.index_refused}")
        raise typer.Exit(1)


def register(app: TyperGroup) -> None:
    """Add these commands to `app`."""
    for function in (consolidate, apply, optimize):
        app.add_command(Command(function))


def _applied(
    call: Call,
    store: MemoryStore,
    plan: ConsolidationPlan,
    gate: Reasoned,
    show: int,
) -> None:
    if plan.accepted or gate.dry_run:
        its, their = "memory in the place of its", "memories in the place of their"
        put = call.draw.count(len(plan.accepted), its, their)
        agreed = approved(
            call,
            gate,
            plan=plan.document(),
            human=lambda: call.draw.cluster_plan(plan, show=show),
            quiet=[plan.rows_saved],
            question=f"put {put} sources?",
        )
        if not agreed:
            return
    elif plan.skipped:
        call.out.preview(lambda: call.draw.cluster_plan(plan, show=show))
    plan.refuse_failures()
    plan.refuse_unanswered()
    with call.out.progress("consolidating"):
        result = _committed(store, plan, gate.reason)
    call.out.show(result, human=lambda: _done(call, plan, result), quiet=[result.version])


def _done(call: Call, plan: ConsolidationPlan, result: WriteResult) -> RenderableType:
    from rich.console import Group

    line, failures = call.draw.line, ""
    if plan.failed:
        failures = f"{plan.failures}: {plan.failed[0].reason}"
    if plan.accepted:
        return Group(call.draw.written(result), *([line(failures)] if failures else []))
    what = failures or f"nothing to consolidate in {call.draw.count(plan.selected)}"
    return Group(line(f"{what}; version {result.version} stays"))


def _committed(store: MemoryStore, plan: ConsolidationPlan, reason: str) -> WriteResult:
    from lance_memory import ConflictError

    try:
        return store.apply(plan, reason=reason)
    except ConflictError as error:
        derived = [str(c.derived["id"]) for c in plan.accepted if c.derived]
        if not derived or not all(map(store.find, derived)):
            raise
        raise ConflictError(
            "the plan was applied already: what it derives is there; nothing was written"
        ) from error
