"""Ingesting: from conversations to memories, each job as one version."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypedDict, Unpack

from lance_memory.errors import (
    ConflictError,
    EmbeddingError,
    InvalidInputError,
    QuotaExceededError,
    RejectedError,
)
from lance_memory.ingest import (
    Arrived,
    Conversation,
    IngestProgress,
    IngestResult,
    IngestStatus,
    Order,
    Surroundings,
    Travelled,
    Watermarks,
    WritePath,
    call_digest,
    conversations_of,
    seen_user,
    travelled,
)
from lance_memory.ingest.waiting import expired
from lance_memory.jobs import FORGOTTEN, Desk, Job, JobState, Part, ServicePlan, Worker
from lance_memory.record.arguments import whole
from lance_memory.record.identity import new_id
from lance_memory.record.memory import SCOPE_LEVELS, Scope
from lance_memory.record.results import WriteResult
from lance_memory.remembering import NO_ROOM, OUTBOX, Remembering

__all__ = ["Ingesting", "Origin"]

_HALFWAY = timedelta(minutes=1)
_OFTEN = timedelta(hours=1)
_LOOK_AGAIN = 0.1

KEPT = timedelta(days=30)
"""How long the answer of a job that is done is remembered, and with it its idempotency key."""

_PATIENCE = 60.0
"""Seconds to wait for another process that does the same job."""


class Origin(TypedDict, total=False):
    """Whose conversations they are, and what they are about; see `Conversation`."""

    tenant: str
    user: str
    agent: str
    session: str
    run: str
    source: str
    domain: str


class Ingesting(Remembering):
    """The verbs of the write path, and what is done by a job."""

    _tidied = datetime.min.replace(tzinfo=UTC)

    def ingest(
        self,
        messages: object,
        *,
        path: WritePath | None = None,
        idempotency_key: str = "",
        wait: bool = True,
        plan: ServicePlan | str = ServicePlan.FREE,
        priority: int = 0,
        ordered: bool = False,
        dry_run: bool = False,
        progress: IngestProgress | None = None,
        **whose: Unpack[Origin],
    ) -> IngestResult:
        """Make memories of what was said: what is worth keeping of it, as one version.

        See `WritePath` for the steps. What was said before is known again, so that playing a log
        twice, or running a killed job again, changes nothing.

        Args:
            messages: a `Conversation`, or what `conversation` takes: texts of a user, dicts with a
                role and a content, ...; or a list of conversations, which become one job.
            path: other steps than the store was opened with; not for a job that is queued.
            idempotency_key: the caller's name for this call. A second call of the tenant with it
                gives the answer of the first, also from another process, or at the same time, for
                30 days. A job that fails is an answer too, "failed", and is tried again.
            wait: do it now. Else it is queued for a worker (`lmem worker`, `worker`), and the
                answer comes at once: `jobs` knows it by its `job`, and it may take `eta` seconds.
            plan: which workers take it: "enterprise", "growth" or "free".
            priority: among the queued jobs of a plan, the greater first.
            ordered: every message has a `seq`, without gaps within the tenant. What comes too early
                is kept until what is missing has come, or for a while; see `order`.
            dry_run: only say what would be decided. Nothing is written or counted, so the gate's
                layers that remember are not asked, unless there is nothing yet to remember.
            progress: called with (step, done, in all), for what is done now; see `IngestProgress`.
            whose: the scope of the conversations, their source and domain, where they name none.

        Returns:
            What became of it, and why. That the gate blocked it is an answer, not an error. So is
            that a tenant's quota has no room: "refused", "quota_exceeded", and nothing is stored;
            of a job the payload is kept, and `jobs.retry` tries it again.

        Raises:
            InvalidInputError: what is given is no conversation; several tenants in one call;
                `dry_run` with what needs a job.
            ScopeError: a conversation is of another scope than this handle's.
            ConflictError: the idempotency key was used with other messages; or other writers were
                faster, again and again.
            ExtractionError: a model that extracts cannot be reached, and it may pass by itself.
            StorageError: the store, or the ledger of jobs, cannot be written to.
        """
        self._table.refuse_writes()
        if unknown := sorted(whose.keys() - Origin.__annotations__.keys()):
            known = ", ".join(Origin.__annotations__)
            raise InvalidInputError(f"ingest has no {', '.join(unknown)}; there are: {known}")
        now = self._moment()
        levels = {name: whose[name] for name in SCOPE_LEVELS if name in whose}  # type: ignore[literal-required]
        conversations = conversations_of(
            messages,
            scope=self._scope.narrowed(**levels),
            source=whose.get("source", ""),
            domain=whose.get("domain", ""),
        )
        around = self._around(conversations, job=new_id(now), dry_run=dry_run)
        if progress is not None:
            around = replace(around, progress=progress)
        asked = path or self._path
        asked.refuse_unregistered(conversations)
        by_job = bool(idempotency_key or ordered or not wait)
        if path is not None and not wait:
            raise InvalidInputError(
                "a queued job takes its worker's steps: give path= to worker(), or write_path= to "
                "open()"
            )
        if dry_run and by_job:
            raise InvalidInputError("a dry run has no job: leave out its key, order and wait=False")
        if not by_job:
            return self._through(conversations, asked, around, dry_run=dry_run)
        self._beside.refuse_elsewhere(self._table)
        job = self._handed_in(
            conversations,
            asked,
            around,
            key=idempotency_key,
            plan=plan,
            priority=whole("priority", priority),
            ordered=ordered,
        )
        if wait and job.state is not JobState.WAITING:
            job = self._worked_off(job, asked, progress)
        return self._told_of(job)

    @property
    def jobs(self) -> Desk:
        """The jobs of this store: list them, wait for them, try dead ones again.

        Through a handle that is kept to a scope: those of which everything is of that scope, to
        look at and to wait for.

        Raises:
            InvalidInputError: the store is in an object store, and was opened without `ledger`.
        """
        return self._desk().within(self._scope)

    @property
    def order(self) -> Order:
        """How far the numbered events of each tenant are, what is missing, what waits.

        Raises:
            ScopeError: this handle is kept to a scope.
        """
        self._whole_store("the order of events")
        return self._order()

    def worker(self, *, path: WritePath | None = None, **options: Any) -> Worker:
        """A worker for the jobs of this store; any number of them may work, in any processes.

        Args:
            path: other steps than the store was opened with.
            options: `slots`, `retry`, `lease`, `grace`, `told`: see `Worker`.

        Raises:
            ScopeError: this handle is kept to a scope.
            InvalidInputError: as for `jobs`; or an option makes no sense.
        """
        self._whole_store("working off jobs")
        return self._worker(path or self._path, **options)

    def proxy_user(self, tenant: str, external: str) -> str:
        """The name to give as `user` for a tenant's own id of a user: the same for ever.

        It says nothing of the id, which is not kept; that it was seen is noted beside the table.

        Raises:
            InvalidInputError: an empty id.
            ScopeError: this handle is kept to another tenant.
            StorageError: the ledger cannot be written to.
        """
        self._scope.narrowed(tenant=tenant)
        return seen_user(
            self._beside.ledger,
            store_id=self._table.format.store_id,
            tenant=tenant,
            external=external,
            now=self._moment(),
        )

    # -- inside: what is done by a job ----------------------------------------------------

    def _handed_in(
        self,
        conversations: Sequence[Conversation],
        path: WritePath,
        around: Surroundings,
        *,
        key: str,
        plan: ServicePlan | str,
        priority: int,
        ordered: bool,
    ) -> Job:
        """The job of these conversations, as it stands after the steps before the queue.

        It waits while the gate and the order are asked. A second call with its key, or one that
        goes on after a kill, asks them again, by the job's name: the answer is the same.
        """
        seqs = _numbers(conversations) if ordered else []
        cleaned = travelled(Travelled.beginning(conversations), path.cleaning, around)
        desk = self._desk()
        parts = _parts(cleaned.items)
        job = desk.accept(
            parts,
            tenant=around.tenant,
            plan=plan,
            priority=priority,
            idempotency_key=key,
            digest=call_digest(conversations, around) if key else "",
            seqs=(min(seqs), max(seqs)) if seqs else None,
            waiting=True,
        )
        if job.state is not JobState.WAITING:
            return job
        around, safe = replace(around, job=job.id), False
        try:
            if key:  # it may go on with what an earlier call has left, by steps of its own
                parts = desk.records.payload(job.id) or parts
                kept = tuple(Conversation.from_json(values) for _, values in parts)
                cleaned = replace(cleaned, items=kept)
            begun = travelled(cleaned, path.gates, around)
            known = self._entered(begun, around)
            if begun.items or seqs:
                passed = {id(one) for one in begun.items}
                told = zip(parts, cleaned.items, strict=True)
                places = [part["place"] for (_, part), one in told if id(one) in passed]
                held = _Held(known=known, let_in=tuple(places), within=self._scope)
                desk.hold(job.id, held.to_json())
                if not seqs or self._is_next(job, seqs, known, around):
                    desk.release([job.id])
            else:
                desk.settle(job.id, known.to_json())
            safe = True
        finally:
            path.settled(job.id, safe=safe)
        return desk.get(job.id)

    def _entered(self, begun: Travelled, around: Surroundings) -> IngestResult:
        """What is known of a job before anything is looked for in it."""
        if not begun.items:
            return self._turned_away(begun, around)
        status = IngestStatus.QUEUED
        return self._answer(begun, around, version=self.version, status=status)

    def _is_next(
        self, job: Job, seqs: Sequence[int], known: IngestResult, around: Surroundings
    ) -> bool:
        """Whether a job is to be queued now; one that brings nothing new is settled.

        Raises:
            RejectedError: too many events wait already; the job is gone.
        """
        try:
            arrival = self._order().arrived(around.tenant, seqs, job=job.id, now=around.now)
        except RejectedError:
            self._desk().purge([job.id], states=[JobState.WAITING])
            raise
        if arrival.status is Arrived.REPLAYED:
            done = replace(known, status=IngestStatus.DONE, reason="replayed")
            self._desk().settle(job.id, done.to_json())
        return arrival.status is Arrived.READY

    def _worked_off(self, job: Job, path: WritePath, progress: IngestProgress | None) -> Job:
        """The job done here and now, or by whoever has it; and those that waited for it."""
        desk, end = self._desk(), time.monotonic() + _PATIENCE
        worker = self._worker(path, progress=progress)
        self._look_after_order()
        while (done := worker.work(job.id)) is None:
            now = desk.get(job.id)
            if now.state.ended or time.monotonic() > end:
                return now
            time.sleep(_LOOK_AGAIN)
        others, more = self._worker(self._path), job.seqs is not None
        while more:  # each that is done may let others in
            self._look_after_order()
            more = any(others.work(id) for id in self._order().status(job.tenant).running)
        return done

    def _worker(
        self,
        path: WritePath,
        *,
        told: Callable[[Job], object] | None = None,
        progress: IngestProgress | None = None,
        **options: Any,
    ) -> Worker:
        def after(job: Job) -> None:
            if job.seqs is not None and job.state.ended:
                self._go_on_after(job.tenant, job.id, job)
            if told is not None:
                told(job)

        run = partial(self._run_job, path, progress=progress)
        return Worker(self._desk(), run, look=self._look_after, told=after, **options)

    def _run_job(
        self,
        path: WritePath,
        parts: Sequence[Part],
        job: Job,
        *,
        progress: IngestProgress | None = None,
    ) -> dict[str, Any]:
        """What a worker does: from conversations that were let in to the answer.

        It is done within the scope of the handle that accepted it, whatever this one's is.
        """
        held = _Held.of(job)
        handle = copy.copy(self)
        handle._scope = held.within
        said = [(values.get("place"), Conversation.from_json(values)) for _, values in parts]
        let_in = [one for place, one in said if held.let_in is None or place in held.let_in]
        around = replace(handle._around(let_in, job=job.id), now=job.accepted_at, tenant=job.tenant)
        if progress is not None:
            around = replace(around, progress=progress)
        fresh = let_in if job.seqs is None else self._fresh(let_in, job)
        known = held.known
        begun = Travelled(
            items=tuple(fresh),
            decisions=known.decisions if known else (),
            degraded=known.degraded if known else (),
            seconds=known.seconds if known else {},
            messages=known.messages if known else 0,
        )
        if not fresh:
            return handle._turned_away(begun, around).to_json()
        whole = partial(self._refuse_forgotten, job.id, len(parts))
        again = job.attempts > 1 or job.retries > 0
        return handle._remembered(begun, path, around, again=again, before=whole).to_json()

    def _refuse_forgotten(self, id: str, parts: int) -> None:
        """Commit nothing of a job that something was taken out of since it was read.

        What is left of it is tried again. One that another worker has done meanwhile may be done
        again, which changes nothing, unless its answer was forgotten since.
        """
        desk = self._desk()
        job, left = desk.find(id), desk.records.payload(id)
        done = job is not None and job.state is JobState.DONE and job.answer is not None
        if not done and (left is None or len(left) != parts):
            raise ConflictError(f"something of job {id} was forgotten while it ran", ids=[id])

    def _fresh(self, conversations: Sequence[Conversation], job: Job) -> list[Conversation]:
        """Without the messages whose numbers came in another job."""
        seqs = _numbers(conversations)
        if not seqs:
            return []
        arrival = self._order().arrived(job.tenant, seqs, job=job.id, now=self._moment())
        kept = [
            replace(one, messages=tuple(m for m in one.messages if arrival.has(m.seq or 0)))
            for one in conversations
        ]
        return [one for one in kept if one.messages]

    def _look_after(self) -> None:
        """What a worker does now and then, beside its jobs."""
        self._mend()
        self._look_after_order()
        self._look_after_halfway()
        now = self._moment()
        if now - self._tidied >= _OFTEN:
            self._tidied = now
            self.expire()
            self._desk().purge(states=[JobState.DONE], older_than=KEPT)

    def expire(self) -> WriteResult:
        """Retire the memories that waited for too long, as workers do. No read shows them."""
        return self._write(
            lambda snapshot: expired(snapshot, self._scope, audit=self._audit("expire"))
        )

    def skip_events(self, tenant: str, first: int, last: int) -> Watermarks:
        """Accept that events of a tenant will not come, and go on with what waits for them.

        Raises:
            ScopeError: this handle is kept to a scope.
            InvalidInputError: the gap ends before it begins, or begins before the start.
        """
        self._whole_store("the order of events")
        released = self._order().skip(tenant, (first, last))
        if self._beside.desk is not None:
            self._beside.desk.release(released)
        return self._order().status(tenant)

    def _mend(self) -> None:
        """Embed what jobs had to store without a vector; while the embedder fails, later.

        So too while a tenant has no room for more vectors.
        """
        due = [job for job, _ in self._beside.ledger.items(OUTBOX)]
        if due:
            with suppress(EmbeddingError, QuotaExceededError):
                self.embed_missing()
                for job in due:
                    self._beside.ledger.remove(OUTBOX, job)

    def _look_after_order(self) -> None:
        """Go on with what waits: past a gap in time, and where somebody was killed in between."""
        order, desk = self._order(), self._desk()
        for tenant in list(order.tenants()):
            for id in order.status(tenant).running:
                self._go_on_after(tenant, id, desk.find(id))
        desk.release(id for _, id in order.overdue(self._moment()))

    def _go_on_after(self, tenant: str, id: str, job: Job | None) -> None:
        """Queue what a job that has ended, or is next itself, lets in."""
        order, desk = self._order(), self._desk()
        if job is not None and job.state is JobState.DONE:
            desk.release(order.done(tenant, id))
        elif job is None or job.state is JobState.DEAD:
            desk.release(order.failed(tenant, id))
            if job is not None and job.seqs is not None and job.error == FORGOTTEN:
                desk.release(order.skip(tenant, job.seqs))  # it is gone for good, and no gap
        else:
            desk.release([id])

    def _look_after_halfway(self) -> None:
        """Jobs whose callers were killed before they had an answer: let in, they go on; else go.

        Numbered ones that the order does not know go too: their events have not arrived.
        """
        desk, order, before = self._desk(), self._order(), self._moment() - _HALFWAY
        for job in desk.list(states=[JobState.WAITING]):
            if job.accepted_at > before or (job.seqs and order.knows(job.tenant, job.id)):
                continue
            if job.seqs is None and job.answer is not None:
                desk.release([job.id])
            else:
                desk.records.remove(job)

    def _told_of(self, job: Job) -> IngestResult:
        """What is to be said of a job as it stands."""
        known = _Held.of(job).known or IngestResult(
            uri=self.uri, version=self.version, status=IngestStatus.QUEUED, job=job.id
        )
        match job.state:
            case JobState.DONE:
                return known
            case JobState.DEAD if job.error.startswith(QuotaExceededError.__name__):
                status = IngestStatus.REFUSED
                return replace(known, status=status, reason=NO_ROOM, warnings=(job.error,))
            case JobState.DEAD | JobState.FAILED:
                return replace(known, status=IngestStatus.FAILED, reason=job.error)
            case JobState.WAITING:
                return replace(known, status=IngestStatus.BUFFERED)
            case JobState.RUNNING:
                return replace(known, status=IngestStatus.RUNNING, eta=job.eta)
        return replace(known, status=IngestStatus.QUEUED, eta=job.eta)

    def _desk(self) -> Desk:
        if self._beside.desk is None:
            raise InvalidInputError(
                f"{self.uri} is in an object store, which can hold no queue; open the store with "
                "ledger= a Redis URL or a local path"
            )
        return self._beside.desk

    def _order(self) -> Order:
        return Order(self._beside.ledger, self._path.order)

    def _dead_jobs(self) -> list[str]:
        desk = self._beside.desk if self._beside.used else None
        return [job.id for job in desk.list(states=[JobState.DEAD])] if desk else []


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What is known of a job before it is done.

    Attributes:
        known: the answer so far; None: nothing.
        let_in: places of the conversations that the gate let in; None: all.
        within: the scope of the handle that accepted it.
    """

    known: IngestResult | None = None
    let_in: tuple[int, ...] | None = None
    within: Scope = field(default_factory=Scope)

    def to_json(self) -> dict[str, Any]:
        known = None if self.known is None else self.known.to_json()
        let_in = None if self.let_in is None else list(self.let_in)
        return {"known": known, "let_in": let_in, "within": self.within.given()}

    @classmethod
    def of(cls, job: Job) -> _Held:
        """Of a job; once it is done, the answer is what is known."""
        values = job.answer
        if values is None:
            return cls()
        if "known" not in values:
            return cls(known=IngestResult.from_json(values))
        known, let_in = values["known"], values["let_in"]
        return cls(
            known=None if known is None else IngestResult.from_json(known),
            let_in=None if let_in is None else tuple(let_in),
            within=Scope(**values["within"]),
        )


def _parts(conversations: Iterable[Conversation]) -> list[Part]:
    """Each with its place, which stays what it is when others are forgotten."""
    told = enumerate(conversations)
    return [(one.scope, {**one.to_json(), "place": place}) for place, one in told]


def _numbers(conversations: Sequence[Conversation]) -> list[int]:
    """The `seq` of every message.

    Raises:
        InvalidInputError: one has none.
    """
    seqs = [message.seq for one in conversations for message in one.messages]
    numbers = [seq for seq in seqs if seq is not None]
    if len(numbers) < len(seqs):
        raise InvalidInputError(
            f"{len(seqs) - len(numbers)} of {len(seqs)} messages have no seq; in order means that "
            "each has its number"
        )
    return numbers
