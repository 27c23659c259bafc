"""What is asked of a search, checked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import instance, one_of, whole
from lance_memory.record.filters import Filter
from lance_memory.record.memory import State
from lance_memory.record.values import text_value
from lance_memory.search.ranking import Ranking
from lance_memory.wording import counted

__all__ = ["Mode", "Page", "Query", "brief"]

_LONG = 100
_MOST = 1_000
_MOST_CHARACTERS = 8_000

_WORDS = re.compile(r"(?:\w|[^\x00-\x7f\u2000-\u206f\u3000-\u303f\uff00-\uff0f\s])+(?:['’.]\w+)*")
"""With accents and vowel signs, which Python counts to no word; `it's` and `3.14` are one each."""


class Mode(StrEnum):
    """Which legs answer: nearness of vectors, words, or the union of both."""

    VECTOR = "vector"
    TEXT = "text"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Which hits to give: filtered, ranked, from the `offset`-th on at most `k`."""

    k: int
    offset: int
    filter: Filter
    ranking: Ranking

    @classmethod
    def of(cls, *, k: int, offset: int, where: Filter, ranking: Ranking | None) -> Page:
        """Check the arguments.

        Raises:
            InvalidInputError: k or offset is negative or no whole number, or `ranking` is something
                else.
        """
        if ranking is not None:
            instance("ranking", ranking, Ranking, "a Ranking")
        return cls(
            k=whole("k", k, least=0),
            offset=whole("offset", offset, least=0),
            filter=where,
            ranking=ranking or Ranking(),
        )

    @property
    def end(self) -> int:
        return self.offset + self.k

    @property
    def reach(self) -> int:
        """How much of the order has to be known; a reranker sees the same for every page."""
        ranking = self.ranking
        return self.end if ranking.reranker is None else max(self.end, ranking.rerank_depth)

    @property
    def successors_too(self) -> bool:
        """Whether the filter lets superseded memories pass, which may meet their successors."""
        states = self.filter.states
        return states == "any" or (not isinstance(states, str) and State.SUPERSEDED in states)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question. `vector` is a unit vector, float32 [d]; None: embed `text` where needed."""

    text: str
    vector: NDArray[np.float32] | None
    mode: Mode

    @classmethod
    def of(
        cls, text: str | None, *, vector: ArrayLike | None, mode: Mode | str, dimension: int
    ) -> Query:
        """Check the arguments.

        Raises:
            InvalidInputError: nothing is asked, the mode is unknown or lacks what it needs, the
                vector has another length, is not finite or all zero.
        """
        if text is not None:
            check_text(text)
        if text is None and vector is None:
            raise InvalidInputError("a search needs a text or a vector")
        one_of("mode", mode, Mode)
        if text is None:
            if mode == Mode.TEXT:
                raise InvalidInputError("mode 'text' needs a query text; only a vector was given")
            mode = Mode.VECTOR
        return cls(
            text=text or "",
            vector=None if vector is None else checked_vector(vector, dimension),
            mode=Mode(mode),
        )

    @classmethod
    def many(
        cls,
        texts: Iterable[str] | None,
        *,
        vectors: ArrayLike | None,
        mode: Mode | str,
        dimension: int,
    ) -> list[Query]:
        """Of texts, of vectors [n, d], or of both in pairs.

        Raises:
            InvalidInputError: as for `of`, or there are not as many vectors as texts.
        """
        if texts is None and vectors is None:
            raise InvalidInputError("a search needs texts or vectors")
        asked = None if texts is None else _texts(texts)
        given = None if vectors is None else _vectors(vectors)
        if asked is not None and given is not None and len(given) != len(asked):
            told = f"{counted(len(asked), 'query', 'queries')}, but {counted(len(given), 'vector')}"
            raise InvalidInputError(told)
        return [
            cls.of(text, vector=vector, mode=mode, dimension=dimension)
            for text, vector in zip_longest(asked or (), given or ())
        ]


def _texts(texts: Any) -> list[Any]:
    if isinstance(texts, str):
        raise InvalidInputError("queries is one text; for a single question call search()")
    if not isinstance(texts, Iterable):
        raise InvalidInputError(f"queries={texts!r}; it takes a list of texts")
    return list(texts)


def _vectors(vectors: ArrayLike) -> list[NDArray[Any]]:
    try:
        array = np.asarray(vectors)
    except ValueError as error:
        raise InvalidInputError(f"vectors are of different lengths: {error}") from error
    if not array.ndim:
        raise InvalidInputError(f"vectors={vectors!r}; it takes as many vectors as questions")
    return list(array)


def brief(text: str) -> str:
    """`text` for the words leg.

    Of a long one each word counts once, and only the first thousand: the engine's time grows with
    every repetition. Scripts without spaces are cut after 8,000 characters.
    """
    words = _WORDS.findall(text)
    if len(words) > _LONG:
        text = " ".join(list(dict.fromkeys(words))[:_MOST])
    return text[:_MOST_CHARACTERS]


def checked_vector(vector: ArrayLike, dimension: int) -> NDArray[np.float32]:
    """The query vector as a unit vector, float32 [d].

    Raises:
        InvalidInputError: wrong length, not finite, or all zero.
    """
    try:
        array = np.asarray(vector, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"the query vector is no sequence of numbers: {error}") from error
    if array.shape != (dimension,):
        raise InvalidInputError(
            f"the query vector has shape {list(array.shape)}; the store's have {dimension} numbers"
        )
    length = np.abs(array).max()
    if not 0 < length <= np.finfo(np.float32).max:
        raise InvalidInputError(
            "the query vector has to be finite and not all zero; a zero vector has no direction"
        )
    array = array / length  # first, so that squares neither overflow nor vanish
    unit: NDArray[np.float32] = (array / np.linalg.norm(array)).astype(np.float32)
    return unit


def check_text(text: object) -> None:
    """Refuse a query that is no text, blank, or no Unicode."""
    if not text_value("the query", text).strip():
        raise InvalidInputError("the query is blank; ask something, or use list()")
