"""doctor: what is wrong with a store, and what is safe to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, approved
from lmem.options import Gate
from lmem.output import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from lance_memory import Health, HealthFinding

__all__ = ["register"]

_TROUBLE = 1


def doctor(
    call: Call,
    gate: Gate,
    *,
    fix: Annotated[bool, typer.Option("--fix", help="Do what is safe; changes no memory.")] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every file, and compare indices with a scan.")
    ] = False,
) -> None:
    """Look the store over; exit code 1 where there is trouble.

    Notes are no trouble, and --fix leaves them. Where indices or small files are trouble, it folds,
    builds and merges them; it removes files that were nobody's for a week, lets go of what killed
    readers hold, and sets torn versions aside.
    """
    store = call.open()
    with call.out.progress("looking the store over"):
        health = store.doctor(deep=deep)
    if fix and health.fixable:
        agreed = approved(
            call,
            gate,
            plan=plain(health.fixable),
            human=lambda: _table(call, health.fixable),
            quiet=[one.code for one in health.fixable],
            question=f"fix {call.draw.count(len(health.fixable), 'of these', 'of these')}?",
        )
        if not agreed:
            return
        with call.out.progress("fixing"):
            health = store.doctor(fix=True, deep=deep)
    elif fix:
        call.out.note("nothing to fix; `lmem optimize` folds, merges and cleans up at any time")
    call.out.show(
        {"sound": health.sound, **plain(health)},
        lines=health.findings,
        human=lambda: _drawn(call, health),
        quiet=_trouble(health) or ["sound"],
    )
    if not health.sound:
        raise typer.Exit(_TROUBLE)


def register(app: TyperGroup) -> None:
    """Add this command to `app`."""
    app.add_command(Command(doctor))


def _trouble(health: Health) -> list[str]:
    """The codes of what is worse than a note."""
    return [one.code for one in health.findings if one.severity != "note"]


def _drawn(call: Call, health: Health) -> RenderableType:
    from rich.console import Group

    done = [call.draw.line(f"fixed {one.code}: {one.message}") for one in health.fixed]
    return Group(call.draw.line(health.summary), *done, _table(call, health.findings))


def _table(call: Call, findings: Iterable[HealthFinding]) -> RenderableType:
    """A line for each finding, what it is about below it, and what to do."""
    values: list[tuple[Any, ...]] = []
    for one in findings:
        values.append((one.severity, one.code, one.message))
        values += [("", "", f"  {text}") for text in one.sample]
        way = "`lmem doctor --fix`" if one.fixable else ""
        advice = "; ".join(text for text in (way, one.advice) if text)
        values += [("", "", f"  -> {advice}")] if advice else []
    table: RenderableType = call.draw.sheet(("SEVERITY", "CODE", "FOUND"), values)
    return table
