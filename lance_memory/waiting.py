"""What waits: memories for an answer, and texts for a vector."""

from __future__ import annotations

from lance_memory.ingest import Answer, Waiting
from lance_memory.ingest.waiting import WaitsFor, answered, approved, rejected, waiting
from lance_memory.ingesting import Ingesting
from lance_memory.record.arguments import one_of
from lance_memory.record.results import WriteResult
from lance_memory.storage import ChangeSet, Snapshot
from lance_memory.writing import Refs, kept

__all__ = ["Pending"]


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
            resolve, within = self._path.resolve, self._scope
            return approved(snapshot, rows, resolve=resolve, audit=audit, within=within)

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
            resolve, within = self._path.resolve, self._scope
            return answered(snapshot, rows, given, resolve=resolve, audit=audit, within=within)

        return self._write(plan)
