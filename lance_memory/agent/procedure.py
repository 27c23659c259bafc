"""What a procedure is, how its uses are counted, and how procedures are ranked. No store.

    score = similarity · (successes + 1) / (uses + 2)

The second factor is the mean of the Beta posterior over the success rate with the uniform prior
Beta(1, 1): Laplace's rule of succession (Laplace, "Mémoire sur la probabilité des causes par les
événements", 1774). So 1 of 1 counts 0.67, 98 of 100 counts 0.97, and a procedure that was never
tried counts 0.5: above one that fails, below one that works. The lower bound of Wilson's interval
(Wilson, JASA 22, 1927) also keeps 1 of 1 below 98 of 100, but is 0 where nothing was tried: what is
new would never be found, and so never be tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from lance_memory.errors import InvalidInputError
from lance_memory.record.keys import PROCEDURE
from lance_memory.record.memory import Kind, Memory, Scope
from lance_memory.record.times import parse_instant
from lance_memory.wording import counted, shown

__all__ = [
    "BestProcedures",
    "Procedure",
    "RankedProcedure",
    "procedure_of",
    "ranked",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A way of doing something, and how it went.

    Attributes:
        name: what it is called.
        context: when it fits, as a text that situations are compared with.
        steps: what to do, in order.
        successes: uses that went well.
        failures: uses that did not.
        timed: uses whose duration was told.
        mean_seconds: the mean of those durations; None: none was told.
        last_used: when it was used last, UTC; None: never.
        id: of the memory.
        revision: of the memory.
        scope: whose it is.
        learned_at: when these steps were learned, UTC.
    """

    name: str
    context: str
    steps: tuple[str, ...]
    successes: int = 0
    failures: int = 0
    timed: int = 0
    mean_seconds: float | None = None
    last_used: datetime | None = None
    id: str = ""
    revision: int = 1
    scope: Scope = field(default_factory=Scope)
    learned_at: datetime | None = None

    @property
    def uses(self) -> int:
        """How often it was used."""
        return self.successes + self.failures

    @property
    def success_rate(self) -> float:
        """The smoothed rate, within 0..1 and never at its ends; 0.5 where it was never used."""
        return (self.successes + 1) / (self.uses + 2)

    @property
    def tried(self) -> str:
        """How it went, in words: "3 of 4", or "never tried"."""
        return f"{self.successes} of {self.uses}" if self.uses else "never tried"

    def __str__(self) -> str:
        return f"{self.name}: {self.context} ({self.tried})"

    def __repr__(self) -> str:
        steps = counted(len(self.steps), "step")
        return f"<Procedure {shown(str(self))!r}, {steps}; {self.scope}, id {self.id}>"

    @property
    def content(self) -> str:
        """The memory's text."""
        steps = (f"{number}. {step}" for number, step in enumerate(self.steps, start=1))
        return "\n".join([f"{self.name}: {self.context}", *steps])

    def used(self, *, success: bool, seconds: float | None, at: datetime) -> Procedure:
        """The same after one more use. The mean is a running one: mean += (x - mean) / n."""
        timed, mean = self.timed, self.mean_seconds
        if seconds is not None:
            timed, before = timed + 1, mean or 0.0
            mean = before + (seconds - before) / timed
        return replace(
            self,
            successes=self.successes + success,
            failures=self.failures + (not success),
            timed=timed,
            mean_seconds=mean,
            last_used=at if self.last_used is None else max(at, self.last_used),
        )

    def to_metadata(self) -> dict[str, Any]:
        """What the memory says of it under `metadata`."""
        return {
            "procedure": self.name,
            "context": self.context,
            "steps": list(self.steps),
            "successes": self.successes,
            "failures": self.failures,
            "timed": self.timed,
            "mean_seconds": self.mean_seconds,
            "last_used": self.last_used.isoformat() if self.last_used else None,
        }


def procedure_of(memory: Memory) -> Procedure | None:
    """The procedure that the memory keeps; None: it is none of this layer.

    Anybody may give a memory of their own such a key, and what it says besides must not end a list
    that others are in as well.
    """
    said = memory.metadata
    named = memory.key == f"{PROCEDURE}{said.get('procedure')}"
    if memory.kind is not Kind.PROCEDURAL or not named or not _is_told(said):
        return None
    last = said.get("last_used")
    return Procedure(
        name=said["procedure"],
        context=said["context"],
        steps=tuple(said["steps"]),
        successes=said["successes"],
        failures=said["failures"],
        timed=said["timed"],
        mean_seconds=said.get("mean_seconds"),
        last_used=parse_instant(last) if last else None,
        id=memory.id,
        revision=memory.revision,
        scope=memory.scope,
        learned_at=memory.created_at,
    )


def _is_told(said: Mapping[str, Any]) -> bool:
    """Whether it says what `Procedure.to_metadata` does."""
    steps, mean, last = said.get("steps"), said.get("mean_seconds"), said.get("last_used")
    if not isinstance(steps, list):
        return False
    texts = [said.get("procedure"), said.get("context"), *steps]
    counts = [said.get(name) for name in ("successes", "failures", "timed")]
    return (
        all(isinstance(text, str) for text in texts)
        and all(type(count) is int and count >= 0 for count in counts)
        and (type(mean) in (int, float) if counts[-1] else mean is None)
        and (last is None or _is_instant(last))
    )


def _is_instant(value: object) -> bool:
    try:
        return isinstance(value, str) and parse_instant(value) is not None
    except InvalidInputError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedProcedure:
    """A procedure, and why it stands where it does.

    Attributes:
        similarity: cosine of the situation and its context, above 0 and at most 1.
        score: similarity · success rate, within 0..1.
    """

    procedure: Procedure
    similarity: float
    score: float

    def __str__(self) -> str:
        return f"{self.score:.3f} {self.procedure}"

    def __repr__(self) -> str:
        return f"<RankedProcedure {shown(str(self))!r}, id {self.procedure.id}>"

    def explain(self) -> str:
        """The score and its parts in one line."""
        one = self.procedure
        return (
            f"score {self.score:.3f} = similarity {self.similarity:.3f} × success "
            f"{one.success_rate:.3f} ({one.tried}; Laplace: ({one.successes} + 1) / "
            f"({one.uses} + 2))"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BestProcedures:
    """The procedures for a situation, best first. Iterates over them.

    Attributes:
        ranks: each with its score.
        degraded: "vector" → why not all procedures could be compared; empty where all were.
    """

    ranks: tuple[RankedProcedure, ...]
    degraded: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        without = f", without {', '.join(self.degraded)}" if self.degraded else ""
        return f"<BestProcedures [{', '.join(map(repr, self.ranks))}]{without}>"

    def __iter__(self) -> Iterator[RankedProcedure]:
        return iter(self.ranks)

    def __len__(self) -> int:
        return len(self.ranks)

    def __getitem__(self, place: int) -> RankedProcedure:
        return self.ranks[place]


def ranked(
    found: Iterable[tuple[Procedure, float]], *, min_similarity: float = 0.0
) -> list[RankedProcedure]:
    """Procedures with the similarity of each, best first; those that do not fit are left out.

    Equal scores: the more similar one first, then by name and id, so that the order is always the
    same.
    """
    fitting = [
        RankedProcedure(procedure=one, similarity=similarity, score=similarity * one.success_rate)
        for one, similarity in found
        if similarity > 0 and similarity >= min_similarity
    ]
    return sorted(
        fitting, key=lambda r: (-r.score, -r.similarity, r.procedure.name, r.procedure.id)
    )
