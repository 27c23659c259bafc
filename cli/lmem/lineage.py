"""lineage and history: what took a memory's place, what it was made from, and every change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command
from lmem.names import resolved
from lmem.options import At, Scoped
from lmem.output import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import MemoryChange

__all__ = ["register"]

Ref = Annotated[
    str, typer.Argument(help="Id, key, unambiguous beginning of an id, or ..end of one.")
]


def lineage(
    call: Call,
    ref: Ref,
    scope: Scoped,
    at: At,
    *,
    depth: Annotated[
        int, typer.Option(metavar="N", min=1, max=100, help="Generations each way at most.")
    ] = 10,
) -> None:
    """Show what took a memory's place, and what it was made from, over the generations.

    A tree: ↑ successors and theirs, ↓ sources and theirs, in whatever state. jsonl and quiet list
    the same memories flat.
    """
    view = call.view(scope, at.at)
    found = view.lineage(resolved(view, ref), depth=depth)
    nodes = list(found)
    if not nodes:
        call.out.note("nothing took its place, and it was made from nothing else")
    if any(node.more for node in nodes):
        call.out.note(f"note: there are more than {depth} generations; --depth N shows more")
    call.out.show(
        found,
        lines=[_flat(node) for node in nodes],
        human=lambda: call.draw.lineage(
            found, call.names([found.memory, *(n.memory for n in nodes)]), width=call.out.width
        ),
        quiet=dict.fromkeys(node.memory.id for node in nodes),
    )


def history(
    call: Call,
    ref: Ref,
    scope: Scoped,
    at: At,
    *,
    depth: Annotated[
        int, typer.Option(metavar="N", min=1, max=100, help="Generations each way at most.")
    ] = 10,
) -> None:
    """Show every change of a memory, and of what it replaced or was replaced by, oldest first.

    Of versions that were cleaned up, it says how many revisions are not readable any more.
    """
    view = call.view(scope, at.at)
    found = view.history(resolved(view, ref), depth=depth)
    if not found:
        call.out.note("none of the versions that can be read has changed it")
    call.out.show(
        found,
        human=lambda: _changes(call, found),
        quiet=dict.fromkeys(change.version for change in found),
    )


def register(app: TyperGroup) -> None:
    """Add these commands to `app`."""
    app.add_command(Command(lineage))
    app.add_command(Command(history))


def _changes(call: Call, found: Sequence[MemoryChange]) -> RenderableType:
    """A line for each change, and below it what the memory said before and since."""
    shown = [memory for change in found if (memory := change.after or change.before) is not None]
    names = call.names(shown)
    values: list[tuple[Any, ...]] = []
    for change in found:
        memory = change.after or change.before
        name = names(memory) if memory else change.id
        at = f"{change.at:%Y-%m-%d %H:%M}"
        by = f"{change.operation} ({change.actor})" if change.actor else change.operation
        values.append((change.version, at, name, by, _what(change)))
        values += [("", "", "", "", f"  {text}") for text in _texts(change)]
    table: RenderableType = call.draw.sheet(
        ("VERSION", "TIME (UTC)", "MEMORY", "OPERATION", "CHANGED"), values
    )
    return table


def _what(change: MemoryChange) -> str:
    """Which columns, why, and what of it cannot be read any more."""
    if change.before is None:
        what = "made" if change.after else "not readable any more"
    else:
        what = ", ".join(change.columns) if change.after else "removed"
    parts = [what, change.reason and f"because: {change.reason}"]
    parts += [f"{change.lost} earlier revisions are cleaned up"] if change.lost else []
    return "; ".join(part for part in parts if part)


def _texts(change: MemoryChange) -> list[str]:
    before = change.before.content if change.before else None
    after = change.after.content if change.after else None
    if before == after:
        return []
    signs = (("-", before), ("+", after))
    return [f"{sign} {' '.join(text.split())}" for sign, text in signs if text is not None]


def _flat(node: Any) -> dict[str, Any]:
    """The node without those that hang on it."""
    names = ("relation", "generation", "repeated", "more")
    return {**{name: getattr(node, name) for name in names}, "memory": plain(node.memory)}
