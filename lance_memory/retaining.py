"""Retaining: how long memories stay, and what becomes of those that have stayed long enough."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import pyarrow as pa

from lance_memory.curate import ConsolidationPlan
from lance_memory.errors import InvalidInputError
from lance_memory.govern.retention import (
    RetentionPlan,
    RetentionPolicy,
    RetentionResult,
    plan_retention,
    retired_parts,
)
from lance_memory.metering import Metering
from lance_memory.move import ArchiveSource, file_in, put_away, retiring
from lance_memory.record.aside import aside
from lance_memory.record.filters import Filter, Where
from lance_memory.record.memory import SCOPE_LEVELS
from lance_memory.record.results import WriteResult
from lance_memory.storage import ChangeSet, Snapshot, naming
from lance_memory.usage import RetirePlan

__all__ = ["Retaining"]

_POLICY = RetentionPolicy()
_IN_MEMORY = 8_192
"""Beyond as many rows to retire, they wait in a file."""


class Retaining(Metering):
    """The verbs of whoever answers for how long memories are kept."""

    def plan_retention(
        self,
        policy: RetentionPolicy = _POLICY,
        *,
        per_tenant: Mapping[str, RetentionPolicy] | None = None,
        **where: Unpack[Where],
    ) -> RetentionPlan:
        """Which memories have stayed long enough, and why each, for `apply` to retire.

        It needs no scope: through the store's own handle it is about every tenant.

        Args:
            policy: how long they stay; by default raw episodes for 90 days, see `RetentionPolicy`.
            per_tenant: tenant → a policy in the place of that one.
            where: which memories to look at, see `Where`, states left out. By default all but those
                of kind "workspace".

        Raises:
            InvalidInputError: what is given is no policy, or a filter makes no sense.
            ScopeError: a filter names another scope than the handle's.
        """
        snapshot = self._snapshot()
        with naming.holding(self._table, snapshot.version):
            return self._due(snapshot, policy, per_tenant, where)

    @overload
    def retain(
        self,
        policy: RetentionPolicy | RetentionPlan = ...,
        *,
        archive: str | os.PathLike[str] | None,
        per_tenant: Mapping[str, RetentionPolicy] | None = ...,
        dry_run: Literal[True],
        **where: Unpack[Where],
    ) -> RetentionPlan: ...

    @overload
    def retain(
        self,
        policy: RetentionPolicy | RetentionPlan = ...,
        *,
        archive: str | os.PathLike[str] | None,
        per_tenant: Mapping[str, RetentionPolicy] | None = ...,
        dry_run: Literal[False] = ...,
        reason: str = ...,
        **where: Unpack[Where],
    ) -> RetentionResult: ...

    def retain(
        self,
        policy: RetentionPolicy | RetentionPlan = _POLICY,
        *,
        archive: str | os.PathLike[str] | None,
        per_tenant: Mapping[str, RetentionPolicy] | None = None,
        dry_run: bool = False,
        reason: str = "",
        **where: Unpack[Where],
    ) -> RetentionResult | RetentionPlan:
        """Put away the memories that have stayed long enough, then retire them as one version.

        The file is on the disk and was read back before anything is retired. A call that is killed
        in between leaves it, and the next one goes on from there, with what is in it. Memories that
        others change meanwhile stay. `unretire` or `revert` brings them back, for as long again;
        what had expired goes the next time, unless it gets another `expires_at`.

        Args:
            policy: as for `plan_retention`; or a plan of it, which is carried out as it is.
            archive: a new file x.zip, which `import_store` takes, x.jsonl or x.parquet; or a
                directory, where each pass makes a .zip of its own, as a nightly one needs it. None:
                they are only retired; the rows stay in the store either way.
            per_tenant: as for `plan_retention`.
            dry_run: only plan.
            reason: follows each memory's own, and is shown by `log`.
            where: as for `plan_retention`.

        Raises:
            InvalidInputError: as for `plan_retention`; a plan, and what it was made from as well;
                or something else is at `archive`.
            ScopeError: as for `plan_retention`; or the plan reaches outside this handle's scope.
            ConflictError: other writers were faster, again and again.
            StorageError: the file cannot be written, or does not read back; or it is there, and the
                store cannot be written to, so that none was retired.
        """
        snapshot = self._snapshot()
        with naming.holding(self._table, snapshot.version):
            plan = self._planned(snapshot, policy, per_tenant, where)
            if dry_run:
                return plan
            fresh = _unchanged(snapshot, plan)
            if archive is None or not fresh:
                put, place = fresh, None
            else:
                name = f"retention-{plan.at:%Y-%m-%d}"
                place = file_in(archive, prefix=name, name=fresh.digest)
                put = fresh.only(self._put_away(snapshot, fresh, place))
        with nullcontext() if place is None else retiring(place):
            written, kept = self._retired(put, place, reason)
        return RetentionResult(
            uri=self.uri,
            version=written.version,
            plan=plan,
            retired=written.updated,
            path="" if place is None else str(place),
            archived=0 if place is None else len(put.memories),
            changed=len(plan.memories) - len(fresh.memories) + len(put.memories) - kept,
            left=len(fresh.memories) - len(put.memories),
            upkeep=written.upkeep,
        )

    def apply(
        self, plan: ConsolidationPlan | RetirePlan | RetentionPlan, *, reason: str = ""
    ) -> WriteResult:
        """Commit a plan of `consolidate(dry_run=True)`, `plan_retirement` or `plan_retention`.

        Raises:
            ConflictError: a memory has been changed or deleted since, its key given to another, or
                the store re-embedded; nothing was written.
            TransformError: a cluster failed, and all or nothing was asked for.
            ScopeError: the plan reaches outside this handle's scope.
        """
        if isinstance(plan, RetentionPlan):
            with tempfile.TemporaryDirectory(prefix="lance-memory-") as folder:
                return self._write(lambda now: self._retiring(now, plan, Path(folder), reason))
        return super().apply(plan, reason=reason)

    # -- inside --

    def _planned(
        self,
        snapshot: Snapshot,
        policy: RetentionPolicy | RetentionPlan,
        per_tenant: Mapping[str, RetentionPolicy] | None,
        where: Where,
    ) -> RetentionPlan:
        """The plan that was given, if it is about this handle's memories; or a new one.

        Raises:
            ScopeError: it reaches outside.
        """
        if not isinstance(policy, RetentionPlan):
            return self._due(snapshot, policy, per_tenant, where)
        if where or per_tenant is not None:
            raise InvalidInputError("give either a plan, or a policy and what it is about")
        rows = snapshot.by_ids(policy.ids, columns=["id", *SCOPE_LEVELS])
        self._refuse_outside(ChangeSet(audit=self._audit("retain"), deletes=rows))
        return policy

    def _due(
        self,
        snapshot: Snapshot,
        policy: RetentionPolicy,
        per_tenant: Mapping[str, RetentionPolicy] | None,
        where: Where,
    ) -> RetentionPlan:
        return plan_retention(
            snapshot,
            Filter.of(where, within=self._scope),
            policy=policy,
            per_tenant={} if per_tenant is None else per_tenant,
            moment=self._moment(),
        )

    def _put_away(self, snapshot: Snapshot, plan: RetentionPlan, place: Path) -> frozenset[str]:
        """Those of the plan that are in the file; all, unless a killed call has left it."""
        source = ArchiveSource(
            table=self._table,
            snapshot=snapshot,
            filter=Filter(scope=plan.scope, states="any"),
            moment=plan.at,
            ids=plan.ids,
        )
        return frozenset(put_away(source, place, some=True))

    def _retired(
        self, put: RetentionPlan, place: Path | None, reason: str
    ) -> tuple[WriteResult, int]:
        """Retire what was put away, as far as nobody has changed it meanwhile; how many."""
        kept = put

        def plan(now: Snapshot) -> ChangeSet:
            nonlocal kept
            kept = _unchanged(now, put)
            archive = {} if place is None else {"archive": place.name}
            return self._retiring(now, kept, Path(folder), reason, **archive)

        with tempfile.TemporaryDirectory(prefix="lance-memory-") as folder:
            written = self._write(plan)
        return written, len(kept.memories)

    def _retiring(
        self, snapshot: Snapshot, plan: RetentionPlan, folder: Path, reason: str, **told: Any
    ) -> ChangeSet:
        """The plan as one change; many rows of it wait in the folder."""
        manifest = {**plan.manifest(), **told}
        audit = self._audit("retain", reason or plan.reason, manifest=manifest)
        parts = retired_parts(snapshot, plan, remark=reason, at=audit.at)
        if len(plan.memories) > _IN_MEMORY:
            number = len(list(folder.iterdir()))
            rows = aside(parts, snapshot.schema, folder / f"retired-{number}.arrow")
        else:
            rows = pa.concat_tables([snapshot.schema.empty_table(), *parts])
        change = ChangeSet(audit=audit, updates=rows, seen=plan.seen)
        self._refuse_outside(change)
        return change


def _unchanged(snapshot: Snapshot, plan: RetentionPlan) -> RetentionPlan:
    """The plan without the memories that were changed or deleted since."""
    found = snapshot.locate(plan.ids).fingerprints()
    return plan.only({i for i, seen in plan.seen.items() if found.get(i) == seen})
