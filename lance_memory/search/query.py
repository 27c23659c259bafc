"""What is asked of a search, checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lance_memory.errors import InvalidInputError
from lance_memory.record.filters import Filter
from lance_memory.record.values import text_value

__all__ = ["Mode", "Query"]


_LONG = 100
_MOST = 1_000


class Mode(StrEnum):
    """Which legs answer: nearness of vectors, words, or the union of both."""

    VECTOR = "vector"
    TEXT = "text"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One search. `vector` is a unit vector, float32 [d]; None: embed `text` where it is needed."""

    text: str
    vector: NDArray[np.float32] | None
    mode: Mode
    k: int
    offset: int
    filter: Filter

    @property
    def words(self) -> str:
        """The text for the words leg.

        Of a long one each word counts once, and only the first thousand: the engine's time grows
        with every repetition.
        """
        words = self.text.split()
        if len(words) <= _LONG:
            return self.text
        return " ".join(list(dict.fromkeys(words))[:_MOST])

    @classmethod
    def of(
        cls,
        text: str | None,
        *,
        vector: ArrayLike | None,
        mode: Mode | str,
        k: int,
        offset: int,
        where: Filter,
        dimension: int,
    ) -> Query:
        """Check the arguments.

        Raises:
            InvalidInputError: nothing is asked, k or offset is negative, the mode is unknown or
                lacks what it needs, the vector has another length, is not finite or all zero.
        """
        if text is not None:
            check_text(text)
        if text is None and vector is None:
            raise InvalidInputError("a search needs a text or a vector")
        if k < 0 or offset < 0:
            raise InvalidInputError(f"k={k}, offset={offset}; neither can be negative")
        if mode not in list(Mode):
            raise InvalidInputError(f"mode={mode!r}; there are: {', '.join(Mode)}")
        if text is None:
            if mode == Mode.TEXT:
                raise InvalidInputError("mode 'text' needs a query text; only a vector was given")
            mode = Mode.VECTOR
        return cls(
            text=text or "",
            vector=None if vector is None else checked_vector(vector, dimension),
            mode=Mode(mode),
            k=k,
            offset=offset,
            filter=where,
        )


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
