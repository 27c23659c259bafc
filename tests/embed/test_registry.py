from __future__ import annotations

import uuid
from typing import Any, ClassVar

import numpy as np
import pytest
from lancedb.embeddings import EmbeddingFunction, TextEmbeddingFunction, get_registry

from lance_memory.embed import CachedEmbedder, Embedder, LanceDBEmbedder, QueryEmbedder, checked
from lance_memory.errors import EmbeddingError, InvalidInputError


class Letters(TextEmbeddingFunction):
    """A real function of LanceDB's: no vector for an empty text, as theirs often do."""

    width: int = 3
    asked: ClassVar[list[list[str]]] = []

    def ndims(self) -> int:
        return self.width

    def generate_embeddings(self, texts: Any, *args: Any, **kwargs: Any) -> list[Any]:
        Letters.asked.append(list(texts))
        rows = [[len(text), text.count("a"), 1.0] for text in texts]
        return [np.array(row) if text else None for row, text in zip(rows, texts, strict=True)]


class Marked(EmbeddingFunction):
    """Another way for queries, as Cohere's."""

    name: str = "marked-v1"

    def ndims(self) -> int:
        return 2

    def compute_source_embeddings(self, texts: list[str], *args: Any, **kwargs: Any) -> Any:
        return [[1.0, len(text)] for text in texts]

    def compute_query_embeddings(self, query: str, *args: Any, **kwargs: Any) -> Any:
        return [[2.0, len(query)]]


@pytest.fixture
def registered() -> str:
    """The key of Letters in the registry; a new class each time, as names are unique there."""
    name = f"letters-{uuid.uuid4().hex}"
    get_registry().register(name)(type(name, (Letters,), {"__module__": __name__}))
    Letters.asked.clear()
    return name


def test_a_registered_function_embeds_in_one_call(registered: str) -> None:
    embedder = LanceDBEmbedder.from_registry(registered)
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.dimension) == (registered, 3)
    vectors = embedder.embed(["a", "banana"])
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1, 1, 1], [6, 3, 1]]
    assert Letters.asked == [["a", "banana"]]


def test_an_instance_is_taken_under_a_name_of_ones_own() -> None:
    assert LanceDBEmbedder(Letters.create()).name == "Letters"
    assert LanceDBEmbedder(Letters.create(), name="mine").name == "mine"
    assert LanceDBEmbedder(Marked.create()).name == "marked-v1"
    assert LanceDBEmbedder(Marked.create(name="marked-v2")).name == "marked-v2"


def test_no_texts_are_an_empty_array_without_a_call(registered: str) -> None:
    embedder = LanceDBEmbedder.from_registry(registered)
    assert embedder.embed([]).shape == (0, 3)
    assert embedder.embed_queries([]).shape == (0, 3)
    assert Letters.asked == []


def test_queries_go_the_functions_own_way_for_them() -> None:
    embedder = LanceDBEmbedder(Marked.create())
    assert isinstance(embedder, QueryEmbedder)
    assert checked(embedder, ["a", "bb"]).tolist() == [[1, 1], [1, 2]]
    assert checked(embedder, ["a", "bb"], queries=True).tolist() == [[2, 1], [2, 2]]
    assert checked(CachedEmbedder(embedder), ["a"], queries=True).tolist() == [[2, 1]]


def test_a_function_of_texts_takes_a_query_as_any_text() -> None:
    embedder = LanceDBEmbedder(Letters.create())
    assert np.array_equal(embedder.embed_queries(["a", "ba"]), embedder.embed(["a", "ba"]))


def test_none_in_place_of_a_vector_is_an_error_that_names_the_positions() -> None:
    embedder = LanceDBEmbedder(Letters.create())
    with pytest.raises(EmbeddingError, match=r"'Letters' was given 3 text.*positions \[1, 2\]"):
        embedder.embed(["a", "", ""])
    with pytest.raises(EmbeddingError, match=r"positions \[0\]"):
        embedder.embed_queries([""])


def test_other_vectors_than_ndims_promises_are_an_error() -> None:
    with pytest.raises(EmbeddingError, match=r"shape \[1, 4\]; it returned \[1, 3\]"):
        LanceDBEmbedder(Letters.create(width=4)).embed(["a"])


def test_nothing_in_place_of_vectors_is_an_error() -> None:
    class Silent(Marked):
        def compute_source_embeddings(self, texts: list[str], *args: Any, **kwargs: Any) -> Any:
            return None

    with pytest.raises(EmbeddingError, match=r"'marked-v1' was given 1 text"):
        LanceDBEmbedder(Silent.create()).embed(["a"])


@pytest.mark.parametrize("said", [0, -1, None, 2.5, "3"])
def test_a_dimension_that_is_none_is_an_error(said: Any) -> None:
    class Vague(Marked):
        def ndims(self) -> Any:
            return said

    with pytest.raises(EmbeddingError, match=r"'marked-v1' must say how long"):
        _ = LanceDBEmbedder(Vague.create()).dimension


def test_what_the_function_raises_passes_through_at_once() -> None:
    class Failing(Marked):
        def compute_source_embeddings(self, texts: list[str], *args: Any, **kwargs: Any) -> Any:
            raise ZeroDivisionError(len(texts))

    with pytest.raises(ZeroDivisionError, match="2"):
        LanceDBEmbedder(Failing.create()).embed(["a", "b"])


@pytest.mark.parametrize("value", [Letters, "openai", None, len])
def test_something_else_than_an_instance_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="instance of a LanceDB embedding function"):
        LanceDBEmbedder(value)


def test_a_key_that_is_not_registered_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no embedding function 'nobody'"):
        LanceDBEmbedder.from_registry("nobody")
