"""Queries and documents apart, for models that were trained so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from lance_memory.embed import CachedEmbedder, MiniLM, QueryEmbedder, checked
from lance_memory.errors import EmbeddingError


class Marked:
    """A real, tiny embedder whose first number says how it was asked."""

    name = "marked"
    dimension = 2

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.append(("documents", list(texts)))
        return np.array([[1, len(text)] for text in texts], dtype=np.float32)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.append(("queries", list(texts)))
        return np.array([[2, len(text)] for text in texts], dtype=np.float32)


def test_queries_take_the_embedders_own_way_for_them() -> None:
    embedder = Marked()
    assert isinstance(embedder, QueryEmbedder)
    assert checked(embedder, ["a", "bb", "a"], queries=True).tolist() == [[2, 1], [2, 2], [2, 1]]
    assert checked(embedder, ["a"]).tolist() == [[1, 1]]
    assert embedder.asked == [("queries", ["a", "bb"]), ("documents", ["a"])]


def test_an_embedder_without_such_a_way_embeds_a_query_as_any_text() -> None:
    assert not isinstance(MiniLM(), QueryEmbedder)
    as_query = checked(MiniLM(), ["Where is it?"], queries=True)
    assert np.array_equal(as_query, checked(MiniLM(), ["Where is it?"]))


def test_a_cache_keeps_queries_and_documents_apart() -> None:
    inner = Marked()
    cached = CachedEmbedder(inner)
    for _ in range(2):
        assert checked(cached, ["a"], queries=True).tolist() == [[2, 1]]
        assert checked(cached, ["a"]).tolist() == [[1, 1]]
    assert inner.asked == [("queries", ["a"]), ("documents", ["a"])]


def test_a_cache_asks_once_where_both_are_the_same() -> None:
    calls = []

    class Same:
        name = "same"
        dimension = 1

        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            calls.append(list(texts))
            return np.ones((len(texts), 1), dtype=np.float32)

    cached = CachedEmbedder(Same())
    cached.embed(["a"])
    checked(cached, ["a"], queries=True)
    assert calls == [["a"]]


def test_a_wrong_number_of_query_vectors_is_an_error() -> None:
    class Short(Marked):
        def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return super().embed_queries(texts)[:1]

    for embedder in (Short(), CachedEmbedder(Short())):
        with pytest.raises(EmbeddingError, match=r"given 2 text.*\[2, 2\]; it returned \[1, 2\]"):
            checked(embedder, ["a", "b"], queries=True)
