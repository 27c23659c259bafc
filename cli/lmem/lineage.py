"""lineage: what took a memory's place, and what it was made from, as a tree."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lmem.command import Call, command
from lmem.names import resolved
from lmem.options import At, Scoped
from lmem.output import plain

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


def register(app: typer.Typer) -> None:
    """Add this command to `app`."""
    command(app)(lineage)


def _flat(node: Any) -> dict[str, Any]:
    """The node without those that hang on it."""
    names = ("relation", "generation", "repeated", "more")
    return {**{name: getattr(node, name) for name in names}, "memory": plain(node.memory)}
