"""log: what was done, as a list or as a graph of all lines of versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command
from lmem.graph import MAIN, Line, Node, ordered
from lmem.options import At, Scoped
from lmem.output import plain

if TYPE_CHECKING:
    from lance_memory import Branch, MemoryView

__all__ = ["register"]


def log(
    call: Call,
    scope: Scoped,
    at: At,
    *,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=0, help="At most as many.")
    ] = None,
    upkeep: Annotated[
        bool, typer.Option("--upkeep", help="Also versions that changed no memory.")
    ] = False,
    graph: Annotated[
        bool,
        typer.Option("--graph", help="All branches beside each other; with --at what led there."),
    ] = False,
) -> None:
    """What was done, newest first.

    A version marked as cleaned up (x in a graph) is not readable any more; its entry is what is
    left of it. With a scope, "(part of it)" stands for the counts of what also changed memories of
    others. In a graph o marks what changed no memory, and a version of another branch than main
    has the branch before its number.
    """
    view = call.view(scope, at.at)
    if graph:
        with call.out.progress("reading the log"):
            nodes = ordered([*_lines(call, scope, view, limit=limit, upkeep=upkeep)])[:limit]
        _graph(call, nodes)
        return
    entries = view.log(limit=limit, upkeep=upkeep)
    tags = call.whole.tags()
    marked = [
        {**plain(e), "tags": [tag for tag, version in tags.items() if version == e.version]}
        for e in entries
    ]
    call.out.show(
        marked,
        human=lambda: _drawn().log(entries, _until(view.version, tags), width=call.out.width),
        quiet=[e.version for e in entries],
    )
    if entries and not upkeep and not any(e.readable for e in entries):
        call.out.note(
            f"note: version {view.version}, which upkeep made, has it all; `log --upkeep` lists it"
        )


def register(app: TyperGroup) -> None:
    """Add this command to `app`."""
    app.add_command(Command(log))


def _until(version: int, tags: Mapping[str, int]) -> dict[str, int]:
    return {tag: at for tag, at in tags.items() if at <= version}


def _drawn() -> Any:
    """What draws the log for people; imported where it does."""
    from lmem import drawn

    return drawn


def _graph(call: Call, nodes: list[Node]) -> None:
    answer = [
        {
            **plain(node.entry),
            "tags": list(node.tags),
            "branch": node.place[0],
            "branches": list(node.branches),
            "parent": node.parent and {"branch": node.parent[0], "version": node.parent[1]},
        }
        for node in nodes
    ]
    call.out.show(
        answer,
        human=lambda: _drawn().graph(nodes, width=call.out.width),
        quiet=[node.name for node in nodes],
    )


def _lines(
    call: Call, scope: Scoped, view: MemoryView, *, limit: int | None, upkeep: bool
) -> Iterator[Line]:
    """Every line of versions, or of a past view its own and what it came from."""
    from lance_memory import MemoryStore

    branches = {branch.name: branch for branch in call.whole.branches()}
    enough = None if limit is None else limit + 1  # the last one shown has a parent
    if isinstance(view, MemoryStore):
        ends: dict[str, int | None] = dict.fromkeys([MAIN, *sorted(branches)])
    else:
        ends = _leading_to(view, branches)
    for name, end in ends.items():
        there = call.line(name)
        kept = there.scoped(**scope.given()) if scope.given() else there
        # What comes after the end is left out below, and may be any number.
        entries = kept.log(limit=None if end else enough, upkeep=upkeep)
        shown = [entry for entry in entries if end is None or entry.version <= end]
        began = branches.get(name)
        yield Line(
            name=name,
            entries=shown,
            tags=there.tags() if end is None else _until(end, there.tags()),
            origin=None if began is None else (began.parent, began.parent_version),
            ends_here=len(shown) == len(entries),
        )


def _leading_to(view: MemoryView, branches: dict[str, Branch]) -> dict[str, int | None]:
    """The view's branch and those it came from → the last version of each that led to it."""
    name, end = view.branch_name, view.version
    found: dict[str, int | None] = {name: end}
    while name in branches:
        name, end = branches[name].parent, branches[name].parent_version
        found[name] = end
    return dict(sorted(found.items(), key=lambda item: item[0] != MAIN))
