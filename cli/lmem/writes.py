"""init, add, import, upsert, update, supersede, retire, unretire, delete: the writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, approved
from lmem.fading import Fading, faded
from lmem.files import InputFormat, read_batch, rejected_in
from lmem.names import resolved
from lmem.options import Filters, Given, Reason, Reasoned, Scoped, text_given
from lmem.zones import in_utc

if TYPE_CHECKING:
    from lance_memory import AddResult, Memory, MemoryStore, WriteResult

__all__ = ["register"]

Text = Annotated[str, typer.Argument(metavar="TEXT", help='The memory; "-" reads stdin.')]
Ref = Annotated[
    str, typer.Argument(help="Id, key, unambiguous beginning of an id, or ..end of one.")
]
Refs = Annotated[list[str], typer.Argument(metavar="REF...", help='Ids, keys; "-" reads stdin.')]
SomeRefs = Annotated[
    list[str] | None,
    typer.Argument(metavar="[REF...]", help='Ids, keys; "-" reads stdin. Or give filters.'),
]
Key = Annotated[str | None, typer.Option(help="The caller's own name for it.")]


def init(
    call: Call,
    path: Annotated[
        str | None, typer.Argument(metavar="[PATH]", help="Its directory; the same as --store.")
    ] = None,
) -> None:
    """Make an empty store; one that is there stays as it is."""
    if path is not None:
        call.common = replace(call.common, store=path)
    store = call.open(create=True)
    answer = {"uri": store.uri, "version": store.version}
    call.out.show(
        answer,
        human=lambda: call.draw.line(f"the store at {store.uri} is at version {store.version}"),
        quiet=[store.version],
    )


def add(
    call: Call,
    text: Text,
    scope: Scoped,
    given: Given,
    *,
    key: Key = None,
    id: Annotated[str | None, typer.Option(help="Its id, rather than a new one.")] = None,
    state: Annotated[str | None, typer.Option(help="active, pending, ...")] = None,
) -> None:
    """Store one memory."""
    named = {"key": key, "id": id, "state": state}
    fields = {**given.fields(), **{n: v for n, v in named.items() if v is not None}}
    content = text_given(text)
    _added(call, call.open(scope, create=True).add(content, **fields))


def upsert(
    call: Call,
    text: Text,
    scope: Scoped,
    given: Given,
    *,
    key: Annotated[str, typer.Option(help="The caller's own name for it.")],
) -> None:
    """Store a memory in the place of the one with its key."""
    content = text_given(text)
    store = call.open(scope, create=True)
    result = store.upsert(content, key=key, **given.fields())
    stored = store.find(result.id) if result.outcome != "already_there" else None
    edges = stored.relationships if stored else ()
    old = ", ".join(edge.target for edge in edges if edge.relation == "updates")
    _added(call, result, f", superseding {old}" if old else "")


def import_(
    call: Call,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help='"-" reads stdin.')],
    scope: Scoped,
    *,
    input_format: Annotated[
        InputFormat | None, typer.Option(help="What the file holds; else its suffix says.")
    ] = None,
    assume_utc: Annotated[
        bool, typer.Option("--assume-utc", help="Take times without a zone as UTC.")
    ] = False,
) -> None:
    """Store a file of memories.

    JSONL, JSON, CSV, Parquet or Arrow; all of it as one version, or none of it.

    A row needs content, and may have: id, key; tenant, user, agent, session, run; kind, role,
    actor, source, source_ref; tags, metadata, importance, confidence, quality, seq; event_at,
    valid_from, valid_to, expires_at; embedding; and what `list --format jsonl` prints. Anything
    else goes under metadata.

    In CSV, tags are written a; b (or as a JSON array), and metadata, relationships and embedding
    as JSON; an empty cell is not given. Times are ISO 8601 with a zone, such as
    2025-01-31T12:00:00+01:00, or zoneless with --assume-utc.
    """
    batch = read_batch(file, input_format)
    if assume_utc:
        batch = in_utc(batch)
    store = call.open(scope, create=True)
    with call.out.progress("embedding") as progress, rejected_in(batch):
        result = store.add_many(batch.rows, progress=progress)
    summary = (
        f"stored {result.stored}, already there {len(result.already_there)}, "
        f"version {result.version}"
    )
    call.out.show(result, human=lambda: call.draw.line(summary), quiet=result.ids)


def update(
    call: Call,
    ref: Ref,
    scope: Scoped,
    given: Given,
    reason: Reason,
    *,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help='The new text; "-" reads stdin.')
    ] = None,
    key: Key = None,
) -> None:
    """Change a memory in place; the old text stays in the history."""
    fields = {**given.fields(), **({} if key is None else {"key": key})}
    content = None if text is None else text_given(text)
    store = call.open(scope)
    ref = resolved(store, ref)
    _written(call, store.update(ref, content=content, reason=reason.reason, **fields))


def supersede(
    call: Call,
    refs: Refs,
    scope: Scoped,
    reason: Reason,
    *,
    successor: Annotated[
        str, typer.Option("--with", metavar="TEXT", help='Takes their place; "-" reads stdin.')
    ],
    relation: Annotated[str, typer.Option(help="Name of the edges to them.")] = "consolidates",
) -> None:
    """Put one new memory in the place of others.

    They are hidden, linked to it, and kept.
    """
    text, store = text_given(successor), call.open(scope)
    sources = _named(store, refs)
    _written(call, store.supersede(sources, text, relation=relation, reason=reason.reason))


def unretire(
    call: Call, scope: Scoped, filters: Filters, gate: Reasoned, *, refs: SomeRefs = None
) -> None:
    """Make retired memories active again.

    Those that filters choose are shown and confirmed; those that are named are not asked about.
    """
    store = call.open(scope)
    found = _chosen(store, refs, filters, states="retired")
    _removed(call, store, found, gate, "unretire", asking=not refs)


def retire(
    call: Call,
    scope: Scoped,
    filters: Filters,
    gate: Reasoned,
    *,
    fading: Fading,
    refs: SomeRefs = None,
) -> None:
    """Hide memories without a successor; unretire brings them back.

    With --below those that have faded: `lmem retire --user ann --below 0.1 --decay 30d`.
    """
    store, decay = call.open(scope), fading.fades()
    if decay is not None and fading.below is not None:
        if refs:
            raise typer.BadParameter("give either memories by name or --below, not both")
        done = faded(call, store, filters, below=fading.below, decay=decay, gate=gate)
        if done is not None:
            _written(call, done)
        return
    _removed(call, store, _chosen(store, refs, filters), gate, "retire")


def delete(
    call: Call, scope: Scoped, filters: Filters, gate: Reasoned, *, refs: SomeRefs = None
) -> None:
    """Remove memories; earlier versions keep them."""
    store = call.open(scope)
    _removed(call, store, _chosen(store, refs, filters), gate, "delete")


def register(app: TyperGroup) -> None:
    """Add these commands to `app`."""
    for name, function in (
        ("init", init),
        ("add", add),
        ("import", import_),
        ("upsert", upsert),
        ("update", update),
        ("supersede", supersede),
        ("retire", retire),
        ("unretire", unretire),
        ("delete", delete),
    ):
        app.add_command(Command(function, name))


def _named(store: MemoryStore, refs: list[str] | None) -> list[str]:
    """The refs as the library takes them, with "-" standing for the lines of stdin."""
    lines = [text_given(ref).split() if ref == "-" else [ref] for ref in refs or ()]
    return [resolved(store, ref) for line in lines for ref in line]


def _chosen(
    store: MemoryStore, refs: list[str] | None, filters: Filters, **otherwise: Any
) -> list[Memory]:
    """What a verb is about: named memories, or all that pass within a scope."""
    from lance_memory import InvalidInputError, ScopeError

    where = filters.where()
    if refs and where:
        raise InvalidInputError("give either memories by name or filters, not both")
    if refs:
        return list({m.id: m for m in map(store.get, _named(store, refs))}.values())
    if not store.scope:
        raise ScopeError(
            "nothing was named, and filters without a scope would reach every tenant and user: "
            "add --user, --tenant, --agent, --session or --run"
        )
    return store.list(**{**otherwise, **where})


def _removed(
    call: Call,
    store: MemoryStore,
    found: list[Memory],
    gate: Reasoned,
    verb: str,
    *,
    asking: bool = True,
) -> None:
    from lance_memory import WriteResult

    if not found:
        call.out.note("nothing matches; nothing was written")
        _written(call, WriteResult(uri=store.uri, version=store.version, operation=verb))
        return
    agreed = (not asking and not gate.dry_run) or approved(
        call,
        gate,
        plan=found,
        human=lambda: call.draw.memories(found, call.names(found), width=call.out.width),
        quiet=[m.id for m in found],
        question=f"{verb} {call.draw.count(len(found))}?",
    )
    if agreed:
        act: Callable[..., WriteResult] = getattr(store, verb)
        _written(call, act([m.id for m in found], reason=gate.reason))


def _added(call: Call, result: AddResult, more: str = "") -> None:
    reason = f" ({result.reason})" if result.reason else ""
    what = result.outcome.replace("_", " ")
    text = f"{what}: {result.id}, version {result.version}{more}{reason}"
    call.out.show(result, human=lambda: call.draw.line(text), quiet=[result.id])


def _written(call: Call, result: WriteResult) -> None:
    call.out.show(result, human=lambda: call.draw.written(result), quiet=result.ids)
