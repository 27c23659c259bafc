"""What passes leave behind for the next one: a small file beside the store's table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lance_memory.dream.results import DreamOutcome, DreamResult, Running
from lance_memory.dream.stretch import Mark, Stretch, is_newer, newest_of
from lance_memory.errors import InvalidInputError, StorageError
from lance_memory.files import write_whole
from lance_memory.record.times import parse_instant

__all__ = ["Course", "Passes"]

_MOST_KEPT = 256
_GOOD = (DreamOutcome.CONSOLIDATED, DreamOutcome.NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The passes over one choice of memories, one after the other.

    A pass begins at the newest memory, or goes on below, where the bounds of others left memories
    that no pass has looked at.

    Attributes:
        last: the last pass, whatever became of it.
        since: when the last one that succeeded began.
        seen: the version that the last one from the newest memory on read; what was written
            later is new.
        top: the newest memory that it considered.
        below: what was learned before this memory is still to be looked at; None: nothing is.
        down: the last one that succeeded went on below.
    """

    last: DreamResult | None = None
    since: datetime | None = None
    seen: int = 0
    top: Mark | None = None
    below: Mark | None = None
    down: bool = False

    @property
    def unfinished(self) -> bool:
        """Whether passes ended at their bounds, with more to look at."""
        return self.below is not None

    def begin(self, *, new: bool) -> Mark | None:
        """Where the next pass begins; None: at the newest memory.

        What is `new` and what is left below take turns, so that neither waits for ever.
        """
        at_newest = new and (self.down or not self.unfinished)
        return None if at_newest else self.below

    def then(
        self, result: DreamResult, *, begun: Mark | None = None, stretch: Stretch | None = None
    ) -> Course:
        """After one more pass, which began there and considered that stretch.

        One that did not succeed leaves what was new as new. One that ended before all clusters
        were looked at, and changed something, is made again over the same stretch; where it
        changed nothing it would only do the same again, so the next one goes on below.
        """
        plan = result.plan
        if result.outcome not in _GOOD or plan is None or stretch is None:
            return replace(self, last=result)
        again = bool(plan.cut) and bool(plan.accepted)
        after = replace(self, last=result, since=result.at, down=begun is not None)
        if begun is not None:
            return replace(after, below=begun if again else stretch.rest)
        after = replace(after, seen=plan.version, top=stretch.top or self.top)
        if again and stretch.top is not None:
            return replace(after, below=newest_of(stretch.top))
        return replace(after, below=self._left(stretch.rest))

    def _left(self, rest: Mark | None) -> Mark | None:
        """What is left below a pass from the newest memory on: all that none ever reached."""
        if rest is None:
            return None
        gap = self.top is None or is_newer(rest, self.top)
        return rest if gap else self.below


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """The whole file: the pass under way, and what passes did, by the memories they are about."""

    running: Running | None = None
    courses: Mapping[str, Course] = field(default_factory=dict)

    def about(self, what: str) -> Course:
        """The passes over these memories."""
        return self.courses.get(what, Course())

    def having(self, what: str, course: Course) -> Passes:
        """With other passes over these memories, and none under way; the oldest ones go."""
        others = {about: c for about, c in self.courses.items() if about != what}
        kept = list({**others, what: course}.items())[-_MOST_KEPT:]
        return Passes(courses=dict(kept))

    @classmethod
    def read(cls, path: Path) -> Passes:
        """What the file says; nothing, where there is none or it is damaged."""
        try:
            values = json.loads(path.read_bytes())
            return cls(
                running=_running(values["running"]),
                courses={about: _course(told) for about, told in values["passes"].items()},
            )
        except (OSError, KeyError, TypeError, AttributeError, ValueError, InvalidInputError):
            return cls()

    def write(self, path: Path) -> None:
        """Replace the file, at once; the caller holds the lock.

        Raises:
            StorageError: it cannot be written.
        """
        document = {
            "running": self.running
            and {**asdict(self.running), "since": _text(self.running.since)},
            "passes": {about: _told(course) for about, course in self.courses.items()},
        }
        try:
            write_whole(path, json.dumps(document, indent=1))
        except OSError as error:
            raise StorageError(
                f"{path} cannot be written ({error}); a pass keeps its status there"
            ) from error


def _told(course: Course) -> dict[str, Any]:
    return {
        "last": course.last and course.last.manifest(),
        "since": course.since and _text(course.since),
        "seen": course.seen,
        "top": course.top and (_text(course.top[0]), course.top[1]),
        "below": course.below and (_text(course.below[0]), course.below[1]),
        "down": course.down,
    }


def _course(told: Mapping[str, Any]) -> Course:
    last = told["last"]
    return Course(
        last=last
        and DreamResult(
            **{**last, "outcome": DreamOutcome(last["outcome"]), "at": parse_instant(last["at"])}
        ),
        since=told["since"] and parse_instant(told["since"]),
        seen=int(told["seen"]),
        top=_mark(told["top"]),
        below=_mark(told["below"]),
        down=bool(told["down"]),
    )


def _mark(told: list[Any] | None) -> Mark | None:
    return None if told is None else (parse_instant(told[0]), str(told[1]))


def _running(told: Mapping[str, Any] | None) -> Running | None:
    return None if told is None else Running(**{**told, "since": parse_instant(told["since"])})


def _text(moment: datetime) -> str:
    return moment.isoformat()
