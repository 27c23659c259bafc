"""diff, tag, branch, merge, checkout, rollback, revert: the history."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, approved
from lmem.errors import no_branch
from lmem.options import Gate, Reasoned, Scoped, version_or_tag, when
from lmem.output import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import Branch, Diff, Memory, MemoryStore, RollbackPlan

__all__ = ["register"]

Version = Annotated[str, typer.Argument(metavar="VERSION|TAG|TIME", help="A version.")]
Affected = Annotated[int, typer.Option(metavar="N", min=0, help="Memories to show at most.")]
NameArgument = Annotated[str | None, typer.Argument(metavar="[NAME]", help="None: list them.")]
SomeVersion = Annotated[
    str | None,
    typer.Argument(metavar="[VERSION|TAG|TIME]", help="Another version than the newest."),
]


def diff(
    call: Call,
    before: Version,
    scope: Scoped,
    *,
    after: SomeVersion = None,
    show: Affected = 20,
    whole: Annotated[
        bool, typer.Option("--whole", help="Whole texts; else three lines of what differs.")
    ] = False,
) -> None:
    """What differs between two versions."""
    from lmem import drawn

    store = call.open(scope)
    then = when(before, call.whole)
    since = None if after is None else when(after, call.whole)
    with call.out.progress("comparing"):
        found = store.diff(then, since)
    call.out.show(
        found,
        lines=_lines(found),
        human=lambda: drawn.difference(found, show=show, width=call.out.width, whole=whole),
        quiet=[line["id"] for line in _lines(found)],
    )


def tag(
    call: Call,
    name: NameArgument = None,
    version: SomeVersion = None,
    *,
    move: Annotated[bool, typer.Option("--move", help="Take it from where it is.")] = False,
) -> None:
    """Name a version, or list the tags.

    Clean-up never removes a version that has a tag.
    """
    store = call.open()
    if name is None:
        tags = store.tags()
        call.out.show(tags, human=lambda: call.draw.pairs(tags), quiet=tags)
        return
    number = store.tag(name, _chosen(store, version), move=move)
    _said(call, {"tag": name, "version": number}, f"tag {name} is on version {number}")


def untag(call: Call, name: Annotated[str, typer.Argument()], gate: Gate) -> None:
    """Remove a tag; its version stays until clean-up."""
    from lance_memory import NotFoundError

    store = call.open()
    number = store.tags().get(name)
    if number is None:
        raise NotFoundError(f"there is no tag {name!r}; `lmem tag` lists them")
    answer = {"tag": name, "version": number}
    if _allowed(call, gate, answer, f"remove tag {name}, which is on version {number}"):
        store.untag(name)
        _said(call, answer, f"removed tag {name} from version {number}")


def branch(
    call: Call,
    gate: Gate,
    name: NameArgument = None,
    version: SomeVersion = None,
    *,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove it, and the versions only it has.")
    ] = False,
) -> None:
    """Start a line of versions, or list them.

    Work on it with --branch NAME.
    """
    if name is None:
        branches(call)
        return
    store = call.open()
    if not delete and gate.dry_run:
        start = store.at(store.version if version is None else when(version, store)).version
        _allowed(call, gate, {"branch": name, "version": start}, f"start {name} at version {start}")
        return
    if not delete:
        made = store.branch(name, _chosen(store, version))
        answer = {"branch": name, "version": made.version}
        _said(call, answer, f"branch {name} starts at version {made.version}")
        return
    answer = plain(_branch(store, name))
    what = f"remove branch {name} and the versions that only it has{_unmerged(store, name)}"
    if _allowed(call, gate, answer, what):
        store.delete_branch(name)
        _said(call, answer, f"removed branch {name}")


def branches(call: Call) -> None:
    """List all branches but main."""
    found = call.open().branches()
    names = [b.name for b in found]
    columns = ["BRANCH", "FROM", "AT VERSION", "SINCE"]
    values = [(b.name, b.parent, b.parent_version, b.created_at) for b in found]

    def drawn() -> RenderableType:
        table: RenderableType = call.draw.rows(columns, values, width=call.out.width).table
        return table

    call.out.show(found, human=drawn, quiet=names)


def checkout(
    call: Call,
    version: Version,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A new directory.")],
) -> None:
    """Make a version a store of its own, without copying data."""
    store = call.open()
    start = store.at(when(version, store)).version
    made = store.checkout(start, path)
    answer = {"uri": made.uri, "version": made.version}
    held = [t for t, n in store.tags().items() if n == start and t.startswith("checkout-")]
    kept = f"; the tag {held[0]} here keeps what it reads" if held else ""
    _said(call, answer, f"{made.uri} is a store of its own, from version {start} on{kept}")


def rollback(
    call: Call, version: Version, scope: Scoped, gate: Reasoned, *, show: Affected = 5
) -> None:
    """Make the store what it was at a version.

    Later versions stay readable. With a scope, only that scope goes back.
    """
    store = call.open(scope)
    _undone(call, store, "rollback", when(version, call.whole), gate=gate, show=show)


def revert(
    call: Call,
    version: Annotated[str, typer.Argument(metavar="VERSION|TAG", help="The one to undo.")],
    scope: Scoped,
    gate: Reasoned,
    *,
    show: Affected = 5,
) -> None:
    """Undo one version, and keep what came after it.

    A tag on a version that upkeep made stands for the write whose memories that has; a number is
    taken as it is. With a scope, only what the version changed within that scope is undone.
    """
    store = call.open(scope)
    _undone(call, store, "revert", version_or_tag(version), gate=gate, show=show)


def merge(
    call: Call,
    name: Annotated[str, typer.Argument(metavar="BRANCH", help="The other line; main too.")],
    gate: Reasoned,
    *,
    prefer: Annotated[
        Literal["ours", "theirs"] | None,
        typer.Option(help="Who is right where both changed a memory."),
    ] = None,
    show: Affected = 5,
) -> None:
    """Do here what was done on another line, as one version.

    The branch of --branch is merged into, else main. The other line is a branch that left it, or
    the one that it left, and stays as it is. Where both changed a memory, or gave one key to two,
    nothing is written unless --prefer says who is right. What was merged once is not merged again.
    """
    store = call.open()
    with call.out.progress("comparing"):
        plan = store.merge(name, prefer=prefer, dry_run=True)
    undecided = () if prefer else (*plan.clashes, *plan.keys.values())

    def drawn() -> RenderableType:
        call.embedding = False  # the other line may have another model, and is only read
        found: RenderableType = call.draw.merge_plan(
            plan, store, call.line(name), call.names, prefer=prefer, show=show
        )
        return found

    if not plan and not gate.dry_run:
        nothing = f"nothing to merge: {name} changed nothing since it was merged, or since it began"
        call.out.show(plan, human=lambda: call.draw.line(nothing), quiet=())
        return
    if undecided and not gate.dry_run:
        call.out.preview(drawn)
        plan.refuse_clashes()
    agreed = approved(
        call,
        gate,
        plan=plan,
        human=drawn,
        quiet=(*plan.added, *plan.changed, *plan.removed, *undecided),
        question="merge it?",
    )
    if agreed:
        _as_shown(store, plan.version)
        with call.out.progress("merging"):
            result = store.merge(name, prefer=prefer, reason=gate.reason)
        call.out.show(result, human=lambda: call.draw.written(result), quiet=[result.version])


def register(app: TyperGroup) -> None:
    """Add these commands to `app`."""
    for function in (diff, tag, untag, branch, branches, merge, checkout, rollback, revert):
        app.add_command(Command(function))


def _chosen(store: MemoryStore, version: str | None) -> str | datetime | None:
    return None if version is None else when(version, store)


def _unmerged(store: MemoryStore, name: str) -> str:
    """How many changes of a branch were not merged into this line, where it left that."""
    from lance_memory import LanceMemoryError

    with suppress(LanceMemoryError):
        plan = store.merge(name, dry_run=True)
        there = {*plan.added, *plan.changed, *plan.removed, *plan.clashes, *plan.keys}
        if there:
            return f", {len(there):,} not merged"
    return ""


def _branch(store: MemoryStore, name: str) -> Branch:
    for found in store.branches():
        if found.name == name:
            return found
    raise no_branch(name)


def _lines(found: Diff) -> list[dict[str, Any]]:
    """One line of JSON for each memory that differs."""
    return [
        *({"change": "inserted", "id": m.id, "after": m} for m in found.inserted),
        *({"change": "updated", "id": c.after.id, **plain(c)} for c in found.updated),
        *({"change": "removed", "id": m.id, "before": m} for m in found.removed),
    ]


def _allowed(call: Call, gate: Gate, plan: Any, what: str) -> bool:
    return approved(
        call, gate, plan=plan, human=lambda: call.draw.line(what), quiet=(), question="do it?"
    )


def _said(call: Call, answer: dict[str, Any], text: str) -> None:
    quiet = [answer.get("version", "")]
    call.out.show(answer, human=lambda: call.draw.line(text), quiet=quiet)


def _affected(store: MemoryStore, plan: RollbackPlan, show: int) -> list[tuple[str, Memory]]:
    """The first memories of a plan: what goes, comes back (as it was), and changes back."""
    back = plan.target - (plan.operation == "revert")
    listed = [
        *(("-", i) for i in plan.disappear),
        *(("+", i) for i in plan.reappear),
        *(("~", i) for i in plan.change),
    ]
    return [(s, (store.at(back) if s == "+" else store).get(i)) for s, i in listed[:show]]


def _as_shown(store: MemoryStore, version: int) -> None:
    """Refuse what was looked at as of another version than the newest."""
    from lance_memory import ConflictError

    if store.version != version:
        raise ConflictError(
            f"version {store.version} was made meanwhile, and the plan is of {version}; "
            "nothing was written: look again"
        )


def _undone(
    call: Call, store: MemoryStore, verb: str, target: Any, *, gate: Reasoned, show: int
) -> None:
    undo: Any = getattr(store, verb)
    plan = undo(target, dry_run=True)

    def drawn() -> RenderableType:
        some = _affected(store, plan, show)
        names = call.names([m for _, m in some])
        found: RenderableType = call.draw.undo_plan(plan, some, names, show=show)
        return found

    agreed = approved(
        call,
        gate,
        plan=plan,
        human=drawn,
        quiet=(*plan.reappear, *plan.change, *plan.disappear),
        question=f"{verb} it?",
    )
    if not agreed:
        return
    _as_shown(store, plan.version)
    with call.out.progress("rolling back" if verb == "rollback" else "reverting"):
        result = undo(target, reason=gate.reason)
    call.out.show(result, human=lambda: call.draw.written(result), quiet=[result.version])
