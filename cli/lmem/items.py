"""What a person sees of a workspace: an item, all of them, versions, and what a change changes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmem.command import Call
from lmem.options import Scoped
from lmem.output import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import ItemChange, ItemResult, WorkspaceItem, WorkspacePlan

__all__ = ["LINES", "changes", "done", "planned", "rehearsed", "table", "versions", "whole"]

LINES = 40
"""To show at most, unless asked for more."""


def rehearsed(call: Call, change: ItemChange, show: int = LINES) -> None:
    """What would become of an item."""
    at = f"which is at version {change.version}" if change.version else "which is new here"
    same = not change.lines and change.before == change.after  # line ends alone are no line
    head = f"{change} says so already" if same else f"{change}, {at}"
    call.out.show(
        {**plain(change), "diff": change.lines},
        human=lambda: _listed(call, head, change.lines, show),
        quiet=[change],
    )
    call.out.note("dry run: nothing was written")


def done(call: Call, result: ItemResult, scope: Scoped, show: int = LINES) -> None:
    """What became of an item, what it was before, and the command that brings that back."""
    item = result.item
    head = {
        "set": f"{item} is at version {item.version} (store version {result.version})",
        "unchanged": f"{item} says so already, at version {item.version}",
        "removed": f"removed {item}, which was at version {item.version}",
    }[result.outcome]
    lines = [] if result.outcome == "unchanged" else result.change.lines
    call.out.show(result, human=lambda: _listed(call, head, lines, show), quiet=[item.version])
    if result.outcome != "unchanged" and call.out.is_human:
        call.out.note(f"to undo: {_undoing(call, result, scope)}")


def _undoing(call: Call, result: ItemResult, scope: Scoped) -> str:
    """The command that makes the item again what it was."""
    last = result.item if result.outcome == "removed" else result.before
    own = last is not None and last.scope == result.item.scope
    words = ["remove", str(result.item)]
    if last is not None and own:
        words = ["rollback", str(last), str(last.version)]
    branch = {} if call.common.branch in (None, "main") else {"branch": call.common.branch}
    options = [f"--{name}={value}" for name, value in {**scope.given(), **branch}.items()]
    return shlex.join(["lmem", "workspace", *words, *options])


def whole(call: Call, item: WorkspaceItem) -> RenderableType:
    """One item with all of its text."""
    skill = item.value if item.part == "skill" else {}
    switched = ("yes" if skill["enabled"] else "no") if skill else ""
    facts = {
        "item": item,
        "of": item.scope,
        "kind": skill.get("kind", ""),
        "enabled": switched,
        "version": item.version,
        "by": item.by,
        "since": item.at,
        "reason": item.reason,
        "text": item.text,
    }
    drawn: RenderableType = call.draw.pairs(facts)
    return drawn


def table(call: Call, items: Sequence[WorkspaceItem]) -> RenderableType:
    """A line for each item; those that are off are marked."""
    whose = {item.scope for item in items}
    columns = {
        "ITEM": [str(item) for item in items],
        "VERSION": [str(item.version) for item in items],
        "": ["off" if _is_off(item) else "" for item in items],
        "SINCE": [f"{item.at:%Y-%m-%d}" for item in items],
        "OF": [(item.scope.agent or "tenant") if len(whose) > 1 else "" for item in items],
        "BY": [item.by for item in items],
    }
    texts = [item.text for item in items]
    drawn: RenderableType = call.draw.beside(columns, texts, width=call.out.width)
    return drawn


def _is_off(item: WorkspaceItem) -> bool:
    return item.part == "skill" and not item.value["enabled"]


def changes(found: Sequence[WorkspaceItem]) -> list[list[str] | None]:
    """What each version changed, as lines with - and +."""
    from lance_memory import ItemChange

    before = [None, *(one.value for one in found)]
    return [
        ItemChange(part=one.part, name=one.name, before=old, after=one.value).lines
        for old, one in zip(before, found, strict=False)
    ]


def versions(
    call: Call, found: Sequence[WorkspaceItem], changed: Sequence[Sequence[str] | None]
) -> RenderableType:
    """A line for each version, and below it what it changed, where that was asked for."""
    rows: list[tuple[Any, ...]] = []
    for item, lines in zip(found, changed, strict=True):
        removed = f"removed {item.until:%Y-%m-%d %H:%M}" if item.removed else ""
        text = item.reason if lines is not None else item.text
        told = "; ".join(part for part in (removed, " ".join(text.split())) if part)
        rows.append((item.version, f"{item.at:%Y-%m-%d %H:%M}", item.by, told))
        rows += [("", "", "", f"  {line}") for line in lines or ()]
    last = "TEXT" if None in changed else "REASON"
    table: RenderableType = call.draw.sheet(("VERSION", "TIME (UTC)", "BY", last), rows)
    return table


def planned(call: Call, plan: WorkspacePlan, show: int) -> RenderableType:
    """What an import adds, changes and removes."""
    lines = [
        *(f"+ {change}" for change in plan.added),
        *(f"~ {change}, which is at version {change.version}" for change in plan.changed),
        *(f"- {change}, which is at version {change.version}" for change in plan.removed),
    ]
    head = (
        f"workspace of {plan.scope}: {len(plan.added)} added, {len(plan.changed)} changed, "
        f"{len(plan.removed)} removed, {len(plan.same)} the same"
    )
    return _listed(call, head, lines, show)


def _listed(call: Call, head: str, lines: Sequence[str], show: int) -> RenderableType:
    more = [f"... and {len(lines) - show} more (--show N)"] if len(lines) > show else []
    drawn: RenderableType = call.draw.sheet((head,), [(line,) for line in [*lines[:show], *more]])
    return drawn
