"""What a layer of the gate is, and what all of them need to know of a conversation."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from lance_memory.errors import StorageError
from lance_memory.ingest.message import Conversation, Message, Role
from lance_memory.ingest.steps import Surroundings

__all__ = ["Blocked", "Held", "Layer", "Look", "NoLedgerError", "digest", "inputs", "owner"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Why a conversation does not pass, in numbers."""

    figures: Mapping[str, float] = field(default_factory=dict)


class NoLedgerError(StorageError):
    """There is no ledger, as in a dry run: what it would remember is not asked. No failure."""


class Look(Protocol):
    """One layer's look at the conversations of one call. Not shared between threads."""

    def judge(self, place: int) -> Blocked | None:
        """Whether the conversation at that place passes this layer; asked once, in order."""
        ...

    def settle(self, place: int, *, passed: bool) -> None:
        """What became of one that passed this layer: whether it passed the later ones too."""
        ...

    def close(self) -> None:
        """Nothing more comes in this call."""
        ...


class Layer(Protocol):
    """One reason to block. Safe to share between threads.

    What cannot be reached is a LanceMemoryError or an OSError of its methods and its looks'; the
    gate then goes on without the layer.
    """

    @property
    def code(self) -> str:
        """Such as "L1", the verdict."""
        ...

    @property
    def reason(self) -> str:
        """Such as "rate_limit_exceeded"."""
        ...

    @property
    def alone(self) -> bool:
        """Whether its judgement is the same whatever later layers decide about earlier items."""
        ...

    def look(self, asked: Mapping[int, Conversation], around: Surroundings) -> Look:
        """A look at conversations by their place in the job, in order."""
        ...

    def settled(self, job: str, *, safe: bool) -> None:
        """What passed in a job is stored or queued, or else the job failed and may come again."""
        ...


class Held(Generic[_T]):
    """What jobs leave behind once they are safe. Shared between threads."""

    def __init__(self) -> None:
        self._of: dict[str, list[_T]] = {}
        self._lock = threading.Lock()

    def hold(self, job: str, values: Iterable[_T]) -> None:
        """Keep values for the end of a job."""
        with self._lock:
            self._of.setdefault(job, []).extend(values)

    def pop(self, job: str) -> list[_T]:
        """The values of a job, which are no longer held."""
        with self._lock:
            return self._of.pop(job, [])


def inputs(conversation: Conversation) -> list[Message]:
    """The user's messages, or where the user says nothing, all; none that are blank."""
    said = [message for message in conversation.messages if message.content.strip()]
    return [message for message in said if message.role is Role.USER] or said


def owner(conversation: Conversation) -> str:
    """The user whose inputs and requests are counted together; without one, the tenant."""
    return owned(conversation.scope.tenant, conversation.scope.user)


def owned(tenant: str, user: str) -> str:
    """The key of a user; those of a tenant begin alike."""
    return f"{digest(tenant)}.{digest(user) if user else ''}"


def digest(*names: str) -> str:
    """A short key for names of any length and characters, 32 hexadecimal digits."""
    return hashlib.blake2b(json.dumps(names).encode(), digest_size=16).hexdigest()
