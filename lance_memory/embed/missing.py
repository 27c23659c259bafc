"""Stands in for the embedder of a store that was opened without the one it was made with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from lance_memory.errors import EmbeddingError
from lance_memory.wording import counted

__all__ = ["MissingEmbedder"]


class MissingEmbedder:
    """Knows the model's name and dimension, and says which embedder to pass when it is used."""

    def __init__(self, *, name: str, dimension: int) -> None:
        self.name = name
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> NoReturn:
        """Never embeds.

        Raises:
            EmbeddingError: always.
        """
        raise EmbeddingError(
            f"the store's vectors are from the model {self.name!r} ({self.dimension} numbers), "
            f"which is not the default; to embed {counted(len(texts), 'text')}, open the store "
            "with embedder=... of that model (lmem: --embedder NAME, $LMEM_EMBEDDER), or pass "
            "vectors"
        )
