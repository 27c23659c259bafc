"""queries, usage: which memories answered what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, approved
from lmem.names import resolved
from lmem.options import At, Filters, Gate, Scoped, instant

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import (
        MemoryStore,
        MemoryView,
        QueryWhere,
        RecordedQuery,
        Usage,
    )

__all__ = ["recorded", "register"]

_SHOWN = 20

Time = Annotated[
    str | None, typer.Option(metavar="TIME", help="When it was asked; no zone means UTC.")
]


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
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", help="At most as many, the newest first.")
    ] = None,
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
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=0,
            help="At most as many, the most recalled first; for people else 20.",
        ),
    ] = None,
) -> None:
    """How often each memory was recalled, and how often a query found something.

    As far as queries were recorded; `lmem queries --help` says how.
    """
    view = call.view(scope, at.at)
    found = view.usage(**filters.where())
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
        human=lambda: _counted(call, view, found, rows, show=_SHOWN if limit is None else limit),
        quiet=[row["id"] for row in rows],
    )


def recorded(call: Call, view: MemoryView) -> None:
    """Write the query down before the command ends; say so where that failed."""
    from lance_memory import MemoryStore

    if not isinstance(view, MemoryStore):
        call.out.note("note: a search of the past is not recorded")
        return
    view.query_log.flush()
    status = view.query_log.status
    if status is not None and status.warning:
        call.out.note(f"note: {status.warning}")


def register(app: TyperGroup) -> None:
    """Add these commands to `app`."""
    app.add_command(Command(queries))
    app.add_command(Command(usage))


def _asked(
    store: MemoryStore, since: str | None, until: str | None, memory: str | None
) -> QueryWhere:
    asked: QueryWhere = {}
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
    call: Call, gate: Gate, store: MemoryStore, found: list[RecordedQuery], asked: QueryWhere
) -> None:
    sized = call.draw.count(len(found), "query", "queries")
    agreed = not found or approved(
        call,
        gate,
        plan=found,
        human=lambda: call.draw.first(_drawn(call, found[:_SHOWN]), _SHOWN, of=len(found)),
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


def _counted(
    call: Call, view: MemoryView, found: Usage, rows: list[dict[str, Any]], *, show: int
) -> RenderableType:
    from rich.console import Group

    rate = "" if found.hit_rate is None else f", {found.hit_rate:.0%} found something"
    head = (
        f"{call.draw.count(found.queries, 'query', 'queries')}{rate}, "
        f"{found.mean_hits:.1f} hits on average; "
        f"{len(found.never_recalled)} of {call.draw.count(len(found.memories))} never recalled"
    )
    if not rows:
        return Group(call.draw.line(head))
    table = _recalls(call, view, rows[:show])
    return Group(call.draw.line(head), call.draw.first(table, show, of=len(rows)))


def _recalls(call: Call, view: MemoryView, rows: list[dict[str, Any]]) -> RenderableType:
    shown = [view.get(row["id"]) for row in rows]
    names, last = call.names(shown), [row["last_recalled"] for row in rows]
    columns = {
        "MEMORY": [names(m) for m in shown],
        "RECALLS": [str(row["recalls"]) for row in rows],
        "BEST RANK": [str(row["best_rank"] or "") for row in rows],
        "LAST (UTC)": ["" if at is None else f"{at:%Y-%m-%d %H:%M}" for at in last],
    }
    drawn: RenderableType = call.draw.beside(
        columns, [m.content for m in shown], width=call.out.width
    )
    return drawn
