"""Any callable as an embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lance_memory.embed.protocol import Embedder
from lance_memory.embed.tokens import TokenCount, estimated_tokens, verified_counts
from lance_memory.embed.vectors import to_vectors
from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import text, whole

__all__ = ["EmbedFunction", "FunctionEmbedder", "as_embedder"]

EmbedFunction = Callable[[list[str]], ArrayLike]
"""A list of n texts to numbers of shape [n, d]: an array, or a list of lists."""


class FunctionEmbedder:
    """Calls `function`; converts lists and float64 to float32, and changes no value otherwise.

    Vectors are kept at the length that the function gives them: the package compares by
    cosine, which does not see length. `name` is stored with the table, so choose one that
    says which model made the vectors. `token_count` takes a list of n texts and gives n
    whole numbers, by the model's own tokenizer; without it, counts are estimates.

    Raises InvalidInputError for a function or token_count that cannot be called, an empty name or
    a dimension below 1.
    """

    def __init__(
        self,
        function: EmbedFunction,
        *,
        name: str,
        dimension: int,
        token_count: TokenCount | None = None,
    ) -> None:
        if not callable(function):
            raise InvalidInputError(f"function must be callable; found {type(function).__name__}")
        if token_count is not None and not callable(token_count):
            found = type(token_count).__name__
            raise InvalidInputError(f"token_count must be callable or None; found {found}")
        self._function = function
        self._name = text("name", name)
        self._dimension = whole("dimension", dimension, least=1)
        self._token_count = token_count

    @property
    def name(self) -> str:
        """The name of the model, as given."""
        return self._name

    @property
    def dimension(self) -> int:
        """The length of each vector, as given."""
        return self._dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Float32 [n, d] as the function gave it; [0, d] for no texts, without a call.

        Raises EmbeddingError when it gave another shape or no numbers; what the function
        itself raises passes through unchanged.
        """
        if len(texts) == 0:
            return np.empty((0, self._dimension), dtype=np.float32)
        given = self._function(list(texts))
        return to_vectors(given, name=self._name, count=len(texts), dimension=self._dimension)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """What `token_count` gives, or estimates without it (`estimated_tokens`).

        Raises EmbeddingError when it gave something else than one whole number a text.
        """
        if self._token_count is None:
            return estimated_tokens(texts)
        return verified_counts(self._token_count(list(texts)), name=self._name, count=len(texts))


def as_embedder(value: Embedder | EmbedFunction) -> Embedder:
    """An embedder as it is; a bare callable as a FunctionEmbedder.

    The callable's qualified name becomes the embedder's name ("<lambda>" for a lambda: better
    to name it with FunctionEmbedder), and the dimension is found by embedding one short text.

    Raises InvalidInputError for anything else, such as a class in place of its instance, and
    EmbeddingError when the callable gives no [1, d] numbers for one text.
    """
    if isinstance(value, type):
        raise InvalidInputError(
            f"an embedder or a callable is needed; found the class {value.__qualname__}. "
            "Pass an instance of it."
        )
    if isinstance(value, Embedder):
        return value
    if hasattr(value, "encode") and hasattr(value, "get_sentence_embedding_dimension"):
        raise InvalidInputError(
            f"a {type(value).__name__} is no embedder yet: pass SentenceTransformerEmbedder(its "
            "path), or FunctionEmbedder(its encode, name=..., dimension=...)"
        )
    if not callable(value):
        raise InvalidInputError(
            f"an embedder (name, dimension, embed) or a callable is needed; "
            f"found {type(value).__name__}"
        )
    name = _name_of(value)
    probe = to_vectors(value(["probe"]), name=name, count=1, dimension=None)
    return FunctionEmbedder(value, name=name, dimension=probe.shape[1])


def _name_of(function: EmbedFunction) -> str:
    """Without the enclosing functions: "Model.encode" for a method, "embed" for a local one."""
    name: str = getattr(function, "__qualname__", type(function).__qualname__)
    return name.rpartition("<locals>.")[2]
