"""ingest: from conversations to memories."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmem.command import Call, command
from lmem.errors import REJECTED
from lmem.options import Name, Scoped
from lmem.output import complain

if TYPE_CHECKING:
    from lance_memory import Conversation, IngestResult, MemoryStore, WritePath

__all__ = ["register"]

_FAILED = 1


class As(StrEnum):
    """How the input is written."""

    AUTO = "auto"
    JSONL = "jsonl"
    OPENAI = "openai"
    TRANSCRIPT = "transcript"


class Plan(StrEnum):
    """What the tenant pays for: whose jobs come first."""

    FREE = "free"
    GROWTH = "growth"
    ENTERPRISE = "enterprise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the input is, and whose where it does not say so."""

    written: Annotated[
        As, typer.Option("--as", help="How it is written; auto: told from the content.")
    ] = As.AUTO
    external_user: Annotated[
        Name,
        typer.Option(
            metavar="ID",
            help="Your own id of the user: gets an internal one of the tenant, always the same.",
        ),
    ] = None
    source: Annotated[
        Name, typer.Option(metavar="NAME", help="A back-end event that it comes from: billing, ...")
    ] = None
    domain: Annotated[
        Name, typer.Option(metavar="NAME", help="Its routing and overlays: education, support, ...")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Queueing:
    """How the job is made."""

    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="Do it now, or leave it to a worker (lmem worker)."),
    ] = True
    plan: Annotated[Plan, typer.Option(help="Of the tenant: whose jobs come first.")] = Plan.FREE
    idempotency_key: Annotated[
        Name, typer.Option(metavar="KEY", help="The same key again is the same job and answer.")
    ] = None
    ordered: Annotated[
        bool, typer.Option("--ordered", help="By seq: what comes too early waits for the gap.")
    ] = False
    rate: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Conversations of one user in a minute; else any."),
    ] = None


def ingest(
    call: Call,
    files: Annotated[list[str], typer.Argument(metavar="FILE|-...", help='"-" reads stdin.')],
    scope: Scoped,
    reading: Reading,
    queueing: Queueing,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be decided.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="What each step decided, about what, and why.")
    ] = False,
    show: Annotated[
        int, typer.Option(metavar="N", min=0, help="Of --explain: examples of each decision.")
    ] = 5,
) -> None:
    """Make memories of conversations: redact, gate, extract, keep, resolve; all as one version.

    --as jsonl: a conversation {"messages": [...], "session": ...} or a message {"role", "content",
    "at", "seq", ...} on each line. openai: a JSON document of such conversations, or of messages.
    transcript: lines "Name: text", with "[2025-01-31 12:00]" before them or without.

    A conversation that the gate blocks (L2 low_quality, L3 duplicate_query, L4 budget_exhausted) is
    an ordinary answer: exit code 0, with the status shown. 5 is for an input that is malformed, and
    for one of which redaction refuses every conversation; 1 for a job that failed. A file is no
    user's live traffic: there is no rate limit (L1), unless --rate sets one.
    """
    found = _read(files, reading, scope)
    call.write_path = _path(queueing.rate, reading.source)
    with _store(call, scope, dry_run=dry_run) as store, call.out.progress("ingesting"):
        result = store.ingest(
            found,
            idempotency_key=queueing.idempotency_key or "",
            wait=queueing.wait,
            plan=queueing.plan.value,
            ordered=queueing.ordered,
            dry_run=dry_run,
            **_user(store, reading.external_user),  # type: ignore[arg-type]
        )
    _answered(call, result, len(found), explain=explain, show=show)
    if dry_run:
        call.out.note("dry run: nothing was written")
    _tell_of(call, result)


def register(app: typer.Typer) -> None:
    """Add this command to `app`."""
    command(app)(ingest)


def _read(files: list[str], reading: Reading, scope: Scoped) -> list[Conversation]:
    """All conversations of all files.

    Raises:
        RejectedError: one of them is malformed; names the line.
    """
    from lance_memory import InvalidInputError, RejectedError, Scope, read_conversations

    form = {As.AUTO: None, As.OPENAI: "json"}.get(reading.written, reading.written.value)
    found: list[Conversation] = []
    try:
        for file in files:
            found += read_conversations(
                sys.stdin.buffer if file == "-" else file,
                format=form,
                scope=Scope(**scope.given()),
                source=reading.source or "",
                domain=reading.domain or "",
            )
    except InvalidInputError as error:
        raise RejectedError(f"{error}; nothing was stored") from error
    return found


@contextmanager
def _store(call: Call, scope: Scoped, *, dry_run: bool) -> Iterator[MemoryStore]:
    """The store; where a dry run would make it, one that is gone afterwards."""
    if dry_run and call.is_new:
        with TemporaryDirectory() as place, call.rehearsal(place, scope) as store:
            yield store
    else:
        yield call.open(scope, create=True)


def _user(store: MemoryStore, external: str | None) -> dict[str, str]:
    """The internal user that stands for the caller's own id."""
    if external is None:
        return {}
    return {"user": store.proxy_user(store.scope.tenant, external)}


def _path(rate: int | None, source: str | None) -> WritePath | None:
    """The store's own steps, or with another gate."""
    if rate is None and not source:
        return None
    from lance_memory import Gate, GatePolicy, WritePath

    events = frozenset([source] if source else [])
    return WritePath(gate=Gate(GatePolicy(per_minute=rate)), events=events)


def _answered(
    call: Call, result: IngestResult, conversations: int, *, explain: bool, show: int
) -> None:
    from lmem.decided import explained, summary

    told = summary(result, conversations)
    decisions: dict[str, Any] = {"decisions": explained(result)} if explain else {}
    lines = [told, *explained(result)] if explain else [told]

    def drawn() -> Any:
        from rich.console import Group

        from lmem.decided import drawn, steps

        parts = steps(result, width=call.out.width, show=show) if explain else ()
        return Group(*parts, drawn(told))

    ids = [result.job] if result.job and not (result.ids or result.status == "done") else result.ids
    call.out.show({**told, **decisions}, lines=lines, human=drawn, quiet=ids)


def _tell_of(call: Call, result: IngestResult) -> None:
    """What was done without, and the exit code of what is no answer."""
    for degraded in result.degraded:
        call.out.note(f"note: {degraded}")
    if result.status == "queued":
        call.out.note(f"`lmem jobs show {result.job}` says how it stands; `lmem worker` does it")
    if result.status == "failed":
        complain(f"the job failed: {result.reason}")
        raise typer.Exit(_FAILED)
    if result.status == "refused":
        complain(f"refused: {result.reason}; nothing was stored")
        raise typer.Exit(REJECTED)
