"""The vectors of texts, from a user's embedder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lance_memory.embed import Embedder, checked
from lance_memory.errors import (
    EmbeddingError,
    LanceMemoryError,
)
from lance_memory.wording import counted

__all__ = ["embedded_by"]


def embedded_by(
    embedder: Embedder, texts: Sequence[str], *, queries: bool = False
) -> NDArray[np.float32]:
    """The vectors of texts, verified; see `checked`.

    Raises:
        EmbeddingError: the embedder failed, in whatever way.
    """
    try:
        return checked(embedder, texts, queries=queries)
    except LanceMemoryError:
        raise
    except Exception as error:  # an embedder is the user's code: it may raise anything
        raise EmbeddingError(
            f"the embedder {embedder.name!r} failed on {counted(len(texts), 'text')}: {error}"
        ) from error
