"""Remembering: how what was said becomes one version."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, Unpack

import numpy as np
import pyarrow as pa

from lance_memory.admission import Addition, KnownContents, edited
from lance_memory.beside import Beside
from lance_memory.embed import Embedder
from lance_memory.errors import (
    InvalidInputError,
    QuotaExceededError,
    RejectedError,
    ScopeError,
    StorageError,
)
from lance_memory.govern.forget.run import Queries
from lance_memory.govern.quota import Meter, Quotas
from lance_memory.ingest import (
    Additions,
    Conversation,
    Decision,
    IngestResult,
    IngestStatus,
    Overlay,
    Passed,
    Surroundings,
    Travelled,
    WritePath,
    store_secret,
    travelled,
    vectors_of,
)
from lance_memory.ingest.resolve import Resolved
from lance_memory.jobs import JobState, Words
from lance_memory.ledger import Ledger
from lance_memory.maintenance import Maintenance
from lance_memory.record.filters import Filter, Where, all_of, is_one_of, missing
from lance_memory.record.memory import Memory, Scope, State
from lance_memory.record.results import EmbedResult
from lance_memory.record.rows import EMBEDDING, changed, to_memories, vector_array
from lance_memory.record.times import Clock
from lance_memory.storage import ChangeSet, Snapshot, Table, Upkeep
from lance_memory.storage.erase.needles import Needles
from lance_memory.usage import QueryLog

__all__ = ["NO_ROOM", "OUTBOX", "Remembering"]

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")
_Words = tuple[Sequence[str], Sequence[str], Sequence[Scope]]
_OWNER = ("tenant", "user", "agent")
"""The levels within which memories are compared; sessions and runs come and go."""

_CHUNK = 256

OUTBOX = "outbox"
"""Space of the ledger: the jobs that stored memories without a vector, for a worker to mend."""
_WAITING = (State.ACTIVE, State.PENDING)

NO_ROOM = "quota_exceeded"
"""Why a job was refused whose tenant's quota is used up."""


