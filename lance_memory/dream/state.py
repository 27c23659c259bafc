"""What passes leave behind for the next one: a small file beside the store's table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lance_memory.dream.results import DreamOutcome, DreamResult, Running
from lance_memory.errors import InvalidInputError, StorageError
from lance_memory.record.times import parse_instant

__all__ = ["Passes", "State"]

_MOST_KEPT = 256
_GOOD = (DreamOutcome.CONSOLIDATED, DreamOutcome.NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """The passes over one choice of memories.

    Attributes:
        last: the last one, whatever became of it.
        since: when the last one that succeeded began.
        seen: the version that it read; what was written later is new.
        unfinished: it ended at its bounds, and it changed something.
    """

    last: DreamResult | None = None
    since: datetime | None = None
    seen: int = 0
    unfinished: bool = False

    def then(self, result: DreamResult, *, rows: int | None) -> Passes:
        """After one more pass, which was to consider at most so many `rows`.

        One that did not succeed leaves what was new as new. One that changed nothing is finished,
        whatever its bounds: the next one would find the same.
        """
        plan = result.plan
        if result.outcome not in _GOOD or plan is None:
            return replace(self, last=result)
        ended_early = bool(plan.cut) or (rows is not None and plan.selected >= rows)
        return Passes(
            last=result,
            since=result.at,
            seen=plan.version,
            unfinished=ended_early and bool(plan.accepted),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The whole file: the pass under way, and what passes did, by the memories they are about."""

    running: Running | None = None
    passes: Mapping[str, Passes] = field(default_factory=dict)

    def about(self, what: str) -> Passes:
        """The passes over these memories."""
        return self.passes.get(what, Passes())

    def having(self, what: str, passes: Passes) -> State:
        """With other passes over these memories, and none under way; the oldest ones go."""
        others = {about: p for about, p in self.passes.items() if about != what}
        kept = list({**others, what: passes}.items())[-_MOST_KEPT:]
        return State(passes=dict(kept))

    @classmethod
    def read(cls, path: Path) -> State:
        """What the file says; nothing, where there is none or it is damaged."""
        try:
            values = json.loads(path.read_bytes())
            return cls(
                running=_running(values["running"]),
                passes={about: _passes(told) for about, told in values["passes"].items()},
            )
        except (OSError, KeyError, TypeError, AttributeError, ValueError, InvalidInputError):
            return cls()

    def write(self, path: Path) -> None:
        """Replace the file, at once; the caller holds the lock.

        Raises:
            StorageError: it cannot be written.
        """
        fresh = path.with_name(f"{path.name}.new")
        document = {
            "running": self.running
            and {**asdict(self.running), "since": _text(self.running.since)},
            "passes": {about: _told(passes) for about, passes in self.passes.items()},
        }
        try:
            fresh.write_text(json.dumps(document, indent=1), encoding="utf-8")
            fresh.replace(path)
        except OSError as error:
            raise StorageError(
                f"{path} cannot be written ({error}); a pass keeps its status there"
            ) from error


def _told(passes: Passes) -> dict[str, Any]:
    return {
        "last": passes.last and passes.last.manifest(),
        "since": passes.since and _text(passes.since),
        "seen": passes.seen,
        "unfinished": passes.unfinished,
    }


def _passes(told: Mapping[str, Any]) -> Passes:
    last = told["last"]
    return Passes(
        last=last
        and DreamResult(
            **{**last, "outcome": DreamOutcome(last["outcome"]), "at": parse_instant(last["at"])}
        ),
        since=told["since"] and parse_instant(told["since"]),
        seen=int(told["seen"]),
        unfinished=bool(told["unfinished"]),
    )


def _running(told: Mapping[str, Any] | None) -> Running | None:
    return None if told is None else Running(**{**told, "since": parse_instant(told["since"])})


def _text(moment: datetime) -> str:
    return moment.isoformat()
