"""workspace: what an agent is told, with its versions, and as files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem import items
from lmem.command import Call, Command, Group, approved
from lmem.options import At, Reasoned, Scoped, Tried, text_given
from lmem.output import plain

if TYPE_CHECKING:
    from lance_memory import (
        Workspace,
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
        "--expect",
        "--expected-version",
        metavar="N",
        min=0,
        help="Only where version N of it stands; 0: none.",
    ),
]
Affected = Annotated[int, typer.Option(metavar="N", min=0, help="Lines to show at most.")]

workspace = Group(
    "workspace",
    help="What an agent is told: prompts, skills, memory mode, policies, flags.",
    epilog="Give --tenant, and --agent for an agent's own, which stands on its tenant's.",
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
        call.out.show(one, human=lambda: items.whole(call, one), quiet=[one])
        return
    state = view.state()
    if not state.items:
        call.out.note("nothing is told; the memory mode is hybrid")
    call.out.show(
        _document(state),
        lines=state.items,
        human=lambda: items.table(call, state.items),
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
    tried: Tried,
    *,
    kind: Annotated[
        str | None, typer.Option(help="Of a skill: your own word; else as it was.")
    ] = None,
    enabled: Annotated[
        bool | None, typer.Option("--enabled/--disabled", help="Of a skill; else as it was.")
    ] = None,
    expect: Expected = None,
    show: Affected = items.LINES,
) -> None:
    """Set an item, as a new version of it."""
    part, name = _named(item)
    given = text_given(value)
    told = _workspace(call, scope, create=not tried.dry_run)
    checked: Any = given
    if part == "skill":
        checked, own = _skill(told, name, text=given, kind=kind, enabled=enabled)
        expect = own if expect is None else expect
    elif kind is not None or enabled is not None:
        raise typer.BadParameter("--kind, --enabled and --disabled are of skills")
    elif part in ("policy", "flag"):
        checked = _json(given, strict=part == "policy")
    if tried.dry_run:
        items.rehearsed(call, told.plan(part, name, checked, expected_version=expect), show)
    else:
        done = told.set(part, name, checked, expected_version=expect, reason=tried.reason)
        items.done(call, done, scope, show)


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
    changed = items.changes(found) if diff else [None] * len(found)
    documents = [
        {**plain(one), **({} if lines is None else {"diff": lines})}
        for one, lines in zip(found, changed, strict=True)
    ]
    call.out.show(
        documents,
        human=lambda: items.versions(call, found, changed),
        quiet=[one.version for one in found],
    )


def rollback(
    call: Call,
    item: Named,
    version: Annotated[int, typer.Argument(metavar="VERSION", min=1, help="Of the item.")],
    scope: Scoped,
    tried: Tried,
    *,
    expect: Expected = None,
    show: Affected = items.LINES,
) -> None:
    """Give an item the value that it had, as a new version."""
    part, name = _named(item)
    told = _workspace(call, scope)
    if tried.dry_run:
        value = told.get(part, name, version=version).value
        items.rehearsed(call, told.plan(part, name, value, expected_version=expect), show)
    else:
        done = told.rollback(part, name, version, expected_version=expect, reason=tried.reason)
        items.done(call, done, scope, show)


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
        human=lambda: items.whole(call, found),
        quiet=[found],
        question=f"remove {found}?",
    ):
        expected = found.version if expect is None and found.scope == told.scope else expect
        done = told.remove(part, name, expected_version=expected, reason=gate.reason)
        items.done(call, done, scope)


def enable(
    call: Call, name: SkillName, scope: Scoped, tried: Tried, *, expect: Expected = None
) -> None:
    """Tell a skill from now on."""
    told = _workspace(call, scope)
    if tried.dry_run:
        skill = {**told.get("skill", name).value, "enabled": True}
        items.rehearsed(call, told.plan("skill", name, skill, expected_version=expect))
    else:
        items.done(call, told.enable(name, expected_version=expect, reason=tried.reason), scope)


def disable(
    call: Call, name: SkillName, scope: Scoped, tried: Tried, *, expect: Expected = None
) -> None:
    """Tell a skill no more; its text stays."""
    told = _workspace(call, scope)
    if tried.dry_run:
        skill = {**told.get("skill", name).value, "enabled": False}
        items.rehearsed(call, told.plan("skill", name, skill, expected_version=expect))
    else:
        items.done(call, told.disable(name, expected_version=expect, reason=tried.reason), scope)


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
    call: Call, directory: Directory, scope: Scoped, gate: Reasoned, *, show: Affected = items.LINES
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
        human=lambda: items.planned(call, plan, show),
        quiet=[*map(str, (*plan.added, *plan.changed, *plan.removed))],
        question="make it so?",
    ):
        return
    done = told.apply(plan, reason=gate.reason)
    call.out.show(done, human=lambda: call.draw.line(str(done)), quiet=[done.version])


def register(app: TyperGroup) -> None:
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
        workspace.add_command(Command(function, name))
    app.add_command(workspace)


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


def _skill(
    told: Workspace, name: str, *, text: str, kind: str | None, enabled: bool | None
) -> tuple[dict[str, Any], int]:
    """A skill with another text, and the version of the own one that the rest of it is from."""
    found = told.find("skill", name)
    given = {"text": text, "kind": kind, "enabled": enabled}
    value = {} if found is None else found.value
    own = found.version if found is not None and found.scope == told.scope else 0
    return {**value, **{n: v for n, v in given.items() if v is not None}}, own
