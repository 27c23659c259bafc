from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from lance_memory.embed import FunctionEmbedder, MiniLM, as_embedder
from lance_memory.errors import EmbeddingError, InvalidInputError


def lengths(texts: list[str]) -> ArrayLike:
    return [[float(len(text)), 2.0, 0.0] for text in texts]


class Model:
    def encode(self, texts: list[str]) -> ArrayLike:
        return np.ones((len(texts), 5))

    def __call__(self, texts: list[str]) -> ArrayLike:
        return np.ones((len(texts), 4))


def test_lists_and_float64_become_float32_and_keep_their_length() -> None:
    embedder = FunctionEmbedder(lengths, name="lengths", dimension=3)
    vectors = embedder.embed(("ab", "c"))
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[2, 2, 0], [1, 2, 0]]


def test_the_function_is_given_a_list() -> None:
    given: list[Any] = []

    def keep(texts: list[str]) -> ArrayLike:
        given.append(texts)
        return [[1.0]] * len(texts)

    FunctionEmbedder(keep, name="keep", dimension=1).embed(("a", "b"))
    assert given == [["a", "b"]]


def test_no_texts_are_an_empty_array_without_a_call() -> None:
    def fail(texts: list[str]) -> ArrayLike:
        raise AssertionError(texts)

    vectors = FunctionEmbedder(fail, name="fail", dimension=3).embed([])
    assert vectors.shape == (0, 3)
    assert vectors.dtype == np.float32


def test_another_dimension_than_promised_is_an_error() -> None:
    embedder = FunctionEmbedder(lengths, name="lengths", dimension=4)
    with pytest.raises(EmbeddingError, match=r"'lengths' .*shape \[1, 4\]; it returned \[1, 3\]"):
        embedder.embed(["a"])


@pytest.mark.parametrize("name", ["", " ", None])
def test_a_function_embedder_needs_a_name(name: Any) -> None:
    with pytest.raises(InvalidInputError, match="it takes a text that is not blank"):
        FunctionEmbedder(lengths, name=name, dimension=3)


@pytest.mark.parametrize("dimension", [0, -1, 3.0, True, None])
def test_a_function_embedder_needs_a_positive_dimension(dimension: Any) -> None:
    with pytest.raises(InvalidInputError, match="it takes a whole number from 1 on"):
        FunctionEmbedder(lengths, name="lengths", dimension=dimension)


def test_a_function_embedder_needs_something_to_call() -> None:
    with pytest.raises(InvalidInputError, match="callable; found int"):
        FunctionEmbedder(3, name="three", dimension=3)  # type: ignore[arg-type]


def test_an_embedder_is_returned_as_it_is() -> None:
    embedder = MiniLM()
    assert as_embedder(embedder) is embedder


@pytest.mark.parametrize(
    ("function", "name", "dimension"),
    [
        (lengths, "lengths", 3),
        (lambda texts: [[1.0, 1.0] for _ in texts], "<lambda>", 2),
        (Model().encode, "Model.encode", 5),
        (Model(), "Model", 4),
        (partial(lengths), "partial", 3),
    ],
)
def test_a_callable_is_named_after_itself_and_measured(
    function: Any, name: str, dimension: int
) -> None:
    embedder = as_embedder(function)
    assert (embedder.name, embedder.dimension) == (name, dimension)
    assert embedder.embed(["a", "b"]).shape == (2, dimension)


def test_a_local_function_is_named_without_what_encloses_it() -> None:
    def local(texts: list[str]) -> ArrayLike:
        return lengths(texts)

    assert as_embedder(local).name == "local"


@pytest.mark.parametrize("given", [[], [[]], [1.0], [[1.0], [1.0]], None, "text"])
def test_a_callable_that_gives_no_vector_for_a_text_is_an_error(given: Any) -> None:
    with pytest.raises(EmbeddingError, match=r"given 1 text.*\[1, d\]"):
        as_embedder(lambda texts: given)


@pytest.mark.parametrize("value", ["all-MiniLM-L6-v2", None, 3, MiniLM, list])
def test_anything_else_is_no_embedder(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^an embedder .*is needed; found"):
        as_embedder(value)


def test_a_sentence_transformer_is_told_how_to_become_an_embedder():
    class SentenceTransformer:
        def encode(self, texts):
            return [[1.0] for _ in texts]

        def get_sentence_embedding_dimension(self):
            return 1

        def __call__(self, features):
            return features.get("x")

    with pytest.raises(InvalidInputError, match="SentenceTransformerEmbedder"):
        as_embedder(SentenceTransformer())
