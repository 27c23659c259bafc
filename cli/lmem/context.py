"""context: what an agent is given to know for its next turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command
from lmem.options import Name, text_given

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import ContextOptions, ContextPack, DroppedItem

__all__ = ["register"]

_SHOWN = 20
_SHORT = 12
"""Characters of an id that is shown as it is."""

_NO_MEMORY = "-"
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How the pack is made; what is not given is as `ContextOptions` has it."""

    mode: Annotated[
        Name,
        typer.Option(
            metavar="vector|hybrid|distilled", help="How to recall; else the workspace's mode."
        ),
    ] = None
    recent: Annotated[
        int | None, typer.Option(metavar="N", help="Messages that are looked at; else 20.")
    ] = None
    k: Annotated[
        int | None,
        typer.Option("-k", metavar="N", help="Memories that are looked at; else by the budget."),
    ] = None
    procedures: Annotated[
        int | None, typer.Option(metavar="N", help="Procedures that are looked at; else 3.")
    ] = None
    lead: Annotated[
        int | None,
        typer.Option(metavar="N", help="So many events bring what stands beside them; else 10."),
    ] = None
    min_score: Annotated[
        float | None,
        typer.Option(metavar="0..1", help="Nothing is recalled with a relevance below; else 0.05."),
    ] = None
    relevance: Annotated[
        float | None,
        typer.Option(metavar="0..1", help="Less prefers what is unlike the rest; else 0.9."),
    ] = None
    longest: Annotated[
        float | None,
        typer.Option(metavar="0..1", help="Of one item, a share of the budget; else 0.5."),
    ] = None
    latency: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Go without what the embedder is late with."),
    ] = None
    no_shared: Annotated[bool, typer.Option("--no-shared", help="Without what others share.")] = (
        False
    )
    ids: Annotated[bool, typer.Option("--ids", help="Whole ids in the text.")] = False

    def options(self) -> ContextOptions:
        """As the library takes them."""
        from lance_memory import ContextOptions

        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given["shared"] = not given.pop("no_shared")
        return ContextOptions(**{name: one for name, one in given.items() if one is not None})


def context(
    call: Call,
    query: Annotated[str, typer.Argument(help='The question, as asked; "-" reads stdin.')],
    whose: Whose,
    how: How,
    *,
    session: Annotated[
        str, typer.Option(metavar="NAME", help="The conversation whose last messages go in.")
    ],
    budget: Annotated[
        int, typer.Option(metavar="TOKENS", help="Of the whole text, by the embedder's tokenizer.")
    ] = 2_000,
    explain: Annotated[
        bool, typer.Option("--explain", help="Which items, why, and what was left out.")
    ] = False,
) -> None:
    """Print what an agent is to know for its next turn, within a budget of tokens.

    Recent messages of the session, events, facts, procedures, the profile and what others share, by
    one score. The text is for a prompt: what was recalled stands in it as data. It reads only.
    """
    from lance_memory import Agent

    levels = whose.given()
    if not levels:
        raise typer.BadParameter("whose agent is it? name --tenant, --user or --agent")
    agent = Agent(call.open().scoped(**levels))
    pack = agent.context(session, text_given(query), budget, options=how.options())
    for leg, reason in pack.failures.items():
        call.out.note(
            f"{leg}: {reason}" if leg == "budget" else f"note: made without {leg}: {reason}"
        )
    if not pack.items and "budget" not in pack.failures:
        call.out.note("nothing found")
    if call.out.is_human:
        _print(call, pack, explain=explain)
        return
    told: dict[str, Any] = pack.to_json()
    call.out.show(told, lines=told["items"], human=lambda: "", quiet=[item.id for item in pack])


def register(app: TyperGroup) -> None:
    """Add this command to `app`."""
    app.add_command(Command(context))


def _print(call: Call, pack: ContextPack, *, explain: bool) -> None:
    """The text as it is: a line that was wrapped could pass for one of the frame."""
    if pack.text:
        print(pack.text)
    if explain:
        call.out.show(pack, human=lambda: _explained(call, pack), quiet=())


def _explained(call: Call, pack: ContextPack) -> RenderableType:
    from rich.console import Group

    draw, some = call.draw, pack.dropped[:_SHOWN]
    named = _names(call, pack, some)
    items = [
        (
            *(f"#{i.number}", i.source, f"{i.score:.3f}", i.tokens),
            *(_NO_MEMORY if i.source == "working" else named(i.id), named(i.reason)),
        )
        for i in pack
    ]
    dropped = [
        (
            *(d.source, f"{d.score:.3f}"),
            *(_NO_MEMORY if d.source == "working" else named(d.id), d.reason, named(d.detail)),
        )
        for d in some
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


def _names(call: Call, pack: ContextPack, dropped: Sequence[DroppedItem]) -> Callable[[str], str]:
    """Texts with short names for the ids in them: of items their numbers, else what can be typed.

    Messages of the conversation are no memories yet, and have no other name than their number.
    """
    texts = [i.reason for i in pack] + [d.detail for d in dropped]
    asked = {*_ID.findall(" ".join(texts)), *(i.id for i in pack), *(d.id for d in dropped)}
    rows = call.whole.to_arrow(columns=["id", "key"], states="any").to_pylist()
    found = [_Known(**row) for row in rows if row["id"] in asked]
    names = call.names(found)
    shown = {one.id: names(one) for one in found}
    numbers = {i.id: f"#{i.number}" for i in pack if i.source == "working"}
    long = sorted((one for one in {**shown, **numbers} if len(one) > _SHORT), key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, long)) or '(?!)'})(?![\w-])")
    return lambda text: pattern.sub(lambda one: {**shown, **numbers}[one.group()], text)


@dataclass(frozen=True, slots=True)
class _Known:
    """What names a memory."""

    id: str
    key: str | None
