"""How a handle writes: who did it, within which scope, and the one way to the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.embed import Embedder
from lance_memory.errors import InvalidInputError, RejectedError, ScopeError
from lance_memory.govern.quota import Meter
from lance_memory.record.filters import Filter, Where
from lance_memory.record.intake import Batch, Taken, take_in
from lance_memory.record.memory import SCOPE_LEVELS
from lance_memory.record.results import WriteResult
from lance_memory.record.times import Clock
from lance_memory.record.values import text_value
from lance_memory.storage import (
    Audit,
    ChangeSet,
    Plan,
    Snapshot,
    Table,
    Tender,
    Upkeep,
    rows_named,
)
from lance_memory.usage import QueryLog
from lance_memory.view import MemoryView

__all__ = ["Refs", "Writing", "kept"]

Refs = str | Iterable[str]


class Writing(MemoryView):
    """A view of the newest version that can commit change sets; it has no verb of its own."""

    def __init__(
        self,
        table: Table,
        *,
        embedder: Embedder,
        clock: Clock,
        meter: Meter,
        author: str = "",
        queries: QueryLog | None = None,
        upkeep: Upkeep | None = None,
    ) -> None:
        super().__init__(table, embedder=embedder, clock=clock, queries=queries)
        self._author = author
        self._meter = meter
        self._tender = Tender(table, upkeep)

    @property
    def author(self) -> str:
        """Who writes through this handle; `log` shows it."""
        return self._author

    def _take_in(self, batch: Batch, now: datetime) -> Taken:
        return take_in(batch, schema=self._table.schema, scope=self._scope, now=now)

    def _embedding_of(self, content: str) -> NDArray[np.float32]:
        """The vector of one text that is going to be a memory's."""
        if not isinstance(content, str) or not content.strip():
            raise RejectedError(f"content is {content!r}; a memory needs a text that is not blank")
        vector: NDArray[np.float32] = self._embed([content])[0]
        return vector

    def _audit(
        self,
        operation: str,
        reason: str = "",
        *,
        manifest: Mapping[str, Any] | None = None,
        op_id: str = "",
    ) -> Audit:
        """The audit record of a commit that is about to happen; plans call this, at that moment."""
        return Audit(
            operation=operation,
            at=self._moment(),
            actor=self._author,
            reason=text_value("reason", reason),
            manifest=manifest or {},
            op_id=op_id,
        )

    def _commit(self, plan: Plan) -> tuple[ChangeSet, Snapshot, str]:
        """What was committed, the version it made, and why upkeep failed the last time, if so.

        Raises:
            QuotaExceededError: a tenant has no room for it.
        """
        change, made = self._meter.committed(plan, self._table.commit)
        return change, made, self._tender.after(change, made)

    def _write(self, plan: Plan) -> WriteResult:
        change, made, failed = self._commit(plan)
        written = [r for r in (change.inserts, change.updates, change.deletes) if r]
        return WriteResult(
            uri=self.uri,
            version=made.version,
            operation=change.audit.operation,
            ids=tuple(identifier for rows in written for identifier in rows["id"].to_pylist()),
            **change.counts(),
            upkeep=failed,
            warnings=change.warnings,
        )

    def _rows(self, refs: Refs, snapshot: Snapshot) -> pa.Table:
        return rows_named(snapshot, refs, scope=self._scope, moment=self._moment())

    def _chosen(self, refs: Refs | None, where: Where, snapshot: Snapshot) -> pa.Table:
        if refs is not None:
            if where:
                raise InvalidInputError("give either memories by name or a filter, not both")
            return self._rows(refs, snapshot)
        predicate = self._of_a_scope(where).predicate(self._moment())
        return snapshot.scan(predicate, columns=snapshot.schema.names)

    def _of_a_scope(self, where: Where) -> Filter:
        chosen = Filter.of(where, within=self._scope)
        if not chosen.scope:
            raise ScopeError(
                "a filter without a scope would reach every tenant and user; "
                "name at least one of: " + ", ".join(SCOPE_LEVELS)
            )
        return chosen

    def _refuse_outside(self, change: ChangeSet) -> None:
        outside = [scope for scope in change.scopes() if not self._scope.holds(scope)]
        if outside:
            raise ScopeError(
                f"the plan reaches {outside[0]}, outside this handle's {self._scope}; "
                "apply it through the handle that made it"
            )


def kept(refs: Refs | None) -> Refs | None:
    """A generator gives its names once, and a plan may have to be made again."""
    return refs if refs is None or isinstance(refs, str) else tuple(refs)
