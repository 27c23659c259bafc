"""The answer of an embeddings endpoint, as vectors in the order of the texts."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_memory.embed.vectors import to_vectors
from lance_memory.errors import EmbeddingError
from lance_memory.service import form_of
from lance_memory.wording import counted

__all__ = ["vectors_of"]


def vectors_of(answer: Any, *, name: str, count: int, dimension: int) -> NDArray[np.float32]:
    """Float32 [count, dimension] of `{"data": [{"index": i, "embedding": ...}, ...]}`.

    Sorted by index: an endpoint may answer in another order. An embedding is a list of numbers,
    or the base64 of float32 in little-endian order.

    Raises EmbeddingError when the answer has another form, not one vector a text, or vectors
    of another length.
    """
    asked = f"embedder {name!r} was given {counted(count, 'text')}"
    try:
        items = [(int(item.get("index", 0)), item["embedding"]) for item in answer["data"]]
        # An absent index counts as 0: some servers leave out what is zero.
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise EmbeddingError(
            f'{asked} and must answer {{"data": [{{"index": 0, "embedding": [...]}}, ...]}}; '
            f"found {form_of(answer)}"
        ) from error
    if sorted(position for position, _ in items) != list(range(count)):
        raise EmbeddingError(
            f"{asked} and must give one vector for each; it gave {len(items)}, for the positions "
            f"{sorted(position for position, _ in items)[:10]}"
        )
    ordered = dict(items)
    given: Any = [_numbers(ordered[position], asked) for position in range(count)]
    return to_vectors(given, name=name, count=count, dimension=dimension)


def _numbers(embedding: Any, asked: str) -> Any:
    if not isinstance(embedding, str):
        return embedding
    try:
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    except ValueError as error:
        raise EmbeddingError(f"{asked}; a vector is no base64 of float32: {error}") from error
