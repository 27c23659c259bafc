"""Consolidating: from clusters of memories to one better memory each."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Literal, Unpack, overload

from lance_memory import curate
from lance_memory.curate import (
    Bounds,
    ConsolidateOptions,
    ConsolidationPlan,
    ConsolidationResult,
    Execution,
    Guard,
    Needs,
    Pass,
    ProbeHit,
    Search,
    Transform,
    extractive,
)
from lance_memory.errors import ConflictError
from lance_memory.record.filters import (
    FIRST_HAND,
    Filter,
    Where,
    all_of,
    kept_by_name,
    live,
    none_of,
    still_said,
)
from lance_memory.record.memory import Scope
from lance_memory.record.results import WriteResult
from lance_memory.search import Mode, Page, Query
from lance_memory.storage import ChangeSet, Snapshot, naming, refuse_taken
from lance_memory.usage import RetirePlan, faded_away
from lance_memory.versioning import Versioning

__all__ = ["Consolidating"]

_GUARD = Guard()


class Consolidating(Versioning):
    """The verbs that plan what becomes of many memories, and apply the plan."""

    @overload
    def consolidate(
        self,
        options: ConsolidateOptions | None = ...,
        transform: Transform = ...,
        *,
        execution: Execution | None = ...,
        guard: Guard | None = ...,
        bounds: Bounds | None = ...,
        stop: threading.Event | None = ...,
        dry_run: Literal[True],
        **where: Unpack[Where],
    ) -> ConsolidationPlan: ...

    @overload
    def consolidate(
        self,
        options: ConsolidateOptions | None = ...,
        transform: Transform = ...,
        *,
        execution: Execution | None = ...,
        guard: Guard | None = ...,
        bounds: Bounds | None = ...,
        stop: threading.Event | None = ...,
        dry_run: Literal[False] = ...,
        reason: str = ...,
        **where: Unpack[Where],
    ) -> ConsolidationResult: ...

    def consolidate(
        self,
        options: ConsolidateOptions | None = None,
        transform: Transform = extractive,
        *,
        execution: Execution | None = None,
        guard: Guard | None = _GUARD,
        bounds: Bounds | None = None,
        stop: threading.Event | None = None,
        dry_run: bool = False,
        reason: str = "",
        **where: Unpack[Where],
    ) -> ConsolidationPlan | ConsolidationResult:
        """Turn clusters of memories into one better memory each, as one version for the pass.

        Args:
            options: how to cluster, and what to refuse.
            transform: makes one memory of a cluster; by default `extractive`. It may take
                its time: rows that are added meanwhile are not touched.
            execution: how the transform is called.
            guard: how much recall the pass may cost; None: it is not measured.
            bounds: where the pass ends, whatever is left to do.
            stop: set it from another thread, and the pass ends without a write.
            dry_run: only plan. `apply` commits exactly the plan that this returns.
            reason: shown by `log`.
            where: which memories to consider, see `Where`; visible ones by default. What is hidden
                or has expired is never made new again, whatever `states` says; what events are
                missing before (`order`) waits for them; and neither a snapshot (`Distiller`) nor
                what an agent is told (kind "workspace") is ever a source, nor what it finds by
                name: its procedures and the facts of a profile; nor a message of a session that
                hibernates (`WorkingMemory`).

        Raises:
            InvalidInputError: the jobs are elsewhere, and this handle does not know where.
            ConflictError: a source was changed while the transform ran; nothing was written.
            TransformError: a cluster failed, and all or nothing was asked for.
            StoppedError: `stop` was set; nothing was written.
            EmbeddingError: the embedder failed on a derived text.
            StorageError: the store cannot be written to; the guard needs that of a dry run too.
        """
        asked = Pass(
            options=ConsolidateOptions() if options is None else options,
            transform=transform,
            execution=Execution() if execution is None else execution,
            guard=guard,
            bounds=Bounds() if bounds is None else bounds,
            stop=threading.Event() if stop is None else stop,
        )
        self._beside.refuse_elsewhere(self._table)
        complete = self._beside.complete()  # before the version, so that it has what is complete
        now, snapshot = self._moment(), self._snapshot()
        kept = (FIRST_HAND, none_of(kept_by_name()), none_of(still_said()))
        rows = (self._predicate(where), live(now), *kept, complete)
        with naming.holding(self._table, snapshot.version):
            plan = curate.plan_consolidation(
                snapshot,
                all_of(*rows),
                asked,
                Needs(
                    embed=self._embed,
                    search=self._searching,
                    trial=self._table.trial,
                    answered=self._answered,
                ),
                now=now,
            )
        if dry_run:
            return plan
        return ConsolidationResult(plan=plan, write=self.apply(plan, reason=reason))

    def apply(self, plan: ConsolidationPlan | RetirePlan, *, reason: str = "") -> WriteResult:
        """Commit a plan of `consolidate(dry_run=True)`, also a saved one, or of `plan_retirement`.

        Raises:
            ConflictError: a memory has been changed or deleted since, its key given to another, or
                the store re-embedded; nothing was written.
            TransformError: a cluster failed, and all or nothing was asked for.
            ScopeError: the plan reaches outside this handle's scope.
        """
        if isinstance(plan, RetirePlan):
            return self._write(lambda present: self._fade(present, plan, reason))
        plan.refuse_failures()

        def planned(snapshot: Snapshot) -> ChangeSet:
            if plan.version < snapshot.format.vectors_since:
                raise ConflictError(
                    f"the plan is of version {plan.version}, and since version "
                    f"{snapshot.format.vectors_since} the vectors are of another model; nothing "
                    "was written: plan again"
                )
            manifest = plan.manifest()
            audit = self._audit("consolidate", reason, manifest=manifest, op_id=plan.op_id)
            change = curate.change_set(snapshot, plan, audit=audit)
            self._refuse_outside(change)
            if change.inserts:
                refuse_taken(snapshot, change.inserts, audit.at, leaving=change.replaced())
            return change

        return self._write(planned)

    # -- inside --

    def _fade(self, snapshot: Snapshot, plan: RetirePlan, reason: str) -> ChangeSet:
        audit = self._audit("retire", reason or plan.reason, manifest=plan.manifest())
        change = faded_away(snapshot, plan, audit=audit)
        self._refuse_outside(change)
        return change

    def _searching(self, snapshot: Snapshot) -> Search:
        """Searches a version as `search_many` does, within this handle's scope."""

        def search(scope: Scope, questions: Sequence[str], k: int) -> list[list[ProbeHit]]:
            dimension = self._table.format.dimension
            asked = Query.many(questions, vectors=None, mode=Mode.HYBRID, dimension=dimension)
            chosen = Filter(scope=self._scope.narrowed(**scope.given()))
            page = Page.of(k=k, offset=0, where=chosen, ranking=None)
            return [
                [
                    ProbeHit(hit.memory.id, hit.similarity or 0.0, bool(hit.words))
                    for hit in answer.hits
                ]
                for answer in self._run(snapshot, asked, page)
            ]

        return search

    def _answered(self, ids: Sequence[str]) -> Iterable[tuple[str, Sequence[str]]]:
        """The recorded questions that these memories answered, newest first."""
        self._queries.flush()
        return self._queries.answered(ids, within=self._scope)
