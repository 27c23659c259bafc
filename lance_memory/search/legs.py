"""The two legs of many questions over one version, filtered before they rank."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lance_memory.index.exact import nearest_many
from lance_memory.search.candidates import Leg
from lance_memory.search.question import Question
from lance_memory.storage import Snapshot

__all__ = ["Vectors", "legs"]

Vectors = Sequence[NDArray[np.float32] | None]

_SPARE = 6
_MOST_TIES = 4_000
"""Of more rows with one score than this, which are shown is left to the engine."""

_GROWTH = 4

_THREADS = 4
"""Legs that are asked at once; the engine runs outside of Python's lock."""


def legs(
    snapshot: Snapshot,
    questions: Sequence[Question],
    vectors: Vectors,
    *,
    depth: int,
    predicate: str | None,
) -> list[tuple[Leg, Leg]]:
    """For each question the best `depth` rows by vector and by words; empty where not asked."""

    def near() -> dict[int, Leg]:
        return _near(snapshot, vectors, depth=depth, predicate=predicate)

    def said(words: str) -> Leg:
        return _said(snapshot, words, depth=depth, predicate=predicate)

    words = {place: question.words for place, question in enumerate(questions) if question.words}
    if not words:
        return _paired(near(), {}, len(questions))
    pool = _pool()
    asked: dict[int, Future[Leg]] = {p: pool.submit(said, text) for p, text in words.items()}
    try:
        by_vector = near()
    except BaseException:
        for leg in asked.values():
            leg.cancel()  # what waits in the pool would hold up other searches
        raise
    by_words = {place: leg.result() for place, leg in asked.items()}
    return _paired(by_vector, by_words, len(questions))


@cache
def _pool() -> ThreadPoolExecutor:
    """One for the process: to start a thread takes as long as some legs."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="lance-memory-words")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a fork has the pool, not its threads


def _paired(near: Mapping[int, Leg], said: Mapping[int, Leg], size: int) -> list[tuple[Leg, Leg]]:
    none = Leg.empty()
    return [(near.get(place, none), said.get(place, none)) for place in range(size)]


def _near(
    snapshot: Snapshot, vectors: Vectors, *, depth: int, predicate: str | None
) -> dict[int, Leg]:
    """Place of the question → its best `depth` rows by vector."""
    given = {place: vector for place, vector in enumerate(vectors) if vector is not None}
    if not given:
        return {}
    if len(given) == 1:
        [(place, vector)] = given.items()
        return {place: Leg.near(snapshot.nearest(vector, k=depth, predicate=predicate))}
    stacked = np.stack(list(given.values()))
    tables = nearest_many(snapshot, stacked, k=depth, predicate=predicate)
    return {place: Leg.near(rows) for place, rows in zip(given, tables, strict=True)}


def _said(snapshot: Snapshot, words: str, *, depth: int, predicate: str | None) -> Leg:
    """The best `depth` rows by words; those with one score in the order of their addresses.

    Which of several equal rows the engine gives changes with how many are asked for. So it is
    asked for more, until all that tie with the last one are there: else a page could repeat what
    another page had.
    """
    asked = depth + _SPARE
    while True:
        leg = Leg.said(snapshot.matching(words, k=asked, predicate=predicate))
        cut = len(leg.scores) == asked and leg.scores[depth - 1] == leg.scores[-1]
        if not cut or asked >= depth + _MOST_TIES:
            return leg.first(depth)
        asked = min(asked * _GROWTH, depth + _MOST_TIES)
