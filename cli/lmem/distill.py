"""distill: what sessions, days and topics come to, in one memory each."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.clustering import Transforming
from lmem.command import Call, Command
from lmem.options import Scoped, instant
from lmem.output import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import DistillResult

__all__ = ["register"]

_SHOWN = 200  # characters of a snapshot, for people


class Nightly(StrEnum):
    """The library's `SnapshotOf`, which is slow to import, as far as all of a store goes."""

    SESSION = "session"
    DAY = "day"


def distill(
    call: Call,
    *,
    scope: Scoped,
    transforming: Transforming,
    day: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Of this day alone, in UTC.")
    ] = None,
    topic: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Of the memories nearest to a question.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option(metavar="TAG", help="Of the memories that have a tag.")
    ] = None,
    of: Annotated[
        list[Nightly] | None, typer.Option(help="Only sessions, or only days; repeatable.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only of what was learned since.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Read everything, not only what has news.")
    ] = False,
    max_words: Annotated[int, typer.Option(metavar="N", help="Of a snapshot at most.")] = 400,
    max_snapshots: Annotated[
        int, typer.Option(metavar="N", help="At a time; the next call goes on.")
    ] = 200,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be made.")
    ] = False,
) -> None:
    """Make snapshots of all sessions and days that have news, as one version.

    A snapshot is a memory with the tag "snapshot" that is derived from those that it says in few
    words. They stay; an older snapshot of the same is superseded. Where nothing is new nothing is
    made, and the day that is not over waits. Of a long history what cannot have changed since the
    last pass is not read, unless --whole is given. A text that loses most of the facts is refused:
    exit code 1. With --session, --day, --topic or --tag: of that alone. `lmem dream --distill`
    makes those of sessions and days in each pass.
    """
    from lance_memory import Distiller, DistillOptions, SnapshotOf

    one: dict[str, Any] = {"day": day and _day(day), "topic": topic, "tag": tag}
    one = {name: value for name, value in one.items() if value is not None}
    if scope.session is not None and not one:
        one, scope = {"session": scope.session}, replace(scope, session=None)
    if one and (since or of or whole):
        raise typer.BadParameter(
            "--since and --of are for all sessions and days, and so is --whole"
        )
    nightly = tuple(SnapshotOf(chosen.value) for chosen in of or Nightly)
    options = DistillOptions(of=nightly, max_words=max_words, max_snapshots=max_snapshots)
    with transforming.opened() as transform:
        named = (transform,) if transforming.named else ()  # else the distiller's own
        distiller = Distiller(
            call.open(scope), *named, options=options, execution=transforming.execution()
        )
        begun = None if since is None else instant(since, "--since")
        with call.out.progress("distilling"):
            if one:
                result = distiller.snapshot(**one, dry_run=dry_run)
            else:
                result = distiller.distill(since=begun, whole=whole, dry_run=dry_run)
    _told(call, result)
    if result.refused:
        raise typer.Exit(1)


def register(app: TyperGroup) -> None:
    """Add this command to `app`."""
    app.add_command(Command(distill))


def _day(value: str) -> date:
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise typer.BadParameter(f"--day {value!r} is no day; write one like 2025-01-31") from None


def _told(call: Call, result: DistillResult) -> None:
    document = plain(result)
    call.out.show(
        document,
        lines=document["snapshots"],
        human=lambda: _drawn(call, result),
        quiet=[one.id or one for one in result.snapshots],
    )
    for refused in result.refused:
        call.out.note(f"refused: {refused}")
    if result.left:
        call.out.note(f"{result.left} are left; run it again, or raise --max-snapshots")
    if result.planned:
        call.out.note("dry run: nothing was written")


def _drawn(call: Call, result: DistillResult) -> RenderableType:
    """The sum, and below it two lines for each snapshot."""
    lines: list[str] = []
    for one in result.snapshots:
        whose = f" ({one.scope})" if one.scope else ""
        lines.append(f"{one}{whose}: quality {one.quality:.2f}, from {len(one.sources)}")
        lines.append(f"  {' '.join(one.content.split()):.{_SHOWN}}")
    drawn: RenderableType = call.draw.sheet((str(result),), [(line,) for line in lines])
    return drawn
