"""What a memory is, as Python values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_memory.errors import ScopeError
from lance_memory.record import shown

__all__ = ["CONSOLIDATED", "DISTILLED", "SAID", "Kind", "Memory", "Relationship", "Scope", "State"]

CONSOLIDATED = "consolidated"
"""The `source` of a memory that took the place of others."""

DISTILLED = "distilled"
"""The `source` of a snapshot: what others say, and those stay as they are."""

SAID = "working"
"""The `source` of a memory that was a message of a session."""


class Kind(StrEnum):
    """What sort of memory a row is.

    `workspace` is what an agent is told, and not what it remembers: prompts, skills, policies,
    grants. Reads leave it out unless `kinds` names it or `states` is "any".
    """

    WORKING = "working"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    PROFILE = "profile"
    WORKSPACE = "workspace"


class State(StrEnum):
    """Where a memory stands in its life. Only `active` rows are recalled by default."""

    ACTIVE = "active"
    PENDING = "pending"
    SUPERSEDED = "superseded"
    RETIRED = "retired"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose memory it is. A boundary, not a tag; an empty name means "not given"."""

    tenant: str = ""
    user: str = ""
    agent: str = ""
    session: str = ""
    run: str = ""

    def __bool__(self) -> bool:
        return any(self.names().values())

    def names(self) -> dict[str, str]:
        """All five levels by name, empty ones included."""
        return {name: getattr(self, name) for name in SCOPE_LEVELS}

    def given(self) -> dict[str, str]:
        """Only the levels that are not empty."""
        return {name: value for name, value in self.names().items() if value}

    def holds(self, other: Scope) -> bool:
        """Whether `other` lies inside this scope: it agrees on every level given here."""
        inside = other.names()
        return all(inside[name] == value for name, value in self.given().items())

    def narrowed(self, **levels: str) -> Scope:
        """This scope with more levels given.

        Raises:
            ScopeError: a level is given here already, with another name.
        """
        merged = self.names()
        for name, value in levels.items():
            if value and merged[name] and merged[name] != value:
                raise ScopeError(
                    f"asked for {name}={value!r} through a handle that is scoped to "
                    f"{name}={merged[name]!r}; use the store's own handle to go elsewhere"
                )
            merged[name] = value or merged[name]
        return Scope(**merged)

    def __str__(self) -> str:
        return "/".join(f"{name}={value}" for name, value in self.given().items()) or "(all)"


SCOPE_LEVELS = tuple(f.name for f in fields(Scope))


@dataclass(frozen=True, slots=True, kw_only=True)
class Relationship:
    """A directed edge from the memory that carries it to the memory `target` (an id)."""

    relation: str
    target: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One row. Times are timezone-aware UTC; scores are in 0..1; `embedding` is float32 [d].

    `embedding` is None when the row has none, and also in the answers of `list`, `iter`, `search`
    and `related`, which leave it out (`get` and a transform's cluster have it). It takes no part
    in equality.
    """

    id: str
    revision: int
    content: str
    content_hash: str
    created_at: datetime
    updated_at: datetime
    state_at: datetime
    key: str | None = None
    tenant: str = ""
    user: str = ""
    agent: str = ""
    session: str = ""
    run: str = ""
    kind: Kind = Kind.EPISODIC
    role: str = ""
    actor: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    confidence: float = 1.0
    quality: float | None = None
    event_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    seq: int | None = None
    state: State = State.ACTIVE
    state_reason: str = ""
    superseded_by: str | None = None
    relationships: tuple[Relationship, ...] = ()
    source: str = "user"
    source_ref: str = ""
    embedding: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)

    def _repr_html_(self) -> str:
        return shown.memory(self)

    @property
    def scope(self) -> Scope:
        """The five scope columns as one value."""
        return Scope(**{name: getattr(self, name) for name in SCOPE_LEVELS})

    @property
    def happened_at(self) -> datetime:
        """When it was true: `event_at`, or `created_at` where no event time was given."""
        return self.event_at or self.created_at

    def visible_at(self, moment: datetime) -> bool:
        """Active, and not expired at `moment`."""
        alive = self.expires_at is None or self.expires_at > moment
        return self.state is State.ACTIVE and alive
