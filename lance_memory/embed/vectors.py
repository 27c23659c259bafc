"""What an embedder gave, as float32 of the shape that was asked for."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lance_memory.errors import EmbeddingError
from lance_memory.wording import counted

__all__ = ["to_vectors"]


def to_vectors(
    given: ArrayLike, *, name: str, count: int, dimension: int | None
) -> NDArray[np.float32]:
    """`given` as float32 [count, dimension]; any width from 1 when `dimension` is None.

    Values are not looked at: those beyond float32 become infinite here and are refused by
    `checked`. May share memory with `given`.

    Raises EmbeddingError when it holds something else than numbers, or has another shape.
    """
    asked = f"embedder {name!r} was given {counted(count, 'text')} and must return"
    width = "d" if dimension is None else str(dimension)
    try:
        with np.errstate(over="ignore"):
            vectors = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError) as error:  # ragged rows, None, a coroutine, a GPU tensor
        raise EmbeddingError(
            f"{asked} numbers of shape [{count}, {width}]; "
            f"it returned {type(given).__name__}, which numpy cannot read as such: {error}"
        ) from error
    fits = vectors.ndim == 2 and vectors.shape[0] == count and vectors.shape[1] > 0
    if not fits or dimension not in (None, vectors.shape[1]):
        raise EmbeddingError(
            f"{asked} the shape [{count}, {width}]; it returned {list(vectors.shape)}"
        )
    return vectors
