"""The vectors of candidates, made in one go before the commit; without them words still find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_memory.errors import EmbeddingError
from lance_memory.ingest.candidate import Candidate
from lance_memory.ingest.steps import Embed
from lance_memory.wording import counted

__all__ = ["Vectors", "vectors_of"]

_CHUNK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """One for each candidate.

    Attributes:
        values: float32 [n, d]; zeros where there is none.
        valid: which there are, bool [n].
        missing: that the embedder failed, without its words, which may quote; empty: it did not.
    """

    values: NDArray[np.float32]
    valid: NDArray[np.bool_]
    missing: str = ""


def vectors_of(
    candidates: Sequence[Candidate],
    embed: Embed,
    *,
    dimension: int,
    progress: Callable[[int, int], object] | None = None,
) -> Vectors:
    """Embed the contents, the same one once. Where the embedder fails, the rest has no vector.

    Args:
        candidates: whose contents.
        embed: texts → float32 [n, d].
        dimension: d.
        progress: called with (texts embedded, in all).
    """
    texts = list(dict.fromkeys(candidate.content for candidate in candidates))
    made = np.zeros((len(texts), dimension), np.float32)
    done, missing = 0, ""
    try:
        for start in range(0, len(texts), _CHUNK):
            chunk = texts[start : start + _CHUNK]
            made[start : start + len(chunk)] = embed(chunk)
            done = start + len(chunk)
            if progress is not None:
                progress(done, len(texts))
    except EmbeddingError:
        left = len(texts) - done
        missing = f"embed: the embedder failed; {counted(left, 'text')} without a vector for now"
    place = {text: i for i, text in enumerate(texts)}
    where = np.array([place[candidate.content] for candidate in candidates], np.int64)
    values: NDArray[np.float32] = made[where]
    return Vectors(values=values, valid=where < done, missing=missing)
