"""Which memories have stayed long enough, and why each: a plan of it, and its change set."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from lance_memory.govern.retention.policy import RetentionPolicy, RetentionRule
from lance_memory.html import Told
from lance_memory.record.memory import Kind, Scope
from lance_memory.record.rows import Fingerprint, patched, retired
from lance_memory.storage import Snapshot
from lance_memory.wording import counted

__all__ = ["Due", "RetentionPlan", "retired_parts"]

_BATCH = 4_096
_WHY: Final = {
    RetentionRule.EXPIRED: "expired",
    RetentionRule.AGE: "by age",
    RetentionRule.LOW_IMPORTANCE: "of low importance",
}
"""What follows a number of memories that a rule names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """One memory that would be retired, and why.

    Attributes:
        tenant: whose; "" for none.
        rule: the first that says so.
        age: since it happened, was learned, or got its state, whichever was last.
        reason: what it gets as its `state_reason`.
    """

    id: str
    tenant: str
    kind: Kind
    rule: RetentionRule
    age: timedelta
    reason: str

    def __str__(self) -> str:
        return f"{self.id} ({self.reason})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPlan(Told):
    """What has stayed long enough, oldest first; `MemoryStore.apply` retires it.

    It has no content: 100,000 such memories take about 75 MB.

    Attributes:
        version: what it was made at.
        at: the moment that ages count to.
        considered: how many active memories the filter let pass.
        memories: those that go.
        policy: of every tenant that is not in `per_tenant`.
        per_tenant: of the others.
        scope: that it was kept to.
        seen: their contents, so that one that was changed since makes the plan stale.
    """

    version: int
    at: datetime
    considered: int
    memories: tuple[Due, ...] = field(repr=False)
    policy: RetentionPolicy
    per_tenant: Mapping[str, RetentionPolicy] = field(default_factory=dict)
    scope: Scope = field(default_factory=Scope)
    seen: Mapping[str, Fingerprint] = field(repr=False)

    def __bool__(self) -> bool:
        return bool(self.memories)

    def __str__(self) -> str:
        if not self:
            looked = counted(self.considered, "memory", "memories")
            return (
                f"nothing of {looked} at version {self.version} is due; age counts from when a "
                "memory happened, was learned, or got its state, whichever was last"
            )
        due = counted(len(self.memories), "memory", "memories")
        return f"{due} of {self.considered:,} at version {self.version} to retire: {self.reason}"

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the memories that go."""
        return tuple(one.id for one in self.memories)

    @property
    def counts(self) -> dict[RetentionRule, int]:
        """How many go by each rule that any goes by."""
        found = Counter(one.rule for one in self.memories)
        return {rule: found[rule] for rule in RetentionRule if found[rule]}

    @property
    def reason(self) -> str:
        """What the log says, unless it is told another: how many go, each rule's apart."""
        return ", ".join(f"{number:,} {_WHY[rule]}" for rule, number in self.counts.items())

    @property
    def digest(self) -> str:
        """Of which content of which memories go, in hex: the same for the same."""
        lines = (
            "\x1f".join([i, str(revision), updated.isoformat(), content])
            for i, (revision, updated, content) in sorted(self.seen.items())
        )
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

    def only(self, ids: Collection[str]) -> RetentionPlan:
        """The plan for these of its memories."""
        return replace(
            self,
            memories=tuple(one for one in self.memories if one.id in ids),
            seen={i: seen for i, seen in self.seen.items() if i in ids},
        )

    def manifest(self) -> dict[str, Any]:
        """For the log: the rules, and the policies of the tenants whose memories go."""
        tenants = {one.tenant for one in self.memories}
        own = sorted(tenants & self.per_tenant.keys())
        told: dict[str, Any] = {"rules": {str(rule): n for rule, n in self.counts.items()}}
        if tenants - set(own):
            told["policy"] = self.policy.to_json()
        if own:
            told["policies"] = {tenant: self.per_tenant[tenant].to_json() for tenant in own}
        return told


def retired_parts(
    snapshot: Snapshot, plan: RetentionPlan, *, remark: str, at: datetime
) -> Iterator[pa.Table]:
    """The rows of the plan as retired ones, a batch in memory at a time.

    Args:
        snapshot: has the rows.
        plan: says why each goes.
        remark: follows each one's own reason.
        at: when they were retired.
    """
    more = f": {remark}" if remark else ""
    why = {one.id: one.reason + more for one in plan.memories}
    names = snapshot.schema.names
    for rows in snapshot.batches_by_ids(plan.ids, columns=names, batch_size=_BATCH):
        reasons = pa.array([why[identifier] for identifier in rows["id"].to_pylist()], pa.string())
        yield patched(retired(rows, reason="", now=at), {"state_reason": reasons})
