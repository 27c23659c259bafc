"""pending and clarify: memories that wait for somebody to decide about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, Group, approved
from lmem.names import resolved
from lmem.options import Filters, Reason, Reasoned, Scoped, text_given

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import Memory, MemoryStore, Waiting, WriteResult

__all__ = ["register"]


class Why(StrEnum):
    """The library's `WaitsFor`, which is slow to import."""

    CONFIDENCE = "confidence"
    CLARIFY = "clarify"
    REVIEW = "review"


class Choice(StrEnum):
    """The library's `Answer`."""

    NEW = "new"
    OLD = "old"
    BOTH = "both"


Refs = Annotated[
    list[str] | None,
    typer.Argument(metavar="[REF...]", help='Ids, keys; "-" reads stdin. Or give filters.'),
]
WhyGiven = Annotated[
    Why | None, typer.Option("--why", help="Only what waits for this: to be said again, ...")
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", "-n", metavar="N", min=0, help="At most as many, oldest first."),
]

pending = Group(
    "pending",
    help="Memories that nothing recalls yet: look at them, let them in, or not.",
)
clarify = Group(
    "clarify",
    help="Memories that clash: which of the two is true?",
)


def list_pending(
    call: Call, scope: Scoped, filters: Filters, *, why: WhyGiven = None, limit: Limit = None
) -> None:
    """List what waits, and what for.

    confidence: to be said again; clarify: the person's answer; review: somebody of the institution.
    """
    found = _pending(call.open(scope), filters, why)[:limit]
    if not found:
        call.out.note("nothing is pending")
    _listed(call, found)


def approve(
    call: Call,
    scope: Scoped,
    filters: Filters,
    gate: Reasoned,
    *,
    refs: Refs = None,
    why: WhyGiven = None,
) -> None:
    """Make pending memories active; one that clashes takes the place of the other.

    One that is named is approved at once; of several, the list is shown first.
    """
    _decided(call, "approve", scope=scope, filters=filters, why=why, refs=refs, gate=gate)


def reject(
    call: Call,
    scope: Scoped,
    filters: Filters,
    gate: Reasoned,
    *,
    refs: Refs = None,
    why: WhyGiven = None,
) -> None:
    """Retire pending memories; `lmem unretire` brings them back.

    One that is named is rejected at once; of several, the list is shown first.
    """
    _decided(call, "reject", scope=scope, filters=filters, why=why, refs=refs, gate=gate)


def list_clashes(
    call: Call,
    scope: Scoped,
    *,
    reviews: Annotated[
        bool, typer.Option("--reviews", help="Those that wait for a review, instead.")
    ] = False,
    limit: Limit = None,
) -> None:
    """List the memories that clash with one that stands, and that one below each."""
    found = call.open(scope).clarifications(reviews=reviews)[:limit]
    if not found:
        call.out.note("nothing waits for an answer")
    _listed(call, found)


def answer(
    call: Call,
    ref: Annotated[
        str, typer.Argument(metavar="REF", help="Id of the one that waits, or its beginning.")
    ],
    choice: Annotated[
        Choice, typer.Argument(metavar="new|old|both", help="Which of the two is true.")
    ],
    scope: Scoped,
    reason: Reason,
) -> None:
    """Say which of two memories that clash is true.

    new: the one that waits takes the place of the other; old: it is retired; both: both stand.
    """
    store = call.open(scope)
    result = store.answer(resolved(store, ref), choice.value, reason=reason.reason)
    _written(call, result)


def register(app: TyperGroup) -> None:
    """Add these groups of commands to `app`."""
    for group, name, function in (
        (pending, "list", list_pending),
        (pending, "approve", approve),
        (pending, "reject", reject),
        (clarify, "list", list_clashes),
        (clarify, "answer", answer),
    ):
        group.add_command(Command(function, name))
    app.add_command(pending)
    app.add_command(clarify)


