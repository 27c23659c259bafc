"""What a context pack is: the text, what it is made of, and what was left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from lance_memory.agent.context.candidate import ContextSource
from lance_memory.agent.workspace import MemoryMode
from lance_memory.record.memory import Kind, Scope
from lance_memory.wording import counted, shown

__all__ = ["ContextItem", "ContextPack", "DropReason", "DroppedItem"]


class DropReason(StrEnum):
    """Why a candidate is not in the pack.

    budget: there was no room for it. cap: its source had what it may have. duplicate: an item says
    the same, or is the message that it was taken from. lineage: its successor, its source or its
    summary is there, or what it says is outdated, and what took its place is not there. diversity:
    it was preferred by its score, and is like what is there already. weak: it has next to nothing
    to do with the question (`ContextOptions.min_score`).
    """

    BUDGET = "budget"
    CAP = "cap"
    DUPLICATE = "duplicate"
    LINEAGE = "lineage"
    DIVERSITY = "diversity"
    WEAK = "weak"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """One item of the text.

    Attributes:
        number: by which the text names it, from 1 on.
        id: of the memory; of a message that is no memory yet its ref, or its session and number.
        source: where it comes from.
        kind: of the memory.
        score: by which it was chosen; see `context.score`.
        tokens: of its lines.
        text: its lines.
        scope: whose it is.
        shared_by: who let it be read, of what is somebody else's; None: it is the handle's own.
        who: the actor, or the role; "" where it is not known.
        at: when it happened, UTC.
        ref: the event that it comes from; "" where it is not known.
        reason: what the score is made from.
        cut: whether a part of its content was left out.
    """

    number: int
    id: str
    source: ContextSource
    kind: Kind
    score: float
    tokens: int
    text: str
    scope: Scope
    shared_by: Scope | None = None
    who: str = ""
    at: datetime | None = None
    ref: str = ""
    reason: str = ""
    cut: bool = False

    def __repr__(self) -> str:
        whose = str(self.scope) if self.shared_by is None else f"shared by {self.shared_by}"
        return (
            f"<ContextItem {shown(self.text)!r} {self.source}, score {self.score:.3f}, "
            f"{counted(self.tokens, 'token')}; {whose}, id {self.id}>"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedItem:
    """A candidate that is not in the pack; `detail` says more, such as beside which item."""

    id: str
    source: ContextSource
    score: float
    reason: DropReason
    detail: str = ""

    def __repr__(self) -> str:
        why = f" ({self.detail})" if self.detail else ""
        return (
            f"<DroppedItem {self.source}, score {self.score:.3f}: {self.reason}{why}; id {self.id}>"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPack:
    """What an agent is given to know for one turn. Iterates over its items.

    Attributes:
        text: for the prompt; "" where there is nothing to tell.
        items: in the order of the text.
        tokens: of the text, never more than the budget.
        budget: what it was allowed.
        mode: the memory mode.
        version: of the store that was searched.
        degraded: what it had to do without: "vector", "words", the name of a source, "workspace"
            (its memory mode), "neighbours" of events, "outdated" (which events are), "diversity"
            (vectors to compare items by), or "budget": there was something, and room for nothing.
        failures: why, by the same names.
        dropped: candidates that are not in it, best first.
        seconds: by leg; what ran beside the others counts too.
    """

    text: str
    items: tuple[ContextItem, ...]
    tokens: int
    budget: int
    mode: MemoryMode
    version: int
    degraded: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[DroppedItem, ...] = field(default=(), repr=False)
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)

    def __iter__(self) -> Iterator[ContextItem]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        of = ", ".join(f"{count} {source}" for source, count in self.sources.items())
        without = f", without {', '.join(self.degraded)}" if self.degraded else ""
        return (
            f"<ContextPack {self.tokens} of {self.budget} tokens: {of or 'nothing'}{without}; "
            f"mode {self.mode}, version {self.version}>"
        )

    @property
    def sources(self) -> dict[ContextSource, int]:
        """How many items each source has, in the order of the text."""
        counts = Counter(item.source for item in self.items)
        return {source: counts[source] for source in ContextSource if counts[source]}

    def cited(self, number: int) -> ContextItem | None:
        """The item that the text names #number; None: there is none."""
        return self.items[number - 1] if 0 < number <= len(self.items) else None

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "text": self.text,
            "tokens": self.tokens,
            "budget": self.budget,
            "mode": str(self.mode),
            "version": self.version,
            "degraded": list(self.degraded),
            "failures": dict(self.failures),
            "items": [_item(item) for item in self.items],
            "dropped": [
                {
                    "id": one.id,
                    "source": str(one.source),
                    "score": one.score,
                    "reason": str(one.reason),
                    "detail": one.detail,
                }
                for one in self.dropped
            ],
            "seconds": dict(self.seconds),
        }


def _item(item: ContextItem) -> dict[str, Any]:
    return {
        "number": item.number,
        "id": item.id,
        "source": str(item.source),
        "kind": str(item.kind),
        "score": item.score,
        "tokens": item.tokens,
        "text": item.text,
        "scope": item.scope.given(),
        "shared_by": None if item.shared_by is None else item.shared_by.given(),
        "who": item.who,
        "at": item.at.isoformat() if item.at else None,
        "ref": item.ref,
        "reason": item.reason,
        "cut": item.cut,
    }
