"""ingest: from conversations to memories."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command
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

    Where the input names several tenants, each has a job and a version of its own.

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
    parts = _by_tenant(found)
    with (
        _store(call, scope, dry_run=dry_run) as store,
        call.out.progress("ingesting") as report,
    ):
        results = [
            store.ingest(
                part,
                idempotency_key=queueing.idempotency_key or "",
                wait=queueing.wait,
                plan=queueing.plan.value,
                ordered=queueing.ordered,
                dry_run=dry_run,
                progress=None if report is None else partial(_told, report),
                **_user(store, tenant, reading.external_user),  # type: ignore[arg-type]
            )
            for tenant, part in parts.items()
        ]
    sizes = dict(zip(parts, map(len, parts.values()), strict=True))
    _answered(call, results, sizes, explain=explain, show=show)
    if dry_run:
        call.out.note("dry run: nothing was written")
    _tell_of(call, results)


def register(app: TyperGroup) -> None:
    """Add this command to `app`."""
    app.add_command(Command(ingest))


_STEPS = {
    "redact": "redacting conversations",
    "extract": "reading conversations",
    "embed": "embedding",
}


def _told(report: Callable[..., None], step: str, done: int, total: int) -> None:
    """How far a step is, on the bar."""
    report(done, total, _STEPS.get(step, step))


def _by_tenant(found: list[Conversation]) -> dict[str, list[Conversation]]:
    """The conversations of each tenant, the first that is named first; a job is of one."""
    parts: dict[str, list[Conversation]] = {}
    for one in found:
        parts.setdefault(one.scope.tenant, []).append(one)
    return parts


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


def _user(store: MemoryStore, tenant: str, external: str | None) -> dict[str, str]:
    """The internal user that stands for the caller's own id."""
    if external is None:
        return {}
    return {"user": store.proxy_user(tenant, external)}


def _path(rate: int | None, source: str | None) -> WritePath | None:
    """The store's own steps, or with another gate."""
    if rate is None and not source:
        return None
    from lance_memory import Gate, GatePolicy, WritePath

    events = frozenset([source] if source else [])
    return WritePath(gate=Gate(GatePolicy(per_minute=rate)), events=events)


def _answered(
    call: Call,
    results: Sequence[IngestResult],
    sizes: Mapping[str, int],
    *,
    explain: bool,
    show: int,
) -> None:
    """The summary of the job; of several, one for each tenant."""
    from lmem.decided import explained, summary

    told: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for (tenant, size), result in zip(sizes.items(), results, strict=True):
        one = summary(result, size)
        one = {"tenant": tenant, **one} if len(sizes) > 1 else one
        decisions = explained(result) if explain else []
        told.append({**one, "decisions": decisions} if explain else one)
        lines += [one, *decisions]

    def drawn() -> Any:
        from rich.console import Group

        from lmem.decided import drawn, steps

        parts: list[Any] = []
        for one, result in zip(told, results, strict=True):
            shown = {name: value for name, value in one.items() if name != "decisions"}
            parts += steps(result, width=call.out.width, show=show) if explain else ()
            parts += ["", drawn(shown)] if parts and not explain else [drawn(shown)]
        return Group(*parts)

    ids = [id for result in results for id in _ids(result)]
    call.out.show(told[0] if len(told) == 1 else told, lines=lines, human=drawn, quiet=ids)


def _ids(result: IngestResult) -> Sequence[str]:
    """The memories that were made; of a job that is not done, its own."""
    waits = result.job and not (result.ids or result.status == "done")
    return [result.job] if waits else result.ids


def _tell_of(call: Call, results: Sequence[IngestResult]) -> None:
    """What was done without, and the exit code of what is no answer."""
    for result in results:
        for degraded in result.degraded:
            call.out.note(f"note: {degraded}")
        if result.status == "queued":
            shown = f"`lmem jobs show {result.job}` says how it stands"
            call.out.note(f"{shown}; `lmem worker` does it")
    if failed := [result.reason for result in results if result.status == "failed"]:
        complain(f"the job failed: {', '.join(failed)}")
        raise typer.Exit(_FAILED)
    if refused := [result.reason for result in results if result.status == "refused"]:
        complain(f"refused: {', '.join(refused)}; {_stored(results)}")
        raise typer.Exit(REJECTED)


def _stored(results: Sequence[IngestResult]) -> str:
    some = any(result.status != "refused" for result in results)
    return (
        "nothing of it was stored, and the other tenants have theirs"
        if some
        else "nothing was stored"
    )
