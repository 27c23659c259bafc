"""The extractor that asks a language model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from lance_memory.errors import ExtractionError
from lance_memory.ingest.candidate import Candidate, Category, Decision
from lance_memory.ingest.extract.answer import (
    Found,
    Hints,
    InvalidAnswerError,
    Memories,
    read_answer,
)
from lance_memory.ingest.extract.patterns import book_of
from lance_memory.ingest.extract.prompt import extraction, hinting, repair
from lance_memory.ingest.extract.protocol import Reading, speaks
from lance_memory.ingest.extract.provider import Ask, Chain, Provider
from lance_memory.ingest.message import Conversation, Message
from lance_memory.ingest.steps import Passed

__all__ = ["ModelExtractor", "is_rich"]

_A = TypeVar("_A", bound=BaseModel)

_MESSAGES: Final = 4
_CHARACTERS: Final = 240
_TURNS: Final = 2
_GROUPS: Final = 2
"""What makes a conversation rich, at the least: what the second pass is worth its price for."""

_LONGEST: Final = 40_000
"""Characters that are read at once; about 10,000 tokens. A longer conversation is read in parts."""


class ModelExtractor:
    """Asks a model what is worth remembering; several providers are tried in their order.

    A rich conversation (at least 4 messages, 240 characters, 2 user turns, and signals of 2 of:
    identity, team, project, goal, preference, timeline) is read twice: first for who and what is
    spoken of and what belongs together, then, with those hints, for memories. Where the first
    reading fails, the second goes on without hints and the result says so.

    What is sent: the rules, the conversation, and what is known of the user already, as data
    between marks that it cannot hold. It was redacted before. Answers are JSON, checked; one that
    cannot be read is asked for once more, with what is wrong; then the next provider is asked.

    A memory must name the message that states it. One that names none, or a message that is not
    the word of a person, is refused with a decision: what a model makes up has no event.

    Constructing connects to nothing. Safe to share between threads.

    Args:
        providers: who is asked, the first first.

    Raises:
        InvalidInputError: no providers.
    """

    def __init__(self, providers: Sequence[Provider]) -> None:
        self._providers = tuple(providers)
        self._chain = Chain(self._providers)

    def __repr__(self) -> str:
        return f"ModelExtractor({', '.join(map(str, self._providers))})"

    def extract(self, conversation: Conversation, *, reading: Reading) -> Passed[Candidate]:
        """The candidates, in the order of the messages that state them.

        Raises:
            ExtractionError: no provider gave an answer that can be read.
            MissingExtraError: httpx2 is not installed.
        """
        found: list[Candidate] = []
        decisions: list[Decision] = []
        degraded: list[str] = []
        for places in _parts(conversation):
            if any(_says(conversation, place) for place in places):
                passed = self._of_part(conversation, places, reading)
                found += passed.items
                decisions += passed.decisions
                degraded += passed.degraded
        return Passed(
            items=tuple(found),
            decisions=tuple(decisions),
            degraded=tuple(dict.fromkeys(degraded)),
        )

    def _of_part(
        self, conversation: Conversation, places: range, reading: Reading
    ) -> Passed[Candidate]:
        messages = conversation.messages[places.start : places.stop]
        known = reading.known()
        hints, without = self._hints(messages)

        def work(ask: Ask) -> Memories:
            return _read(ask, extraction(messages, known=known, hints=hints), Memories)

        answer, skipped = self._chain.ask(work)
        told = sorted(answer.memories, key=lambda one: one.message)
        judged = [_judged(one, conversation, places, reading) for one in told]
        return Passed(
            items=tuple(one for one in judged if isinstance(one, Candidate)),
            decisions=tuple(one for one in judged if isinstance(one, Decision)),
            degraded=(*without, *skipped),
        )

    def _hints(self, messages: Sequence[Message]) -> tuple[Hints | None, tuple[str, ...]]:
        """What the first pass finds; None for a conversation that needs none, or if it fails."""
        if not is_rich(messages):
            return None, ()
        try:
            return self._chain.ask(lambda ask: _read(ask, hinting(messages), Hints))
        except ExtractionError as error:
            return None, (f"extract: read without a first pass ({error.reason})",)


def is_rich(messages: Sequence[Message]) -> bool:
    """Whether a conversation holds enough to be read twice."""
    text = "\n".join(message.content for message in messages).casefold()
    if len(messages) < _MESSAGES or len(text) < _CHARACTERS:
        return False
    if sum(message.role == "user" for message in messages) < _TURNS:
        return False
    groups = book_of("en").signals.values()
    return sum(any(word in text for word in words) for words in groups) >= _GROUPS


def _read(ask: Ask, body: list[dict[str, Any]], form: type[_A]) -> _A:
    """The answer; asked for once more where it cannot be read.

    Raises:
        InvalidAnswerError: it cannot be read the second time either.
    """
    text = ask(body)
    try:
        return read_answer(text, form)
    except InvalidAnswerError as error:
        again = repair(body, answer=text[:_LONGEST], wrong=str(error))
    return read_answer(ask(again), form)


def _parts(conversation: Conversation) -> Iterator[range]:
    """The places of messages that are read at once."""
    start = size = 0
    for place, message in enumerate(conversation.messages):
        if size and size + len(message.content) > _LONGEST:
            yield range(start, place)
            start, size = place, 0
        size += len(message.content)
    if start < len(conversation.messages):
        yield range(start, len(conversation.messages))


def _says(conversation: Conversation, place: int) -> bool:
    message = conversation.messages[place]
    return speaks(message, conversation) and bool(message.content.strip())


def _judged(
    one: Found, conversation: Conversation, places: range, reading: Reading
) -> Candidate | Decision:
    """The candidate; a decision where it has no message to stand on, or no known category."""
    if one.message > len(places):
        return _refused("no_event", one)
    place = places.start + one.message - 1
    event = conversation.event(place, job=reading.job)
    if not _says(conversation, place):
        return _refused("recalled", one, event=event)
    category = one.category.strip().casefold()
    if category not in tuple(Category):
        return _refused("unknown_category", one, event=event)
    message = conversation.messages[place]
    return Candidate(
        content=" ".join(one.content.split()),
        category=Category(category),
        importance=one.importance_score,
        confidence=one.confidence,
        scope=conversation.scope,
        event=event,
        event_at=reading.when(conversation, place),
        role=message.role,
        actor=message.actor,
        seq=message.seq,
        source=conversation.source,
        domain=conversation.domain,
        why="model",
    )


def _refused(reason: str, one: Found, *, event: str = "") -> Decision:
    figures: Mapping[str, float] = {
        "confidence": one.confidence,
        "importance": one.importance_score,
    }
    return Decision(
        step="extract",
        verdict="discarded",
        reason=reason,
        event=event,
        figures=figures,
        content=one.content,
    )
