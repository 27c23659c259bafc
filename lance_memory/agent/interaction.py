"""One turn of an agent: what was asked and answered, and what became of it in each layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lance_memory.errors import InvalidInputError
from lance_memory.html import Told
from lance_memory.ingest import IngestResult, Message, Role
from lance_memory.record.arguments import text
from lance_memory.record.times import utc
from lance_memory.record.values import text_value
from lance_memory.wording import counted

__all__ = ["Interaction", "Observed", "ObservedMany"]

_ANSWER = "#answer"
_LATER = timedelta(microseconds=1)
_LATEST = datetime.max.replace(tzinfo=UTC) - _LATER


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """What was said to an agent, and what it answered; one of the two may be blank.

    Attributes:
        session: of which conversation.
        user_input: what was said to it.
        agent_output: what it said.
        at: when, timezone-aware; None: now.
        ref: the caller's own id of the interaction: observed again, it counts once. The answer's
            ref is this and "#answer".
        actor: who spoke to it, by name, where that is known.

    Raises InvalidInputError for no name of a session, what is no text, both blank, or a time
    without a zone. What is wrong with one of many is so known before any of them is kept.
    """

    session: str
    user_input: str
    agent_output: str = ""
    at: datetime | None = None
    ref: str = ""
    actor: str = ""

    def __post_init__(self) -> None:
        text_value("session", text("session", self.session))
        for name in ("user_input", "agent_output", "ref", "actor"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInputError(
                    f"{name} is {getattr(self, name)!r:.120}; an interaction is made of texts"
                )
        if not (self.user_input.strip() or self.agent_output.strip()):
            raise InvalidInputError(
                "user_input and agent_output are blank; an interaction says something"
            )
        if self.at is not None:
            object.__setattr__(self, "at", utc(self.at, "at"))

    def messages(self, *, now: datetime) -> tuple[Message, ...]:
        """What was said, in order; `now` where it has no time of its own."""
        at = min(self.at or now, _LATEST)  # an answer still comes after it
        asked = Message(content=self.user_input, actor=self.actor, at=at, ref=self.ref)
        answered = Message(
            content=self.agent_output,
            role=Role.ASSISTANT,
            at=at + _LATER,
            ref=f"{self.ref}{_ANSWER}" if self.ref else "",
        )
        return tuple(one for one in (asked, answered) if one.content.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed(Told):
    """What became of one interaction.

    Attributes:
        session: of which conversation.
        messages: the numbers of its messages in working memory, where they are kept; of a blank
            one there is none, nor of one that redaction leaves nothing of.
        importance: of the interaction, 0..1, as the assessor says.
        ingest: what the write path made of it; None: it failed, or is told once for many.
        failures: what went wrong, by layer: "working", "importance", "ingest". That a quota was
            used up is among it; what the gate blocks (L1 to L4) is not, see `ingest.status`.
    """

    session: str
    messages: tuple[int, ...]
    importance: float
    ingest: IngestResult | None = None
    failures: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        kept = counted(len(self.messages), "message")
        told = [f"session {self.session}: {kept}", f"importance {self.importance:.2f}"]
        return ", ".join([*told, *_came_of(self.ingest, self.failures)])

    def __repr__(self) -> str:
        return f"<Observed {self}>"

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "session": self.session,
            "messages": list(self.messages),
            "importance": self.importance,
            "ingest": self.ingest.to_json() if self.ingest else None,
            "failures": dict(self.failures),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedMany(Told):
    """What became of many interactions, in order; `ingest` and `failures` are of all of them."""

    observed: tuple[Observed, ...]
    ingest: IngestResult | None = None
    failures: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        kept = counted(sum(len(one.messages) for one in self.observed), "message")
        every = [self.failures, *(one.failures for one in self.observed)]
        failed = {name: why for failures in every for name, why in failures.items()}
        what = counted(len(self.observed), "interaction")
        return ", ".join([f"{what}: {kept}", *_came_of(self.ingest, failed)])

    def __repr__(self) -> str:
        return f"<ObservedMany {self}>"

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "observed": [one.to_json() for one in self.observed],
            "ingest": self.ingest.to_json() if self.ingest else None,
            "failures": dict(self.failures),
        }


def _came_of(ingest: IngestResult | None, failures: Mapping[str, str]) -> list[str]:
    """What the write path made, and what failed, in a few words."""
    told = []
    if ingest is not None:
        why = f" ({ingest.reason})" if ingest.reason else ""
        made = counted(len(ingest.ids), "memory", "memories")
        told.append(made if ingest.ids else f"{ingest.status}{why}")
    return told + [f"failed: {', '.join(sorted(failures))}"] * bool(failures)
