"""jobs, worker, watermarks: what was accepted for later, who does it, and how far it is."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from enum import StrEnum
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, Group, approved
from lmem.options import Gate, age
from lmem.output import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import Job, Worker

__all__ = ["register"]

_OFTEN = 0.2
_SHOWN = (
    "id", "tenant", "plan", "state", "attempts", "memories", "accepted_at", "started_at",
    "ended_at", "due_at", "error",
)  # fmt: skip


class State(StrEnum):
    """The library's `JobState`, which is slow to import."""

    QUEUED = "queued"
    WAITING = "waiting"
    RUNNING = "running"
    FAILED = "failed"
    DONE = "done"
    DEAD = "dead"


InState = Annotated[list[State] | None, typer.Option(help="Only those; repeatable.")]
OfTenant = Annotated[str | None, typer.Option(metavar="NAME", help="Of this tenant alone.")]

group = Group(
    "jobs",
    help="What was accepted for later: look at it, try it again, remove it.",
)


def list_jobs(
    call: Call,
    *,
    state: InState = None,
    tenant: OfTenant = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", metavar="N", min=0, help="At most as many, the newest first."
        ),
    ] = None,
) -> None:
    """List jobs, the newest first. What has died waits for `lmem jobs retry`, or `purge`."""
    states = [one.value for one in state or ()]
    found = call.open().jobs.list(states=states, tenant=tenant)[::-1][:limit]
    if not found:
        call.out.note("there is no such job" if states or tenant else "there is no job")
    _listed(call, found)


def show(
    call: Call, job: Annotated[str, typer.Argument(metavar="JOB", help="Id, or its beginning.")]
) -> None:
    """Show one job: its state, attempts and timings, and what came of it."""
    found = call.open().jobs.get(job)
    call.out.show(found.to_json(), human=lambda: _drawn(call, found), quiet=[found.state])


def retry(
    call: Call,
    jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Ids, or their beginnings.")],
) -> None:
    """Queue jobs again that failed or died, as if they were new."""
    done = call.open().jobs.retry(jobs)
    call.out.note(f"{call.draw.count(len(done), 'job', 'jobs')} queued again")
    _listed(call, done)


def purge(
    call: Call,
    gate: Gate,
    *,
    state: InState = None,
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Ended so long ago: 7d, 12h, ...")
    ] = None,
) -> None:
    """Remove jobs with their answers, and what a dead one had still to do; else done and dead ones.

    Their idempotency keys are free again: the same call would be a new job. Memories stay.
    """
    desk = call.open().jobs
    asked: dict[str, Any] = {}
    if state:
        asked["states"] = [one.value for one in state]
    if older_than is not None:
        asked["older_than"] = age(older_than, "--older-than")
    plan = desk.purge(**asked, dry_run=True).jobs
    if not plan:
        call.out.note("nothing matches; nothing was removed")
    elif not approved(
        call,
        gate,
        plan=[job.to_json() for job in plan],
        human=lambda: _table(call, plan),
        quiet=[job.id for job in plan],
        question=f"remove {call.draw.count(len(plan), 'job', 'jobs')} for good?",
    ):
        return
    gone = desk.purge(**asked).jobs if plan else ()
    text = f"removed {call.draw.count(len(gone), 'job', 'jobs')}"
    call.out.show(
        {"removed": [job.id for job in gone]},
        human=lambda: call.draw.line(text),
        quiet=[job.id for job in gone],
    )


def worker(
    call: Call,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Do what is there now, and be done.")
    ] = False,
    slots: Annotated[
        str | None,
        typer.Option(
            metavar="PLAN=N,...", help="Jobs at a time; else enterprise=4,growth=2,free=1."
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", min=1, max=65535, help="Figures for Prometheus, on 127.0.0.1."
        ),
    ] = None,
) -> None:
    """Do the jobs that `lmem ingest --no-wait` leaves, until Ctrl-C or SIGTERM.

    A line for each job. Any number of workers may be at it; one that is killed loses and doubles
    nothing. --metrics-port needs the extra "prometheus".
    """
    if metrics_port is not None:
        from lance_memory import serve_prometheus

        serve_prometheus(port=metrics_port)
    ended: SimpleQueue[Job] = SimpleQueue()
    working = call.open().worker(slots=_slots(slots), told=ended.put)
    if once:
        working.drain()
        _tell(call, ended)
        return
    call.out.note("working; Ctrl-C ends it")
    _until_ended(call, working, ended)


def watermarks(
    call: Call,
    gate: Gate,
    *,
    tenant: OfTenant = None,
    skip: Annotated[
        str | None,
        typer.Option(metavar="FIRST[-LAST]", help="Wait for these events of --tenant no longer."),
    ] = None,
) -> None:
    """How far each tenant's numbered events are, and what is missing."""
    store = call.open()
    order = store.order
    if skip is not None:
        if tenant is None:
            raise typer.BadParameter("--skip needs --tenant, as numbers are a tenant's own")
        gap = _gap(skip)
        told = {"tenant": tenant, "skip": list(gap), "found": plain(order.status(tenant))}
        size = call.draw.count(gap[1] - gap[0] + 1, "event", "events")
        if not approved(
            call,
            gate,
            plan=told,
            human=lambda: call.draw.line(f"{size} of tenant {tenant!r} will not be waited for"),
            quiet=[f"{gap[0]}-{gap[1]}"],
            question="skip them?",
        ):
            return
        store.skip_events(tenant, *gap)
    tenants = [tenant] if tenant is not None else sorted(order.tenants())
    found = [{"tenant": name, **plain(order.status(name))} for name in tenants]
    if not found:
        call.out.note("no numbered event has arrived")
    call.out.show(
        found,
        human=lambda: _marks(call, found),
        quiet=[one["contiguous"] for one in found],
    )


