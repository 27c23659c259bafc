"""What waits, and for what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from lance_memory.record.filters import Filter, all_of
from lance_memory.record.memory import Memory, Scope, State
from lance_memory.record.rows import to_memories
from lance_memory.storage import Snapshot

__all__ = ["Answer", "Waiting", "WaitsFor", "waiting"]


class Answer(StrEnum):
    """Which of two memories that clash is true.

    NEW: the one that waits takes the place of the other; OLD: it is retired; BOTH: both are true.
    """

    NEW = "new"
    OLD = "old"
    BOTH = "both"


class WaitsFor(StrEnum):
    """What a memory waits for.

    CONFIDENCE: to be heard again; CLARIFY: the person's answer; REVIEW: somebody of the
    institution.
    """

    CONFIDENCE = "confidence"
    CLARIFY = "clarify"
    REVIEW = "review"

    @classmethod
    def of(cls, memory: Memory) -> WaitsFor:
        """What a pending memory waits for, as its reason tells."""
        word = memory.state_reason.partition(":")[0]
        return cls(word) if word in (cls.CLARIFY, cls.REVIEW) else cls.CONFIDENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A pending memory.

    Attributes:
        memory: what waits; no read shows it unless asked for the state.
        why: "confidence", "clarify" or "review".
        contradicts: the memory that it clashes with, as it stands now; None: there is none, or it
            is outside of the scope that was asked about.
        expires_at: when it is given up; None: never.
    """

    memory: Memory
    why: WaitsFor
    contradicts: Memory | None = None
    expires_at: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """As JSON values: ids and contents."""
        other = self.contradicts
        return {
            "id": self.memory.id,
            "content": self.memory.content,
            "why": str(self.why),
            "reason": self.memory.state_reason,
            "contradicts": None if other is None else {"id": other.id, "content": other.content},
            "expires_at": None if self.expires_at is None else self.expires_at.isoformat(),
        }


def waiting(
    snapshot: Snapshot, scope: Scope, *, moment: datetime, why: tuple[WaitsFor, ...] = ()
) -> list[Waiting]:
    """The pending memories of a scope that are not expired, oldest first.

    Args:
        snapshot: the version.
        scope: whose.
        moment: at which.
        why: only those that wait for one of these.
    """
    chosen = Filter(scope=scope, states="live").predicate(moment)
    pending = Filter(states=(State.PENDING,)).predicate(None)
    found = to_memories(snapshot.scan(all_of(chosen, pending)))
    found = [memory for memory in found if not why or WaitsFor.of(memory) in why]
    against = {memory.id: _against(memory) for memory in found}
    others = to_memories(snapshot.by_ids(sorted({i for i in against.values() if i})))
    known = {memory.id: memory for memory in others if scope.holds(memory.scope)}
    return [
        Waiting(
            memory=memory,
            why=WaitsFor.of(memory),
            contradicts=known.get(against[memory.id]),
            expires_at=memory.expires_at,
        )
        for memory in sorted(found, key=lambda memory: (memory.happened_at, memory.id))
    ]


def _against(memory: Memory) -> str:
    edges = [edge.target for edge in memory.relationships if edge.relation == "contradicts"]
    return edges[0] if edges else ""
