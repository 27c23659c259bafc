"""query → legs → union → fusion → collapse → hits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.errors import LanceMemoryError
from lance_memory.record.memory import Memory
from lance_memory.record.results import Hit, SearchResult
from lance_memory.record.rows import to_memories
from lance_memory.search.fusion import fused
from lance_memory.search.query import Mode, Query
from lance_memory.storage import Snapshot

__all__ = ["run"]

_CANDIDATES = 100
"""From each leg at least as many; recall on LoCoMo rises no more beyond."""

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


def run(snapshot: Snapshot, query: Query, *, embed: Embed, moment: datetime) -> SearchResult:
    """The hits of `query` at `snapshot`; filters hold before ranking, so a page is always full.

    Where the embedder fails in hybrid mode, words alone answer, and `degraded` says so.
    """
    degraded: dict[str, str] = {}
    depth = max(_CANDIDATES, 2 * (query.k + query.offset))
    predicate = query.filter.predicate(moment)
    legs: list[pa.Table] = []
    cosines: dict[str, float] = {}
    words: dict[str, float] = {}
    if query.k and query.mode != Mode.TEXT:
        vector = _vector(query, embed, degraded)
        if vector is not None:
            near = snapshot.nearest(vector, k=depth, predicate=predicate)
            cosines = {
                identifier: 1.0 - distance
                for identifier, distance in _scored(near, "_distance").items()
            }
            legs.append(near.drop_columns(["_distance"]))
    if query.k and query.mode != Mode.VECTOR:
        said = snapshot.matching(query.text, k=depth, predicate=predicate)
        words = _scored(said, "_score")
        legs.append(said.drop_columns(["_score"]))
    ranked = _collapsed(fused(cosines, words), legs)
    page = ranked[query.offset : query.offset + query.k]
    memories = _memories(legs, [identifier for identifier, _ in page])
    hits = tuple(
        Hit(
            memory=memory,
            score=score,
            similarity=cosines.get(identifier),
            words=words.get(identifier),
        )
        for (identifier, score), memory in zip(page, memories, strict=True)
    )
    return SearchResult(version=snapshot.version, mode=query.mode, hits=hits, degraded=degraded)


def _vector(query: Query, embed: Embed, degraded: dict[str, str]) -> NDArray[np.float32] | None:
    if query.vector is not None:
        return query.vector
    try:
        vector: NDArray[np.float32] = embed([query.text])[0]
    except LanceMemoryError as error:
        if query.mode == Mode.VECTOR:
            raise
        degraded["vector"] = str(error)
        return None
    return vector


def _scored(rows: pa.Table, column: str) -> dict[str, float]:
    return dict(zip(rows["id"].to_pylist(), rows[column].to_pylist(), strict=True))


def _collapsed(
    ranked: list[tuple[str, float]], legs: Sequence[pa.Table]
) -> list[tuple[str, float]]:
    """Without the sources whose successor is a candidate too."""
    successor: dict[str, str | None] = {}
    for rows in legs:
        columns = rows["id"].to_pylist(), rows["superseded_by"].to_pylist()
        successor.update(zip(*columns, strict=True))
    return [(i, score) for i, score in ranked if successor.get(i) not in successor]


def _memories(legs: Sequence[pa.Table], ids: Sequence[str]) -> list[Memory]:
    if not ids:
        return []
    rows = pa.concat_tables(legs)
    place = {identifier: i for i, identifier in enumerate(rows["id"].to_pylist())}
    return to_memories(rows.take(pa.array([place[identifier] for identifier in ids])))
