"""What the procedures of several users have in common, and never whose it is. No store."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lance_memory.agent.procedure import Procedure
from lance_memory.wording import counted, shown

__all__ = ["ProcedureSummary", "summaries"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureSummary:
    """Procedures of one name, over users. Each figure is made of at least as many as were asked.

    Attributes:
        name: what all of them call it.
        users: how many have it.
        successes: of all their uses; None: too few of them have used it.
        failures: as `successes`.
        mean_seconds: the mean of all timed uses; None: too few of them have timed one.
        context: where enough of them have exactly this one; else None.
        steps: where enough of them have exactly these; else None.
    """

    name: str
    users: int
    successes: int | None
    failures: int | None
    mean_seconds: float | None
    context: str | None
    steps: tuple[str, ...] | None

    def __str__(self) -> str:
        return f"{self.name}: {counted(self.users, 'user')}, {self.tried}"

    def __repr__(self) -> str:
        return f"<ProcedureSummary {shown(str(self))!r}>"

    @property
    def tried(self) -> str:
        """How it went, in words: "3 of 4", or "too few" to tell."""
        if self.successes is None or self.failures is None:
            return "too few"
        return f"{self.successes} of {self.successes + self.failures}"


def summaries(procedures: Iterable[Procedure], *, min_users: int) -> list[ProcedureSummary]:
    """The procedures that at least `min_users` users have, by name; a row of no user counts not.

    Groups below that size are hidden, as in k-anonymity (Sweeney 2002), figure by figure.
    """
    by_name: dict[str, list[Procedure]] = defaultdict(list)
    for one in procedures:
        if one.scope.user:
            by_name[one.name].append(one)
    return [
        _summary(name, several, min_users)
        for name, several in sorted(by_name.items())
        if _users(several) >= min_users
    ]


def _summary(name: str, several: Sequence[Procedure], least: int) -> ProcedureSummary:
    used = [one for one in several if one.uses]
    timed = [one for one in several if one.timed]
    told, enough = _users(used) >= least, _users(timed) >= least
    total = math.fsum((one.mean_seconds or 0.0) * one.timed for one in timed)
    return ProcedureSummary(
        name=name,
        users=_users(several),
        successes=sum(one.successes for one in used) if told else None,
        failures=sum(one.failures for one in used) if told else None,
        mean_seconds=total / sum(one.timed for one in timed) if enough else None,
        context=_shared(several, lambda one: one.context, least),
        steps=_shared(several, lambda one: one.steps, least),
    )


def _users(several: Iterable[Procedure]) -> int:
    return len({one.scope.user for one in several})


def _shared(several: Iterable[Procedure], of: Callable[[Procedure], _T], least: int) -> _T | None:
    """What most users have alike, if they are enough; of equals the first in order."""
    pairs = {(of(one), one.scope.user) for one in several}
    counts = Counter(value for value, _ in pairs)
    enough = {value: count for value, count in counts.items() if count >= least}
    return min(enough, key=lambda value: (-enough[value], repr(value)), default=None)