def _pending(store: MemoryStore, filters: Filters, why: Why | None) -> list[Waiting]:
    found = [one for one in store.pending() if why is None or one.why == why.value]
    where = filters.where()
    if where:
        where["states"] = "pending"
        passing = {memory.id for memory in store.list(**where)}
        found = [one for one in found if one.memory.id in passing]
    return found


def _decided(
    call: Call,
    verb: str,
    *,
    scope: Scoped,
    filters: Filters,
    why: Why | None,
    refs: list[str] | None,
    gate: Reasoned,
) -> None:
    """Show what it is about, unless it is one that was named, and do it if that is agreed to."""
    from lance_memory import WriteResult

    store = call.open(scope)
    found = _chosen(store, filters, why, refs)
    if not found:
        call.out.note("nothing is pending; nothing was written")
        _written(call, WriteResult(uri=store.uri, version=store.version, operation=verb))
        return
    one_named = bool(refs) and len(found) == 1 and not gate.dry_run
    if one_named or approved(
        call,
        gate,
        plan=[one.to_json() for one in found],
        human=lambda: _table(call, found),
        quiet=[one.memory.id for one in found],
        question=f"{verb} {call.draw.count(len(found))}?",
    ):
        act: Callable[..., WriteResult] = getattr(store, verb)
        _written(call, act([one.memory.id for one in found], reason=gate.reason))


def _chosen(
    store: MemoryStore, filters: Filters, why: Why | None, refs: list[str] | None
) -> list[Waiting]:
    """Those that are named, or all that pass within a scope.

    Raises:
        ConflictError: one that is named is not pending.
    """
    from lance_memory import ConflictError, InvalidInputError, ScopeError

    if refs and (filters.where() or why):
        raise InvalidInputError("give either memories by name or filters, not both")
    if not refs:
        if not store.scope:
            raise ScopeError(
                "nothing was named, and filters without a scope would reach every tenant and "
                "user: add --user, --tenant, --agent, --session or --run"
            )
        return _pending(store, filters, why)
    waiting = {one.memory.id: one for one in store.pending()}
    named = [word for ref in refs for word in (text_given(ref).split() if ref == "-" else [ref])]
    found = {m.id: m for m in (store.get(resolved(store, name)) for name in named)}
    for memory in found.values():
        if memory.id not in waiting:
            raise ConflictError(
                f"{memory.id} is {memory.state}, not pending; nothing was written", ids=[memory.id]
            )
    return [waiting[identifier] for identifier in found]


def _listed(call: Call, found: Sequence[Waiting]) -> None:
    call.out.show(
        [one.to_json() for one in found],
        human=lambda: _table(call, found),
        quiet=[one.memory.id for one in found],
    )


def _table(call: Call, found: Sequence[Waiting]) -> RenderableType:
    """A line for each, the one that it clashes with below it."""
    lines = [line for one in found for line in _lines(one)]
    if not lines:
        return call.draw.memories((), None, width=call.out.width)  # type: ignore[no-any-return]
    names = call.names([memory for _, memory, _ in lines])
    columns = {
        "MEMORY": [names(memory) for _, memory, _ in lines],
        "WAITS FOR": [why for why, _, _ in lines],
        "DATE": [f"{memory.happened_at:%Y-%m-%d}" for _, memory, _ in lines],
        "UNTIL": [until for _, _, until in lines],
        "USER": [memory.user[:12] for _, memory, _ in lines],
    }
    contents = [memory.content for _, memory, _ in lines]
    drawn: RenderableType = call.draw.beside(columns, contents, width=call.out.width)
    return drawn


def _lines(one: Waiting) -> list[tuple[str, Memory, str]]:
    until = f"{one.expires_at:%Y-%m-%d}" if one.expires_at else ""
    first = (str(one.why), one.memory, until)
    return [first] if one.contradicts is None else [first, ("  against", one.contradicts, "")]


def _written(call: Call, result: WriteResult) -> None:
    call.out.show(result, human=lambda: call.draw.written(result), quiet=result.ids)
