"""workspace: what an agent is told, with its versions, and as files."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmem.command import Call, approved, command
from lmem.options import At, Reason, Reasoned, Scoped, text_given
from lmem.output import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import (
        ItemResult,
        Workspace,
        WorkspaceItem,
        WorkspacePlan,
        WorkspaceState,
        WorkspaceView,
    )

__all__ = ["register"]

Named = Annotated[
    str,
    typer.Argument(
        metavar="PART/NAME",
        help="prompt/system, skill/search, setting/memory_mode, policy/retention, flag/beta, ...",
    ),
]
SkillName = Annotated[str, typer.Argument(metavar="NAME", help="Of a skill.")]
Directory = Annotated[str, typer.Argument(metavar="DIRECTORY")]
Expected = Annotated[
    int | None,
    typer.Option(
        "--expect", metavar="N", min=0, help="Only where version N of it stands; 0: none."
    ),
]
Affected = Annotated[int, typer.Option(metavar="N", min=0, help="Lines to show at most.")]

workspace = typer.Typer(
    name="workspace",
    help="What an agent is told: prompts, skills, memory mode, policies, flags.",
    epilog="Give --tenant, and --agent for an agent's own, which stands on its tenant's.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


def show(
    call: Call,
    scope: Scoped,
    at: At,
    *,
    item: Annotated[
        str | None, typer.Argument(metavar="[PART/NAME]", help="One item; none: all of them.")
    ] = None,
) -> None:
    """Show all that is told, or one item with its whole text."""
    view = _view(call, scope, at.at)
    if item is not None:
        one = view.get(*_named(item))
        call.out.show(one, human=lambda: _whole(call, one), quiet=[one])
        return
    state = view.state()
    if not state.items:
        call.out.note("nothing is told; the memory mode is hybrid")
    call.out.show(
        _document(state),
        lines=state.items,
        human=lambda: _table(call, state.items),
        quiet=[*map(str, state.items)] or [f"setting/{state.memory_mode}"],
    )


def set_(
    call: Call,
    item: Named,
    value: Annotated[
        str,
        typer.Argument(metavar="VALUE", help='A text, or JSON of a policy; "-" reads stdin.'),
    ],
    scope: Scoped,
    reason: Reason,
    *,
    kind: Annotated[
        str | None, typer.Option(help="Of a skill: your own word; else as it was.")
    ] = None,
    enabled: Annotated[
        bool | None, typer.Option("--enabled/--disabled", help="Of a skill; else as it was.")
    ] = None,
    expect: Expected = None,
) -> None:
    """Set an item, as a new version of it."""
    part, name = _named(item)
    given = text_given(value)
    told = _workspace(call, scope, create=True)
    checked: Any = given
    if part == "skill":
        found = told.find(part, name)
        checked = {**(found.value if found else {}), "text": given}
        more = {"kind": kind, "enabled": enabled}
        checked |= {n: v for n, v in more.items() if v is not None}
    elif kind is not None or enabled is not None:
        raise typer.BadParameter("--kind, --enabled and --disabled are of skills")
    elif part in ("policy", "flag"):
        checked = _json(given, strict=part == "policy")
    done = told.set(part, name, checked, expected_version=expect, reason=reason.reason)
    _done(call, done)


def history(
    call: Call,
    item: Named,
    scope: Scoped,
    at: At,
    *,
    diff: Annotated[bool, typer.Option("--diff", help="What each version changed.")] = False,
) -> None:
    """List every version of an item, oldest first, also after it was removed."""
    found = _view(call, scope, at.at).history(*_named(item))
    if not found:
        call.out.note(f"there never was a {item} of this workspace's own")
    changed = _changes(found) if diff else [None] * len(found)
    documents = [
        {**plain(one), **({} if lines is None else {"diff": lines})}
        for one, lines in zip(found, changed, strict=True)
    ]
    call.out.show(
        documents,
        human=lambda: _versions(call, found, changed),
        quiet=[one.version for one in found],
    )


def rollback(
    call: Call,
    item: Named,
    version: Annotated[int, typer.Argument(metavar="VERSION", min=1, help="Of the item.")],
    scope: Scoped,
    gate: Reasoned,
    *,
    expect: Expected = None,
    show: Affected = 40,
) -> None:
    """Give an item the value that it had, as a new version."""
    part, name = _named(item)
    told = _workspace(call, scope)
    found = [one for one in told.history(part, name) if one.version == version]
    if not found:
        told.diff(part, name, version)  # says what there is
    now = told.find(part, name)
    own = now.version if now is not None and now.scope == told.scope else 0
    lines = _lines(now.text if now else "", found[-1].text)
    if approved(
        call,
        gate,
        plan={"item": item, "version": own, "to": version, "diff": lines},
        human=lambda: _listed(call, f"{item} becomes what version {version} was", lines, show),
        quiet=[item],
        question=f"roll {item} back?",
    ):
        expected = own if expect is None else expect
        done = told.rollback(part, name, version, expected_version=expected, reason=gate.reason)
        _done(call, done)


def remove(
    call: Call, item: Named, scope: Scoped, gate: Reasoned, *, expect: Expected = None
) -> None:
    """Take an item away; its versions stay, and rollback brings one back."""
    part, name = _named(item)
    told = _workspace(call, scope)
    found = told.get(part, name)
    if approved(
        call,
        gate,
        plan=found,
        human=lambda: _whole(call, found),
        quiet=[found],
        question=f"remove {found}?",
    ):
        expected = found.version if expect is None and found.scope == told.scope else expect
        done = told.remove(part, name, expected_version=expected, reason=gate.reason)
        _done(call, done)


def enable(
    call: Call, name: SkillName, scope: Scoped, reason: Reason, *, expect: Expected = None
) -> None:
    """Tell a skill from now on."""
    told = _workspace(call, scope)
    _done(call, told.enable(name, expected_version=expect, reason=reason.reason))


def disable(
    call: Call, name: SkillName, scope: Scoped, reason: Reason, *, expect: Expected = None
) -> None:
    """Tell a skill no more; its text stays."""
    told = _workspace(call, scope)
    _done(call, told.disable(name, expected_version=expect, reason=reason.reason))


def export(
    call: Call,
    directory: Directory,
    scope: Scoped,
    at: At,
    *,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the files of a workspace that are there.")
    ] = False,
) -> None:
    """Write prompts/NAME.md, skills/NAME.md and workspace.json."""
    view = _view(call, scope, at.at)
    names = view.export_files(directory, overwrite=overwrite)
    answer = {"directory": directory, "files": names}
    text = f"{call.draw.count(len(names), 'file', 'files')} in {directory}: {', '.join(names)}"
    call.out.show(answer, human=lambda: call.draw.line(text), quiet=names)


def import_(
    call: Call, directory: Directory, scope: Scoped, gate: Reasoned, *, show: Affected = 40
) -> None:
    """Make the workspace what such a directory says, as one version of the store.

    What the directory has no file of is removed.
    """
    told = _workspace(call, scope, create=not gate.dry_run)
    plan = told.import_files(directory, dry_run=True)
    if not plan and not gate.dry_run:
        call.out.note("nothing differs; nothing was written")
    elif not approved(
        call,
        gate,
        plan=plan,
        human=lambda: _planned(call, plan, show),
        quiet=[*map(str, (*plan.added, *plan.changed, *plan.removed))],
        question="make it so?",
    ):
        return
    done = told.apply(plan, reason=gate.reason)
    call.out.show(done, human=lambda: call.draw.line(str(done)), quiet=[done.version])


def register(app: typer.Typer) -> None:
    """Add this group of commands to `app`."""
    for name, function in (
        ("show", show),
        ("set", set_),
        ("history", history),
        ("rollback", rollback),
        ("remove", remove),
        ("enable", enable),
        ("disable", disable),
        ("export", export),
        ("import", import_),
    ):
        command(workspace, name)(function)
    app.add_typer(workspace)


def _workspace(call: Call, scope: Scoped, *, create: bool = False) -> Workspace:
    from lance_memory import Workspace

    _refuse_nobodys(scope)
    return Workspace(call.open(scope, create=create))


def _view(call: Call, scope: Scoped, at: str | None) -> WorkspaceView:
    from lance_memory import WorkspaceView

    _refuse_nobodys(scope)
    return WorkspaceView(call.view(scope, at))


def _refuse_nobodys(scope: Scoped) -> None:
    if not (scope.tenant or scope.agent):
        raise typer.BadParameter(
            "whose workspace? give --tenant NAME, and --agent NAME for an agent's own"
        )


def _named(item: str) -> tuple[str, str]:
    part, mark, name = item.partition("/")
    if not mark:
        raise typer.BadParameter(f"{item!r} is not PART/NAME, such as prompt/system")
    return part, name


def _json(text: str, *, strict: bool) -> Any:
    """The JSON value; a text that is none is itself, unless that is not to be."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if strict:
            raise typer.BadParameter(f"{text!r:.80} is no JSON: {error}") from error
        return text


