"""What faded for want of use: shown, and retired if that is agreed to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmem.command import Call, approved
from lmem.options import Filters, Name, Reasoned, age

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import Decay, MemoryStore, RetirePlan, WriteResult

__all__ = ["Fading", "faded"]

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fading:
    """Which strength is too little, and how memories lose it."""

    below: Annotated[
        float | None,
        typer.Option(
            help="Only what is weaker, 0..1: importance, times what age leaves of it. Needs "
            "--decay; procedural, profile and evergreen-tagged memories stay."
        ),
    ] = None
    decay: Annotated[
        Name, typer.Option(metavar="AGE", help="In which strength halves: 12h, 30d, 8w.")
    ] = None
    floor: Annotated[float | None, typer.Option(help="What age leaves at least, 0..1; else 0.")] = (
        None
    )
    use: Annotated[
        float | None,
        typer.Option(help="How much recalls lengthen the half-life, 0..4; else 0.5; 0: not."),
    ] = None

    def fades(self) -> Decay | None:
        """As the library takes it; None: strength is not asked about."""
        from lance_memory import Decay

        if self.below is None:
            if (self.decay, self.floor, self.use) != (None, None, None):
                raise typer.BadParameter("--decay, --floor and --use go with --below")
            return None
        if self.decay is None:
            raise typer.BadParameter("--below needs --decay, such as 30d")
        named = {"floor": self.floor, "use": self.use}
        given: dict[str, Any] = {n: value for n, value in named.items() if value is not None}
        return Decay(half_life=age(self.decay, "--decay"), **given)


def faded(
    call: Call, store: MemoryStore, filters: Filters, *, below: float, decay: Decay, gate: Reasoned
) -> WriteResult | None:
    """Show what is weaker, and retire it if that is agreed to; None: it was a dry run."""
    with call.out.progress("planning"):
        plan = store.plan_retirement(below=below, decay=decay, **filters.where())
    told = {
        "version": plan.version,
        "at": plan.at,
        "considered": plan.considered,
        **plan.manifest(),
        "memories": plan.memories,
    }
    if not plan:
        call.out.note(f"none of {call.draw.count(plan.considered)} is weaker than {below:g}")
    agreed = (not plan and not gate.dry_run) or approved(
        call,
        gate,
        plan=told,
        human=lambda: _weak(call, store, plan),
        quiet=plan.ids,
        question=f"retire {call.draw.count(len(plan.memories))}?",
    )
    if not agreed:
        return None
    with call.out.progress("retiring"):
        return store.apply(plan, reason=gate.reason)


def _weak(call: Call, store: MemoryStore, plan: RetirePlan) -> RenderableType:
    weakest = plan.memories[:_SHOWN]
    shown = [store.get(m.id) for m in weakest]
    names = call.names(shown)
    columns = {
        "MEMORY": [names(m) for m in shown],
        "STRENGTH": [f"{m.strength:.3f}" for m in weakest],
        "AGE": [f"{m.age.days}d" for m in weakest],
        "RECALLS": [str(m.recalls) for m in weakest],
    }
    table = call.draw.beside(columns, [m.content for m in weakest], width=call.out.width)
    drawn: RenderableType = call.draw.first(table, _SHOWN, of=len(plan.memories))
    return drawn