def register(app: TyperGroup) -> None:
    """Add these commands to `app`."""
    for name, function in (
        ("list", list_jobs),
        ("show", show),
        ("retry", retry),
        ("purge", purge),
    ):
        group.add_command(Command(function, name))
    app.add_command(group)
    app.add_command(Command(worker))
    app.add_command(Command(watermarks))


def _listed(call: Call, found: Sequence[Job]) -> None:
    call.out.show(
        [job.to_json() for job in found],
        human=lambda: _table(call, found),
        quiet=[job.id for job in found],
    )


def _table(call: Call, found: Sequence[Job]) -> RenderableType:
    values = [
        (
            job.id[:13] if len({one.id[:13] for one in found}) == len(found) else job.id,
            job.state,
            job.plan,
            f"{job.accepted_at:%Y-%m-%d %H:%M}",
            job.attempts,
            job.memories,
            job.error or job.tenant,
        )
        for job in found
    ]
    columns = (
        "JOB",
        "STATE",
        "PLAN",
        "ACCEPTED (UTC)",
        "TRIES",
        "MADE",
        "TENANT, OR WHY IT FAILED",
    )
    return call.draw.sheet(columns, values) if values else call.draw.line("")  # type: ignore[no-any-return]


def _drawn(call: Call, job: Job) -> RenderableType:
    """One job, its answer in figures."""
    told = {name: value for name, value in job.to_json().items() if name in _SHOWN}
    answer = job.answer or {}
    told["took"] = f"{_took(job):.2f} s" if job.state == "done" else ""
    told["came of it"] = " ".join(str(answer.get(name) or "") for name in ("status", "reason"))
    told["version"] = answer.get("version")
    drawn: RenderableType = call.draw.pairs({name: v for name, v in told.items() if v or v == 0})
    return drawn


def _took(job: Job) -> float:
    if job.started_at is None or job.ended_at is None:
        return 0.0
    return (job.ended_at - job.started_at).total_seconds()


def _until_ended(call: Call, working: Worker, ended: SimpleQueue[Job]) -> None:
    """Work until SIGTERM or Ctrl-C, and let what runs end."""
    stop = Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    telling = Thread(target=_tell_until, args=(call, ended, stop), daemon=True)
    telling.start()
    try:
        whole = working.run_until(stop)
    finally:
        stop.set()
        telling.join()
        for number, handler in before.items():
            signal.signal(number, handler)
    _tell(call, ended)
    if not whole:
        call.out.note("what still ran will be taken over by another worker, or by the next")


def _tell_until(call: Call, ended: SimpleQueue[Job], stop: Event) -> None:
    while not stop.wait(_OFTEN):
        _tell(call, ended)


def _tell(call: Call, ended: SimpleQueue[Job]) -> None:
    """A line for each attempt that ended."""
    while not ended.empty():
        job = ended.get()
        call.out.show(
            job.to_json(),
            human=lambda job=job: call.draw.line(_line(call, job)),  # type: ignore[misc]
            quiet=[job.id],
        )
    sys.stdout.flush()


def _line(call: Call, job: Job) -> str:
    answer = job.answer or {}
    made = call.draw.count(job.memories)
    what = {
        "done": f"{answer.get('status', 'done')} {answer.get('reason') or ''}".strip()
        + f", {made}",
        "failed": f"attempt {job.attempts} failed: {job.error}",
        "dead": f"dead after {call.draw.count(job.attempts, 'attempt', 'attempts')}: {job.error}",
    }.get(str(job.state), str(job.state))
    at = job.ended_at or job.started_at or job.accepted_at
    return f"{at:%Y-%m-%d %H:%M:%S}  {job.id[:13]}  plan {job.plan}  {what} ({_took(job):.1f} s)"


def _slots(text: str | None) -> dict[str, int] | None:
    """plan=number pairs; what they may be, the library says."""
    if text is None:
        return None
    found = {}
    for pair in text.split(","):
        plan, _, number = pair.strip().partition("=")
        if not number.isdecimal():
            raise typer.BadParameter(f"--slots {pair!r} is not PLAN=N; write enterprise=4,free=1")
        found[plan] = int(number)
    return found


def _gap(text: str) -> tuple[int, int]:
    first, mark, last = text.partition("-")
    if not first.isdecimal() or (mark and not last.isdecimal()):
        raise typer.BadParameter(f"--skip {text!r} is no number and no range like 3-7")
    return int(first), int(last or first)


def _marks(call: Call, found: Sequence[dict[str, Any]]) -> RenderableType:
    names = ("tenant", "ingested", "contiguous", "distilled", "buffered")
    values = [(*(one[name] for name in names), _ranges(one["gaps"])) for one in found]
    columns = (*(name.upper() for name in names), "MISSING")
    return call.draw.sheet(columns, values) if values else call.draw.line("")  # type: ignore[no-any-return]


def _ranges(gaps: Sequence[Sequence[int]]) -> str:
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in gaps)
