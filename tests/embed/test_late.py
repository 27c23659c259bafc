from __future__ import annotations

import numpy as np

from lance_memory.embed import (
    CachedEmbedder,
    FunctionEmbedder,
    MiniLM,
    TokenEmbedder,
    token_embedder,
)
from lance_memory.embed.minilm import _means

TEXTS = [
    "The cat sat on the mat.",
    "",
    "tiny",
    "我昨天去了北京。",
    "lone surrogate \ud800",
    "[CLS] [SEP]",
    "word " * 400,
    *(f"number {number} of a few plain sentences" for number in range(9)),
]

# Not a bit differs where this was measured; another CPU's kernels may sum in another order.
TOLERANCE = 1e-5


def test_each_token_has_a_unit_row_and_the_marks_around_a_text_have_none() -> None:
    model = MiniLM()
    vectors = model.token_vectors(TEXTS)
    lengths = [min(count, 254) for count in model.count_tokens(TEXTS)]
    assert [len(rows) for rows in vectors] == lengths
    for rows in vectors:
        assert (rows.shape[1], rows.dtype) == (384, np.float32)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_no_texts_have_no_token_vectors() -> None:
    assert MiniLM().token_vectors([]) == []


def test_a_batch_gives_what_one_by_one_gives() -> None:
    model = MiniLM()
    for text, rows in zip(TEXTS, model.token_vectors(TEXTS), strict=True):
        np.testing.assert_allclose(rows, model.token_vectors([text])[0], atol=TOLERANCE)


def test_the_mean_of_all_states_has_the_direction_of_the_texts_vector() -> None:
    model = MiniLM()
    vectors, rows = model.embed(TEXTS), model.token_vectors(TEXTS)
    for one in model._passes(TEXTS):
        for row, states, length in zip(one.rows, one.states, one.lengths, strict=True):
            mean = states[:length].mean(axis=0)
            assert mean @ vectors[row] / np.linalg.norm(mean) > 1 - 1e-5
            inner = states[1 : length - 1]
            scaled = inner / np.linalg.norm(inner, axis=1, keepdims=True)
            np.testing.assert_allclose(rows[row], scaled, atol=TOLERANCE)
        np.testing.assert_allclose(_means(one), vectors[one.rows], atol=TOLERANCE)


def test_the_tokens_of_a_text_point_near_to_its_vector() -> None:
    model = MiniLM()
    text = "He bought a new car from the dealer."
    mean = model.token_vectors([text])[0].mean(axis=0)
    assert mean @ model.embed([text])[0] / np.linalg.norm(mean) > 0.95


def test_token_by_token_a_paraphrase_is_nearer_than_another_topic() -> None:
    query, near, far = MiniLM().token_vectors(
        ["He bought a new car.", "He purchased an automobile.", "The soup needs more salt."]
    )

    def late(document: np.ndarray) -> float:
        return float((query @ document.T).max(axis=1).mean())

    assert late(near) > late(far) + 0.2


def test_the_token_embedder_is_found_behind_caches() -> None:
    model = MiniLM()
    assert isinstance(model, TokenEmbedder)
    assert token_embedder(model) is model
    assert token_embedder(CachedEmbedder(CachedEmbedder(model))) is model


def test_an_embedder_without_token_vectors_gives_none() -> None:
    plain = FunctionEmbedder(lambda texts: [[1.0]] * len(texts), name="plain", dimension=1)
    assert token_embedder(plain) is None
    assert token_embedder(CachedEmbedder(plain)) is None
