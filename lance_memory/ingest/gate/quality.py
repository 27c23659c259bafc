"""L2: is there anything in it? A score of four parts, none of which understands a word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lance_memory.facts import CJK, plain, tokens
from lance_memory.ingest.gate.layer import Blocked, Look, inputs
from lance_memory.ingest.gate.policy import GatePolicy
from lance_memory.ingest.message import Conversation
from lance_memory.ingest.steps import Surroundings

__all__ = ["Quality", "Score", "scored"]

MESSAGES: Final = 4
"""So many messages of the user, or more, are the most that the first part tells apart."""

LETTERS: Final = 60
"""So many letters a message, or more, are the most that the second part tells apart."""

WIDE: Final = 3
"""Letters that a Chinese, Japanese or Korean character stands for."""

_POLITE = frozenset(
    """
    hi hello hey hiya yo ok okay k thanks thank thx ty cheers bye goodbye yes yeah yep no nope sure
    fine cool great nice good lol haha hmm hm wow please welcome hallo danke bitte ja nein tschuss
    bonjour salut merci oui non hola gracias si adios ola obrigado obrigada sim ciao grazie
    """.split()  # noqa: SIM905 (a list of words reads better as text)
)
"""Folded words with nothing to remember."""

_ASKS = re.compile(
    r"[?？؟](?=[\s\"'”’)\]]|$)|[吗呢]|什么|怎么|为什么|多少|哪[里个]|谁"
    r"|^[^\w\n]*(?:what|what's|why|how|when|where|who|whom|whose|which|can|could|would|should"
    r"|do(?= (?:i|you|we|they|my|your) )"
    r"|(?:does|did|is|are|am|was|were|will)(?= (?:i|you|we|they|he|she|it|there|my|your|the) ))"
    r" \w+ \w",
    re.IGNORECASE | re.MULTILINE,
)
_WIDE = re.compile(f"[{CJK}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How much there is in a conversation, each part 0..1.

    The weights and the parts' names are those of the product's own design; the scales of the parts
    are chosen so that greetings fall below 0.35 and one short statement does not.

    Attributes:
        messages: the user's messages that are not blank, a quarter for each, at most 1. Where the
            user says nothing, all messages stand for theirs, here and below.
        length: the mean number of characters of a message, a Chinese, Japanese or Korean one
            counted three times, as a share of 60; at most 1.
        diversity: distinct words that are no mere politeness ("thanks", "ok"), as a share of all
            words; a Chinese, Japanese or Korean character is a word.
        question: 1 if a message asks something: a question mark with no word behind it, an English
            question word at the beginning of a line with two words behind it, a Chinese question
            word; else 0.
    """

    messages: float
    length: float
    diversity: float
    question: float

    @property
    def total(self) -> float:
        """0.25 messages + 0.30 length + 0.25 diversity + 0.20 question."""
        return (
            0.25 * self.messages + 0.30 * self.length + 0.25 * self.diversity + 0.20 * self.question
        )


def scored(conversation: Conversation) -> Score:
    """The score of a conversation; all parts are 0 where nothing is said."""
    said = [message.content.strip() for message in inputs(conversation)]
    words = [plain(word) for text in said for word in tokens(text)]
    letters = sum(len(text) + (WIDE - 1) * len(_WIDE.findall(text)) for text in said)
    return Score(
        messages=min(1.0, len(said) / MESSAGES),
        length=min(1.0, letters / (LETTERS * max(1, len(said)))),
        diversity=len(set(words) - _POLITE) / max(1, len(words)),
        question=float(any(map(_ASKS.search, said))),
    )


class Quality:
    """Blocks what scores less than the policy's least; registered back-end events pass.

    Those are not people talking: "score: 93" is short, asks nothing, and is what to remember.
    """

    code: Final = "L2"
    reason: Final = "low_quality"
    alone: Final = True

    def __init__(self, policy: GatePolicy) -> None:
        self.policy = policy

    def settled(self, job: str, *, safe: bool) -> None:
        """Nothing is remembered of a job."""

    def look(self, asked: Mapping[int, Conversation], around: Surroundings) -> Look:  # noqa: ARG002 - it needs nothing
        """Each conversation is scored by itself."""
        return _Look(self.policy, asked)


class _Look:
    def __init__(self, policy: GatePolicy, asked: Mapping[int, Conversation]) -> None:
        self._policy = policy
        self._asked = asked

    def judge(self, place: int) -> Blocked | None:
        conversation = self._asked[place]
        if self._policy.is_event(conversation.source):
            return None
        score = scored(conversation)
        if score.total >= self._policy.least_quality:
            return None
        parts = {name: getattr(score, name) for name in Score.__slots__}
        return Blocked(figures={"score": score.total, "least": self._policy.least_quality, **parts})

    def settle(self, place: int, *, passed: bool) -> None:
        """It remembers nothing."""

    def close(self) -> None:
        """Nothing is held."""
