"""procedures: what an agent has learned to do, how often it went well, and which fits best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, Group
from lmem.options import Scoped, text_given
from lmem.output import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import ProceduralMemory, Procedure, ProcedureSummary, RankedProcedure

__all__ = ["register"]

_LONGEST = 24

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the procedure is called.")]

group = Group(
    "procedures",
    help="Procedures that work: learn them, count their uses, find the one that fits.",
)


def list_procedures(call: Call, scope: Scoped) -> None:
    """List the procedures of a scope, and of all within it, by name."""
    found = _layer(call, scope).list()
    if not found:
        call.out.note("no procedure is known")
    call.out.show(
        [_told(one) for one in found],
        human=lambda: _table(call, found),
        quiet=[one.id for one in found],
    )


def show(call: Call, name: Name, scope: Scoped) -> None:
    """Show one procedure: when it fits, its steps, and how it went."""
    _shown(call, _layer(call, scope).get(name))


def best(
    call: Call,
    situation: Annotated[
        str, typer.Argument(metavar="SITUATION", help='What is to be done; "-" reads stdin.')
    ],
    scope: Scoped,
    *,
    k: Annotated[int, typer.Option("--k", "-k", "--limit", "-n", help="At most as many.")] = 3,
    min_similarity: Annotated[
        float, typer.Option(metavar="COSINE", help="Leave out what fits less, 0..1.")
    ] = 0.0,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what the score is made from.")
    ] = False,
) -> None:
    """Find the procedures for a situation, best first.

    The score is the similarity of the situation and the procedure's own, times the smoothed rate
    of success: 1 of 1 counts 0.67, 98 of 100 counts 0.97, never tried 0.5.
    """
    layer = _layer(call, scope)
    found = layer.best(text_given(situation), k, min_similarity=min_similarity)
    for reason in found.degraded.values():
        call.out.note(f"note: found by words alone: {reason}")
    if not found:
        call.out.note("no procedure fits")
    call.out.show(
        [
            {"score": one.score, "similarity": one.similarity, **_told(one.procedure)}
            for one in found
        ],
        human=lambda: _ranks(call, found.ranks, explain=explain),
        quiet=[one.procedure.id for one in found],
    )


def learn(
    call: Call,
    name: Name,
    scope: Scoped,
    *,
    fits: Annotated[str, typer.Option("--context", metavar="TEXT", help="When it fits.")],
    step: Annotated[
        list[str],
        typer.Option(metavar="TEXT", help='What to do; repeatable. "-" reads a step a line.'),
    ],
) -> None:
    """Keep a procedure, or other steps of one that is known.

    Other steps take the place of the old ones and begin without counts; another context alone
    keeps them.
    """
    steps = [one for given in step for one in (_lines(given) if given == "-" else [given])]
    layer = _layer(call, scope, create=True)
    _shown(call, layer.learn(name, context=fits, steps=steps))


def record(
    call: Call,
    name: Name,
    scope: Scoped,
    *,
    success: Annotated[bool, typer.Option("--success/--failure", help="How it went.")],
    seconds: Annotated[float | None, typer.Option(metavar="S", help="How long it took.")] = None,
) -> None:
    """Count one use of a procedure."""
    _shown(call, _layer(call, scope).record(name, success=success, seconds=seconds))


def across_users(
    call: Call,
    scope: Scoped,
    *,
    min_users: Annotated[
        int, typer.Option(metavar="N", help="Tell only what so many users share; 2 at least.")
    ] = 5,
) -> None:
    """What the users of a --tenant have in common: counts by name, and never whose."""
    found = _layer(call, scope).across_users(min_users)
    if not found:
        call.out.note(f"no procedure is known to {min_users} users")
    call.out.show(
        plain(found),
        human=lambda: _summaries(call, found),
        quiet=[one.users for one in found],
    )


def register(app: TyperGroup) -> None:
    """Add this group of commands to `app`."""
    for name, function in (
        ("list", list_procedures),
        ("show", show),
        ("best", best),
        ("learn", learn),
        ("record", record),
        ("across-users", across_users),
    ):
        group.add_command(Command(function, name))
    app.add_command(group)


def _layer(call: Call, scope: Scoped, *, create: bool = False) -> ProceduralMemory:
    from lance_memory import ProceduralMemory

    return ProceduralMemory(call.open(scope, create=create))


def _lines(given: str) -> list[str]:
    return [line for line in text_given(given).splitlines() if line.strip()]


def _told(one: Procedure) -> dict[str, Any]:
    """As JSON values, the smoothed rate too."""
    return {**plain(one), "success_rate": one.success_rate}


def _shown(call: Call, one: Procedure) -> None:
    call.out.show(_told(one), human=lambda: _drawn(call, one), quiet=[one.id])


def _drawn(call: Call, one: Procedure) -> RenderableType:
    steps = {f"step {number}": step for number, step in enumerate(one.steps, start=1)}
    drawn: RenderableType = call.draw.pairs(
        {
            "name": one.name,
            "context": one.context,
            **steps,
            "went well": one.tried,
            "success rate": f"{one.success_rate:.3f} (smoothed)",
            "takes": _takes(one.mean_seconds),
            "last used": one.last_used,
            "learned at": one.learned_at,
            "scope": str(one.scope),
            "id": one.id,
        }
    )
    return drawn


def _table(call: Call, found: Sequence[Procedure]) -> RenderableType:
    columns = {
        "PROCEDURE": [_cut(one.name) for one in found],
        "WENT WELL": [one.tried for one in found],
        "RATE": [f"{one.success_rate:.2f}" for one in found],
        "TAKES": [_takes(one.mean_seconds) for one in found],
        "USER": [one.scope.user[:12] for one in found],
    }
    return _beside(call, columns, [one.context for one in found])


def _ranks(call: Call, found: Sequence[RankedProcedure], *, explain: bool) -> RenderableType:
    blocks = [
        (
            f"{one.score:.3f}  {one.procedure.name}  {one.procedure.tried}",
            [*one.procedure.steps, *([one.explain()] if explain else [])],
        )
        for one in found
    ]
    drawn: RenderableType = call.draw.blocks(blocks)
    return drawn


def _summaries(call: Call, found: Sequence[ProcedureSummary]) -> RenderableType:
    columns = {
        "PROCEDURE": [_cut(one.name) for one in found],
        "USERS": [str(one.users) for one in found],
        "WENT WELL": [one.tried for one in found],
        "TAKES": [_takes(one.mean_seconds) for one in found],
    }
    return _beside(call, columns, ["; ".join(one.steps or ()) for one in found])


def _beside(call: Call, columns: dict[str, list[str]], contents: Sequence[str]) -> RenderableType:
    if not contents:
        return call.draw.line("")  # type: ignore[no-any-return]
    return call.draw.beside(columns, contents, width=call.out.width)  # type: ignore[no-any-return]


def _takes(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3g} s"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
