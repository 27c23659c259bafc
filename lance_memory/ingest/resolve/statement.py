"""What a classifier sees of a candidate or of a memory: what it says, who said it, and when."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from lance_memory.facts import content_words, plain
from lance_memory.ingest.candidate import Candidate, Claim
from lance_memory.record.memory import Memory

__all__ = ["Authority", "Statement", "Topic", "announces_change", "attributes_about", "topic_of"]

_CHANGE = re.compile(
    r"\b(?:now|nowadays|moved|moving|changed|switched|no longer|not any ?more|any ?more|instead"
    r"|actually|used to|new|these days|from now on|as of|since then|became|correction|rather than"
    r"|in place of|replaced|stopped|quit|updated|rescheduled|postponed)\b"
)
_NOT = re.compile(r"not\s+")

_DENIED = {
    "dislikes": "likes",
    "hates": "likes",
    "avoids": "likes",
}
"""Attributes that deny another one of the same value."""

Authority = int
"""Whose word counts more where two clash: 3 a registered back-end event, 2 a person, 1 an
assistant or a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What claims compete about: of a single attribute its one value, else whether it has it.

    Attributes:
        subject: whose.
        attribute: without its denial: of "dislikes" it is "likes".
        value: of an attribute that has several values, the one in question; else empty.
    """

    subject: str
    attribute: str
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What was said, as far as it can be compared.

    Attributes:
        id: of the memory, or that the candidate will have.
        content: the text.
        at: when it was said.
        claim: what it states, where that is known.
        category: of the claim; empty: not known.
        domain: of the conversation.
        speaker: who said it, folded as subjects are; empty: not named.
        authority: see `Authority`.
        confidence: 0..1.
        announced: it says that something is not any more as it was.
        valid_from: since when it is true, where that was said.
        valid_to: until when.
        topic: what its claim competes about; None without a claim.
        value: the value of its claim, without a "not"; empty without a claim.
        folded: the same as it is compared.
    """

    id: str
    content: str
    at: datetime
    claim: Claim | None = None
    category: str = ""
    domain: str = ""
    speaker: str = ""
    authority: Authority = 2
    confidence: float = 1.0
    announced: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    topic: Topic | None = field(init=False, repr=False, compare=False)
    value: str = field(init=False, repr=False, compare=False)
    folded: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        claim = self.claim
        object.__setattr__(self, "topic", None if claim is None else topic_of(claim))
        value = "" if claim is None else _NOT.sub("", claim.value, count=1)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "folded", plain(value))

    @classmethod
    def of(cls, candidate: Candidate) -> Statement:
        """What a candidate says."""
        return cls(
            id=candidate.id,
            content=candidate.content,
            at=candidate.event_at,
            claim=candidate.claim,
            category=str(candidate.category),
            domain=candidate.domain,
            speaker=plain(candidate.actor).strip(),
            authority=_authority(candidate.source, str(candidate.role)),
            confidence=candidate.confidence,
            announced=announces_change(candidate.content),
            valid_from=candidate.valid_from,
            valid_to=candidate.valid_to,
        )

    @classmethod
    def held(cls, memory: Memory) -> Statement:
        """What a memory says."""
        known: Mapping[str, Any] = memory.metadata
        return cls(
            id=memory.id,
            content=memory.content,
            at=memory.happened_at,
            claim=Claim.from_json(known.get("claim")),
            category=_text(known.get("category")),
            domain=_text(known.get("domain")),
            speaker=plain(memory.actor).strip(),
            authority=_authority(_text(known.get("source")), memory.role),
            confidence=memory.confidence,
            announced=announces_change(memory.content),
            valid_from=memory.valid_from,
            valid_to=memory.valid_to,
        )

    @property
    def denies(self) -> bool:
        """Whether its claim says that the value is not so."""
        if self.claim is None:
            return False
        return (_NOT.match(self.claim.value) is not None) != (self.claim.attribute in _DENIED)

    @property
    def words(self) -> frozenset[str]:
        """The telling words of the value of its claim, or else of the text."""
        return _words_of(self.value or self.content)


_words_of = lru_cache(maxsize=4096)(content_words)
"""Each statement is compared with many others."""


def announces_change(text: str) -> bool:
    """Whether a text says that what was true before is not any more."""
    return _CHANGE.search(plain(text)) is not None


def topic_of(claim: Claim) -> Topic:
    """What a claim competes about."""
    attribute = _DENIED.get(claim.attribute, claim.attribute)
    value = "" if claim.single else plain(_NOT.sub("", claim.value, count=1))
    return Topic(subject=claim.subject, attribute=attribute, value=value)


def attributes_about(attribute: str) -> tuple[str, ...]:
    """The attributes of the claims that compete about it, its denials included."""
    return (attribute, *(name for name, denied in _DENIED.items() if denied == attribute))


def _authority(source: str, role: str) -> Authority:
    if source:
        return 3
    return 1 if role in ("assistant", "tool", "system") else 2


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