def _document(state: WorkspaceState) -> dict[str, Any]:
    """The state by its parts, and its items with their versions."""
    parts = ("memory_mode", "prompts", "skills", "policies", "flags")
    return {**plain(state), **{name: plain(getattr(state, name)) for name in parts}}


def _done(call: Call, done: ItemResult) -> None:
    item = done.item
    text = {
        "set": f"{item} is at version {item.version} (store version {done.version})",
        "unchanged": f"{item} says so already, at version {item.version}",
        "removed": f"removed {item}, which was at version {item.version}",
    }[done.outcome]
    call.out.show(done, human=lambda: call.draw.line(text), quiet=[item.version])


def _whole(call: Call, item: WorkspaceItem) -> RenderableType:
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


def _table(call: Call, items: Sequence[WorkspaceItem]) -> RenderableType:
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


def _changes(found: Sequence[WorkspaceItem]) -> list[list[str] | None]:
    """What each version changed, as lines with - and +."""
    before = ["", *(one.text for one in found)]
    return [_lines(old, one.text) for old, one in zip(before, found, strict=False)]


def _lines(before: str, after: str) -> list[str]:
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    return [line for line in [*found][2:] if not line.startswith("@@")]  # without the file names


def _versions(
    call: Call, found: Sequence[WorkspaceItem], changed: Sequence[Sequence[str] | None]
) -> RenderableType:
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


def _planned(call: Call, plan: WorkspacePlan, show: int) -> RenderableType:
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
