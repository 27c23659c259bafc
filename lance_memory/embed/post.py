"""One HTTP service that takes JSON and gives JSON; the only module that knows httpx2."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any, Final, NamedTuple

from lance_memory.embed.retry import Retry, asked_wait
from lance_memory.errors import EmbeddingError
from lance_memory.extras import require

__all__ = ["EXTRA", "JsonService"]

EXTRA: Final = "openai"

BODY_SHOWN: Final = 300
"""Characters of an answer that an error message quotes."""


class JsonService:
    """Posts to one URL over kept-alive connections; safe to share between threads.

    Tries again what may pass by itself: the statuses 408, 429 and 5xx, refused, lost and
    silent connections. Redirects are not followed, so the key goes to no other host.
    """

    def __init__(self, url: str, *, key: str | None, timeout: float, retry: Retry) -> None:
        self.url = url
        self._key = key
        self._timeout = timeout
        self._retry = retry
        self._client: Any = None
        self._making = threading.Lock()

    def post(self, body: object) -> Any:
        """The parsed JSON of an answer with a status of 2xx.

        Raises MissingExtraError without httpx2, EmbeddingError when the last try failed or the
        answer is no JSON. No message holds the key.
        """
        for attempt in range(1, self._retry.attempts + 1):
            tried = self._try(body)
            if tried.answer is not None:
                return self._parsed(tried.answer)
            last = not tried.passing or attempt == self._retry.attempts
            wait = self._retry.wait(attempt) if tried.asked_wait is None else tried.asked_wait
            if last or wait > self._retry.longest_wait:
                break
            time.sleep(wait)
        raise EmbeddingError(self._told(tried, attempt)) from tried.cause

    def _try(self, body: object) -> _Try:
        client, httpx2 = self._opened(), require("httpx2", EXTRA)
        try:
            answer = client.post(self.url, json=body)
        except httpx2.TransportError as error:  # names, connections, timeouts, broken HTTP
            found = f"{type(error).__name__}: {error}"
            return _Try(failure=f"did not answer ({found})", passing=True, cause=error)
        except httpx2.HTTPError as error:
            return _Try(failure=f"gave an unreadable answer ({error})", cause=error)
        if answer.is_success:
            return _Try(answer=answer)
        return _Try(
            failure=f"answered {answer.status_code}: {self._shown(answer.text)}",
            passing=answer.status_code in (408, 429) or answer.status_code >= 500,
            asked_wait=asked_wait(answer.headers),
        )

    def _parsed(self, answer: Any) -> Any:
        try:
            return answer.json()
        except ValueError as error:
            raise EmbeddingError(
                f"{self.url} must answer in JSON; it gave {self._shown(answer.text)}. "
                "Is it the endpoint's base URL, which often ends in /v1?"
            ) from error

    def _told(self, tried: _Try, attempts: int) -> str:
        told = f"{self.url} {tried.failure}, at try {attempts} of {self._retry.attempts}"
        if tried.asked_wait is not None:
            return f"{told}; it asks to wait {tried.asked_wait:.0f} s"
        return f"{told}. Check the URL, the key, the model and the limits of the service"

    def _shown(self, text: str) -> str:
        """The beginning of an answer on one line, without the key if the service repeats it."""
        hidden = text.replace(self._key, "[key]") if self._key else text
        line = " ".join(hidden[: 2 * BODY_SHOWN].split())
        return repr(line[:BODY_SHOWN])

    def _opened(self) -> Any:
        with self._making:
            if self._client is None:
                httpx2 = require("httpx2", EXTRA)
                headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
                self._client = httpx2.Client(headers=headers, timeout=self._timeout)
                weakref.finalize(self, self._client.close)
        return self._client


class _Try(NamedTuple):
    """How one request went: an answer, or a failure and whether it may pass by itself."""

    answer: Any = None
    failure: str = ""
    passing: bool = False
    asked_wait: float | None = None
    cause: Exception | None = None
