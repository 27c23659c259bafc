"""What a consolidation pass is asked to do, and within what bounds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import (
    duration,
    flag,
    one_of,
    real,
    seconds,
    several,
    text,
    whole,
)
from lance_memory.record.filters import all_of, learned_before
from lance_memory.record.memory import SCOPE_LEVELS
from lance_memory.record.times import utc

__all__ = ["Bounds", "ClusterBy", "ClusterMethod", "ConsolidateOptions", "OnFailure"]


class ClusterBy(StrEnum):
    """What makes memories one cluster: likeness, or structure."""

    SIMILARITY = "similarity"
    SESSION = "session"
    RUN = "run"
    TENANT = "tenant"
    PREFIX = "prefix"
    WINDOW = "window"


class OnFailure(StrEnum):
    """What a cluster whose transform fails, or loses too much, means for the pass."""

    BEST_EFFORT = "best_effort"
    ALL_OR_NOTHING = "all_or_nothing"


class ClusterMethod(StrEnum):
    """How `by="similarity"` makes clusters of pairs at or above the floor."""

    GREEDY = "greedy"
    COMPONENTS = "components"
    AVERAGE = "average"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidateOptions:
    """How to cluster, and what to refuse.

    Whatever the options say, memories that expire or end (`valid_to`) at different times never
    become one: a retention would be undone, and an ended fact be current again.

    Attributes:
        by: near-duplicates by cosine, or structure: one session, one run, one tenant, one prefix
            of the caller's keys (or of ids, where there is no key), one time window.
        method: of `by="similarity"`. "greedy": every member is near its cluster's centre;
            "components": every member is near some other; "average": the mean over all pairs
            of two parts is at the floor where they are joined.
        min_similarity: the floor, a cosine, -1..1.
        min_size: clusters with fewer members are left alone; at least 2.
        max_size: members of one cluster at most; the nearest ones stay together.
        window: length of a time window, for `by="window"`.
        separator: for `by="prefix"`: a prefix is what stands before its last occurrence.
        across: scope levels that a cluster may cross; by default none, so that memories of
            two tenants, users or sessions never become one.
        distinct: keep memories apart that differ in a number, a name or a negation, however
            near their vectors are; for `by="similarity"`.
        max_dropped: share 0..1 of the sources' numbers, names, dates and negations that a derived
            text may lack; a cluster whose transform drops more is left alone.
        on_failure: "best_effort" leaves a failed cluster alone, and the pass goes on;
            "all_or_nothing" ends the pass at the first one, and commits nothing.
    """

    by: ClusterBy | str = ClusterBy.SIMILARITY
    method: ClusterMethod | str = ClusterMethod.GREEDY
    min_similarity: float = 0.85
    min_size: int = 2
    max_size: int = 20
    window: timedelta = timedelta(days=1)
    separator: str = "/"
    across: tuple[str, ...] = ()
    distinct: bool = True
    max_dropped: float = 0.5
    on_failure: OnFailure | str = OnFailure.BEST_EFFORT

    def __post_init__(self) -> None:
        one_of("by", self.by, ClusterBy)
        one_of("method", self.method, ClusterMethod)
        one_of("on_failure", self.on_failure, OnFailure)
        real("min_similarity", self.min_similarity, least=-1, most=1)
        whole("min_size", self.min_size, least=2)
        whole("max_size", self.max_size, least=self.min_size)
        duration("window", self.window)
        text("separator", self.separator, blank=True)
        several("across", self.across, SCOPE_LEVELS)
        flag("distinct", self.distinct)
        real("max_dropped", self.max_dropped, least=0, most=1)

    def boundary(self) -> list[str]:
        """The scope levels that no cluster crosses."""
        return [level for level in SCOPE_LEVELS if level not in self.across]

    def to_json(self) -> dict[str, Any]:
        """As JSON values; the window in seconds."""
        values = asdict(self)
        return {
            **values,
            "by": str(self.by),
            "method": str(self.method),
            "on_failure": str(self.on_failure),
            "window": self.window.total_seconds(),
            "across": list(self.across),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ConsolidateOptions:
        """The inverse of `to_json`."""
        window = timedelta(seconds=values["window"])
        return cls(**{**values, "window": window, "across": tuple(values["across"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Where a pass begins and ends, whatever is left to do; None sets no bound.

    Attributes:
        before: the `created_at` and id of a memory: consider only what was learned before it; of
            what was learned at the same moment, greater ids.
        max_rows: memories to consider, the ones learned last first, those of one moment by their
            ids.
        max_clusters: to put one memory in the place of.
        max_seconds: for finding and transforming clusters; what is done by then is measured and
            committed.
    """

    before: tuple[datetime, str] | None = None
    max_rows: int | None = None
    max_clusters: int | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        match self.before:
            case None:
                pass
            case (datetime() as moment, str()):
                utc(moment, "before")
            case other:
                raise InvalidInputError(
                    f"before={other!r}; it takes the created_at and the id of a memory"
                )
        for name in ("max_rows", "max_clusters"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), least=1)
        if self.max_seconds is not None:
            seconds("max_seconds", self.max_seconds)

    def within(self, predicate: str | None) -> str | None:
        """The predicate, of what was learned `before` alone."""
        return predicate if self.before is None else all_of(predicate, learned_before(*self.before))
