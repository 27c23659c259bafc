"""queries, usage: which memories answered what; and retiring what faded for want of use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmem.command import Call, approved, command
from lmem.names import resolved
from lmem.options import At, Filters, Gate, Name, Reasoned, Scoped, duration, instant

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import (
        Asked,
        Decay,
        MemoryStore,
        MemoryView,
        RecordedQuery,
        RetirePlan,
        Usage,
        WriteResult,
    )

__all__ = ["Fading", "faded", "recorded", "register"]

_SHOWN = 20

Time = Annotated[
    str | None, typer.Option(metavar="TIME", help="When it was asked; no zone means UTC.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fading:
    """Which strength is too little, and how memories lose it."""

    below: Annotated[
        float | None,
        typer.Option(
            help="Only what is weaker, 0..1: importance, times what age leaves of it. Needs "
            "--half-life; procedural, profile and evergreen-tagged memories stay."
        ),
    ] = None
    half_life: Annotated[
        Name, typer.Option(metavar="AGE", help="In which strength halves: 12h, 30d, 8w.")
    ] = None
    floor: Annotated[float | None, typer.Option(help="What age leaves at least, 0..1; else 0.")] = (
        None
    )
    use: Annotated[
        float | None,
        typer.Option(help="How much recalls lengthen the half-life, 0..4; else 0.5; 0: not."),
    ] = None

    def decay(self) -> Decay | None:
        """As the library takes it; None: strength is not asked about."""
        from lance_memory import Decay

        if self.below is None:
            if (self.half_life, self.floor, self.use) != (None, None, None):
                raise typer.BadParameter("--half-life, --floor and --use go with --below")
            return None
        if self.half_life is None:
            raise typer.BadParameter("--below needs --half-life, such as 30d")
        named = {"floor": self.floor, "use": self.use}
        given: dict[str, Any] = {n: value for n, value in named.items() if value is not None}
        return Decay(half_life=duration(self.half_life, "--half-life"), **given)


def queries(
    call: Call,
    scope: Scoped,
    gate: Gate,
    *,
    since: Time = None,
    until: Time = None,
    memory: Annotated[
        str | None, typer.Option(metavar="REF", help="That this memory answered.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="At most as many, the newest first.")] = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="Remove them, from the files too.")
    ] = False,
) -> None:
    """List the recorded queries, newest first, or forget them.

    `lmem search --record` records, and every search while $LMEM_RECORD_QUERIES is set to 1. The
    text is kept without secrets, account numbers, e-mail addresses and phone numbers. With a scope,
    only what was asked within it is listed and forgotten.
    """
    if forget and limit is not None:
        raise typer.BadParameter("--limit is for the list; --forget removes all that pass")
    store = call.open(scope)
    asked = _asked(store, since, until, memory)
    found = store.queries(limit=limit, **asked)
    if not found:
        call.out.note("no recorded query" + (" matches; nothing was removed" if forget else ""))
    if forget:
        _forgotten(call, gate, store, found, asked)
        return
    call.out.show(found, human=lambda: _drawn(call, found), quiet=[query.id for query in found])


def usage(
    call: Call,
    scope: Scoped,
    filters: Filters,
    at: At,
    *,
    never: Annotated[
        bool, typer.Option("--never", help="Only memories that answered no recorded query.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(min=0, help="At most as many, the most recalled first.")
    ] = None,
) -> None:
    """How often each memory was recalled, and how often a query found something.

    As far as queries were recorded; `lmem queries --help` says how.
    """
    found = call.view(scope, at.at).usage(**filters.where())
    rows = found.memories.to_pylist()
    rows = [row for row in rows if not (never and row["recalls"])][:limit]
    told = {
        "version": found.version,
        "scope": found.scope,
        "queries": found.queries,
        "without_hits": found.without_hits,
        "hit_rate": found.hit_rate,
        "mean_hits": found.mean_hits,
        "since": found.since,
    }
    call.out.show(
        {**told, "memories": rows},
        lines=rows,
        human=lambda: _counted(call, found, rows),
        quiet=[row["id"] for row in rows],
    )


def recorded(call: Call, view: MemoryView) -> None:
    """Write the query down before the command ends; say so where that failed."""
    from lance_memory import MemoryStore

    if not isinstance(view, MemoryStore):
        return
    view.query_log.flush()
    status = view.query_log.status
    if status is not None and status.warning:
        call.out.note(f"note: {status.warning}")


def faded(
    call: Call, store: MemoryStore, filters: Filters, *, below: float, decay: Decay, gate: Reasoned
) -> WriteResult | None:
    """Show what is weaker, and retire it if that is agreed to; None: it was a dry run."""
    plan = store.retire(below=below, decay=decay, dry_run=True, **filters.where())
    told = {
        "version": plan.version,
        "at": plan.at,
        "considered": plan.considered,
        **plan.manifest(),
        "memories": plan.memories,
    }
    if not plan:
        call.out.note(f"none of {call.draw.count(plan.considered)} is weaker than {below:g}")
    agreed = (not plan and not gate.dry_run) or approved(
        call,
        gate,
        plan=told,
        human=lambda: _weak(call, plan),
        quiet=plan.ids,
        question=f"retire {call.draw.count(len(plan.memories))}?",
    )
    return store.retire(plan, reason=gate.reason) if agreed else None


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    command(app)(queries)
    command(app)(usage)


def _asked(store: MemoryStore, since: str | None, until: str | None, memory: str | None) -> Asked:
    asked: Asked = {}
    if since is not None:
        asked["since"] = instant(since, "--since")
    if until is not None:
        asked["until"] = instant(until, "--until")
    if memory is not None:
        # What was deleted since is named by its full id.
        known = store.find(resolved(store, memory))
        asked["memory"] = known.id if known else memory
    return asked


def _forgotten(
    call: Call, gate: Gate, store: MemoryStore, found: list[RecordedQuery], asked: Asked
) -> None:
    sized = call.draw.count(len(found), "query", "queries")
    agreed = not found or approved(
        call,
        gate,
        plan=found,
        human=lambda: _first(call, _drawn(call, found[:_SHOWN]), len(found)),
        quiet=[query.id for query in found],
        question=f"forget {sized} for good?",
    )
    if agreed:
        gone = store.forget_queries(**asked) if found else 0
        text = f"forgot {call.draw.count(gone, 'query', 'queries')}"
        call.out.show({"forgotten": gone}, human=lambda: call.draw.line(text), quiet=[gone])


def _drawn(call: Call, found: list[RecordedQuery]) -> RenderableType:
    values = [(f"{q.at:%Y-%m-%d %H:%M}", len(q.memory_ids), q.scope, q.query) for q in found]
    table: RenderableType = call.draw.rows(
        ["TIME (UTC)", "HITS", "SCOPE", "QUERY"], values, width=call.out.width
    ).table
    return table


def _weak(call: Call, plan: RetirePlan) -> RenderableType:
    values = [
        (m.id, f"{m.strength:.3f}", f"{m.age.days}d", m.recalls, m.content)
        for m in plan.memories[:_SHOWN]
    ]
    columns = ["MEMORY", "STRENGTH", "AGE", "RECALLS", "CONTENT"]
    table = call.draw.rows(columns, values, width=call.out.width).table
    return _first(call, table, len(plan.memories))


def _first(call: Call, table: RenderableType, total: int) -> RenderableType:
    """The table of the first of a plan, and how many more there are."""
    from rich.console import Group

    more = [call.draw.line(f"... and {total - _SHOWN} more")] if total > _SHOWN else []
    return Group(table, *more)


def _counted(call: Call, found: Usage, rows: list[dict[str, Any]]) -> RenderableType:
    from rich.console import Group

    rate = "" if found.hit_rate is None else f", {found.hit_rate:.0%} found something"
    head = (
        f"{call.draw.count(found.queries, 'query', 'queries')}{rate}, "
        f"{found.mean_hits:.1f} hits on average; "
        f"{len(found.never)} of {call.draw.count(len(found.memories))} never recalled"
    )
    values = [
        (
            row["id"],
            row["recalls"],
            "" if row["best_rank"] is None else row["best_rank"],
            "" if row["last_recalled"] is None else f"{row['last_recalled']:%Y-%m-%d %H:%M}",
        )
        for row in rows
    ]
    columns = ["MEMORY", "RECALLS", "BEST RANK", "LAST (UTC)"]
    table = call.draw.rows(columns, values, width=call.out.width).table
    return Group(call.draw.line(head), table) if rows else Group(call.draw.line(head))
