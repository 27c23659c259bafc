"""Anything in LanceDB's embedding registry: OpenAI, Cohere, Ollama, Bedrock, one's own."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from lance_memory.embed.vectors import to_vectors
from lance_memory.errors import EmbeddingError, InvalidInputError
from lance_memory.extras import require
from lance_memory.wording import counted

__all__ = ["LanceDBEmbedder", "RegisteredFunction"]


class RegisteredFunction(Protocol):
    """What is used of lancedb.embeddings.EmbeddingFunction (lancedb 0.40)."""

    def compute_source_embeddings(self, texts: list[str]) -> Sequence[Any]:
        """A vector a text, or None for a text that it could not embed."""

    def compute_query_embeddings(self, query: str) -> Sequence[Any]:
        """One vector, in a list."""

    def ndims(self) -> int:
        """The length of the vectors."""


class LanceDBEmbedder:
    """An embedding function of LanceDB's registry as an embedder.

    Documents go through `compute_source_embeddings`, all texts in one call; queries through
    `compute_query_embeddings`, one text a call. LanceDB's own way of trying again (it waits for
    minutes, on any error) is not used; what the function raises passes through unchanged. A
    None in place of a vector, which is how LanceDB's functions report many errors, is an error.

    `name` is stored with the table: by default the function's own `name`, which is the model's
    in most of them, else the name of its class.

    Raises InvalidInputError for something that is no embedding function of texts.
    """

    def __init__(self, function: RegisteredFunction, *, name: str | None = None) -> None:
        needed = ("compute_source_embeddings", "compute_query_embeddings", "ndims")
        lacking = [method for method in needed if not callable(getattr(function, method, None))]
        if isinstance(function, type) or lacking:
            found = function.__name__ if isinstance(function, type) else type(function).__name__
            raise InvalidInputError(
                "an instance of a LanceDB embedding function is needed, as "
                f"get_registry().get('openai').create() gives; found {found}"
            )
        self._function = function
        self._name = name or _name_of(function)
        self._dimension: int | None = None

    @classmethod
    def from_registry(cls, key: str, /, **options: Any) -> Self:
        """What `lancedb.embeddings.get_registry().get(key).create(**options)` makes.

        `key` is the registry's, such as "ollama"; all options are the function's, its `name`
        among them. Importing lancedb takes about 3 s. What `create` raises passes through
        unchanged; it refuses keys of services in the clear (see `set_var` of the registry).

        Raises InvalidInputError for a key that is not registered.
        """
        registry = require("lancedb.embeddings").get_registry()
        try:
            function = registry.get(key)
        except KeyError as error:
            raise InvalidInputError(
                f"LanceDB's registry has no embedding function {key!r}; look at its "
                "documentation, or register your own before"
            ) from error
        return cls(function.create(**options))

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._name

    @property
    def dimension(self) -> int:
        """What `ndims` says, asked once: some functions load their model to know it.

        Raises EmbeddingError when that is no positive whole number.
        """
        if self._dimension is None:
            self._dimension = _dimension_of(self._function, name=self._name)
        return self._dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Float32 [n, d] as the function gave it, row i for text i; [0, d] without a call.

        Raises EmbeddingError when it gave None for a text, another shape or no numbers.
        """
        if len(texts) == 0:
            return np.empty((0, self.dimension), dtype=np.float32)
        return self._verified(self._function.compute_source_embeddings(list(texts)), len(texts))

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `embed`, by the function's own way for queries."""
        if len(texts) == 0:
            return np.empty((0, self.dimension), dtype=np.float32)
        rows = [self._verified(self._function.compute_query_embeddings(text), 1) for text in texts]
        return np.concatenate(rows)

    def _verified(self, given: Sequence[Any] | None, count: int) -> NDArray[np.float32]:
        rows = () if given is None else given
        absent = [position for position, vector in enumerate(rows) if vector is None]
        if absent:
            raise EmbeddingError(
                f"embedder {self._name!r} was given {counted(count, 'text')} and gave None for "
                f"those at the positions {absent[:10]}; its log may say why. An empty text, a "
                "wrong key and a limit of the service are usual reasons."
            )
        return to_vectors(rows, name=self._name, count=count, dimension=self.dimension)


def _name_of(function: RegisteredFunction) -> str:
    own = getattr(function, "name", None)
    return own if isinstance(own, str) and own.strip() else type(function).__name__


def _dimension_of(function: RegisteredFunction, *, name: str) -> int:
    said = function.ndims()
    try:
        dimension = index(said)
    except TypeError:
        dimension = 0
    if dimension < 1:
        raise EmbeddingError(
            f"embedder {name!r} must say how long its vectors are; ndims() gave {said!r}"
        )
    return dimension
