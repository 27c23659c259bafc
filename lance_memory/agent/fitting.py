"""Which procedures fit a situation, by the vectors of their contexts or without those."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from lance_memory.agent.procedure import (
    BestProcedures,
    Procedure,
    RankedProcedure,
    procedure_of,
    ranked,
)
from lance_memory.record.memory import Kind, Memory
from lance_memory.record.results import Hit
from lance_memory.search import Mode
from lance_memory.store import MemoryStore
from lance_memory.view import embedded_by

__all__ = ["EMBEDDED_BY", "Fitting"]

EMBEDDED_BY: Final = "embedded_by"
"""Member of the metadata: the embedder that made the vector of the context."""

_FIRST_LOOK: Final = 64
_FURTHER: Final = 4


class Fitting:
    """Compares a situation with the contexts of the procedures that a handle sees."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def by_vector(
        self, context: str, k: int, vector: ArrayLike | None, *, least: float
    ) -> BestProcedures:
        """The nearest, and further and further away until nothing else can come in."""
        width = max(_FIRST_LOOK, _FURTHER * k) if k else 0
        while True:
            hits = self._store.search(
                context, vector=vector, k=width, mode=Mode.VECTOR, kinds=Kind.PROCEDURAL
            ).hits
            found = ranked(self._measured(context, vector, hits), min_similarity=least)[:k]
            if len(hits) < width or not k or self._is_settled(found, hits, k):
                return BestProcedures(ranks=tuple(found))
            width *= _FURTHER

    def by_words(self, context: str, k: int, *, least: float, why: str) -> BestProcedures:
        """The same of all, if they are few, else of those that words find."""
        memories = self._store.list(kinds=Kind.PROCEDURAL, limit=_FIRST_LOOK + 1)
        degraded = {"vector": why} if len(memories) > _FIRST_LOOK else {}
        if degraded:
            width = max(_FIRST_LOOK, _FURTHER * k)
            hits = self._store.search(context, k=width, mode=Mode.TEXT, kinds=Kind.PROCEDURAL)
            memories = [hit.memory for hit in hits]
        known = [one for one in map(procedure_of, memories) if one is not None]
        fitting = self._similarities([one.context for one in known], context, None)
        found = ranked(((one, fitting[one.context]) for one in known), min_similarity=least)
        return BestProcedures(ranks=tuple(found[:k]), degraded=degraded)

    def _measured(
        self, context: str, vector: ArrayLike | None, hits: Sequence[Hit]
    ) -> Iterable[tuple[Procedure, float]]:
        """The procedures among the hits, with the similarity of their contexts.

        Re-embedding makes a vector of the whole content; then the context is embedded here.
        """
        found = [(known, hit) for hit in hits if (known := procedure_of(hit.memory))]
        stale = [known.context for known, hit in found if self.is_stale(hit.memory)]
        own = self._similarities(stale, context, vector)
        return [
            (known, own.get(known.context, min(1.0, hit.similarity or 0.0))) for known, hit in found
        ]

    def _similarities(
        self, contexts: Sequence[str], context: str, vector: ArrayLike | None
    ) -> dict[str, float]:
        """By context, its cosine with the situation, or with the vector in its place."""
        if not contexts:
            return {}
        embedder, several = self._store.embedder, sorted(set(contexts))
        asked = embedded_by(embedder, [context], queries=True)[0] if vector is None else vector
        return dict(zip(several, _cosines(embedded_by(embedder, several), asked), strict=True))

    def is_stale(self, memory: Memory) -> bool:
        """Whether the vector is not of the context, by the handle's embedder."""
        return bool(memory.metadata.get(EMBEDDED_BY) != self._store.embedder.name)

    def _is_settled(self, best: Sequence[RankedProcedure], hits: Sequence[Hit], k: int) -> bool:
        """Whether no procedure further away can come in: its score would be below its similarity.

        Where vectors are of whole contents, how far away one is says nothing of its context.
        """
        if any(procedure_of(hit.memory) and self.is_stale(hit.memory) for hit in hits):
            return False
        similarity = hits[-1].similarity or 0.0
        return similarity <= 0 or (len(best) == k and similarity <= best[-1].score)


def _cosines(rows: ArrayLike, vector: ArrayLike) -> list[float]:
    """Of each row float32 [n, d] with the vector [d]."""
    matrix, one = np.asarray(rows, np.float32), np.asarray(vector, np.float32)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(one)
    return [min(1.0, float(cosine)) for cosine in (matrix @ one) / lengths]
