"""A second look at the first candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from lance_memory.errors import InvalidInputError
from lance_memory.record.results import Hit
from lance_memory.wording import counted

__all__ = ["LanceDBReranker", "Reranker", "reranked", "scaled"]


class Reranker(Protocol):
    """Gives each of the first hits a number; the higher, the better. Any scale."""

    def rerank(self, query: str, hits: Sequence[Hit]) -> ArrayLike:
        """One finite number for each hit, [n], in their order.

        `query` lacks the names of known actors, which stand in the hits' column and not in what
        they say; empty where only a vector was given.
        """
        ...


class LanceDBReranker:
    """Any of LanceDB's rerankers: `LanceDBReranker(lancedb.rerankers.RRFReranker())`.

    It is handed both legs as LanceDB's hybrid search would hand them, with the texts in the column
    `text` and also `content`, so one that reads a column works as it is made. A memory that it
    leaves out comes last.
    """

    def __init__(self, reranker: Any) -> None:
        if not callable(getattr(reranker, "rerank_hybrid", None)):
            raise InvalidInputError(
                f"{type(reranker).__name__} is none of LanceDB's rerankers: it has no rerank_hybrid"
            )
        self._reranker = reranker

    def rerank(self, query: str, hits: Sequence[Hit]) -> NDArray[np.float64]:
        """LanceDB's `_relevance_score` of each hit, [n]."""
        near = [i for i, hit in enumerate(hits) if hit.similarity is not None]
        said = [i for i, hit in enumerate(hits) if hit.words is not None]
        near.sort(key=lambda i: -(hits[i].similarity or 0.0))
        said.sort(key=lambda i: -(hits[i].words or 0.0))
        given = self._reranker.rerank_hybrid(
            query,
            _leg(hits, near, "_distance", [1.0 - (hits[i].similarity or 0.0) for i in near]),
            _leg(hits, said, "_score", [hits[i].words or 0.0 for i in said]),
        )
        scores = dict(
            zip(given["_rowid"].to_pylist(), given["_relevance_score"].to_pylist(), strict=True)
        )
        least = min(scores.values(), default=0.0)
        return np.array([scores.get(i, least) for i in range(len(hits))], dtype=np.float64)


def _leg(hits: Sequence[Hit], chosen: list[int], column: str, values: list[float]) -> pa.Table:
    contents = [hits[i].memory.content for i in chosen]
    return pa.table(
        {
            "text": pa.array(contents, pa.string()),
            "content": pa.array(contents, pa.string()),
            column: pa.array(values, pa.float32()),
            "_rowid": pa.array(chosen, pa.uint64()),
        }
    )


def reranked(reranker: Reranker, query: str, hits: Sequence[Hit]) -> NDArray[np.float64]:
    """What `reranker` gives, checked.

    Raises:
        InvalidInputError: it gave something else than one finite number for each hit.
    """
    given = reranker.rerank(query, hits)
    numbers = _numbers(given)
    if numbers is None or numbers.shape != (len(hits),) or not np.isfinite(numbers).all():
        shape = "" if numbers is None else f" of the shape {list(numbers.shape)}"
        raise InvalidInputError(
            f"the reranker {type(reranker).__name__} was given {counted(len(hits), 'hit')} and has "
            f"to return as many finite numbers; it returned {type(given).__name__}{shape}: "
            f"{given!r:.80}"
        )
    return numbers


def _numbers(given: ArrayLike) -> NDArray[np.float64] | None:
    """As an array; None where something in it is no number, or it is none."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):  # ragged, or on a device
        return None
    return array.astype(np.float64) if array.dtype.kind in "biuf" else None


def scaled(given: NDArray[np.float64]) -> NDArray[np.float64]:
    """So that the best has 1 and the worst 0; 1 for all where none is better."""
    halves = given / 2  # the difference of two large numbers may be none that floats have
    low, high = halves.min(), halves.max()
    shares: NDArray[np.float64] = (
        (halves - low) / (high - low) if high > low else np.ones(given.shape)
    )
    return shares
