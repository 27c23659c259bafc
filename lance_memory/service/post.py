"""One HTTP service that takes JSON and gives JSON; the only module that knows httpx2."""

from __future__ import annotations

import json
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from lance_memory.extras import require
from lance_memory.service.retry import Retry, asked_wait

__all__ = ["JsonService", "ServiceError"]

EXTRA: Final = "openai"

BODY_SHOWN: Final = 300
"""Characters of an answer that an error message quotes."""

LARGEST: Final = 1 << 28
"""Bytes: 2,048 vectors of 4,096 numbers, as text with each number on an indented line."""


class ServiceError(Exception):
    """The service gave no answer that is JSON. Callers raise an error of theirs in its place.

    `unavailable`: it did not answer in time, is busy, or failed itself (408, 429, 5xx); what was
    asked may be sound.
    """

    def __init__(self, message: str, *, unavailable: bool = False) -> None:
        super().__init__(message)
        self.unavailable = unavailable


class JsonService:
    """Posts to one URL over kept-alive connections; safe to share between threads.

    Tries again what may pass by itself: the statuses 408, 429 and 5xx, refused, lost and
    silent connections. Redirects are not followed, so the key goes to no other host. A copy, or
    what another process unpickles, makes connections of its own.

    Args:
        url: where to post.
        key: sent as a bearer token, in the header and nowhere else.
        timeout: seconds in which the service must accept, and then give a sign of life.
        retry: how often to try again.
        limit: seconds for a whole answer, however often there is a sign of life; None for any.
            What took so long is not asked for again.
        largest: bytes of an answer, unpacked. No more of it is read, and it is not asked for
            again.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None,
        timeout: float,
        retry: Retry,
        limit: float | None = None,
        largest: int = LARGEST,
    ) -> None:
        self.url = url
        self._key = key
        self._timeout = timeout
        self._retry = retry
        self._limit = limit
        self._largest = largest
        self._client: Any = None
        self._making = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None, "_making": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_making": threading.Lock()})

    def post(self, body: object) -> Any:
        """The parsed JSON of an answer with a status of 2xx.

        Raises MissingExtraError without httpx2, ServiceError when the last try failed or the
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
        told = self._told(tried, attempt)
        raise ServiceError(told, unavailable=tried.unavailable) from tried.cause

    def _try(self, body: object) -> _Try:
        httpx2 = require("httpx2", EXTRA)
        end = None if self._limit is None else time.monotonic() + self._limit
        try:
            answer = self._exchanged(body, end)
        except httpx2.TransportError as error:  # names, connections, timeouts, broken HTTP
            found = f"{type(error).__name__}: {error}"
            passing = end is None or time.monotonic() < end
            failure = f"did not answer ({found})"
            return _Try(failure=failure, passing=passing, unavailable=True, cause=error)
        except httpx2.HTTPError as error:
            return _Try(failure=f"gave an unreadable answer ({error})", cause=error)
        if 200 <= answer.status < 300:
            return _Try(answer=answer.content)
        unavailable = answer.status in (408, 429) or answer.status >= 500
        return _Try(
            failure=f"answered {answer.status}: {self._shown(answer.content)}",
            passing=unavailable,
            unavailable=unavailable,
            asked_wait=asked_wait(answer.headers),
        )

    def _exchanged(self, body: object, end: float | None) -> _Answer:
        """What came back, read piece by piece, so that a slow or a long one ends at its limit."""
        client, httpx2 = self._opened(), require("httpx2", EXTRA)
        with client.stream("POST", self.url, json=body) as answer:
            content = bytearray()
            for piece in answer.iter_bytes():
                content += piece
                if len(content) > self._largest:
                    raise httpx2.DecodingError(f"it is longer than {self._largest:,} bytes")
                if end is not None and time.monotonic() > end:
                    raise httpx2.ReadTimeout(f"its answer was not whole after {self._limit:g} s")
        return _Answer(answer.status_code, answer.headers, bytes(content))

    def _parsed(self, content: bytes) -> Any:
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ServiceError(
                f"{self.url} must answer in JSON; it gave {self._shown(content)}. "
                "Is it the endpoint's base URL, which often ends in /v1?"
            ) from error

    def _told(self, tried: _Try, attempts: int) -> str:
        told = f"{self.url} {tried.failure}, at try {attempts} of {self._retry.attempts}"
        if tried.asked_wait is not None:
            return f"{told}; it asks to wait {tried.asked_wait:.0f} s"
        return f"{told}. Check the URL, the key, the model and the limits of the service"

    def _shown(self, content: bytes) -> str:
        """The beginning of an answer on one line, without the key if the service repeats it."""
        text = content.decode(errors="replace")
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


class _Answer(NamedTuple):
    """What a service gave, whatever its status."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class _Try(NamedTuple):
    """How one request went: the body of an answer, or a failure and whether it may pass."""

    answer: bytes | None = None
    failure: str = ""
    passing: bool = False
    unavailable: bool = False
    asked_wait: float | None = None
    cause: Exception | None = None
