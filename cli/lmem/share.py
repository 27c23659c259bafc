"""share, shares, revoke: what one user or agent lets another one see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, approved
from lmem.names import resolved
from lmem.options import Filters, Reasoned, Scoped, instant, text_given

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import Grant, Memory, MemoryStore

__all__ = ["register"]

_SHOWN = 5

SomeRefs = Annotated[
    list[str] | None,
    typer.Argument(metavar="[REF...]", help='Ids, keys; "-" reads stdin. Or give filters.'),
]


def share(
    call: Call,
    scope: Scoped,
    filters: Filters,
    gate: Reasoned,
    *,
    refs: SomeRefs = None,
    with_user: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who may see them: this user.")
    ] = None,
    with_agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="This agent; of --with-user, if both.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="All that the giver has, and will have.")
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Let them be changed too, and not only read.")
    ] = False,
    expires_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Until then; else until it is revoked.")
    ] = None,
) -> None:
    """Let another user or agent of the tenant see memories.

    Whose is said by --user or --agent, and --tenant. Memories that are named are shared as they
    are; a filter is kept as it is, so that what passes later is shared too.

    lmem share --tenant acme --user ann --tag project-x --with-user bob --reason "joint work"
    """
    store = call.open(scope)
    where: Any = filters.where()
    if everything:
        where |= {name: value for name, value in scope.given().items() if name != "tenant"}
    named = _named(store, refs)
    found = [store.get(ref) for ref in named] if named else store.list(**where) if where else []
    people = {"user": with_user, "agent": with_agent}
    terms: dict[str, Any] = {
        "with_": {level: name for level, name in people.items() if name},
        "rights": "write" if write else "read",
        "expires_at": None if expires_at is None else instant(expires_at, "--expires-at"),
        "reason": gate.reason,
        **where,
    }
    plan = store.sharing.share(named or None, dry_run=True, **terms)
    if approved(
        call,
        gate,
        plan={**plan.to_json(), "id": None, "memories": [memory.id for memory in found]},
        human=lambda: _planned(call, plan, found),
        quiet=[memory.id for memory in found],
        question="share them?",
    ):
        grant = store.sharing.share(named or None, **terms)
        call.out.show(grant.to_json(), human=lambda: _drawn(call, [grant]), quiet=[grant.id])


def shares(
    call: Call,
    scope: Scoped,
    *,
    received: Annotated[
        bool, typer.Option("--received", help="Those to the scope, and not those that it gave.")
    ] = False,
    ended: Annotated[
        bool, typer.Option("--ended", help="Also what was revoked or has expired.")
    ] = False,
    memories: Annotated[
        bool, typer.Option("--memories", help="With --received: what they let it see.")
    ] = False,
) -> None:
    """List who lets whom see what; of a scope what it has given, or what it has received.

    How many were received is said beside what was given; --received lists them.
    """
    if memories and not received:
        raise typer.BadParameter("--memories goes with --received")
    if ended and received:
        raise typer.BadParameter("--ended goes without --received: what has ended gives nothing")
    sharing = call.open(scope).sharing
    if memories:
        seen = [shared.memory for shared in sharing.list()]
        names = call.names(seen)
        call.out.show(
            seen,
            human=lambda: call.draw.memories(seen, names, width=call.out.width),
            quiet=[memory.id for memory in seen],
        )
        return
    found = sharing.received() if received else sharing.granted(ended=ended)
    others = 0 if received else len(sharing.received())
    if not found:
        call.out.note("nothing is given" if others else "nothing is shared")
    if others:
        call.out.note(f"{others} received as well: `lmem shares --received` lists what")
    call.out.show(
        [grant.to_json() for grant in found],
        human=lambda: _drawn(call, found),
        quiet=[grant.id for grant in found],
    )


def revoke(
    call: Call,
    grant: Annotated[
        str, typer.Argument(metavar="GRANT", help="Its id, or an unambiguous beginning of it.")
    ],
    scope: Scoped,
    gate: Reasoned,
) -> None:
    """Take back what was shared; `lmem shares` lists the grants."""
    from lance_memory import AmbiguousError, NotFoundError

    store = call.open(scope)
    given = [g for g in store.sharing.granted(ended=True) if g.id.startswith(grant)]
    if not given:
        raise NotFoundError(f"there is no grant {grant!r}; `lmem shares` lists them")
    if len(given) > 1:
        ids = [g.id for g in given]
        raise AmbiguousError(f"{grant!r} names {len(ids)} grants; give more of it", candidates=ids)
    if approved(
        call,
        gate,
        plan=given[0].to_json(),
        human=lambda: _drawn(call, given),
        quiet=[given[0].id],
        question="revoke it?",
    ):
        result = store.sharing.revoke(given[0], reason=gate.reason)
        call.out.show(result, human=lambda: call.draw.written(result), quiet=result.ids)


def register(app: TyperGroup) -> None:
    """Add these commands to `app`."""
    for function in (share, shares, revoke):
        app.add_command(Command(function))


def _named(store: MemoryStore, refs: list[str] | None) -> list[str]:
    """The refs as the library takes them, with "-" standing for the lines of stdin."""
    lines = [text_given(ref).split() if ref == "-" else [ref] for ref in refs or ()]
    return [resolved(store, ref) for line in lines for ref in line]


def _planned(call: Call, plan: Grant, found: Sequence[Memory]) -> RenderableType:
    """Who may do what with which memories, and the first of them."""
    from rich.console import Group

    later = "" if plan.ids is not None else f", and {plan.what} later"
    told = f"{plan.receiver} may {plan.rights} {call.draw.count(len(found))}{later}"
    some = found[:_SHOWN]
    table = call.draw.memories(some, call.names(some), width=call.out.width)
    return Group(call.draw.line(told), call.draw.first(table, len(some), of=len(found)))


def _drawn(call: Call, found: Sequence[Grant]) -> RenderableType:
    """Who lets whom do what, and below it what else there is to say."""
    drawn: RenderableType = call.draw.blocks((_head(grant), _lines(grant)) for grant in found)
    return drawn


def _head(grant: Grant) -> str:
    ended = "" if grant.state == "active" else f" ({grant.state})"
    return f"{grant.id}  {grant.giver} -> {grant.receiver}{ended}"


def _lines(grant: Grant) -> list[str]:
    until = "" if grant.expires_at is None else f", until {grant.expires_at:%Y-%m-%d %H:%M} UTC"
    by = f" by {grant.granted_by}" if grant.granted_by else ""
    why = f": {grant.reason}" if grant.reason else ""
    return [
        f"may {grant.rights} {grant.what}{until}",
        f"granted {grant.created_at:%Y-%m-%d}{by}{why}",
    ]
