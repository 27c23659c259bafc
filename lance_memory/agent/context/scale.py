"""Hits of one search on the scale of another. Pure.

A search says how good a hit is beside its own best one, which has 1. Two searches by one question
have two such scales: what others share would have a 1 of its own, whatever it is about. Both take
the same legs, so a cosine and a BM25 mean the same in both, and what they are worth is read off the
first one's hits: of its vector leg a straight line through its nearest and its farthest hit, of its
words leg a constant (see `search.fusion`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from lance_memory.record.results import Hit, ScoreParts
from lance_memory.search.fusion import NARROWEST

__all__ = ["on_scale_of"]

Worth: TypeAlias = Callable[[Hit], float]
"""What a leg gives a hit on the other scale."""


def on_scale_of(own: Sequence[Hit], others: Sequence[Hit]) -> list[Hit]:
    """The other hits with the scores 0..1 that they would have had among one's own, in their order.

    One's own keep theirs, so the best of the others has 1 at most. Where one's own search has found
    nothing, or a leg of it, there is nothing to compare with, and the others have what they had.

    Args:
        own: of one search, whose best has score 1.
        others: of another search by the same question, in the same mode.
    """
    best = max((hit.parts.total for hit in own), default=0.0)
    if best <= 0 or not others:
        return list(others)
    vector, words = _vector(own), _words(own)
    worth = [replace(hit.parts, vector=vector(hit), words=words(hit)) for hit in others]
    before, now = (
        sum(one.vector + one.words for one in parts) for parts in (_parts(others), worth)
    )
    share = now / before if before > 0 else 1.0  # neighbours gave a share of what they have
    made = [replace(one, neighbours=share * one.neighbours) for one in worth]
    return [
        replace(hit, score=min(1.0, parts.total / best), parts=parts)
        for hit, parts in zip(others, made, strict=True)
    ]


def _parts(hits: Sequence[Hit]) -> list[ScoreParts]:
    return [hit.parts for hit in hits]


def _vector(own: Sequence[Hit]) -> Worth:
    """Of the vector leg."""
    seen = [(hit.similarity, hit.parts.vector) for hit in own if hit.similarity is not None]
    seen = [pair for pair in seen if pair[1] > 0]  # those beyond the head have no parts
    if not seen:
        return lambda hit: hit.parts.vector
    (low, least), (high, most) = min(seen), max(seen)
    slope = (most - least) / (high - low) if high > low else most / NARROWEST
    return lambda hit: (
        0.0 if hit.similarity is None else max(0.0, most - slope * (high - hit.similarity))
    )


def _words(own: Sequence[Hit]) -> Worth:
    """Of the words leg."""
    rate = next((hit.parts.words / hit.words for hit in own if hit.words and hit.parts.words), 0.0)
    return lambda hit: rate * (hit.words or 0.0) if rate else hit.parts.words
