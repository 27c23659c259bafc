"""observe, recent, flush: an agent's turns, from what was said just now to episodes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command
from lmem.context import Whose
from lmem.errors import REJECTED
from lmem.options import Name, instant
from lmem.output import complain, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import Agent, Flushed, Interaction, Message, ObservedMany

__all__ = ["register"]

_FAILED = 1
_FIELDS = ("user", "agent", "session", "at", "ref", "actor")
_WHY = {
    "small_talk": "nothing is said in their exchanges; --min-importance 0 takes them too",
    "unimportant": "their exchanges are below --min-importance",
    "already_there": "they became episodes before",
    "ended": "their time was over",
    "taken_away": "they were cleared or forgotten meanwhile",
}
_STAY = ("small_talk", "unimportant")


def observe(
    call: Call,
    said: Annotated[
        str, typer.Argument(metavar="TEXT|-", help='What the user said; "-" reads lines of JSON.')
    ],
    whose: Whose,
    *,
    session: Annotated[
        Name, typer.Option(metavar="NAME", help="Of which conversation; lines may say it.")
    ] = None,
    answer: Annotated[Name, typer.Option(metavar="TEXT", help="What the agent said.")] = None,
    at: Annotated[Name, typer.Option(metavar="TIME", help="When; else now.")] = None,
    ref: Annotated[
        Name,
        typer.Option(metavar="ID", help="Your own id of the turn: told again, it counts once."),
    ] = None,
    actor: Annotated[Name, typer.Option(metavar="NAME", help="Who spoke to the agent.")] = None,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait/--no-wait", help="Find the facts now, or leave it to a worker (lmem worker)."
        ),
    ] = True,
    explain: Annotated[
        bool, typer.Option("--explain", help="What each step decided, about what, and why.")
    ] = False,
) -> None:
    """Take in a turn of an agent: its messages for `lmem recent`, and the facts in them.

    The messages are kept first, and end after a day unless `lmem flush` makes episodes of them. The
    facts go the way of `lmem ingest`; what was found and not kept is counted by its reason.

    With "-" every line of stdin is a turn {"user": ..., "agent": ..., "session": ..., "at": ...,
    "ref": ..., "actor": ...}; all of them are one job, embedded at once. Exit code 5: redaction
    leaves nothing of a turn, or a quota is used up; 1: the facts could not be found.
    """
    given = {"user": said, "agent": answer, "at": at, "ref": ref, "actor": actor}
    beside = {name: value for name, value in given.items() if value is not None}
    if said == "-" and len(beside) > 1:
        raise typer.BadParameter("with - the lines say all but whose agent it is, and --session")
    levels = _levels(whose)
    turns = list(_read(session)) if said == "-" else [_turn(beside, session, "the turn")]
    if not turns:
        call.out.note("stdin has no line; nothing was kept")
    agent = _agent(call, levels, create=True)
    with call.out.progress("observing"):
        made = agent.observe_many(turns, wait=wait)
    _observed(call, made, len(turns), explain=explain)


def recent(
    call: Call,
    whose: Whose,
    number: Annotated[int, typer.Argument(metavar="N", min=0, help="Messages at most.")] = 10,
    *,
    session: Annotated[str, typer.Option(metavar="NAME", help="Of which conversation.")],
) -> None:
    """Show the last messages of a session, oldest first: those that became no episode yet."""
    found = _agent(call, _levels(whose)).working.recent(session, number)
    if not found:
        call.out.note(f"nothing is to be seen of the session {session!r}")
    call.out.show(
        [one.to_json() for one in found],
        human=lambda: _talk(call, found),
        quiet=[one.ref or plain(one.at) for one in found],
    )


def flush(
    call: Call,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Which conversation is over.")],
    whose: Whose,
    *,
    min_importance: Annotated[
        float | None,
        typer.Option(metavar="0..1", help="Exchanges below stay; 0: none. Else small talk stays."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
) -> None:
    """Make what was said in a session memories of what happened, as one version.

    Small talk such as "Thanks!" alone stays among the recent messages, and ends with them, unless
    --min-importance says what is to stay. The answer tells how many did, and why.
    """
    agent = _agent(call, _levels(whose))
    made = agent.flush(session, min_importance=min_importance, dry_run=dry_run)
    call.out.show(
        {**plain(made), "kept": made.kept},
        human=lambda: call.draw.line(str(made)),
        quiet=made.ids,
    )
    _told_of(call, made)


def register(app: TyperGroup) -> None:
    """Add these commands to `app`."""
    for function in (observe, recent, flush):
        app.add_command(Command(function))


# -- what is asked ----------------------------------------------------------------------------


def _levels(whose: Whose) -> dict[str, str]:
    levels = whose.given()
    if not levels:
        raise typer.BadParameter("whose agent is it? name --tenant, --user or --agent")
    return levels


def _agent(call: Call, levels: Mapping[str, str], *, create: bool = False) -> Agent:
    from lance_memory import Agent

    return Agent(call.open(create=create).scoped(**levels))


def _read(session: str | None) -> Iterator[Interaction]:
    """The turns on stdin.

    Raises:
        RejectedError: a line is none; names it. Nothing was kept.
    """
    from lance_memory import InvalidInputError, RejectedError

    for number, raw in enumerate(sys.stdin.buffer, start=1):
        if raw.strip():
            where = f"line {number}"
            try:
                yield _turn(_object(raw), session, where)
            except (InvalidInputError, typer.BadParameter, ValueError, RecursionError) as error:
                raise RejectedError(f"{where} is no turn: {error}; nothing was kept") from error


def _object(raw: bytes) -> dict[str, Any]:
    told = json.loads(raw)
    if not isinstance(told, dict) or not told.keys() <= set(_FIELDS):
        raise ValueError(f"it takes an object of {', '.join(_FIELDS)}")
    return told


def _turn(told: Mapping[str, Any], session: str | None, where: str) -> Interaction:
    from lance_memory import Interaction

    named = told.get("session", session)
    if named is None:
        raise typer.BadParameter(f"{where} names no session; give --session")
    at = told.get("at")
    return Interaction(
        session=named,
        user_input=told.get("user", ""),
        agent_output=told.get("agent", ""),
        at=None if at is None else instant(str(at), "at" if where.startswith("line") else "--at"),
        ref=told.get("ref", ""),
        actor=told.get("actor", ""),
    )


# -- what is answered -------------------------------------------------------------------------


def _observed(call: Call, made: ObservedMany, turns: int, *, explain: bool) -> None:
    from lmem.decided import explained, summary

    facts = None if made.ingest is None else summary(made.ingest, turns)
    observed = [
        {name: value for name, value in one.to_json().items() if name != "ingest"}
        for one in made.observed
    ]
    told: dict[str, Any] = {"observed": observed, "facts": facts, "failures": dict(made.failures)}
    if explain and made.ingest is not None:
        told["decisions"] = explained(made.ingest)
    ids = () if made.ingest is None else made.ingest.ids or filter(None, [made.ingest.job])
    call.out.show(
        told,
        lines=observed,
        human=lambda: _drawn(call, made, facts, explain=explain),
        quiet=ids if made.ingest is None or made.ingest.status in ("done", "queued") else (),
    )
    _end(call, made)


def _drawn(
    call: Call, made: ObservedMany, facts: Mapping[str, Any] | None, *, explain: bool
) -> RenderableType:
    from rich.console import Group

    from lmem.decided import drawn, steps

    kept: dict[str, list[int]] = {}
    for one in made.observed:
        kept.setdefault(one.session, []).extend(one.messages)
    lines = [
        call.draw.line(f"{call.draw.count(len(numbers), 'message', 'messages')} kept in {session}")
        for session, numbers in kept.items()
    ]
    if explain and made.ingest is not None:
        lines += ["", *steps(made.ingest, width=call.out.width, show=5)]
    return Group(*lines, *([drawn(facts)] if facts is not None else []))


def _end(call: Call, made: ObservedMany) -> None:
    """What went wrong, and the exit code of it."""
    if made.ingest is not None and made.ingest.status == "queued":
        call.out.note(f"`lmem jobs show {made.ingest.job}` says how it stands")
    nothing = [one.failures["working"] for one in made.observed if "working" in one.failures]
    for why in nothing:
        complain(f"not kept: {why}")
    failed = made.failures.get("ingest")
    if failed:
        kept = any(one.messages for one in made.observed)
        told = "the messages are kept, but no facts" if kept else "no facts were found"
        complain(f"{told}: {failed}")
    refused = made.ingest is not None and made.ingest.status == "refused"
    if failed and not refused:
        raise typer.Exit(_FAILED)
    if nothing or refused:
        raise typer.Exit(REJECTED)


def _talk(call: Call, found: tuple[Message, ...]) -> RenderableType:
    rows = [(plain(one.at)[:16], one.actor or str(one.role), one.content) for one in found]
    drawn: RenderableType = call.draw.sheet(("AT", "WHO", "SAID"), rows)
    return drawn


def _told_of(call: Call, made: Flushed) -> None:
    for reason, number in made.left.items():
        what = call.draw.count(number, "message", "messages")
        stay = "; they stay in `lmem recent` until they end" if reason in _STAY else ""
        call.out.note(f"{what} left: {_WHY[reason]}{stay}")
    if not made.kept and not made.left:
        call.out.note("the session has nothing to keep")
    if made.planned:
        call.out.note("dry run: nothing was written")
