"""What a call of `ingest` answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lance_memory.ingest.candidate import Decision

__all__ = ["IngestResult", "IngestStatus"]


class IngestStatus(StrEnum):
    """Where a job stands, and which layer of the gate blocked it.

    None of them is an error of the caller's: the agent's own model call goes on whatever this says.
    """

    DONE = "done"
    QUEUED = "queued"
    RUNNING = "running"
    BUFFERED = "buffered"
    REFUSED = "refused"
    FAILED = "failed"
    L1 = "L1"
    L2 = "L2"
    L3 = "L3"
    L4 = "L4"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """What became of what was ingested, and what each step decided.

    Attributes:
        uri: the store's.
        version: the version that it made, or found where nothing was to be written.
        status: "done" where at least one conversation came through, else why none did.
        reason: a name for that, such as "low_quality"; what a failed job died of.
        job: its name, by which `jobs` knows it.
        ids: the memories that were made, in order.
        decisions: of every step, in order; see `Decision`.
        degraded: what was done without, such as "embed: ..." for memories without a vector.
        seconds: by step.
        messages: how many there were.
        eta: seconds until a queued job is likely to be done; None: unknown, or it is done.
        upkeep: as in `WriteResult`.
        warnings: as in `WriteResult`; and which limit refused it.
    """

    uri: str
    version: int
    status: IngestStatus
    reason: str = ""
    job: str = ""
    ids: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = field(default=(), repr=False)
    degraded: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)
    messages: int = 0
    eta: float | None = field(default=None, compare=False)
    upkeep: str = field(default="", compare=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """How many decisions of each kind, by step: {"keep": {"kept": 3, "low_confidence": 1}}.

        Of what did not pass, the reason is counted; else the verdict.
        """
        found: dict[str, Counter[str]] = {}
        for decision in self.decisions:
            name = decision.reason if decision.verdict in _BY_REASON else decision.verdict
            found.setdefault(decision.step, Counter())[name or decision.verdict] += 1
        return {step: dict(sorted(counts.items())) for step, counts in found.items()}

    def to_json(self) -> dict[str, Any]:
        """As JSON values, without any content."""
        return {
            "uri": self.uri,
            "version": self.version,
            "status": str(self.status),
            "reason": self.reason,
            "job": self.job,
            "ids": list(self.ids),
            "decisions": [decision.to_json() for decision in self.decisions],
            "degraded": list(self.degraded),
            "seconds": dict(self.seconds),
            "messages": self.messages,
            "upkeep": self.upkeep,
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> IngestResult:
        """The inverse of `to_json`."""
        return cls(
            **{
                **values,
                "status": IngestStatus(values["status"]),
                "ids": tuple(values["ids"]),
                "decisions": tuple(map(Decision.from_json, values["decisions"])),
                "degraded": tuple(values["degraded"]),
                "warnings": tuple(values.get("warnings", ())),
            }
        )


_BY_REASON = frozenset(
    ["discarded", "blocked", "refused", "failed", "reject", "L1", "L2", "L3", "L4"]
)
