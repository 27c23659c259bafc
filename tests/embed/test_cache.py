from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lance_memory.embed import CachedEmbedder, Embedder, checked
from lance_memory.errors import EmbeddingError, InvalidInputError


class Counting:
    """A real, tiny embedder that keeps what it was asked."""

    name = "counting"
    dimension = 3

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.append(list(texts))
        rows = [[len(text), sum(map(ord, text)) % 97, 1] for text in texts]
        return np.array(rows, dtype=np.float32)


def test_a_cached_embedder_is_an_embedder_of_the_same_name_and_dimension() -> None:
    cached = CachedEmbedder(Counting())
    assert isinstance(cached, Embedder)
    assert (cached.name, cached.dimension) == ("counting", 3)


def test_only_misses_are_embedded_and_in_one_call() -> None:
    inner = Counting()
    cached = CachedEmbedder(inner)
    cached.embed(["a", "b"])
    vectors = cached.embed(["c", "b", "d", "c", "a"])
    assert inner.asked == [["a", "b"], ["c", "d"]]
    assert vectors.tolist() == inner.embed(["c", "b", "d", "c", "a"]).tolist()


def test_texts_that_are_all_known_cost_no_call() -> None:
    inner = Counting()
    cached = CachedEmbedder(inner)
    first = cached.embed(["a", "b"])
    assert cached.embed(["b", "a"]).tolist() == first[::-1].tolist()
    assert inner.asked == [["a", "b"]]


def test_no_texts_are_an_empty_array_without_a_call() -> None:
    inner = Counting()
    vectors = CachedEmbedder(inner).embed([])
    assert (vectors.shape, inner.asked) == ((0, 3), [])
    assert vectors.dtype == np.float32


def test_the_text_unused_for_longest_is_forgotten_first() -> None:
    inner = Counting()
    cached = CachedEmbedder(inner, capacity=2)
    for text in ["a", "b", "a", "c", "a", "b"]:
        cached.embed([text])
    assert inner.asked == [["a"], ["b"], ["c"], ["b"]]


def test_a_call_larger_than_the_capacity_is_answered_in_full() -> None:
    inner = Counting()
    cached = CachedEmbedder(inner, capacity=2)
    texts = ["a", "bb", "ccc", "dddd", "a"]
    assert cached.embed(texts).tolist() == inner.embed(texts).tolist()
    cached.embed(["ccc", "dddd"])
    cached.embed(["a"])
    assert inner.asked == [["a", "bb", "ccc", "dddd"], texts, ["a"]]


def test_changing_a_result_changes_nothing_in_the_cache() -> None:
    cached = CachedEmbedder(Counting())
    cached.embed(["a"])[:] = 0
    cached.embed(["a"])[:] = 0
    assert cached.embed(["a"]).tolist() == [[1, 0, 1]]


def test_a_wrong_vector_is_an_error_and_is_not_remembered() -> None:
    class WrongOnce(Counting):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return super().embed(texts) * (0 if len(self.asked) == 1 else 1)

    cached = CachedEmbedder(WrongOnce())
    with pytest.raises(EmbeddingError, match="'counting' was given 1 text"):
        cached.embed(["a"])
    assert cached.embed(["a"]).tolist() == [[1, 0, 1]]


@pytest.mark.parametrize("capacity", [0, -1, 1.5, True])
def test_a_cache_needs_a_positive_capacity(capacity: int) -> None:
    with pytest.raises(InvalidInputError, match="it takes a whole number from 1 on"):
        CachedEmbedder(Counting(), capacity=capacity)


@given(
    calls=st.lists(st.lists(st.text(st.characters(), max_size=3))),
    capacity=st.integers(1, 4),
)
def test_cached_is_the_same_as_not_cached(calls: list[list[str]], capacity: int) -> None:
    cached = CachedEmbedder(Counting(), capacity=capacity)
    for texts in calls:
        assert cached.embed(texts).tolist() == checked(Counting(), texts).tolist()


def test_threads_get_what_one_thread_would() -> None:
    cached = CachedEmbedder(Counting(), capacity=5)
    calls = [[str(number % 7), str(number % 11)] for number in range(400)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(cached.embed, calls))
    expected = [Counting().embed(texts).tolist() for texts in calls]
    assert [vectors.tolist() for vectors in together] == expected
