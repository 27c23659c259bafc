"""Any OpenAI-compatible endpoint (OpenAI, vLLM, Ollama, LM Studio, ...); the extra `openai`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lance_memory.embed.answer import vectors_of
from lance_memory.embed.text import encodable
from lance_memory.errors import EmbeddingError
from lance_memory.record.arguments import one_of, seconds, text, whole
from lance_memory.service import (
    OPENAI,
    JsonService,
    Retry,
    ServiceError,
    base_of,
    key_of,
)

__all__ = ["OpenAIEmbedder"]


class OpenAIEmbedder:
    """Posts texts to `{base_url}/embeddings` and reads the vectors that come back.

    Constructing connects to nothing. Connections are kept alive, and shared between threads.
    Tokens are not counted by the endpoint beforehand: `count_tokens` estimates.

    Args:
        model: as the endpoint knows it.
        dimension: the length of its vectors; another length in an answer is an error.
        base_url: where the endpoint is, with its version: "http://localhost:11434/v1".
        api_key: sent as a bearer token; None sends none. It is in no message and no repr, and
            nothing reads it from the environment: a key then goes to no host by accident.
        name: what is stored with the table; by default the model.
        shorten: ask for vectors cut to `dimension`, for models that were trained for it
            (text-embedding-3-*); other models' endpoints refuse the request.
        batch_size: texts in one request; OpenAI takes 2,048.
        timeout: seconds in which the endpoint must accept, and then give a sign of life.
        retry: how often to try again, and how long to wait.
        encoding: how numbers are asked for. "base64" is a quarter as long, and not every
            endpoint knows it; an answer may come in either.

    Raises:
        InvalidInputError: an argument that makes no sense. A key is never shown.
    """

    def __init__(
        self,
        model: str,
        *,
        dimension: int,
        base_url: str = OPENAI,
        api_key: str | None = None,
        name: str | None = None,
        shorten: bool = False,
        batch_size: int = 128,
        timeout: float = 30.0,
        retry: Retry | None = None,
        encoding: Literal["float", "base64"] = "float",
    ) -> None:
        seconds("timeout", timeout)
        one_of("encoding", encoding, ("float", "base64"))
        self._model = text("model", model)
        self._name = model if name is None else text("name", name)
        self._dimension = whole("dimension", dimension, least=1)
        self._batch_size = whole("batch_size", batch_size, least=1)
        self._options: dict[str, object] = {"model": model, "encoding_format": encoding}
        if shorten:
            self._options["dimensions"] = dimension
        self._service = JsonService(
            f"{base_of(base_url)}/embeddings",
            key=key_of(api_key),
            timeout=timeout,
            retry=retry or Retry(),
        )

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._model!r}, dimension={self._dimension}, url={self.url!r})"

    @property
    def name(self) -> str:
        """The model, or the name given."""
        return self._name

    @property
    def dimension(self) -> int:
        """As given."""
        return self._dimension

    @property
    def url(self) -> str:
        """Where texts are sent."""
        return self._service.url

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Float32 [n, d] as the endpoint gave it, row i for text i; [0, d] without a request.

        Requests follow one another. When one fails, the call fails, and what earlier requests
        gave is lost.

        Raises:
            MissingExtraError: httpx2 is not installed.
            EmbeddingError: no answer, or a status of failure, after the last try; an answer
                that has not one vector of `dimension` numbers for each text.
        """
        vectors = np.empty((len(texts), self._dimension), dtype=np.float32)
        for start in range(0, len(texts), self._batch_size):
            batch = [encodable(text) for text in texts[start : start + self._batch_size]]
            answer = self._asked(batch)
            vectors[start : start + len(batch)] = vectors_of(
                answer, name=self._name, count=len(batch), dimension=self._dimension
            )
        return vectors

    def _asked(self, batch: Sequence[str]) -> Any:
        try:
            return self._service.post({**self._options, "input": batch})
        except ServiceError as error:
            raise EmbeddingError(str(error)) from error
