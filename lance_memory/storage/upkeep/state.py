"""What is known of a store's upkeep: when it was last done, and what failed since."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lance_memory.errors import NotFoundError
from lance_memory.storage.lock import UPKEEP
from lance_memory.storage.place import Place

__all__ = [
    "State",
    "UpkeepFailure",
    "UpkeepStatus",
    "drop_state",
    "read_state",
    "write_state",
]

_FILE = "upkeep.json"
_FIRST_PAUSE = timedelta(seconds=1)
_LONGEST_PAUSE = timedelta(minutes=10)
_PATIENCE = 60.0
"""Seconds that are waited for a step of upkeep, which is bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepFailure:
    """A step of upkeep that failed, and is tried again with a later write.

    Attributes:
        step: "compact", "fold", "settle" or "clean"; "lock" where the store's directory takes no
            lock, and "note" where it cannot be written down how upkeep went.
        error: why, the last time.
        attempts: how often in a row.
        at: when it was tried last.
        again_at: it is not tried before then; the pause grows from a second to ten minutes.
    """

    step: str
    error: str
    attempts: int
    at: datetime
    again_at: datetime

    def __str__(self) -> str:
        times = "once" if self.attempts == 1 else f"{self.attempts} times"
        return f"{self.step} failed {times}, and is tried again with a later write: {self.error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepStatus:
    """How the upkeep of a store's branch goes, for all processes that write to it.

    Attributes:
        branch: the line of versions.
        version: the newest version when it was last done; 0: never yet.
        at: when that was; None: never yet.
        running: this process is at it now.
        failures: the steps that failed the last time; none where all is well.
    """

    uri: str
    branch: str
    version: int
    at: datetime | None
    running: bool
    failures: tuple[UpkeepFailure, ...] = ()

    def __str__(self) -> str:
        if self.failures:
            return "; ".join(map(str, self.failures))
        done = f"done at version {self.version}, {self.at:%Y-%m-%d %H:%M} UTC" if self.at else ""
        return f"all is well: {done or 'nothing was due yet'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What is written down between runs, of one branch. `fragments` is how many were left."""

    version: int = 0
    fragments: int = 0
    at: datetime | None = None
    failures: tuple[UpkeepFailure, ...] = ()

    @property
    def again_at(self) -> datetime:
        """Nothing is tried before then; see `pauses`."""
        times = [one.again_at for one in self.failures]
        return max(times, default=datetime.min.replace(tzinfo=UTC))

    def pauses(self, now: datetime) -> bool:
        """Whether nothing is tried yet; never for longer than the longest, whatever clocks say."""
        return timedelta(0) < self.again_at - now <= _LONGEST_PAUSE

    def at_most(self, version: int) -> State:
        """This state, unless it is of a later version: then of none, as numbers were used anew."""
        return self if self.version <= version else State(failures=self.failures)

    def failed(self, step: str, error: str, *, now: datetime) -> State:
        """With one more failure of a step."""
        before = sum(one.attempts for one in self.failures if one.step == step)
        pause = min(_FIRST_PAUSE * 4 ** min(before, 8), _LONGEST_PAUSE)
        told = UpkeepFailure(
            step=step, error=error, attempts=before + 1, at=now, again_at=now + pause
        )
        return replace(self, failures=(*self.succeeded(step).failures, told))

    def succeeded(self, step: str) -> State:
        """Without the failures of a step."""
        return replace(self, failures=tuple(one for one in self.failures if one.step != step))


def read_state(place: Place, branch: str) -> State:
    """What was written down of a branch; nothing yet, where the file is not there or not whole."""
    return _of(_read(place).get(branch, {}))


def write_state(place: Place, branch: str, state: State) -> None:
    """Write it down beside what there is of other branches; under the lock of upkeep.

    Raises:
        StorageError: it cannot be written.
    """
    _write(place, {**_read(place), branch: asdict(state)})


def drop_state(place: Place, branch: str) -> None:
    """Forget what was written down of a branch that is gone; its name can be used again.

    Raises:
        ConflictError: upkeep has been at work for too long.
        StorageError: it cannot be written, or there can be no lock.
    """
    if branch not in _read(place):
        return
    with place.alone(UPKEEP, wait=_PATIENCE):
        _write(place, {name: told for name, told in _read(place).items() if name != branch})


def _write(place: Place, told: Mapping[str, Any]) -> None:
    place.write(_FILE, json.dumps(told, default=datetime.isoformat, indent=1).encode())


def _read(place: Place) -> Mapping[str, Any]:
    try:
        found = json.loads(place.read(_FILE))
    except (NotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _of(told: Mapping[str, Any]) -> State:
    try:
        return State(
            version=told["version"],
            fragments=told["fragments"],
            at=_time(told["at"]),
            failures=tuple(
                UpkeepFailure(**{**one, "at": _time(one["at"]), "again_at": _time(one["again_at"])})
                for one in told["failures"]
            ),
        )
    except (KeyError, TypeError, ValueError):
        return State()


def _time(text: str | None) -> Any:
    return None if text is None else datetime.fromisoformat(text)
