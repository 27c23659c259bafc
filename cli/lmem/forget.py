"""forget: memories go for good, from the past too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, approved
from lmem.names import resolved
from lmem.options import Filters, Reasoned, Scoped

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import ForgetPlan, ForgetResult, MemoryStore

__all__ = ["register"]

_SHOWN = 10
_WIDTH = 80


def forget(
    call: Call,
    scope: Scoped,
    filters: Filters,
    gate: Reasoned,
    *,
    refs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[REF...]", help="Ids, keys or beginnings of ids, of any version."),
    ] = None,
    successors: Annotated[
        bool, typer.Option("--successors", help="Also what was made of them.")
    ] = False,
    finish: Annotated[
        bool, typer.Option("--finish", help="Go on with one that was interrupted.")
    ] = False,
) -> None:
    """Remove memories from every version, tag, branch and index, with proof.

    Name them, or give a filter with a scope; every state, and deleted ones too. Backups, archives
    and exports made earlier keep what they have. Danger: they cannot be brought back, and neither
    can the versions that held them.
    """
    from lance_memory import InvalidInputError, ScopeError

    where = filters.where()
    if finish:
        _refuse_more(refs, where, scope)
        _finished(call, gate)
        return
    if refs and where:
        raise InvalidInputError("give either memories by name or filters, not both")
    store = call.open(scope)
    refs = [resolved(store, ref) for ref in refs or ()]
    if not refs and not store.scope:
        raise ScopeError(
            "nothing was named, and filters without a scope would reach every tenant and user: "
            "add --user, --tenant, --agent, --session or --run"
        )
    asked: dict[str, Any] = {"refs": refs or None, "successors": successors, **where}
    with call.out.progress("looking through the versions"):
        plan = store.forget(**asked, dry_run=True)
    size = call.draw.count(len(plan.ids))
    if plan.beside:
        size = f"{size} and what is beside the table"
    if approved(
        call,
        gate,
        plan=plan,
        human=lambda: _drawn(call, store, plan),
        quiet=plan.ids,
        question=f"forget {size} for good?",
    ):
        with call.out.progress("forgetting"):
            done = store.forget(**asked, reason=gate.reason)
        _told(call, done)


def register(app: TyperGroup) -> None:
    """Add the command to `app`."""
    app.add_command(Command(forget))


def _refuse_more(refs: list[str] | None, where: Any, scope: Scoped) -> None:
    if refs or where or scope.given():
        raise typer.BadParameter("--finish goes on with what was begun; name nothing else")


def _finished(call: Call, gate: Reasoned) -> None:
    store = call.open()
    begun = store.unfinished_forgetting()
    if begun is None:
        call.out.show(
            None, human=lambda: call.draw.line("nothing was left unfinished"), quiet=(), lines=()
        )
        return
    if approved(
        call,
        gate,
        plan=begun,
        human=lambda: call.draw.line(
            f"{begun.op_id}, begun {begun.at:%Y-%m-%d %H:%M} UTC: "
            f"{call.draw.count(len(begun.ids))} to forget"
        ),
        quiet=[begun.op_id],
        question="finish it?",
    ):
        with call.out.progress("forgetting"):
            done = store.finish_forgetting()
        if done is not None:
            _told(call, done)


def _told(call: Call, result: ForgetResult) -> None:
    text = f"{result} (backups, archives and exports have theirs)"
    call.out.show(result, human=lambda: call.draw.line(text), quiet=result.plan.ids)


def _contents(store: MemoryStore, plan: ForgetPlan) -> str:
    """The first of those that the newest version has."""
    found = [(i, store.find(i)) for i in plan.ids[:_SHOWN]]
    told = [f"{i}  {' '.join(m.content.split())[:_WIDTH]}" for i, m in found if m is not None]
    rest = len(plan.ids) - len(told)
    more = f"and {rest} more, some in earlier versions alone" if rest and told else ""
    return "\n".join([*told, *([more] if more else [])]) or _some(plan.ids)


def _drawn(call: Call, store: MemoryStore, plan: ForgetPlan) -> RenderableType:
    """Line by line what goes, and what else changes."""
    made = "go too" if plan.with_successors else "stay, and may carry their text"
    lines = [
        ("memories", str(len(plan.ids))),
        ("which", _contents(store, plan)),
        ("scopes", _some([f"{scope} ({n})" for scope, n in plan.scopes])),
        (f"made of them ({made})", _some(plan.successors)),
        *(
            (f"versions of {line} not readable any more", numbers)
            for line, numbers in plan.unreadable.items()
        ),
        ("tags rewritten", _some([f"{tag} (version {v})" for tag, v in plan.tags.items()])),
        ("branches rewritten", _some(plan.branches)),
        ("recorded queries removed", str(plan.queries or "")),
        ("vectors of an interrupted reembed removed", _some(plan.staged)),
        ("saved plans removed", _some(plan.plans)),
        ("beside the table", plan.told_beside),
        ("refused: stores made by checkout share files", _some(plan.clones)),
        ("files of other stores, which stay", _some(plan.elsewhere)),
    ]
    drawn: RenderableType = call.draw.pairs({name: text for name, text in lines if text})
    return drawn


def _some(values: Any) -> str:
    shown = [str(value) for value in values]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"{', '.join(shown[:_SHOWN])}{more}"
