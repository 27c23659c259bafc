"""context: what an agent is given to know for its next turn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmem.command import Call, command
from lmem.options import Name, text_given

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import ContextItem, ContextPack, DroppedItem, MemoryStore

__all__ = ["register"]

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """Whose agent it is."""

    tenant: Annotated[Name, typer.Option(metavar="NAME", help="Keep to this tenant.")] = None
    user: Annotated[Name, typer.Option(metavar="NAME", help="Keep to this user.")] = None
    agent: Annotated[Name, typer.Option(metavar="NAME", help="Keep to this agent.")] = None

    def given(self) -> dict[str, str]:
        """The levels that were named."""
        levels = {"tenant": self.tenant, "user": self.user, "agent": self.agent}
        return {name: value for name, value in levels.items() if value is not None}


def context(
    call: Call,
    query: Annotated[str, typer.Argument(help='The question, as asked; "-" reads stdin.')],
    whose: Whose,
    *,
    session: Annotated[
        str, typer.Option(metavar="NAME", help="The conversation whose last messages go in.")
    ],
    budget: Annotated[
        int, typer.Option(metavar="TOKENS", help="Of the whole text, by the embedder's tokenizer.")
    ] = 2_000,
    mode: Annotated[
        Name,
        typer.Option(
            metavar="vector|hybrid|distilled", help="How to recall; else the workspace's mode."
        ),
    ] = None,
    latency: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Go without what the embedder is late with."),
    ] = None,
    ids: Annotated[bool, typer.Option("--ids", help="Whole ids in the text.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Which items, why, and what was left out.")
    ] = False,
) -> None:
    """Print what an agent is to know for its next turn, within a budget of tokens.

    Recent messages of the session, events, facts, procedures and the profile, by one score. The
    text is for a prompt: what was recalled stands in it as data. It reads only.
    """
    from lance_memory import Agent, ContextOptions

    levels = whose.given()
    if not levels:
        raise typer.BadParameter("whose agent is it? name --tenant, --user or --agent")
    agent = Agent(call.open().scoped(**levels))
    options = ContextOptions(mode=mode, latency=latency, ids=ids)
    pack = agent.context(session, text_given(query), budget, options=options)
    for leg, reason in pack.failures.items():
        call.out.note(
            f"{leg}: {reason}" if leg == "budget" else f"note: made without {leg}: {reason}"
        )
    if not pack.items and "budget" not in pack.failures:
        call.out.note("nothing found")
    if call.out.is_human:
        _print(call, agent.store, pack, explain=explain)
        return
    told: dict[str, Any] = pack.to_json()
    call.out.show(told, lines=told["items"], human=lambda: "", quiet=[item.id for item in pack])


def register(app: typer.Typer) -> None:
    """Add this command to `app`."""
    command(app)(context)


def _print(call: Call, store: MemoryStore, pack: ContextPack, *, explain: bool) -> None:
    """The text as it is: a line that was wrapped could pass for one of the frame."""
    if pack.text:
        print(pack.text)
    if explain:
        call.out.show(pack, human=lambda: _explained(call, store, pack), quiet=())


def _explained(call: Call, store: MemoryStore, pack: ContextPack) -> RenderableType:
    from rich.console import Group

    draw, some = call.draw, pack.dropped[:_SHOWN]
    named = _names(call, store, [*pack.items, *some])
    items = [
        (f"#{i.number}", i.source, f"{i.score:.3f}", i.tokens, named.get(i.id, i.id), i.reason)
        for i in pack
    ]
    dropped = [
        (d.source, f"{d.score:.3f}", named.get(d.id, d.id), d.reason, d.detail) for d in some
    ]
    parts = [
        draw.line(""),
        draw.line(
            f"{pack.tokens:,} of {pack.budget:,} tokens; mode {pack.mode}, version {pack.version}, "
            f"{1e3 * pack.seconds['all']:.0f} ms"
        ),
        draw.sheet(("ITEM", "SOURCE", "SCORE", "TOKENS", "MEMORY", "BECAUSE"), items),
    ]
    if dropped:
        table = draw.sheet(("LEFT OUT", "SCORE", "MEMORY", "FOR", "BECAUSE"), dropped)
        parts += [draw.line(""), draw.first(table, len(dropped), of=len(pack.dropped))]
    return Group(*parts)


def _names(
    call: Call, store: MemoryStore, some: Iterable[ContextItem | DroppedItem]
) -> dict[str, str]:
    """What a person can type for each memory; messages of the conversation are none yet."""
    ids = [one.id for one in some if one.source != "working"]
    found = [memory for id in ids if (memory := store.find(id)) is not None]
    names = call.names(found)
    return {memory.id: names(memory) for memory in found}