class Remembering(Maintenance):
    """The steps of one job, in this process; and vectors that are made later."""

    def __init__(
        self,
        table: Table,
        *,
        embedder: Embedder,
        clock: Clock,
        author: str = "",
        queries: QueryLog | None = None,
        upkeep: Upkeep | None = None,
        beside: Beside | None = None,
        path: WritePath | None = None,
        quotas: Quotas | None = None,
    ) -> None:
        beside = beside or Beside.of(table, None, clock=clock)
        super().__init__(
            table,
            embedder=embedder,
            clock=clock,
            author=author,
            queries=queries,
            upkeep=upkeep,
            meter=Meter(quotas or Quotas(), ledger=beside.ledger),
        )
        self._beside = beside
        self._path = path or WritePath()
        self._known_contents = KnownContents()

    def embed_missing(self, *, limit: int | None = None, **where: Unpack[Where]) -> EmbedResult:
        """Embed the memories that have no vector, as after an embedder that failed; in batches.

        Each batch is a version. Who is stopped in between goes on with the next call.

        Args:
            limit: at most so many.
            where: see `Where`; active and pending ones by default.

        Raises:
            EmbeddingError: the embedder fails; the batches before are done.
        """
        chosen = Filter.of({"states": _WAITING, **where}, within=self._scope)
        snapshot = self._snapshot()
        lacking = all_of(chosen.predicate(self._moment()), missing(EMBEDDING))
        ids = snapshot.scan(lacking, columns=["id"])["id"].to_pylist()
        asked = ids if limit is None else ids[:limit]
        done = 0
        for start in range(0, len(asked), _CHUNK):
            done += self._embedded(asked[start : start + _CHUNK])
        return EmbedResult(uri=self.uri, version=self.version, embedded=done, left=len(ids) - done)

    def _embedded(self, ids: list[str]) -> int:
        """How many of these memories got a vector; those that have changed meanwhile do not."""
        read = self._table.latest().by_ids(ids)
        texts = dict(zip(read["id"].to_pylist(), read["content"].to_pylist(), strict=True))
        vectors = dict(zip(texts, self._embed(list(texts.values())), strict=True))

        def plan(snapshot: Snapshot) -> ChangeSet:
            lacking = all_of(is_one_of("id", list(texts)), missing(EMBEDDING))
            now = snapshot.scan(lacking, columns=snapshot.schema.names)
            same = [
                texts[i] == text
                for i, text in zip(now["id"].to_pylist(), now["content"].to_pylist(), strict=True)
            ]
            rows = now.filter(pa.array(same, pa.bool_()))
            audit = self._audit("embed")
            if not len(rows):
                return ChangeSet(audit=audit)
            made = vector_array(np.stack([vectors[i] for i in rows["id"].to_pylist()]))
            return ChangeSet(audit=audit, updates=changed(rows, {EMBEDDING: made}, now=audit.at))

        return self._write(plan).updated

    # -- for layers above -----------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """What is kept beside the table: messages, jobs and counts of every scope.

        Raises:
            ScopeError: this handle is kept to a scope.
            InvalidInputError: the store was opened with `ledger=` before, and is without it now.
        """
        self._whole_store("the ledger")
        return self._whole_ledger()

    def _whole_ledger(self) -> Ledger:
        """The same for layers that keep to the handle's scope by themselves.

        Raises:
            InvalidInputError: as for `ledger`.
        """
        self._beside.refuse_elsewhere(self._table)
        return self._beside.ledger

    def cleaned(self, conversation: Conversation) -> Conversation:
        """A conversation as it may be kept: in one form, without secrets and personal data.

        It is what the steps `WritePath.cleaning` leave of it; what they remove is counted. Nothing
        is stored.

        Raises:
            RejectedError: nothing of it may be kept, or there is nothing but blanks.
            ScopeError: it is, or becomes, another scope's than this handle's.
        """
        around = self._around([conversation], job="")
        passed = travelled(Travelled.beginning([conversation]), self._path.cleaning, around)
        if not passed.items:
            reason = passed.decisions[-1].reason if passed.decisions else "nothing_left"
            raise RejectedError(f"nothing of the conversation may be kept: {reason}")
        made: Conversation = passed.items[0]
        for scope in (conversation.scope, made.scope):
            if not self._scope.holds(scope):
                raise ScopeError(
                    f"the conversation is of {scope}, outside this handle's {self._scope}"
                )
        return made

    # -- inside: one job ------------------------------------------------------------------

    def _through(
        self,
        conversations: Sequence[Conversation],
        path: WritePath,
        around: Surroundings,
        *,
        dry_run: bool,
    ) -> IngestResult:
        """All steps, in this process."""
        safe = False
        begun = Travelled.beginning(conversations)
        try:
            begun = travelled(Travelled.beginning(conversations), path.entering, around)
            made = (
                self._remembered(begun, path, around, dry_run=dry_run)
                if begun.items
                else self._turned_away(begun, around)
            )
            safe = not dry_run
        except QuotaExceededError as error:
            return self._without_room(begun, around, error)
        finally:
            path.settled(around.job, safe=safe)
        return made

    def _without_room(
        self, begun: Travelled, around: Surroundings, error: QuotaExceededError
    ) -> IngestResult:
        """The answer where the tenant's quota is used up: the agent's turn goes on."""
        figures = {"used": error.used, "asked": error.asked, "limit": error.limit}
        refused = Decision(
            step="quota",
            verdict=IngestStatus.REFUSED,
            reason=NO_ROOM,
            figures={name: float(number) for name, number in figures.items()},
        )
        through = begun.and_then(
            "quota", Passed(decisions=(refused,)), seconds=0.0, tenant=around.tenant
        )
        return self._answer(
            through,
            around,
            version=self.version,
            status=IngestStatus.REFUSED,
            reason=NO_ROOM,
            warnings=(str(error),),
        )

    def _turned_away(self, begun: Travelled, around: Surroundings) -> IngestResult:
        """The answer where no conversation came in: why the last of them did not."""
        last = begun.decisions[-1] if begun.decisions else None
        verdict = last.verdict if last else ""
        status = IngestStatus(verdict) if verdict in set(IngestStatus) else IngestStatus.DONE
        return self._answer(
            begun, around, version=self.version, status=status, reason=last.reason if last else ""
        )

    def _remembered(
        self,
        begun: Travelled,
        path: WritePath,
        around: Surroundings,
        *,
        dry_run: bool = False,
        again: bool = False,
        before: Callable[[], object] = lambda: None,
    ) -> IngestResult:
        """From conversations that were let in to the answer: find, embed, resolve, commit, add.

        `before` is called right before each try to commit, and may refuse it.
        """
        found = travelled(begun, path.finding, around)
        embedding = partial(
            vectors_of,
            found.items,
            around.embed,
            dimension=self._table.format.dimension,
            progress=partial(around.progress, "embed"),
        )
        vectors, seconds = _timed(embedding)
        lacking = (vectors.missing,) if vectors.missing else ()
        found = found.and_then(
            "embed",
            Passed(items=found.items, degraded=lacking),
            seconds=seconds,
            tenant=around.tenant,
        )
        resolved = Resolved(change=ChangeSet(audit=self._audit("ingest")), decisions=())

        def plan(snapshot: Snapshot) -> ChangeSet:
            nonlocal resolved
            resolved = path.resolve.resolved(
                snapshot,
                found.items,
                vectors,
                audit=self._audit("ingest", op_id=around.job),
                now=around.now,
                embed=around.embed,
                within=self._scope,
            )
            self._refuse_outside(resolved.change)
            before()
            return resolved.change

        def committed() -> tuple[int, str, tuple[str, ...]]:
            if dry_run:
                snapshot = self._snapshot()
                plan(snapshot)
                return snapshot.version, "", ()
            change, made, failed = self._commit(plan)
            return made.version, failed, change.warnings

        (version, upkeep, warnings), seconds = _timed(committed)
        done = Passed(items=found.items, decisions=resolved.decisions, degraded=resolved.degraded)
        found = found.and_then("resolve", done, seconds=seconds, tenant=around.tenant)
        inserts = resolved.change.inserts
        ids = tuple(inserts["id"].to_pylist()) if inserts else ()
        if again:  # what an earlier try of the job has stored is the job's own
            own = {candidate.id for candidate in found.items}
            ids += tuple(d.memory for d in resolved.decisions if d.memory in own - {*ids})
        if vectors.missing and not dry_run:
            self._note_missing(around)
        if not dry_run and any(one.domain in path.overlays for one in found.items):
            known = (one.memory for one in resolved.decisions if one.reason == "replayed")
            mine = list(dict.fromkeys([*ids, *known]))
            laid, seconds = _timed(lambda: self._overlaid(mine, path.overlays, around))
            found = found.and_then(
                "overlay", Passed(decisions=tuple(laid)), seconds=seconds, tenant=around.tenant
            )
            version = self.version if laid else version
        return self._answer(
            found, around, version=version, ids=ids, upkeep=upkeep, warnings=warnings
        )

    def _note_missing(self, around: Surroundings) -> None:
        """For a worker. Words find the memories, and `doctor` lists them, without it too."""
        if around.ledger is not None:
            with suppress(StorageError):
                around.ledger.put(OUTBOX, around.job, b"")

    def _answer(
        self,
        through: Travelled,
        around: Surroundings,
        *,
        version: int,
        status: IngestStatus = IngestStatus.DONE,
        reason: str = "",
        ids: tuple[str, ...] = (),
        upkeep: str = "",
        warnings: tuple[str, ...] = (),
    ) -> IngestResult:
        made = IngestResult(
            uri=self.uri,
            version=version,
            status=status,
            reason=reason,
            job=around.job,
            ids=ids,
            decisions=through.decisions,
            degraded=through.degraded,
            seconds=through.seconds,
            messages=through.messages,
            upkeep=upkeep,
            warnings=warnings,
        )
        _LOG.info(
            "job %s: %s, %d memories of %d messages",
            *(made.job, made.status, len(made.ids), made.messages),
            extra={
                "job": made.job,
                "tenant": around.tenant,
                "status": str(made.status),
                "reason": made.reason,
                "counts": made.counts,
                "seconds": dict(made.seconds),
                "degraded": len(made.degraded),
            },
        )
        return made

    # -- what domains add -----------------------------------------------------------------

    def _overlaid(
        self,
        ids: Sequence[str],
        overlays: Mapping[str, tuple[Overlay, ...]],
        around: Surroundings,
    ) -> list[Decision]:
        """Add what domains know of the memories. What fails is told, and undoes nothing."""
        rows = self._table.latest().by_ids(ids) if ids else None
        memories = to_memories(rows) if rows else []
        decisions: list[Decision] = []
        for domain, several in overlays.items():
            chosen = [memory for memory in memories if memory.metadata.get("domain") == domain]
            if chosen:
                decisions += [self._laid(overlay, chosen, around) for overlay in several]
        return decisions

    def _laid(self, overlay: Overlay, memories: Sequence[Memory], around: Surroundings) -> Decision:
        try:
            additions = overlay.additions(memories, now=around.now)
            mine = {memory.id for memory in memories}
            added = {id: some for id, some in additions.metadata.items() if id in mine}
            additions = replace(additions, metadata=added)
            change, _, _ = self._commit(self._adding(additions, overlay, around))
        except Exception as error:  # noqa: BLE001 - an overlay is anybody's code, and is told of
            reason = f"{overlay.name}: {type(error).__name__}"
            return Decision(step="overlay", verdict="failed", reason=reason)
        figures = {name: float(number) for name, number in change.counts().items() if number}
        return Decision(step="overlay", verdict="added", reason=overlay.name, figures=figures)

    def _adding(
        self, additions: Additions, overlay: Overlay, around: Surroundings
    ) -> Callable[[Snapshot], ChangeSet]:
        """The plan of what an overlay adds."""
        addition = Addition(
            self._take_in(list(additions.rows), around.now),
            embed=self._embed,
            known_contents=KnownContents(),
            now=around.now,
        )
        addition.prepare(self._table.latest, None)

        def plan(snapshot: Snapshot) -> ChangeSet:
            change = ChangeSet(
                audit=self._audit("overlay", overlay.name, op_id=f"{around.job}.{overlay.name}"),
                inserts=addition.new_rows(snapshot),
                updates=_with_metadata(snapshot, additions.metadata, around),
                looked=True,
            )
            self._refuse_outside(change)
            if any(scope.tenant != around.tenant for scope in change.scopes()):
                raise ScopeError(f"the overlay {overlay.name!r} adds memories of another tenant")
            return change

        return plan

    # -- surroundings ---------------------------------------------------------------------

    def _around(
        self, conversations: Sequence[Conversation], *, job: str, dry_run: bool = False
    ) -> Surroundings:
        """What the steps of one job may use.

        Raises:
            InvalidInputError: the conversations are of several tenants.
        """
        tenants = sorted({conversation.scope.tenant for conversation in conversations})
        if len(tenants) > 1:
            raise InvalidInputError(
                f"the conversations are of {len(tenants)} tenants; a job is of one: call once each"
            )
        return Surroundings(
            now=self._moment(),
            job=job,
            tenant=tenants[0] if tenants else "",
            embed=self._embed,
            known=self._known,
            ledger=self._beside.unwritten if dry_run else self._beside.ledger,
            dry_run=dry_run,
            lost=self._is_dead,
            secret=store_secret(self._table.format.store_id),
        )

    def _is_dead(self, job: str) -> bool:
        desk = self._beside.desk if self._beside.used else None
        found = None if desk is None else desk.find(job)
        return found is not None and found.state is JobState.DEAD

    def _known(self, scope: Scope, count: int) -> list[Memory]:
        """The visible memories of a tenant, user and agent, the most important first."""
        owner = Scope(**{level: getattr(scope, level) for level in _OWNER})
        chosen = Filter(scope=self._scope.narrowed(**owner.given()))
        snapshot = self._table.latest()
        rows = snapshot.scan(chosen.predicate(self._moment()), columns=["id", "importance"])
        order = rows.sort_by([("importance", "descending"), ("id", "ascending")])
        ids = order["id"].slice(0, count).to_pylist()
        found = {memory.id: memory for memory in to_memories(snapshot.by_ids(ids))}
        return [found[identifier] for identifier in ids if identifier in found]

    # -- forgetting -----------------------------------------------------------------------

    def _query_rows(self) -> Queries:
        logged = super()._query_rows()

        def remove(
            ids: Sequence[str],
            texts: Sequence[str],
            emptied: Sequence[Scope],
            scopes: Sequence[Scope],
        ) -> int:
            words = Words(ids, texts, of=scopes)
            for beside in self._beside.lines(self._table, clock=self._clock):
                beside.forget_words(words)
            return logged.remove(ids, texts, emptied, scopes)

        return Queries(
            count=logged.count, remove=remove, beside=self._going_beside, left=self._left_beside
        )

    def _counted_beside(self, chosen: Filter) -> Mapping[str, int]:
        self._beside.refuse_elsewhere(self._table)
        return self._going_beside(chosen, ((), (), ()))

    def _going_beside(self, chosen: Filter | None, words: _Words) -> Mapping[str, int]:
        whole = chosen is not None and chosen == Filter(scope=chosen.scope, states="any")
        scope = chosen.scope if chosen is not None and whole else None
        ids, texts, scopes = words
        counted: Counter[str] = Counter()
        for beside in self._beside.lines(self._table, clock=self._clock):
            counted.update(beside.counted(scope, Words(ids, texts, of=scopes)))
        return dict(sorted(counted.items()))

    def _left_beside(self, words: _Words) -> tuple[int, list[str]]:
        """What ledgers still have; what came in meanwhile goes first."""
        ids, texts, scopes = words
        meant = Words(ids, texts, of=scopes)
        needles = Needles(ids, [*texts, *(json.dumps(text)[1:-1] for text in texts)])
        files, places = 0, list[str]()
        for beside in self._beside.lines(self._table, clock=self._clock):
            number, found = beside.holding(meant, needles)
            if found:
                beside.forget_words(meant)
                number, found = beside.holding(meant, needles)
            files, places = files + number, [*places, *found]
        return files, places

    def _forget_beside(self, chosen: Filter | None) -> None:
        self._beside.refuse_elsewhere(self._table)
        if chosen and chosen == Filter(scope=chosen.scope, states="any"):
            for beside in self._beside.lines(self._table, clock=self._clock):
                beside.forget(chosen.scope)


def _with_metadata(
    snapshot: Snapshot, added: Mapping[str, Mapping[str, Any]], around: Surroundings
) -> pa.Table | None:
    """The rows with the members added; None where nothing changes."""
    rows = snapshot.by_ids(list(added))
    changed = []
    for place, memory in enumerate(to_memories(rows)):
        values = {"metadata": {**memory.metadata, **added[memory.id]}}
        row = edited(snapshot, rows.slice(place, 1), values, scope=memory.scope, now=around.now)
        if row is not None:
            changed.append(row)
    return pa.concat_tables(changed) if changed else None


def _timed(action: Callable[[], _T]) -> tuple[_T, float]:
    begun = time.perf_counter()
    return action(), time.perf_counter() - begun
