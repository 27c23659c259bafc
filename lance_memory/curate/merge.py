"""N memories into one row: what the successor carries over from its sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from math import fsum
from typing import Any, TypeAlias

from lance_memory.curate.transform.protocol import Derived
from lance_memory.record.compare import same_json
from lance_memory.record.evidence import agreeing
from lance_memory.record.filters import is_live
from lance_memory.record.memory import CONSOLIDATED, SCOPE_LEVELS, Kind, Memory, Scope

__all__ = ["CombineConfidence", "agreeing", "averaged", "successor_row"]

CombineConfidence: TypeAlias = Callable[[Sequence[float]], float]
"""The confidences of the sources, 0..1, as one."""

CONSOLIDATES = "consolidates"
SUCCESSOR_COLUMNS = (
    *("id", "key", "content", *SCOPE_LEVELS, "kind", "actor", "role", "metadata", "tags"),
    *("importance", "confidence", "quality", "valid_from", "valid_to", "event_at", "expires_at"),
    "seq",
    *("created_at", "updated_at", "state_at", "source", "relationships"),
)
"""What `successor_row` fills in."""


def successor_row(
    sources: Sequence[Memory],
    derived: Derived,
    *,
    identifier: str,
    now: datetime,
    relation: str = CONSOLIDATES,
    combined: CombineConfidence = max,
) -> dict[str, Any]:
    """The successor's columns as JSON values.

    Scope levels, kind, actor and role are the sources' where all agree, else left open.
    `valid_from` is the earliest and `event_at` the latest time of the sources; validity and life
    end with the latest of theirs; importance is their highest, confidence what `combined` makes of
    theirs, tags their union, metadata what all agree on. A key that one of them has goes over if
    the scope is the same: what is upserted under it next replaces the successor.
    """
    scope = {level: _agreed((getattr(m, level) for m in sources), "") for level in SCOPE_LEVELS}
    times = [memory.happened_at for memory in sources]
    starts = [memory.valid_from or memory.happened_at for memory in sources]
    kind = derived.kind or _agreed((m.kind for m in sources), Kind.SEMANTIC)
    return {
        "id": identifier,
        "key": _key(sources, Scope(**scope), now),
        "content": derived.content,
        **scope,
        "kind": str(kind),
        "actor": _agreed((m.actor for m in sources), ""),
        "role": _agreed((m.role for m in sources), ""),
        "metadata": {**_common(sources), **derived.metadata},
        "tags": list(dict.fromkeys([*(t for m in sources for t in m.tags), *derived.tags])),
        "importance": _given(derived.importance, max(m.importance for m in sources)),
        "confidence": _given(derived.confidence, combined([m.confidence for m in sources])),
        "quality": max((m.quality for m in sources if m.quality is not None), default=None),
        "valid_from": min(starts).isoformat(),
        "event_at": max(times).isoformat(),
        "valid_to": _latest_end(memory.valid_to for memory in sources),
        "expires_at": _latest_end(memory.expires_at for memory in sources),
        "seq": max((m.seq for m in sources if m.seq is not None), default=None),
        "created_at": now.isoformat(),
        "updated_at": now.isoformat(),
        "state_at": now.isoformat(),
        "source": CONSOLIDATED,
        "relationships": [{"relation": relation, "target": m.id, "note": ""} for m in sources],
    }


def _agreed(values: Iterable[Any], otherwise: Any) -> Any:
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else otherwise


def averaged(confidences: Sequence[float]) -> float:
    """Of memories that say different things: the mean."""
    return fsum(confidences) / len(confidences)


def _given(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _latest_end(ends: Iterable[datetime | None]) -> str | None:
    """None, as soon as one is open."""
    every = list(ends)
    known = [end for end in every if end is not None]
    return max(known).isoformat() if len(known) == len(every) else None


def _key(sources: Sequence[Memory], scope: Scope, now: datetime) -> str | None:
    """The one key that the live sources have in this scope; two of them would have to share."""
    keys = {
        memory.key
        for memory in sources
        if memory.key is not None and memory.scope == scope and _is_live(memory, now)
    }
    return keys.pop() if len(keys) == 1 else None


def _is_live(memory: Memory, now: datetime) -> bool:
    return is_live({"state": memory.state, "expires_at": memory.expires_at}, now)


def _common(sources: Sequence[Memory]) -> Mapping[str, Any]:
    first, *rest = (memory.metadata for memory in sources)
    return {
        name: value
        for name, value in first.items()
        if all(name in other and same_json(other[name], value) for other in rest)
    }
