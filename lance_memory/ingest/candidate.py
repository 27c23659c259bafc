"""What may become a memory, and what each step decided about it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from lance_memory.ingest.message import Role
from lance_memory.record.memory import Kind, Scope

__all__ = ["Candidate", "Category", "Claim", "Decision", "Resolution"]

_NAMES = uuid.UUID("6f1d9a52-4c0e-5b8f-9d53-0f7a5c1f2b64")
"""Of the ids that are made from an event: a version 5 UUID needs a namespace, any will do."""


class Category(StrEnum):
    """What sort of thing is said."""

    IDENTITY = "identity"
    PREFERENCE = "preference"
    FACT = "fact"
    GOAL = "goal"
    PROCEDURE = "procedure"
    RELATIONSHIP = "relationship"
    EXPERTISE = "expertise"

    @property
    def kind(self) -> Kind:
        """The kind of the memory that it becomes."""
        return Kind.PROCEDURAL if self is Category.PROCEDURE else Kind.SEMANTIC


class Resolution(StrEnum):
    """What becomes of a candidate beside the memories that are there."""

    NEW = "new"
    UPDATE = "update"
    MERGE = "merge"
    KEEP_BOTH = "keep_both"
    REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A statement in a form that can be compared: the subject's attribute has this value.

    Attributes:
        subject: whose, folded: "user", or a name.
        attribute: such as "residence" or "likes".
        value: folded for comparison.
        single: the attribute has one value at a time, such as where somebody lives.
    """

    subject: str
    attribute: str
    value: str
    single: bool = False

    def to_json(self) -> dict[str, Any]:
        """As JSON values; what a memory's metadata has under "claim"."""
        return {
            "subject": self.subject,
            "attribute": self.attribute,
            "value": self.value,
            "single": self.single,
        }

    @classmethod
    def from_json(cls, values: Any) -> Claim | None:
        """The inverse of `to_json`; None, where the values are no claim."""
        names = {"subject": str, "attribute": str, "value": str, "single": bool}
        if not isinstance(values, Mapping) or values.keys() != names.keys():
            return None
        if not all(isinstance(values[name], kind) for name, kind in names.items()):
            return None
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What an extractor found; a memory, if the steps after it let it pass.

    Attributes:
        content: 10 to 500 characters that stand alone.
        importance: 0..10.
        confidence: 0..1.
        scope: the conversation's.
        event: the name of the event that it was said in, the same on every replay.
        event_at: when it was said; always given.
        claim: what it states, where that can be told.
        valid_from: since when it is true, where that is said.
        valid_to: until when.
        source: of the conversation: a registered back-end event, or empty.
        domain: of the conversation.
        why: which rule or model found it; no content.
        pending: why it is to be stored as pending: seen once with little confidence, say; empty: it
            is not.
    """

    content: str
    category: Category
    importance: float
    confidence: float
    scope: Scope
    event: str
    event_at: datetime
    role: Role = Role.USER
    actor: str = ""
    seq: int | None = None
    claim: Claim | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    source: str = ""
    domain: str = ""
    why: str = ""
    pending: str = ""

    @property
    def id(self) -> str:
        """The id of the memory: of the same event, scope and content always the same."""
        told = [*self.scope.names().values(), self.event, str(self.category), self.content]
        return str(uuid.uuid5(_NAMES, "\x1f".join(told)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a step decided about a conversation or a candidate, and why.

    Attributes:
        step: which step: "redact", "gate", "extract", "keep", "resolve", "overlay", ...
        verdict: what became of it: a resolution, "kept", "pending", "discarded", "blocked", ...
        reason: a name that can be counted, such as "low_confidence"; no content.
        event: of which event; empty: of the whole conversation.
        memory: the id of the memory that was made or is there.
        others: the ids of the memories that it was compared with and that mattered.
        figures: the numbers that it was decided by.
        content: the candidate's text, for whoever looks at the steps; in no ledger and no log.
    """

    step: str
    verdict: str
    reason: str = ""
    event: str = ""
    memory: str = ""
    others: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    content: str = field(default="", compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """As JSON values, without the content."""
        return {
            "step": self.step,
            "verdict": self.verdict,
            "reason": self.reason,
            "event": self.event,
            "memory": self.memory,
            "others": list(self.others),
            "figures": dict(self.figures),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Decision:
        """The inverse of `to_json`."""
        return cls(**{**values, "others": tuple(values["others"])})
