"""What an embedder is, and the one door through which the package calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lance_memory.embed.text import refuse_other_than_texts
from lance_memory.embed.vectors import to_vectors
from lance_memory.errors import EmbeddingError
from lance_memory.wording import counted

__all__ = ["Embedder", "QueryEmbedder", "checked"]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of a fixed length that are compared by cosine.

    Equal texts must give equal vectors, whatever they are embedded together with.
    """

    @property
    def name(self) -> str:
        """The model's name. It is stored with the table: same name, comparable vectors."""

    @property
    def dimension(self) -> int:
        """The length d of each vector."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Float32 [n, d], row i for text i, of unit length and never zero.

        The package compares by cosine, so another length than 1 does no harm to it; zero
        has no direction, and `checked` refuses it.
        """


@runtime_checkable
class QueryEmbedder(Protocol):
    """What an embedder may have besides: another way to embed what is searched *with*.

    Some models were trained with a mark before questions and another before documents (e5,
    Qwen3-Embedding, Cohere's). An embedder without it embeds a query as any other text.
    """

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `embed`: float32 [n, d], comparable with the vectors that `embed` gives."""


def checked(
    embedder: Embedder, texts: Sequence[str], *, queries: bool = False
) -> NDArray[np.float32]:
    """Embed `texts` in one call, each distinct text once, and verify what comes back.

    Returns a new float32 array [n, d] in the order of `texts`; [0, d] for none, without a
    call. `queries` says that they are searched with, which matters to a QueryEmbedder only.
    What the embedder itself raises passes through unchanged.

    Raises InvalidInputError when `texts` is one string or holds something else than strings,
    and EmbeddingError when the number of vectors, their dimension or a value is wrong.
    """
    refuse_other_than_texts(texts)
    if len(texts) == 0:
        return np.empty((0, embedder.dimension), dtype=np.float32)
    distinct = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    if queries and isinstance(embedder, QueryEmbedder):
        given = embedder.embed_queries(list(distinct))
    else:
        given = embedder.embed(list(distinct))
    vectors = to_vectors(
        given, name=embedder.name, count=len(distinct), dimension=embedder.dimension
    )
    rows = [distinct[text] for text in texts]
    _refuse_without_direction(vectors, rows=rows, name=embedder.name)
    return vectors[rows]


def _refuse_without_direction(
    vectors: NDArray[np.float32], *, rows: Sequence[int], name: str
) -> None:
    """Refuse a vector whose length, as float32 computes it, is zero, infinite or no number."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", vectors, vectors)
    bad = ~(np.isfinite(squares) & (squares > 0))
    if bad.any():
        position = next(position for position, row in enumerate(rows) if bad[row])
        raise EmbeddingError(
            f"embedder {name!r} was given {counted(len(rows), 'text')} and must return vectors "
            f"that have a direction; the vector of the text at position {position} has the squared "
            f"length {squares[rows[position]]}"
        )
