"""What waits: memories for an answer, and texts for a vector."""

from __future__ import annotations

from typing import Unpack

import numpy as np
import pyarrow as pa

from lance_memory.ingest import Answer, Waiting
from lance_memory.ingest.waiting import WaitsFor, answered, approved, expired, rejected, waiting
from lance_memory.ingesting import Ingesting
from lance_memory.record.arguments import one_of
from lance_memory.record.filters import Filter, Where, all_of, is_one_of, missing
from lance_memory.record.memory import State
from lance_memory.record.results import EmbedResult, WriteResult
from lance_memory.record.rows import EMBEDDING, changed, vector_array
from lance_memory.storage import ChangeSet, Snapshot
from lance_memory.writing import Refs, kept

__all__ = ["Pending"]

_CHUNK = 256
_SHOWN_STATES = (State.ACTIVE, State.PENDING)


class Pending(Ingesting):
    """The verbs of whoever answers for memories that wait."""

    def pending(self) -> list[Waiting]:
        """The memories of this scope that wait, and what for. Reads do not show them."""
        return waiting(self._snapshot(), self._scope, moment=self._moment())

    def clarifications(self, *, reviews: bool = False) -> list[Waiting]:
        """Those that clash with another, and wait for the person's answer.

        Args:
            reviews: those that wait for the institution's instead.
        """
        why = WaitsFor.REVIEW if reviews else WaitsFor.CLARIFY
        return waiting(self._snapshot(), self._scope, moment=self._moment(), why=(why,))

    def approve(self, refs: Refs, *, reason: str = "") -> WriteResult:
        """Let memories that wait in; one that clashes takes the place of the other.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            ConflictError: one is not pending, or has expired; nothing was written.
        """
        names = kept(refs) or ()

        def plan(snapshot: Snapshot) -> ChangeSet:
            audit = self._audit("approve", reason)
            rows = self._rows(names, snapshot)
            return approved(snapshot, rows, resolve=self._path.resolve, audit=audit)

        return self._write(plan)

    def reject(self, refs: Refs, *, reason: str = "") -> WriteResult:
        """Retire memories that wait.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            ConflictError: one is not pending; nothing was written.
        """
        names = kept(refs) or ()
        return self._write(
            lambda snapshot: rejected(
                self._rows(names, snapshot), audit=self._audit("reject", reason)
            )
        )

    def answer(self, ref: str, answer: Answer | str, *, reason: str = "") -> WriteResult:
        """Say which of two memories that clash is true: the new one, the old one, or both.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            InvalidInputError: there is no such answer.
            ConflictError: the memory waits for no answer; nothing was written.
        """
        given = Answer(one_of("answer", answer, Answer))

        def plan(snapshot: Snapshot) -> ChangeSet:
            audit = self._audit("answer", reason, manifest={"answer": str(given)})
            rows = self._rows(ref, snapshot)
            return answered(snapshot, rows, given, resolve=self._path.resolve, audit=audit)

        return self._write(plan)

    def expire(self) -> WriteResult:
        """Retire the memories that waited for too long. They are not recalled in any case."""
        return self._write(
            lambda snapshot: expired(snapshot, self._scope, audit=self._audit("expire"))
        )

    def embed_missing(self, *, limit: int | None = None, **where: Unpack[Where]) -> EmbedResult:
        """Embed the memories that have no vector, as after an embedder that failed; in batches.

        Each batch is a version. Who is stopped in between goes on with the next call.

        Args:
            limit: at most so many.
            where: see `Where`; active and pending ones by default.

        Raises:
            EmbeddingError: the embedder fails; the batches before are done.
        """
        chosen = Filter.of({"states": _SHOWN_STATES, **where}, within=self._scope)
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
