"""A version's entry in the log, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from lance_memory.record.memory import Scope

__all__ = ["LogEntry", "as_json", "from_json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One version: what was done, by whom, when and why.

    `upkeep` marks the versions that changed no memory (creation, compaction, indices).
    `scopes` lists the scopes that were written to; None: too many to list. A version that is not
    `readable` was cleaned up, and this entry is what is left of it.
    """

    version: int
    at: datetime
    operation: str
    op_id: str = ""
    actor: str = ""
    reason: str = ""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    upkeep: bool = False
    scopes: tuple[Scope, ...] | None = ()
    manifest: Mapping[str, Any] | None = None
    readable: bool = True


def as_json(entry: LogEntry) -> str:
    """The entry as JSON; `from_json` gives it back, as that of a version that is gone."""
    told = asdict(entry)
    del told["readable"]
    scopes = None if entry.scopes is None else [scope.names() for scope in entry.scopes]
    return json.dumps({**told, "at": entry.at.isoformat(), "scopes": scopes}, ensure_ascii=False)


def from_json(text: str) -> LogEntry:
    """What `as_json` has made; not readable any more."""
    told = json.loads(text)
    scopes = told.pop("scopes")
    return LogEntry(
        **{**told, "at": datetime.fromisoformat(told["at"])},
        scopes=None if scopes is None else tuple(Scope(**levels) for levels in scopes),
        readable=False,
    )
