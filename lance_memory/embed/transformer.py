"""Any sentence-transformers model, on the CPU or a GPU; the extra `sentence-transformers`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_memory.embed.text import encodable
from lance_memory.embed.tokens import estimated_tokens
from lance_memory.embed.vectors import to_vectors
from lance_memory.errors import EmbeddingError, InvalidInputError
from lance_memory.extras import require
from lance_memory.record.arguments import text, whole

__all__ = ["SentenceTransformerEmbedder"]

EXTRA: Final = "sentence-transformers"


class SentenceTransformerEmbedder:
    """A model by its name on the Hugging Face hub, or by the path of its folder.

    Constructing is free and imports nothing. The model is loaded on the first look at
    `dimension` or the first text (importing torch takes seconds), once, and shared between
    threads. Code that comes with a model is never run.

    Where a model has its own prompts for queries and for documents, they are used: `embed` is
    for documents, `embed_queries` for queries.

    Args:
        model: a name, or a path to a folder.
        name: what is stored with the table; by default the name as given, or the folder's own.
            Give the name of an equal model to open a table of its vectors: those of
            sentence-transformers/all-MiniLM-L6-v2 and of MiniLM have a cosine of at least .996,
            so `name="all-MiniLM-L6-v2"` is right for it.
        device: "cpu", "cuda", "cuda:1", ...; None takes a GPU if there is one.
        batch_size: texts in one forward pass, sorted by length.
        fp16: compute in half precision, for GPUs: about half the memory and time, and vectors
            that differ in the third digit. Refused on a CPU, where it is slower.
        normalize: scale vectors to unit length. The package compares by cosine either way.
        download: False takes only what is on this disk. True asks the hub for what is not; where
            it cannot be reached, sentence-transformers tries for about a minute.

    Raises:
        InvalidInputError: an empty model or name, a batch_size below 1, fp16 with "cpu".
    """

    def __init__(
        self,
        model: str | Path,
        *,
        name: str | None = None,
        device: str | None = None,
        batch_size: int = 32,
        fp16: bool = False,
        normalize: bool = True,
        download: bool = True,
    ) -> None:
        if fp16:
            _refuse_half_precision(device)
        self._path = text("model", str(model) if isinstance(model, Path) else model)
        own = Path(model).name if Path(model).is_dir() else self._path
        self._name = own if name is None else text("name", name)
        self._device = device
        self._batch_size = whole("batch_size", batch_size, least=1)
        self._fp16 = fp16
        self._normalize = normalize
        self._download = download
        self._model: Any = None
        self._dimension = 0
        self._loading = threading.Lock()

    @property
    def name(self) -> str:
        """The name that is stored with the table."""
        return self._name

    @property
    def dimension(self) -> int:
        """The length of the vectors, measured on one text; loads the model, and may raise so."""
        self._loaded()
        return self._dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Float32 [n, d], row i for text i, as documents; [0, d] for no texts.

        What shares a batch may move a vector by what rounding does (1e-6 in float32).

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            EmbeddingError: there is no such model, or it cannot be loaded.
            InvalidInputError: fp16, and there is no GPU.
        """
        return self._encode(texts, self._loaded().encode_document)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `embed`, with the model's prompt for queries if it has one."""
        return self._encode(texts, self._loaded().encode_query)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """By the model's own tokenizer, the whole text, without marks; loads the model.

        Estimates (`estimated_tokens`) for a model whose tokenizer is not of the transformers
        library, such as one of static vectors. Raises as `embed`.
        """
        tokenizer = self._loaded().tokenizer
        if len(texts) == 0 or not callable(tokenizer):
            return estimated_tokens(texts)
        given = tokenizer(
            [encodable(text) for text in texts],
            add_special_tokens=False,
            truncation=False,
            verbose=False,  # about texts that are longer than the model reads
        )
        return [len(ids) for ids in given["input_ids"]]

    def _encode(self, texts: Sequence[str], encode: Any) -> NDArray[np.float32]:
        if len(texts) == 0:
            return np.empty((0, self._dimension), dtype=np.float32)
        given = encode(
            [encodable(text) for text in texts],
            batch_size=self._batch_size,
            normalize_embeddings=self._normalize,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return to_vectors(given, name=self._name, count=len(texts), dimension=self._dimension)

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                model = _load(self._path, device=self._device, download=self._download)
                if self._fp16:
                    _refuse_half_precision(model.device.type)
                    model.half()
                # Measured, because the method that tells it has another name in each major version.
                self._dimension = len(model.encode(["probe"], show_progress_bar=False)[0])
                self._model = model
        return self._model


def _load(model: str, *, device: str | None, download: bool) -> Any:
    library = require("sentence_transformers", EXTRA)
    try:
        return library.SentenceTransformer(model, device=device, local_files_only=not download)
    except (OSError, ValueError, RuntimeError, AssertionError) as error:
        # No such name or file, no such device; torch without CUDA fails by an assertion.
        raise EmbeddingError(
            f"the model {model!r} cannot be loaded on the device {device or 'auto'!r}: {error}. "
            "Check its name or path, and the device; "
            + ("the hub must be reachable" if download else "download=True fetches it from the hub")
        ) from error


def _refuse_half_precision(device: str | None) -> None:
    if device is not None and device.partition(":")[0] == "cpu":
        raise InvalidInputError(
            "fp16 is for GPUs, and the device is the CPU; leave it out, or pass device='cuda'"
        )
