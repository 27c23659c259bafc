"""What may stand in a context pack: one memory or message, and how relevant it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_memory.record.memory import Kind, Scope

__all__ = ["Candidate", "ContextSource", "Event", "event"]

Event: TypeAlias = tuple[str, str, str, str]
"""Tenant, user, agent and ref: two people's events may have one ref."""


def event(scope: Scope, ref: str) -> Event | None:
    """The event of whoever has that scope with that ref; None: it has none."""
    return (scope.tenant, scope.user, scope.agent, ref) if ref else None


class ContextSource(StrEnum):
    """Where a part of a context pack comes from; in the order of the text."""

    PROFILE = "profile"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    DISTILLED = "distilled"
    SHARED = "shared"
    EPISODIC = "episodic"
    WORKING = "working"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What may be packed.

    Attributes:
        id: of the memory; of a message that is no memory yet its ref, or session and number.
        source: where it comes from.
        kind: of the memory.
        content: the text as it is kept.
        relevance: 0..1, comparable within the source; see `score`.
        why: what the relevance is made from, for `--explain`.
        who: the actor, or the role.
        at: when it happened, UTC.
        until: when it ceased to be true, UTC; None: it did not.
        scope: whose it is.
        shared_by: who let it be read, of what is somebody else's.
        place: among what happened at the same time, the greater the later.
        ref: the event that it comes from, as in `Memory.source_ref`.
        verbatim: whether it is what was said at that event, and not something made of it.
        successor: the memory that took its place.
        made_of: the memories that it was made from, or took the place of.
        outdated_by: the memories that took the place of what it says; it stands beside them only.
        partly: whether some of what it says still holds, where it is outdated.
        vector: float32 [d]; None: it is compared with no other.
    """

    id: str
    source: ContextSource
    kind: Kind
    content: str
    relevance: float
    why: str = ""
    who: str = ""
    at: datetime | None = None
    until: datetime | None = None
    scope: Scope = field(default_factory=Scope)
    shared_by: Scope | None = None
    place: int = 0
    ref: str = ""
    verbatim: bool = False
    successor: str | None = None
    made_of: frozenset[str] = frozenset()
    outdated_by: frozenset[str] = frozenset()
    partly: bool = False
    vector: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)

    @property
    def event(self) -> Event | None:
        """What it comes from; None: it is not known."""
        return event(self.scope, self.ref)
