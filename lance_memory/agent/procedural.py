"""The procedural layer: what works, in which situation, and how often it did."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import ArrayLike

from lance_memory.agent.across_users import ProcedureSummary, summaries
from lance_memory.agent.fitting import EMBEDDED_BY, Fitting
from lance_memory.agent.keyed import held, of_key, persistently
from lance_memory.agent.procedure import BestProcedures, Procedure, procedure_of
from lance_memory.errors import EmbeddingError, InvalidInputError, NotFoundError, ScopeError
from lance_memory.record.arguments import flag, real, several, text, whole
from lance_memory.record.keys import PROCEDURE, checked_name
from lance_memory.record.memory import Kind, Memory
from lance_memory.record.times import utc
from lance_memory.store import MemoryStore
from lance_memory.view import embedded_by

__all__ = ["ProceduralMemory"]


class ProceduralMemory:
    """Procedures by name, each the only one of its name in the handle's scope.

    Rows of `kind=procedural` under the key `procedure:<name>`. The content has the name, the
    context and the steps; the embedding is of the context alone: `best` compares situations.

    The verbs that name one procedure are about the handle's own scope, or, where that has no such
    procedure, about the only narrower scope that has; `learn` writes into the handle's own.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._fitting = Fitting(store)

    def learn(self, name: str, *, context: str, steps: Sequence[str]) -> Procedure:
        """Keep a procedure, or other steps of one that is known.

        Other steps supersede the old ones, which keep their counts in the history, and begin
        without any: what was counted was counted of other steps. With the same steps and another
        context the memory is changed in place, and the counts stay; so is one whose vector another
        embedder has made.

        Args:
            name: not blank, one line, 200 characters at most.
            context: when it fits; what `best` compares a situation with.
            steps: what to do, in order; one at least.

        Raises:
            InvalidInputError: a name, context or step that makes no sense.
            ConflictError: the name's key is another memory's; nothing was written.
            EmbeddingError: the embedder failed.
        """
        fresh = Procedure(
            name=checked_name("name", name),
            context=text("context", context),
            steps=_checked_steps(steps),
            scope=self._store.scope,
        )
        vector = embedded_by(self._store.embedder, [fresh.context])[0]

        def attempt() -> str:
            old = held(
                self._store, PROCEDURE + fresh.name, is_one=_is_procedure, other="no procedure"
            )
            known = procedure_of(old) if old else None
            if old is None or known is None or known.steps != fresh.steps:
                return self._replaced(fresh, vector, old.id if old else "")
            if known.context != fresh.context or self._fitting.is_stale(old):
                self._fits_elsewhere(fresh, vector, old)
            return old.id

        learned = self._store.get(persistently(attempt))
        return procedure_of(learned) or replace(fresh, id=learned.id)

    def record(self, name: str, *, success: bool, seconds: float | None = None) -> Procedure:
        """Count one use, whoever else is counting.

        Args:
            name: of the procedure.
            success: whether it went well.
            seconds: how long it took, >= 0; None: that was not measured.

        Returns:
            The procedure with this use counted.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            InvalidInputError: no truth value, or a time that makes no sense.
        """
        flag("success", success)
        if seconds is not None:
            real("seconds", seconds, least=0)

        def attempt() -> Procedure:
            memory, known = self._named(name)
            at = utc(self._store.clock(), "clock()")
            counted = known.used(success=success, seconds=seconds, at=at)
            self._store.update(
                memory.id,
                metadata={**memory.metadata, **counted.to_metadata()},
                revision=memory.revision,
                reason=f"{'success' if success else 'failure'} recorded",
            )
            return replace(counted, revision=memory.revision + 1)

        return persistently(attempt)

    def best(
        self,
        context: str,
        k: int = 3,
        *,
        vector: ArrayLike | None = None,
        min_similarity: float = 0.0,
    ) -> BestProcedures:
        """The procedures for a situation, by similarity of context and success; see `procedure`.

        Where the store's vectors are of another model than this handle's embedder, as after a
        `reembed` that this handle was opened before, the contexts are compared by its own: of 64
        procedures all, of more those that words find, and `degraded` says so.

        Args:
            context: the situation, as a text.
            k: at most as many; 0 gives none.
            vector: d numbers in place of the text's embedding.
            min_similarity: a cosine, 0..1; what fits less is left out. What does not fit at all
                (cosine 0 or less) always is.

        Raises:
            InvalidInputError: a blank text, a wrong vector, or a number out of bounds.
            EmbeddingError: the embedder failed.
        """
        whole("k", k, least=0)
        real("min_similarity", min_similarity, least=0, most=1)
        try:
            return self._fitting.by_vector(context, k, vector, least=min_similarity)
        except EmbeddingError as error:  # an embedder that fails does so below as well
            return self._fitting.by_words(context, k, least=min_similarity, why=str(error))

    def get(self, name: str) -> Procedure:
        """The procedure, as it stands.

        Raises:
            NotFoundError: there is none.
            AmbiguousError: several narrower scopes have one, and the handle's own has none.
        """
        return self._named(name)[1]

    def find(self, name: str) -> Procedure | None:
        """Like `get`, but None where there is none."""
        try:
            return self.get(name)
        except NotFoundError:
            return None

    def list(self) -> builtins.list[Procedure]:
        """Every procedure that stands, of narrower scopes too, by name and scope."""
        found = map(procedure_of, self._store.list(kinds=Kind.PROCEDURAL))
        return sorted(
            (one for one in found if one is not None),
            key=lambda one: (one.name, tuple(one.scope.names().values())),
        )

    def across_users(self, min_users: int = 5) -> builtins.list[ProcedureSummary]:
        """What the users of a tenant have in common: counts by name, and never whose.

        Only names that at least `min_users` users have; and each figure, context and list of
        steps only where it is made of, or exactly the same of, at least as many.

        Raises:
            ScopeError: the handle is of no tenant, or of one user.
            InvalidInputError: `min_users` is below 2.
        """
        least = whole("min_users", min_users, least=2)
        scope = self._store.scope
        if not scope.tenant or scope.user:
            raise ScopeError(
                f"across_users is asked of a tenant's handle, and this one is of {scope}; use "
                "store.scoped(tenant=...)"
            )
        found = map(procedure_of, self._store.iter(kinds=Kind.PROCEDURAL))
        return summaries((one for one in found if one is not None), min_users=least)

    def _named(self, name: str) -> tuple[Memory, Procedure]:
        key = PROCEDURE + checked_name("name", name)
        for memory in of_key(self._store, key, kind=Kind.PROCEDURAL):
            known = procedure_of(memory)
            if known is not None:
                return memory, known
        raise NotFoundError(
            f"there is no procedure {name!r} in {self._store.scope}; `lmem procedures list` shows "
            "those that there are"
        )

    def _replaced(self, fresh: Procedure, vector: ArrayLike, expected: str) -> str:
        """The id of a new memory in the place of what had the name."""
        made = self._store.upsert(
            fresh.content,
            key=PROCEDURE + fresh.name,
            expected=expected,
            kind=Kind.PROCEDURAL,
            embedding=vector,
            metadata={**fresh.to_metadata(), EMBEDDED_BY: self._store.embedder.name},
        )
        return made.id

    def _fits_elsewhere(self, fresh: Procedure, vector: ArrayLike, old: Memory) -> None:
        """Give what is there another context, or its vector anew; what was counted stays."""
        self._store.update(
            old.id,
            content=fresh.content,
            embedding=vector,
            metadata={
                **old.metadata,
                "context": fresh.context,
                EMBEDDED_BY: self._store.embedder.name,
            },
            revision=old.revision,
            reason="another context",
        )


def _checked_steps(steps: Sequence[str]) -> tuple[str, ...]:
    found = tuple(text("steps", step) for step in several("steps", steps))
    if not found:
        raise InvalidInputError("steps=[]; a procedure has one step at least")
    return found


def _is_procedure(memory: Memory) -> bool:
    return procedure_of(memory) is not None
