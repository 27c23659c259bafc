"""How candidates become an order: what a caller may choose."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import duration, instance, one_of, real, whole
from lance_memory.record.decay import Decay

if TYPE_CHECKING:
    from lance_memory.search.rerank import Reranker

__all__ = ["Fusion", "Ranking", "Recency"]


class Fusion(StrEnum):
    """How the two legs become one relevance."""

    WEIGHTED = "weighted"
    RRF = "rrf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recency:
    """A factor of floor..1 on the score: halfway to the floor at each `half_life` of age.

    factor = floor + (1 - floor) * 2^(-age / half_life). The floor keeps what is old and right
    findable. Age counts from `event_at`, or from `created_at` where there is none.
    """

    half_life: timedelta
    floor: float = 0.5

    def __post_init__(self) -> None:
        duration("half_life", self.half_life)
        real("floor", self.floor, least=0, most=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The defaults were chosen on five conversations and hold on five others (design/006).

    All but `recency`, `importance`, `decay` and `reranker` concern mode "hybrid"; one leg keeps its
    order. The three factors reorder what is fused, or the best 100 of one leg; what lies deeper
    follows.

    Attributes:
        fusion: "weighted": share · cosine, scaled to 0..1 over the candidates, + (1 - share) ·
            BM25 / best BM25. "rrf": reciprocal ranks with k = 60 (Cormack et al. 2009), scaled so
            that the best has 1.
        vector_share: weight of the cosine in "weighted", 0..1.
        neighbours: how much relevance a memory gets from those before and after it in its
            session, >= 0; 1 is what was measured, 0 none.
        actor_bonus: added to the memories of the actor that the question names, >= 0; in
            units of relevance, of which the best candidate has at most 1.
        period_bonus: added to what happened in a period that the question names, >= 0.
        recency: prefer what is new; None: age does not count.
        importance: 0..1; the factor on the score is 1 - importance · (1 - the memory's own).
        decay: prefer what is strong: important, fresh, and recalled often, where queries are
            recorded; the factor on the score is the strength. None: it does not count.
        reranker: looks again at the first `rerank_depth` candidates.
        rerank_depth: how many, >= 1.
    """

    fusion: Fusion | str = Fusion.WEIGHTED
    vector_share: float = 0.5
    neighbours: float = 1.0
    actor_bonus: float = 0.2
    period_bonus: float = 0.8
    recency: Recency | None = None
    importance: float = 0.0
    decay: Decay | None = None
    reranker: Reranker | None = None
    rerank_depth: int = 50

    def __post_init__(self) -> None:
        one_of("fusion", self.fusion, Fusion)
        real("vector_share", self.vector_share, least=0, most=1)
        real("importance", self.importance, least=0, most=1)
        for name in ("neighbours", "actor_bonus", "period_bonus"):
            real(name, getattr(self, name), least=0)
        if self.recency is not None:
            instance("recency", self.recency, Recency, "a Recency")
        if self.decay is not None:
            instance("decay", self.decay, Decay, "a Decay")
        if self.reranker is not None and (
            isinstance(self.reranker, type) or not callable(getattr(self.reranker, "rerank", None))
        ):
            raise InvalidInputError(
                f"reranker={self.reranker!r}; it needs a method rerank(query, hits); "
                "LanceDB's go through LanceDBReranker"
            )
        whole("rerank_depth", self.rerank_depth, least=1)

    @property
    def factors(self) -> bool:
        """Whether age, importance or strength counts."""
        return self.recency is not None or self.importance > 0 or self.decay is not None
