"""A grant: who lets whom read or change what, until when; and what is read through one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from lance_memory.record.memory import Memory, Scope
from lance_memory.record.results import Hit, Understood
from lance_memory.wording import counted, shown, some

__all__ = ["TIMES", "Grant", "GrantState", "Rights", "SharedHit", "SharedMemory", "SharedResult"]

TIMES: Final = ("since", "until", "valid_at")
"""The filters that are moments; a grant keeps them as text."""


_LISTED = 10
"""Hits that are told one by one."""


class Rights(StrEnum):
    """What a receiver may do: `read`, or `write`, which is to read and to change in place."""

    READ = "read"
    WRITE = "write"


class GrantState(StrEnum):
    """Where a grant stands; what is `expired` or `revoked` gives nothing."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a scope shares with another one of its tenant.

    Attributes:
        id: of the row in the giver's workspace that keeps it.
        giver: the scope that nothing shared lies outside of.
        receiver: a user, an agent, or a user's agent; whoever is kept to it may read.
        rights: what it lets do.
        ids: the memories that are shared by name; None: those that pass `where`.
        where: the filter, as JSON values; what is stored later and passes is shared too.
        expires_at: from when on it gives nothing; None: until it is revoked.
        reason: why.
        granted_by: the author of the handle that gave it.
        created_at: when.
        state: at the moment that it was read.
    """

    id: str
    giver: Scope
    receiver: Scope
    rights: Rights = Rights.READ
    ids: tuple[str, ...] | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None
    reason: str = ""
    granted_by: str = ""
    created_at: datetime
    state: GrantState = GrantState.ACTIVE

    def __str__(self) -> str:
        until = "" if self.expires_at is None else f" until {self.expires_at.isoformat()}"
        return f"{self.receiver} may {self.rights} {self.what} of {self.giver}{until}"

    def __repr__(self) -> str:
        return f"<Grant {self}; {self.state}, id {self.id}>"

    @property
    def what(self) -> str:
        """What is shared, in words."""
        if self.ids is not None:
            return counted(len(self.ids), "memory", "memories")
        told = ", ".join(f"{name}={value!r}" for name, value in self.where.items())
        return f"what passes {told}"

    @property
    def terms(self) -> tuple[Any, ...]:
        """What is agreed; two grants with the same terms say the same."""
        ids = None if self.ids is None else frozenset(self.ids)
        where = sorted(self.where.items(), key=lambda pair: pair[0])
        return self.giver, self.receiver, self.rights, self.expires_at, ids, where

    def manifest(self) -> dict[str, str]:
        """For the log: one text that has the id, so that forgetting the grant takes all of it."""
        return {"grant": f"{self.id}: {self.receiver} may {self.rights} {self.what}"}

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "id": self.id,
            "giver": self.giver.given(),
            "receiver": self.receiver.given(),
            "rights": str(self.rights),
            "ids": None if self.ids is None else list(self.ids),
            "where": dict(self.where),
            "expires_at": None if self.expires_at is None else self.expires_at.isoformat(),
            "reason": self.reason,
            "granted_by": self.granted_by,
            "created_at": self.created_at.isoformat(),
            "state": str(self.state),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMemory:
    """A memory of somebody else's, `memory.scope`, and the grant that lets it be read."""

    memory: Memory
    grant: Grant

    def __repr__(self) -> str:
        return f"<SharedMemory {_told(self.memory, self.grant)}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedHit:
    """A hit among what others share, and the grant that lets it be read."""

    hit: Hit
    grant: Grant

    def __repr__(self) -> str:
        return f"<SharedHit {self.score:.3f} {_told(self.memory, self.grant)}>"

    @property
    def memory(self) -> Memory:
        """What was found; its `scope` says whose it is."""
        return self.hit.memory

    @property
    def score(self) -> float:
        """As of `Hit`."""
        return self.hit.score


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedResult:
    """The hits of one search among what others share, best first, at one version.

    As `SearchResult`; one ranking over all givers. Iterates over its hits.
    """

    version: int
    mode: str
    hits: tuple[SharedHit, ...]
    understood: Understood = field(default_factory=Understood)
    degraded: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        without = f", without {', '.join(self.degraded)}" if self.degraded else ""
        listed = some(self.hits, _LISTED)
        return f"<SharedResult [{listed}]; mode {self.mode}, version {self.version}{without}>"

    def __iter__(self) -> Iterator[SharedHit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> SharedHit:
        return self.hits[place]


def _told(memory: Memory, grant: Grant) -> str:
    """In one line: what it says, who shares it, its id and the grant's."""
    text = shown(memory.content)
    return f"{text!r} shared by {grant.giver}; {memory.scope}, id {memory.id}, grant {grant.id}"
