"""What a step of the write path is, and how one follows another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lance_memory.ingest.candidate import Candidate, Decision
from lance_memory.ingest.message import Conversation
from lance_memory.ledger.protocol import Ledger
from lance_memory.record.memory import Memory, Scope
from lance_memory.telemetry import count, observe

__all__ = [
    "Embed",
    "IngestProgress",
    "Passed",
    "Step",
    "Surroundings",
    "Travelled",
    "tell",
    "travelled",
]

Embed = Callable[[Sequence[str]], NDArray[np.float32]]

IngestProgress = Callable[[str, int, int], object]
"""Called with a step, how much of its work is done, and how much there is: conversations of
"redact" and "extract", texts of "embed". It is called often, and should return at once."""

_I = TypeVar("_I", bound=Conversation | Candidate, covariant=True)  # noqa: PLC0105 - items


def _never(job: str) -> bool:  # noqa: ARG001 - of any job
    return False


def _untold(step: str, done: int, total: int) -> None:
    """Nobody looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What steps may use of the rooms that they do not import.

    Attributes:
        now: the moment of ingestion, timezone-aware UTC.
        job: the name of the job, the same when it is run again.
        tenant: whose conversations these are; all of one job are of one tenant.
        embed: texts → float32 [n, d]; raises EmbeddingError where the embedder fails.
        known: a scope and a number → that many of its visible memories, the most important first.
        ledger: what is remembered beside the table; None: nothing is, or it is not to be asked.
        dry_run: nothing is written, so a ledger that is there is not asked.
        lost: whether the job of that name is dead, so that what it brought may come again.
        progress: is told how far a step is.
        secret: 32 bytes of the store's own, for keyed hashes; they are made from its id, so whoever
            has the store can make them too. Empty: there is no store.
    """

    now: datetime
    job: str
    embed: Embed
    known: Callable[[Scope, int], Sequence[Memory]]
    tenant: str = ""
    ledger: Ledger | None = None
    dry_run: bool = False
    lost: Callable[[str], bool] = _never
    progress: IngestProgress = _untold
    secret: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed(Generic[_I]):
    """What a step lets pass, what it decided on the way, and what it had to do without.

    Attributes:
        items: conversations or candidates, for the next step.
        decisions: at least one for each item that did not pass.
        degraded: such as "gate.L1: the counters cannot be reached".
    """

    items: tuple[_I, ...] = ()
    decisions: tuple[Decision, ...] = ()
    degraded: tuple[str, ...] = ()


class Step(Protocol):
    """Takes what the step before it let pass. Safe to share between threads."""

    @property
    def name(self) -> str:
        """One word, for decisions and figures."""
        ...

    def __call__(self, items: Sequence[Any], around: Surroundings) -> Passed[Any]:
        """The items that go on, and why the others do not."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Travelled:
    """What came through some steps.

    Attributes:
        items: what the last step let pass.
        decisions: of all steps, in order.
        degraded: what they had to do without.
        seconds: by step.
        messages: how many there were at the beginning.
    """

    items: tuple[Any, ...]
    decisions: tuple[Decision, ...] = ()
    degraded: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    messages: int = 0

    @classmethod
    def beginning(cls, conversations: Sequence[Conversation]) -> Travelled:
        """Nothing was done yet."""
        messages = sum(len(conversation.messages) for conversation in conversations)
        return cls(items=tuple(conversations), messages=messages)

    def and_then(self, name: str, passed: Passed[Any], *, seconds: float, tenant: str) -> Travelled:
        """With what one step more gave; its time, decisions and what it lacked are counted."""
        observe("ingest.step.seconds", seconds, step=name, tenant=tenant)
        tell(passed.decisions, tenant=tenant)
        if passed.degraded:
            count("ingest.degraded", len(passed.degraded), step=name, tenant=tenant)
        return Travelled(
            items=passed.items,
            decisions=(*self.decisions, *passed.decisions),
            degraded=(*self.degraded, *passed.degraded),
            seconds={**self.seconds, name: self.seconds.get(name, 0.0) + seconds},
            messages=self.messages,
        )


def travelled(begun: Travelled, steps: Iterable[Step], around: Surroundings) -> Travelled:
    """What comes through the steps, one after the other, counted by step, verdict and tenant."""
    for step in steps:
        start = time.perf_counter()
        passed = step(begun.items, around)
        seconds = time.perf_counter() - start
        begun = begun.and_then(step.name, passed, seconds=seconds, tenant=around.tenant)
    return begun


def tell(decisions: Iterable[Decision], *, tenant: str) -> None:
    """Count decisions, by step, verdict, reason and tenant."""
    for decision in decisions:
        count(
            "ingest.decisions",
            step=decision.step,
            verdict=decision.verdict,
            reason=decision.reason,
            tenant=tenant,
        )
