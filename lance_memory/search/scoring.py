"""Candidates in an order, each with the parts of its score. Pure functions over arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from lance_memory.record.decay import seconds_since
from lance_memory.record.results import ScoreParts
from lance_memory.search.candidates import Candidates, Union
from lance_memory.search.fusion import (
    Floats,
    from_neighbours,
    positive_cosines,
    reciprocal_ranks,
    scaled_bm25,
    scaled_cosines,
)
from lance_memory.search.ranking import Fusion, Ranking, Recency

__all__ = ["Scored", "Traits", "scored"]

_FACTORS = ("recency", "importance", "decay")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What ranking knows of each fused candidate beside its legs; None: it does not count. [n].

    Attributes:
        sessions, positions, owners: see `from_neighbours`; all [m].
        actor: whether it is the named actor's.
        period: whether it happened in a named period.
        happened: datetime64[us].
        importance: 0..1.
        strength: 0..1, of the head only; see `record.decay`.
    """

    sessions: NDArray[np.uint64] | None = None
    positions: NDArray[np.int64] | None = None
    owners: NDArray[np.intp] | None = None
    actor: NDArray[np.bool_] | None = None
    period: NDArray[np.bool_] | None = None
    happened: NDArray[np.datetime64] | None = None
    importance: Floats | None = None
    strength: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The score of each candidate, 0..1, and its parts; in the candidates' order."""

    scores: Floats
    parts: Mapping[str, Floats]

    def of(self, place: int) -> ScoreParts:
        """The parts of one candidate."""
        return ScoreParts(**{name: float(values[place]) for name, values in self.parts.items()})


def scored(
    found: Union, traits: Traits, ranking: Ranking, *, moment: datetime, alone: bool
) -> Scored:
    """Fuse the legs, add what neighbours, actor and period give, apply the factors.

    A leg that was asked `alone` gives its cosines, or BM25 over the best, as they are. What is
    fused, or reordered by factors, is the head; of the rows that follow it score and parts are 0.
    """
    if alone and not ranking.factors:
        return _with(_leg(found.whole), traits, ranking, moment)
    legs = _leg(found.head) if alone else _legs(found.head, ranking)
    fused = _with(legs, traits, ranking, moment)
    rest = np.zeros(len(found.whole.addresses) - len(found.head.addresses))
    return Scored(
        scores=np.concatenate([fused.scores, rest]),
        parts={name: np.concatenate([part, rest]) for name, part in fused.parts.items()},
    )


def _with(parts: dict[str, Floats], traits: Traits, ranking: Ranking, moment: datetime) -> Scored:
    relevance = parts["vector"] + parts["words"]
    if traits.sessions is not None and traits.positions is not None:
        received = from_neighbours(
            relevance, traits.sessions, traits.positions, owners=traits.owners
        )
        parts["neighbours"] = ranking.neighbours * received
    if traits.actor is not None:
        parts["actor"] = ranking.actor_bonus * traits.actor.astype(np.float64)
    if traits.period is not None:
        parts["period"] = ranking.period_bonus * traits.period.astype(np.float64)
    total = np.sum(list(parts.values()), axis=0)
    size = len(relevance)  # traits may reach beyond the head
    if ranking.recency is not None and traits.happened is not None:
        parts["recency"] = _freshness(traits.happened[:size], ranking.recency, moment)
    if ranking.importance and traits.importance is not None:
        parts["importance"] = 1.0 - ranking.importance * (1.0 - traits.importance[:size])
    if traits.strength is not None:
        parts["decay"] = traits.strength
    for name in _FACTORS:
        total = total * parts.get(name, 1.0)
    best = total.max(initial=0.0)
    return Scored(scores=total / best if best > 0 else total, parts=parts)


def _leg(found: Candidates) -> dict[str, Floats]:
    return {"vector": positive_cosines(found.cosines), "words": scaled_bm25(found.words)}


def _legs(found: Candidates, ranking: Ranking) -> dict[str, Floats]:
    """What each leg gives. One leg alone has the whole weight."""
    near, said = (not np.isnan(leg).all() for leg in (found.cosines, found.words))
    if ranking.fusion == Fusion.RRF and near and said:
        ranks = [reciprocal_ranks(leg) for leg in (found.cosines, found.words)]
        best = (ranks[0] + ranks[1]).max()
        return {"vector": ranks[0] / best, "words": ranks[1] / best}
    share = ranking.vector_share if near and said else float(near)
    return {
        "vector": share * scaled_cosines(found.cosines),
        "words": (1.0 - share) * scaled_bm25(found.words),
    }


def _freshness(happened: NDArray[np.datetime64], recency: Recency, moment: datetime) -> Floats:
    """See `Recency`; what has not happened yet is as fresh as can be."""
    age = np.maximum(seconds_since(happened, moment), 0.0)
    halved: Floats = 0.5 ** (age / recency.half_life.total_seconds())
    return recency.floor + (1.0 - recency.floor) * halved
