"""query → legs → union → fusion → collapse → hits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.errors import LanceMemoryError
from lance_memory.record.memory import Memory
from lance_memory.record.results import Hit, SearchResult
from lance_memory.record.rows import to_memories
from lance_memory.search.fusion import ranked
from lance_memory.search.query import Mode, Query
from lance_memory.storage import Snapshot

__all__ = ["run"]

_CANDIDATES = 100
"""From each leg at least as many; recall on LoCoMo rises no more beyond."""

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Legs:
    """What the two legs found: rows, and id → cosine or BM25, each best first."""

    rows: tuple[pa.Table, ...]
    cosines: Mapping[str, float]
    words: Mapping[str, float]

    def successors(self) -> dict[str, str | None]:
        """Id → its successor, of every candidate."""
        columns = [(r["id"].to_pylist(), r["superseded_by"].to_pylist()) for r in self.rows]
        return {i: by for ids, bys in columns for i, by in zip(ids, bys, strict=True)}

    def memories(self, ids: Sequence[str]) -> list[Memory]:
        """The candidates with these ids, in this order."""
        if not ids:
            return []
        rows = pa.concat_tables(self.rows)
        place = {identifier: i for i, identifier in enumerate(rows["id"].to_pylist())}
        return to_memories(rows.take(pa.array([place[identifier] for identifier in ids])))


def run(snapshot: Snapshot, query: Query, *, embed: Embed, moment: datetime) -> SearchResult:
    """The hits of `query` at `snapshot`; filters hold before ranking, so a page is always full.

    Where the embedder fails in hybrid mode, words alone answer, and `degraded` says so.
    """
    degraded: dict[str, str] = {}
    page: list[tuple[str, float]] = []
    legs = _Legs(rows=(), cosines={}, words={})
    if query.k:
        vector = _vector(query, embed, degraded)
        legs, page = _page(snapshot, query, vector, query.filter.predicate(moment))
    hits = tuple(
        Hit(
            memory=memory,
            score=score,
            similarity=legs.cosines.get(identifier),
            words=legs.words.get(identifier),
        )
        for (identifier, score), memory in zip(
            page, legs.memories([identifier for identifier, _ in page]), strict=True
        )
    )
    return SearchResult(version=snapshot.version, mode=query.mode, hits=hits, degraded=degraded)


def _page(
    snapshot: Snapshot, query: Query, vector: NDArray[np.float32] | None, predicate: str | None
) -> tuple[_Legs, list[tuple[str, float]]]:
    """Deeper and deeper into the legs, until the page is full or there is no more."""
    rows = snapshot.count()
    end = min(query.offset + query.k, rows)
    depth = _CANDIDATES + end
    while True:
        legs = _legs(snapshot, query, vector, predicate, depth=depth)
        successors = legs.successors()
        alone = [
            (identifier, score)
            for identifier, score in ranked(legs.cosines, legs.words, candidates=_CANDIDATES)
            if successors[identifier] not in successors
        ]
        if len(alone) >= end or depth >= rows:
            return legs, alone[query.offset : query.offset + query.k]
        depth *= 4


def _legs(
    snapshot: Snapshot,
    query: Query,
    vector: NDArray[np.float32] | None,
    predicate: str | None,
    *,
    depth: int,
) -> _Legs:
    cosines: dict[str, float] = {}
    words: dict[str, float] = {}
    rows: list[pa.Table] = []
    if vector is not None:
        near = snapshot.nearest(vector, k=depth, predicate=predicate)
        cosines = {i: 1.0 - distance for i, distance in _scored(near, "_distance").items()}
        rows.append(near.drop_columns(["_distance"]))
    if query.mode != Mode.VECTOR:
        said = snapshot.matching(query.words, k=depth, predicate=predicate)
        words = _scored(said, "_score")
        rows.append(said.drop_columns(["_score"]))
    return _Legs(rows=tuple(rows), cosines=cosines, words=words)


def _vector(query: Query, embed: Embed, degraded: dict[str, str]) -> NDArray[np.float32] | None:
    if query.mode == Mode.TEXT or query.vector is not None:
        return query.vector if query.mode != Mode.TEXT else None
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
