"""Two legs become one relevance. Pure functions over arrays; NaN: the leg did not see the row."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Floats",
    "from_neighbours",
    "positive_cosines",
    "reciprocal_ranks",
    "scaled_bm25",
    "scaled_cosines",
]

Floats: TypeAlias = NDArray[np.float64]

RRF_K = 60
"""Cormack, Clarke and Büttcher, SIGIR 2009."""

NARROWEST = 0.1
"""Cosines as near to each other as this are not told apart in full. 100 candidates of one
conversation spread over .3-.6 with MiniLM, over .1-.2 with e5."""

SMALLEST = 1e-6
"""Of a cosine, what rounding leaves."""

PREVIOUS, NEXT, FADING = 0.3, 0.2, 0.5
"""What a memory gets of its neighbours' relevance, and how that fades with each turn between.

An answer stands near its question. Chosen on LoCoMo's tuning conversations, where .3-.4, .2-.3 and
.4-.7 are a flat optimum: recall@10 of all ten +6 points (design/006).
"""


def scaled_cosines(cosines: Floats) -> Floats:
    """Scaled so that the best seen has 1 and the worst 0, unseen 0.

    Models spread cosines differently, so the spread among the candidates is what counts; but where
    few are all about as near, the worst has more than 0.
    """
    seen = ~np.isnan(cosines)
    if not seen.any():
        return np.zeros_like(cosines)
    low, high = cosines[seen].min(), cosines[seen].max()
    scaled = 1.0 - (high - cosines) / max(high - low, NARROWEST)
    return np.where(seen, scaled, 0.0)


def positive_cosines(cosines: Floats) -> Floats:
    """As they are, what points away and unseen 0.

    Where all point away they are counted from the opposite direction, 1 + cosine: so the best is
    above 0, and factors and order hold there too.
    """
    seen = np.nan_to_num(cosines, nan=-np.inf)
    if not len(seen) or seen.max() > 0:
        return np.maximum(seen, 0.0)
    return np.where(np.isnan(cosines), 0.0, np.maximum(1.0 + seen, SMALLEST))


def scaled_bm25(words: Floats) -> Floats:
    """Divided by the best score; unseen 0."""
    found = np.nan_to_num(words)
    best = found.max(initial=0.0)
    return found / best if best > 0 else found


def reciprocal_ranks(leg: Floats) -> Floats:
    """1 / (60 + rank) of each seen row, rank 1 for the best; unseen 0. Ties by place."""
    order = np.argsort(-np.nan_to_num(leg, nan=-np.inf), kind="stable")
    ranks = np.empty(len(leg))
    ranks[order] = np.arange(1, len(leg) + 1)
    return np.where(np.isnan(leg), 0.0, 1.0 / (RRF_K + ranks))


def from_neighbours(
    relevance: Floats,
    sessions: NDArray[np.uint64],
    positions: NDArray[np.int64],
    *,
    owners: NDArray[np.intp] | None = None,
) -> Floats:
    """What each row gets from the rows of its session, [n].

    Args:
        relevance: of each row, [n].
        sessions: a number for each session; 0: in none. [m].
        positions: place of the row in its session, [m].
        owners: which row stands there, ascending, [m]. A row may stand in several places; of two
            rows those count that lie nearest to each other. None: each in one, m = n.
    """
    weights: Floats
    if owners is None or len(owners) == len(relevance):
        weights = _weights(sessions, positions)
    else:
        weights = _nearest_places(sessions, positions, owners, len(relevance))
    received: Floats = weights @ relevance
    return received


def _nearest_places(
    sessions: NDArray[np.uint64],
    positions: NDArray[np.int64],
    owners: NDArray[np.intp],
    size: int,
) -> Floats:
    """The weights between rows that stand in several places, [n, n]."""
    weights = np.zeros((size, size))
    for session in np.unique(sessions[sessions > 0]):
        here = np.flatnonzero(sessions == session)
        whose = owners[here]
        near = _weights(sessions[here], positions[here])
        np.maximum.at(weights, (whose[:, None], whose[None, :]), near)
    np.fill_diagonal(weights, 0.0)
    return weights


def _weights(sessions: NDArray[np.uint64], positions: NDArray[np.int64]) -> Floats:
    """What each place gets of each other, [m, m]."""
    apart = positions[:, None] - positions[None, :]  # > 0: the column comes before the row
    together = (sessions[:, None] == sessions[None, :]) & (sessions > 0)[:, None]
    fading = FADING ** (np.abs(apart) - 1.0)
    weights: Floats = np.where(apart > 0, PREVIOUS * fading, NEXT * fading)
    weights[~together | (apart == 0)] = 0.0
    return weights
