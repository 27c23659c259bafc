"""retention: what has stayed long enough is put away and retired."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, approved
from lmem.files import read_json
from lmem.options import Filters, Name, Names, Reasoned, Scoped, age

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import MemoryStore, RetentionPlan, RetentionPolicy

__all__ = ["register"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How long memories stay, where their tenant's workspace does not say."""

    policy: Annotated[
        Name,
        typer.Option(
            metavar="FILE",
            help='JSON such as {"days": {"episodic": 90}, "low_importance": 0.2}; "-" reads stdin.',
        ),
    ] = None
    stay: Annotated[
        Names,
        typer.Option(
            "--stay",
            metavar="KIND=AGE",
            help="How long a kind stays, such as episodic=90d (the default); repeatable.",
        ),
    ] = None
    low_importance: Annotated[
        float | None,
        typer.Option(help="Episodes below it go after 30 days, 0..1; else 0.2; 0: none do."),
    ] = None

    def chosen(self) -> RetentionPolicy:
        """As the library takes it."""
        from lance_memory import RetentionPolicy

        given = {} if self.policy is None else read_json(self.policy)
        policy = RetentionPolicy.from_json(given)
        if self.stay:
            policy = replace(policy, ages={**policy.ages, **dict(map(_stay, self.stay))})
        if self.low_importance is not None:
            policy = replace(policy, low_importance=self.low_importance)
        return policy


def retention(
    call: Call,
    scope: Scoped,
    filters: Filters,
    gate: Reasoned,
    *,
    keeping: Keeping,
    archive: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Write them there first: a directory, which gets a .zip for each pass, or a new "
            "file x.zip, x.jsonl or x.parquet.",
        ),
    ] = None,
    no_archive: Annotated[
        bool, typer.Option("--no-archive", help="Only retire them; the rows stay in the store.")
    ] = False,
    show: Annotated[int, typer.Option(metavar="N", min=0, help="Memories to show at most.")] = 20,
) -> None:
    """Put away and retire what has stayed long enough: `lmem retention --archive old --yes`.

    By default raw episodes for 90 days, those of little importance for 30, and memories of every
    kind until they expire; else semantic, procedural and profile memories stay, and so does what is
    tagged "evergreen" or "pinned". Age counts from when a memory happened, was learned, or got its
    state, whichever was last. A tenant whose workspace has a policy "retention" has that one.
    Without a scope it is about every tenant. As one version; unretire or revert brings them back.
    """
    if not gate.dry_run and (archive is None) is not no_archive:
        raise typer.BadParameter("say where they are put away: --archive PATH, or --no-archive")
    from lance_memory import retention_policies

    store = call.open(scope)
    with call.out.progress("planning"):
        plan = store.plan_retention(
            keeping.chosen(), per_tenant=retention_policies(store), **filters.where()
        )
    if plan or gate.dry_run:
        sized = call.draw.count(len(plan.memories))
        what = f"retire {sized}" if archive is None else f"put {sized} into {archive}, and retire"
        agreed = approved(
            call,
            gate,
            plan=_told(plan),
            human=lambda: _drawn(call, store, plan, show),
            quiet=plan.ids,
            question=f"{what}?",
        )
        if not agreed:
            return
    with call.out.progress("retiring"):
        done = store.retain(plan, archive=archive, reason=gate.reason)
    told = {f: getattr(done, f) for f in ("version", "retired", "path", "archived", "changed")}
    call.out.show(
        {**told, "left": done.left, "counts": plan.counts},
        human=lambda: call.draw.line(str(done)),
        quiet=[done.version],
    )


def register(app: TyperGroup) -> None:
    """Add this command to `app`."""
    app.add_command(Command(retention))


def _stay(text: str) -> tuple[str, Any]:
    kind, mark, length = text.partition("=")
    if not mark:
        raise typer.BadParameter(f"--stay {text!r} is not KIND=AGE; write episodic=90d")
    return kind, age(length, "--stay")


def _told(plan: RetentionPlan) -> dict[str, Any]:
    return {
        "version": plan.version,
        "at": plan.at,
        "considered": plan.considered,
        "counts": plan.counts,
        **plan.manifest(),
        "memories": plan.memories,
    }


def _drawn(call: Call, store: MemoryStore, plan: RetentionPlan, show: int) -> RenderableType:
    from rich.console import Group

    oldest = plan.memories[:show]
    shown = [store.get(due.id) for due in oldest]
    names = call.names(shown)
    columns = {
        "MEMORY": [names(memory) for memory in shown],
        "AGE": [f"{due.age.days}d" for due in oldest],
        "RULE": [str(due.rule) for due in oldest],
        "TENANT": [call.draw.cut(due.tenant) for due in oldest],
    }
    table = call.draw.beside(columns, [m.content for m in shown], width=call.out.width)
    drawn = call.draw.first(table, show, of=len(plan.memories))
    return Group(call.draw.line(str(plan)), *([drawn] if plan else []))
