"""A version's entry in the log, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from lance_memory.record.memory import Scope
from lance_memory.wording import shown

__all__ = ["LogEntry", "as_json", "from_json"]

_NAMED = 24
"""Characters that are shown of who did it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One version: what was done, by whom, when and why.

    `upkeep` marks the versions that changed no memory (creation, compaction, indices).
    `scopes` lists the scopes that were written to; None: too many to list. A version that is not
    `readable` was cleaned up, and this entry is what is left of it. One that is `partial` wrote to
    other scopes than the one that asks too: its counts, reason, scopes and manifest are not told.
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
    partial: bool = False

    def __repr__(self) -> str:
        counts = (("+", self.inserted), ("~", self.updated), ("-", self.deleted))
        changed = [f"{sign}{number:,}" for sign, number in counts if number]
        marks = {
            "part of it": self.partial,
            f"by {shown(self.actor, _NAMED)}": self.actor,
            "upkeep": self.upkeep,
            "cleaned up": not self.readable,
        }
        told = " ".join([self.operation, *changed])
        beside = "".join(f", {mark}" for mark, holds in marks.items() if holds)
        reason = f": {shown(self.reason)!r}" if self.reason else ""
        return f"<LogEntry {self.version} {self.at:%Y-%m-%d %H:%M} {told}{beside}{reason}>"


def as_json(entry: LogEntry) -> str:
    """The entry as JSON; `from_json` gives it back, as that of a version that is gone."""
    told = asdict(entry)
    del told["readable"], told["partial"]
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
