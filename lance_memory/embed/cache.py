"""Remember the vectors of the texts seen last."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lance_memory.embed.protocol import Embedder, QueryEmbedder, checked
from lance_memory.embed.tokens import count_tokens
from lance_memory.record.arguments import whole

__all__ = ["CachedEmbedder"]


class CachedEmbedder:
    """Asks `embedder` only for texts that are not among the `capacity` used last.

    Same name, dimension, vectors and token counts. A vector of d numbers costs 4·d bytes and
    about 300 more, whatever the length of its text: 10,000 of MiniLM's need about 18 MB.

    Safe to share between threads. The inner embedder is called outside the lock, so threads
    embed at the same time, and two that miss the same text at once both ask for it.

    Raises InvalidInputError for a capacity below 1.
    """

    def __init__(self, embedder: Embedder, *, capacity: int = 10_000) -> None:
        self._embedder = embedder
        self._capacity = whole("capacity", capacity, least=1)
        self._vectors: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def inner(self) -> Embedder:
        """The embedder that is asked for what is not remembered."""
        return self._embedder

    @property
    def name(self) -> str:
        """The inner embedder's."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """The inner embedder's."""
        return self._embedder.dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A new float32 array [n, d]; all misses go to the inner embedder in one call.

        What that gives is verified as by `checked` before it is remembered: its errors count
        positions among the misses. A failed call remembers nothing.
        """
        return self._answer(texts, queries=False)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `embed`, by the inner embedder's own way for queries where it has one.

        A text remembered as a query is then not known as a document, nor the other way round.
        """
        return self._answer(texts, queries=isinstance(self._embedder, QueryEmbedder))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The inner embedder's counts, or estimates, as `count_tokens` says; not remembered."""
        return count_tokens(self._embedder, texts)

    def _answer(self, texts: Sequence[str], *, queries: bool) -> NDArray[np.float32]:
        keys = [_key(text, queries=queries) for text in texts]
        found = self._recall(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            rows = checked(self._embedder, list(missing.values()), queries=queries)
            # Copies: a view would keep its whole batch alive for as long as itself.
            fresh = {key: row.copy() for key, row in zip(missing, rows, strict=True)}
            self._remember(fresh)
            found |= fresh
        if not keys:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.stack([found[key] for key in keys])

    def _recall(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        found: dict[bytes, NDArray[np.float32]] = {}
        with self._lock:
            for key in keys:
                vector = self._vectors.get(key)
                if vector is not None:
                    self._vectors.move_to_end(key)
                    found[key] = vector
        return found

    def _remember(self, fresh: Mapping[bytes, NDArray[np.float32]]) -> None:
        with self._lock:
            for key, vector in fresh.items():
                self._vectors[key] = vector
                self._vectors.move_to_end(key)
            while len(self._vectors) > self._capacity:
                self._vectors.popitem(last=False)


def _key(text: str, *, queries: bool) -> bytes:
    """128 bits of blake2b; surrogates pass, so that any str has a key of its own."""
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded, digest_size=16, person=b"query" * queries).digest()
