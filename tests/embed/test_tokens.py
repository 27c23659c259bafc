from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_memory.embed import (
    CachedEmbedder,
    FunctionEmbedder,
    MiniLM,
    MissingEmbedder,
    TokenCounter,
    count_tokens,
)
from lance_memory.errors import EmbeddingError, InvalidInputError


class Plain:
    """No more than an embedder must have."""

    name = "plain"
    dimension = 1

    def embed(self, texts: Any) -> Any:
        return np.ones((len(texts), 1), dtype=np.float32)


def words(texts: list[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def of_words(token_count: Any) -> FunctionEmbedder:
    return FunctionEmbedder(Plain().embed, name="words", dimension=1, token_count=token_count)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("The cat sat on the mat.", 7),
        ("unaffable", 3),  # una ##ffa ##ble
        ("😀", 1),
        ("lone \ud800", 2),
        ("word " * 1000, 1000),  # beyond what the model sees
    ],
)
def test_minilm_counts_whole_texts_without_the_marks_around_them(text: str, tokens: int) -> None:
    assert MiniLM().count_tokens([text]) == [tokens]


def test_an_embedder_without_a_tokenizer_counts_a_quarter_of_the_bytes_rounded_up() -> None:
    texts = ["", "a", "four", "fives", "我昨天去了", "\ud800"]
    assert count_tokens(Plain(), texts) == [0, 1, 1, 2, 4, 1]
    assert count_tokens(MissingEmbedder(name="gone", dimension=3), texts) == [0, 1, 1, 2, 4, 1]
    assert of_words(None).count_tokens(texts) == [0, 1, 1, 2, 4, 1]


@pytest.mark.parametrize("embedder", [MiniLM(), of_words(words), of_words(None)])
def test_an_embedder_that_counts_is_asked_and_so_is_one_behind_a_cache(embedder: Any) -> None:
    texts = ["a b c", "", "a longer sentence of seven words, no?"]
    assert isinstance(embedder, TokenCounter)
    assert count_tokens(embedder, texts) == embedder.count_tokens(texts)
    assert CachedEmbedder(embedder).count_tokens(texts) == embedder.count_tokens(texts)
    assert count_tokens(CachedEmbedder(CachedEmbedder(embedder)), []) == []


def test_a_token_count_of_ones_own_is_used() -> None:
    assert of_words(words).count_tokens(["a b c", ""]) == [3, 0]
    assert of_words(lambda texts: np.array([3, 4])).count_tokens(["a", "b"]) == [3, 4]


@pytest.mark.parametrize("given", [[1], [1, 2, 3], [1.0, 2.0], [-1, 2], None, 2, ["1", "2"]])
def test_counts_that_are_not_one_whole_number_a_text_are_an_error(given: Any) -> None:
    with pytest.raises(EmbeddingError, match=r"'words' was asked for the tokens of 2 text"):
        of_words(lambda texts: given).count_tokens(["a", "b"])


def test_a_token_count_must_be_callable() -> None:
    with pytest.raises(InvalidInputError, match="token_count must be callable or None; found int"):
        of_words(3)


@pytest.mark.parametrize("texts", ["text", ["a", None]])
def test_something_else_than_texts_is_refused(texts: Any) -> None:
    with pytest.raises(InvalidInputError, match="texts must"):
        count_tokens(Plain(), texts)


@given(st.lists(st.text(max_size=40), max_size=5))
def test_texts_are_counted_in_order_and_apart(texts: list[str]) -> None:
    for embedder in (MiniLM(), Plain()):
        together = count_tokens(embedder, texts)
        assert together == [count_tokens(embedder, [text])[0] for text in texts]
