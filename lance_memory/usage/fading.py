"""Which memories have faded below a strength, and the change set that retires them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import InvalidInputError
from lance_memory.html import Told
from lance_memory.record.arguments import real
from lance_memory.record.decay import Decay, Uses, evergreen, seconds_since, strengths
from lance_memory.record.filters import Filter, all_of, none_of
from lance_memory.record.rows import FINGERPRINT, Fingerprint, patched, retired
from lance_memory.storage import Audit, ChangeSet, Snapshot
from lance_memory.wording import counted, some

__all__ = ["Faded", "RetirePlan", "faded_away", "fading"]

_COLUMNS = ("id", "importance", "event_at", "created_at")
_BATCH = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Faded:
    """One memory that would be retired, and why.

    Attributes:
        strength: 0..1, see `record.decay`.
        age: since it happened.
        recalls: by recorded queries.
        last_recalled: None: never.
        reason: what it gets as its `state_reason`.
    """

    id: str
    strength: float
    age: timedelta
    recalls: int
    last_recalled: datetime | None
    content: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirePlan(Told):
    """What has faded, weakest first; `MemoryStore.apply` retires it.

    Attributes:
        version: what it was made at.
        at: the moment that ages count to.
        below: memories that are weaker go.
        decay: how they fade.
        considered: how many memories the filter let pass, evergreen ones included.
        memories: those that go.
        seen: their contents, so that one that was changed since makes the plan stale.
    """

    version: int
    at: datetime
    below: float
    decay: Decay
    considered: int
    memories: tuple[Faded, ...]
    seen: Mapping[str, Fingerprint] = field(repr=False)

    def __bool__(self) -> bool:
        return bool(self.memories)

    def __str__(self) -> str:
        faded = counted(len(self.memories), "memory", "memories")
        weakest = [f"{m.id} ({m.strength:.3f})" for m in self.memories]
        return (
            f"{faded} of {self.considered:,} at version {self.version} to retire, {self.reason}: "
            f"{some(weakest)}"
        )

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the memories that go."""
        return tuple(memory.id for memory in self.memories)

    @property
    def reason(self) -> str:
        """What the log says, unless it is told another."""
        return f"strength below {self.below:.2f}, half-life {self.decay.half_life}"

    def manifest(self) -> dict[str, Any]:
        """For the log."""
        return {"below": self.below, "decay": self.decay.to_json()}


def fading(
    snapshot: Snapshot,
    chosen: Filter,
    *,
    below: float,
    decay: Decay,
    uses: Callable[[Decay], Uses],
    moment: datetime,
) -> RetirePlan:
    """Look at every memory that passes, a batch of narrow columns at a time.

    Args:
        snapshot: has the memories.
        chosen: which of them, all visible.
        below: a strength, 0..1.
        decay: how they fade.
        uses: how often each was recalled, as far as decay asks.
        moment: what ages count to.

    Raises:
        InvalidInputError: a strength that is none, no Decay, or a filter that names states.
    """
    _check(below, decay, chosen)
    predicate, used = chosen.predicate(moment), uses(decay)
    aging = all_of(predicate, none_of(evergreen(decay)))
    weak = [_NONE]
    for batch in snapshot.batches(aging, columns=_COLUMNS, batch_size=_BATCH):
        rows = _measured(pa.Table.from_batches([batch]), decay, used, moment)
        weak.append(rows.filter(pc.less(rows["strength"], below)))
    found = pa.concat_tables(weak).sort_by([("strength", "ascending"), ("id", "ascending")])
    contents = snapshot.by_ids(found["id"].to_pylist(), columns=["id", "content", *FINGERPRINT])
    texts = {row["id"]: row for row in contents.to_pylist()}
    return RetirePlan(
        version=snapshot.version,
        at=moment,
        below=below,
        decay=decay,
        considered=snapshot.count(predicate),
        memories=tuple(
            _faded(row, texts[row["id"]]["content"], below) for row in found.to_pylist()
        ),
        seen={i: tuple(texts[i][name] for name in FINGERPRINT) for i in found["id"].to_pylist()},
    )


def faded_away(snapshot: Snapshot, plan: RetirePlan, *, audit: Audit) -> ChangeSet:
    """The plan as one change; the commit refuses it where a memory was changed since.

    A reason of the audit that is not the plan's follows each memory's own.
    """
    remark = "" if audit.reason == plan.reason else audit.reason
    rows = snapshot.by_ids(plan.ids, columns=snapshot.schema.names)
    more = f": {remark}" if remark else ""
    why = {memory.id: memory.reason + more for memory in plan.memories}
    reasons = pa.array([why[identifier] for identifier in rows["id"].to_pylist()], pa.string())
    updates = patched(retired(rows, reason="", now=audit.at), {"state_reason": reasons})
    return ChangeSet(audit=audit, updates=updates, seen=plan.seen)


_TIME = pa.timestamp("us", "UTC")
_NONE = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("strength", pa.float64()),
        pa.field("age", pa.duration("us")),
        pa.field("recalls", pa.int64()),
        pa.field("last_recalled", _TIME),
    ]
).empty_table()


def _measured(rows: pa.Table, decay: Decay, uses: Uses, moment: datetime) -> pa.Table:
    """The strength of each row, none being evergreen, and what it is made of."""
    happened = pc.coalesce(rows["event_at"], rows["created_at"]).cast(pa.timestamp("us"))
    age = seconds_since(happened.to_numpy().astype("datetime64[us]"), moment)
    recalls, last = uses.of(rows["id"].to_pylist())
    strength = strengths(
        rows["importance"].to_numpy().astype(np.float64),
        age,
        decay,
        recalls=recalls,
        idle=seconds_since(last, moment),
        evergreen=np.zeros(len(rows), np.bool_),
    )
    return pa.table(
        {
            "id": rows["id"],
            "strength": strength,
            "age": pa.array((age * 1e6).astype(np.int64), pa.duration("us")),
            "recalls": recalls.astype(np.int64),
            "last_recalled": pa.array(last, pa.timestamp("us"), mask=recalls == 0).cast(_TIME),
        },
        schema=_NONE.schema,
    )


def _faded(row: Mapping[str, Any], content: str, below: float) -> Faded:
    down = math.floor(row["strength"] * 100) / 100  # 0.199 is not 0.20, and not below it
    reason = f"strength {down:.2f} below {below:.2f}"
    return Faded(content=content, reason=reason, **row)


def _check(below: float, decay: Decay, chosen: Filter) -> None:
    if chosen.states != "visible":
        raise InvalidInputError(
            f"states={chosen.states!r}; only visible memories fade, so leave states out"
        )
    if not isinstance(decay, Decay):
        raise InvalidInputError(
            f"decay={decay!r}; below= needs a Decay, such as Decay(half_life=timedelta(days=30))"
        )
    real("below", below, least=0, most=1)
