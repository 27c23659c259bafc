"""Promoting: what was said just now becomes rows, and rows become episodes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from lance_memory.admission import Promotion
from lance_memory.errors import EmbeddingError, InvalidInputError, QuotaExceededError
from lance_memory.ingest.sessions import Promote, Sessions, hibernated
from lance_memory.moving import Moving
from lance_memory.record.intake import Batch
from lance_memory.record.results import WriteResult
from lance_memory.storage import ChangeSet, Snapshot
from lance_memory.telemetry import count

__all__ = ["Promoting"]

_LOG = logging.getLogger(__name__)

_IDLE = timedelta(minutes=5)


class Promoting(Moving):
    """The verbs of the working layer (`WorkingMemory`)."""

    _slept = datetime.min.replace(tzinfo=UTC)

    def promote(
        self,
        memories: Batch,
        *,
        fresh: Callable[[], Collection[str]] | None = None,
        reason: str = "",
    ) -> WriteResult:
        """Store memories under ids of the caller's own, or let working rows become them: once.

        Of each, as one version for all: where its id is not there, it is stored. Where it is, as a
        visible row of kind "working", that row takes over its kind, importance and end, and keeps
        its text and all else. Otherwise nothing happens: so doing it again changes nothing.

        Args:
            memories: as for `add_many`, each with an `id`.
            fresh: gives the ids of those that may be stored, asked right before each try to commit;
                the others may be gone by then. None: all.
            reason: shown by `log`.

        Returns:
            `ids` has those that were stored, then those that changed.

        Raises:
            RejectedError: `rows` has the positions of the malformed ones.
            InvalidInputError: one has no id.
            ConflictError: an id is taken in another scope, or a key by another live memory.
            EmbeddingError: the embedder failed; nothing was stored.
        """
        self._table.refuse_writes()  # before anything is read or embedded
        now = self._moment()
        promotion = Promotion(self._take_in(memories, now), embed=self._embed, now=now)
        promotion.prepare(self._table.latest)

        def plan(snapshot: Snapshot) -> ChangeSet:
            audit = self._audit(promotion.operation, reason)
            return promotion.change(snapshot, fresh=fresh() if fresh else None, audit=audit)

        return self._write(plan)

    def hibernate(self, idle: timedelta = _IDLE) -> WriteResult:
        """Put the messages of sessions in which nothing was said for a while into the table.

        They become rows of `kind=working` that end when the messages do, as one version for all
        sessions within this handle's scope; `WorkingMemory.recent` goes on giving them. What has
        ended is removed from the ledger on the way. To be called now and then, by any process:
        workers do it by themselves. Messages of a tenant whose quota has no room for them stay in
        the ledger, and end there.

        Args:
            idle: how long nothing was said.

        Returns:
            The version; where there is nothing to do, none is made.

        Raises:
            InvalidInputError: a negative time; or the ledger is elsewhere, see `open`.
            EmbeddingError: the embedder failed; the messages are where they were.
            StorageError: the ledger, or the table, cannot be written to.
        """
        if idle < timedelta(0):
            raise InvalidInputError(f"idle={idle}; it cannot be negative")

        def promote(
            rows: Sequence[Mapping[str, Any]], fresh: Callable[[], Collection[str]]
        ) -> WriteResult:
            return self.promote(rows, fresh=fresh)

        made = None
        if self._beside.used:  # to ask makes no ledger
            made = self._asleep(Sessions(self._whole_ledger()), promote, idle)
        if made is None:
            return WriteResult(uri=self.uri, version=self.version, operation="hibernate")
        count("working.hibernated", made.inserted, tenant=self._scope.tenant)
        return made

    def _asleep(self, sessions: Sessions, promote: Promote, idle: timedelta) -> WriteResult | None:
        """What was committed, without the tenants that have no room: they are in nobody's way."""
        full: set[str] = set()
        while True:
            now = self._moment()
            try:
                return hibernated(
                    sessions, self._scope, without=full, promote=promote, idle=idle, now=now
                )
            except QuotaExceededError as error:
                if error.tenant in full:
                    raise
                full.add(error.tenant)
                _LOG.warning("messages of a tenant stay in the ledger until they end: %s", error)

    def _look_after(self) -> None:
        super()._look_after()
        now = self._moment()
        if now - self._slept >= _IDLE:
            self._slept = now
            with suppress(EmbeddingError):  # the messages are where they were: later
                self.hibernate()
