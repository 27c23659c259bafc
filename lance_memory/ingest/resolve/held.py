"""A memory while candidates are resolved: what it says, how it stands, when it was said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_memory.ingest.resolve.statement import Authority, Statement
from lance_memory.record.memory import Memory, Relationship, State
from lance_memory.record.times import parse_instant

__all__ = ["EXTRACTED", "MOST_HEARD", "RESOLVED", "Held", "Saying"]

EXTRACTED = "extracted"
"""The `source` of the memories that the write path makes."""

RESOLVED = "resolved: "
"""How the reason of a state begins that resolving gave, and may take back: what is said about
something earlier, and comes in later, is put in its place."""

MOST_HEARD = 16
"""How many later sayings a memory remembers."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Saying:
    """One time that it was said; sorted by when.

    Attributes:
        at: when.
        seq: its place among the tenant's messages; -1: not known.
        place: its place among the candidates of one job, for those of one moment.
        id: of the candidate.
        event: the event it was said in.
        confidence: 0..1.
        authority: see `Authority`.
        announced: as of a `Statement`.
    """

    at: datetime
    seq: int = -1
    place: int = 0
    id: str
    event: str = ""
    confidence: float = 1.0
    authority: Authority = 2
    announced: bool = False

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "at": self.at.isoformat(),
            "seq": self.seq,
            "place": self.place,
            "id": self.id,
            "event": self.event,
            "confidence": self.confidence,
            "authority": self.authority,
            "announced": self.announced,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Saying:
        """The inverse of `to_json`."""
        return cls(**{**values, "at": parse_instant(values["at"])})


@dataclass(slots=True, kw_only=True, eq=False)
class Held:
    """One memory, stored or about to be. What changes of it is written at the end.

    `settled` is what somebody has decided of a clash: "new", it takes the place of the others;
    "both", it stands beside them.
    """

    statement: Statement
    kind: str
    content_hash: str
    event: str
    state: State
    reason: str = ""
    by: str | None = None
    edges: tuple[Relationship, ...] = ()
    heard: tuple[Saying, ...] = ()
    own: Saying
    expires_at: datetime | None = None
    confidence: float = 1.0
    settled: str = ""
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    ours: bool = True
    fresh: dict[str, Any] | None = None
    vector: NDArray[np.float32] | None = None
    before: tuple[Any, ...] = field(default=())

    @classmethod
    def of(cls, memory: Memory) -> Held:
        """A stored memory."""
        statement = Statement.held(memory)
        place, sure = (memory.metadata.get(name) for name in ("place", "sure"))
        heard = memory.metadata.get("heard")
        made = cls(
            statement=statement,
            kind=str(memory.kind),
            content_hash=memory.content_hash,
            event=memory.source_ref,
            state=memory.state,
            reason=memory.state_reason,
            by=memory.superseded_by,
            edges=memory.relationships,
            heard=tuple(map(Saying.from_json, heard)) if isinstance(heard, list) else (),
            own=Saying(
                at=statement.at,
                seq=-1 if memory.seq is None else memory.seq,
                place=place if isinstance(place, int) else 0,
                id=memory.id,
                event=memory.source_ref,
                confidence=sure if isinstance(sure, float) else memory.confidence,
                authority=statement.authority,
                announced=statement.announced,
            ),
            expires_at=memory.expires_at,
            confidence=memory.confidence,
            settled=str(memory.metadata.get("settled", "")),
            importance=memory.importance,
            tags=memory.tags,
            ours=memory.source == EXTRACTED,
        )
        made.before = made.now()
        return made

    def now(self) -> tuple[Any, ...]:
        """All that resolving may change."""
        return (
            self.state,
            self.reason,
            self.by,
            self.edges,
            self.heard,
            self.expires_at,
            self.confidence,
            self.settled,
        )

    @property
    def id(self) -> str:
        """The memory's id."""
        return self.statement.id

    @property
    def sayings(self) -> list[Saying]:
        """Every time that it was said, as far as it is remembered."""
        return sorted([self.own, *self.heard])

    @property
    def waits(self) -> bool:
        """Whether it is pending because it was heard once, with little confidence."""
        return self.state is State.PENDING and self.asks is None

    @property
    def asks(self) -> str | None:
        """What it waits for, "clarify" or "review", where it clashes with another."""
        word = self.reason.partition(":")[0]
        return word if self.state is State.PENDING and word in ("clarify", "review") else None

    @property
    def fixed(self) -> bool:
        """Whether something else than the order of what was said has replaced it."""
        return self.state is State.SUPERSEDED and not self.reason.startswith(RESOLVED)

    def gone(self, now: datetime) -> bool:
        """Whether it is out of the question: retired, contradicted, expired."""
        if self.state in (State.RETIRED, State.CONTRADICTED):
            return True
        live = self.state is not State.SUPERSEDED
        return live and self.expires_at is not None and self.expires_at <= now

    def knows(self, saying: Saying) -> bool:
        """Whether it has this very saying, or has one time forgotten it among many."""
        if saying.id == self.id or any(one.id == saying.id for one in self.heard):
            return True
        return len(self.heard) >= MOST_HEARD and saying < min(self.heard)

    def hear(self, saying: Saying) -> None:
        """It was said once more."""
        self.heard = tuple(sorted([*self.heard, saying])[-MOST_HEARD:])

    def link(self, relation: str, target: str, note: str = "") -> None:
        """One relationship more, if it is not there."""
        edge = Relationship(relation=relation, target=target, note=note)
        if edge not in self.edges:
            self.edges = (*self.edges, edge)

    def replaced(self, by: Held, reason: str) -> None:
        """Superseded by another one."""
        self.state, self.reason, self.by = State.SUPERSEDED, reason, by.id
