"""Who answers for a model: one endpoint, or several that are asked in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from lance_memory.errors import ExtractionError, InvalidInputError
from lance_memory.ingest.extract.answer import InvalidAnswerError, text_of
from lance_memory.record.arguments import real, seconds, text, whole
from lance_memory.service import JsonService, Retry, ServiceError, base_of, key_of
from lance_memory.service.breaker import Breaker, BreakerOpenError

__all__ = ["Chain", "Provider"]

_A = TypeVar("_A")

_LARGEST: Final = 1 << 22
"""Bytes of an answer, reasoning included."""

Ask = Callable[[list[dict[str, Any]]], str]


class _UnavailableError(ServiceError):
    """What the breaker counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A language model behind an OpenAI-compatible endpoint.

    Attributes:
        url: where the endpoint is, with its version: "http://localhost:11434/v1".
        model: as the endpoint knows it.
        key: sent as a bearer token; in no message and no repr. None sends none.
        timeout: seconds for one whole answer.
        retry: how often to try again before the next provider is asked.
        temperature: 0 for the likeliest words; None leaves it to the endpoint.
        max_tokens: of the answer; None leaves it to the endpoint.
        failures: so many in a row (5xx, time-out, rate limit) and it is left alone.
        rest: for so many seconds.

    Raises InvalidInputError for a value that makes no sense.
    """

    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    retry: Retry = field(default_factory=lambda: Retry(attempts=2))
    temperature: float | None = 0.0
    max_tokens: int | None = None
    failures: int = 3
    rest: float = 30.0

    def __post_init__(self) -> None:
        base_of(self.url)
        text("model", self.model)
        key_of(self.key)
        seconds("timeout", self.timeout)
        seconds("rest", self.rest)
        whole("failures", self.failures, least=1)
        if self.temperature is not None:
            real("temperature", self.temperature, least=0, most=2)
        if self.max_tokens is not None:
            whole("max_tokens", self.max_tokens, least=1)

    def __str__(self) -> str:
        return f"{self.model} at {self.url}"


class Chain:
    """Asks providers in their order, until one gives an answer that can be read.

    Each has a circuit breaker of this process: after so many failures in a row it is passed over
    for a while. Connects to nothing before it is asked. Safe to share between threads.
    """

    def __init__(self, providers: Sequence[Provider]) -> None:
        if not providers:
            raise InvalidInputError("no providers; give at least one Provider(url=..., model=...)")
        self._links = tuple(map(_Link, providers))

    def ask(self, work: Callable[[Ask], _A]) -> tuple[_A, tuple[str, ...]]:
        """What `work` makes of the first provider that it can be made with, and what was skipped.

        `work` asks what it is given, as often as it needs, and raises InvalidAnswerError where the
        answer cannot be read.

        Raises:
            ExtractionError: no provider gave an answer; it may pass where one of them was busy,
                silent, failing or left alone.
            MissingExtraError: httpx2 is not installed.
        """
        failed: list[_Failed] = []
        for link in self._links:
            try:
                return work(link.post), tuple(_degraded(failed))
            except BreakerOpenError:
                failed.append(_Failed(link.provider, "left_alone", "it kept failing", passing=True))
            except ServiceError as error:
                passing = isinstance(error, _UnavailableError)
                reason = "unavailable" if passing else "refused"
                failed.append(_Failed(link.provider, reason, str(error), passing=passing))
            except InvalidAnswerError as error:
                failed.append(_Failed(link.provider, "invalid_answer", str(error), passing=False))
        raise ExtractionError(
            "no provider gave an answer: " + "; ".join(f"{f.provider}: {f.told}" for f in failed),
            reason=next((f.reason for f in failed if f.passing), failed[-1].reason),
            passing=any(f.passing for f in failed),
        )


@dataclass(frozen=True, slots=True)
class _Failed:
    provider: Provider
    reason: str
    told: str
    passing: bool


def _degraded(failed: Sequence[_Failed]) -> Iterator[str]:
    return (f"extract: {one.provider} was passed over ({one.reason})" for one in failed)


class _Link:
    """A provider with its connection and its breaker."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._service = JsonService(
            f"{base_of(provider.url)}/chat/completions",
            key=key_of(provider.key),
            timeout=provider.timeout,
            retry=provider.retry,
            limit=provider.timeout,
            largest=_LARGEST,
        )
        self._breaker = Breaker(
            str(provider),
            counts=(_UnavailableError,),
            failures=provider.failures,
            rest=provider.rest,
        )

    def post(self, messages: list[dict[str, Any]]) -> str:
        """The text of the answer."""
        options = {
            "temperature": self.provider.temperature,
            "max_tokens": self.provider.max_tokens,
        }
        given = {name: value for name, value in options.items() if value is not None}
        body = {"model": self.provider.model, "messages": messages, **given}
        return text_of(self._breaker.call(lambda: self._posted(body)))

    def _posted(self, body: dict[str, Any]) -> Any:
        try:
            return self._service.post(body)
        except ServiceError as error:
            if error.unavailable:
                raise _UnavailableError(str(error), unavailable=True) from error
            raise
