"""What an extractor takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from lance_memory.ingest.candidate import Candidate
from lance_memory.ingest.message import Conversation, Message
from lance_memory.ingest.steps import Passed
from lance_memory.record.memory import Memory

__all__ = ["Extractor", "Reading", "speaks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What goes with a conversation that is read.

    Attributes:
        job: the name of the job, for `Conversation.event`.
        now: the moment of ingestion: when a message was said that does not say so.
        known: the user's most important visible memories; read from the store when it is called.
    """

    job: str
    now: datetime
    known: Callable[[], Sequence[Memory]]

    def when(self, conversation: Conversation, place: int) -> datetime:
        """When the message at a place was said; those that do not say so, one after the other."""
        return conversation.messages[place].at or self.now + timedelta(microseconds=place)


class Extractor(Protocol):
    """Finds what may become a memory in a conversation. Safe to share between threads."""

    def extract(self, conversation: Conversation, *, reading: Reading) -> Passed[Candidate]:
        """The candidates, in the order in which they were said.

        The event of each is that of a message of the conversation, and a replay gives the same
        candidates. What it found and refused itself is a decision, and what it had to do without
        is in `degraded`.

        Raises:
            ExtractionError: it failed; whether that may pass by itself is its `passing`.
        """
        ...


def speaks(message: Message, conversation: Conversation) -> bool:
    """Whether what the message says is the word of a person, or of a registered back-end event.

    What an assistant or a tool says does not become the user's facts: it is often what was
    recalled, and would come back as new.
    """
    return bool(conversation.source) or message.role == "user"
