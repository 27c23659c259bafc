"""What a consolidation pass is asked to do, and within what bounds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from lance_memory.errors import InvalidInputError
from lance_memory.record.memory import SCOPE_LEVELS

__all__ = ["Bounds", "ClusterBy", "ClusterMethod", "ConsolidateOptions"]


class ClusterBy(StrEnum):
    """What makes memories one cluster: likeness, or structure."""

    SIMILARITY = "similarity"
    SESSION = "session"
    RUN = "run"
    TENANT = "tenant"
    PREFIX = "prefix"
    WINDOW = "window"


class ClusterMethod(StrEnum):
    """How `by="similarity"` makes clusters of pairs at or above the floor."""

    GREEDY = "greedy"
    COMPONENTS = "components"
    AVERAGE = "average"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidateOptions:
    """How to cluster, and what to refuse.

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

    def __post_init__(self) -> None:
        _one_of("by", self.by, ClusterBy)
        _one_of("method", self.method, ClusterMethod)
        if not -1.0 <= self.min_similarity <= 1.0:
            raise InvalidInputError(
                f"min_similarity={self.min_similarity} is no cosine; it lies within -1..1"
            )
        if not 2 <= self.min_size <= self.max_size:
            raise InvalidInputError(
                f"min_size={self.min_size}, max_size={self.max_size}; "
                "a cluster has 2 members or more, and min_size <= max_size"
            )
        if self.window <= timedelta(0):
            raise InvalidInputError(f"window={self.window} is not longer than nothing")
        if not isinstance(self.separator, str) or not self.separator:
            raise InvalidInputError(f"separator={self.separator!r}; it takes a text")
        unknown = set(self.across) - set(SCOPE_LEVELS)
        if unknown:
            raise InvalidInputError(
                f"across={sorted(unknown)}; the scope levels are: {', '.join(SCOPE_LEVELS)}"
            )
        if not 0.0 <= self.max_dropped <= 1.0:
            raise InvalidInputError(f"max_dropped={self.max_dropped} is not within 0..1")

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
    """Where a pass ends, whatever is left to do; None: nowhere. The next pass goes on.

    Attributes:
        rows: memories to consider, the ones learned last (`created_at`) first.
        clusters: to transform.
        seconds: for finding and transforming clusters; what is done by then is committed.
    """

    rows: int | None = None
    clusters: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("rows", "clusters", "seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidInputError(f"{name}={value!r}; a bound is above 0, or None")


def _one_of(name: str, value: str, known: type[StrEnum]) -> None:
    if value not in list(known):
        raise InvalidInputError(f"{name}={value!r}; there are: {', '.join(known)}")
