"""What a consolidation pass is asked to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from lance_memory.errors import InvalidInputError
from lance_memory.record.memory import SCOPE_LEVELS

__all__ = ["ClusterBy", "ConsolidateOptions"]


class ClusterBy(StrEnum):
    """What makes memories one cluster."""

    SIMILARITY = "similarity"
    SESSION = "session"
    RUN = "run"
    WINDOW = "window"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidateOptions:
    """How to cluster, and what to refuse.

    Attributes:
        by: near-duplicates by cosine, or structure: one session, one run, one time window.
        min_similarity: cosine, -1..1; a member is at least as near to its cluster's centre.
        min_size: clusters with fewer members are left alone; at least 2.
        max_size: members of one cluster at most; the nearest ones stay together.
        window: length of a time window, for `by="window"`.
        across: scope levels that a cluster may cross; by default none, so that memories of
            two tenants, users or sessions never become one.
        min_kept: fraction 0..1 of the sources' numbers and names that a derived text must
            still hold; a cluster whose transform drops more is left alone.
    """

    by: ClusterBy | str = ClusterBy.SIMILARITY
    min_similarity: float = 0.85
    min_size: int = 2
    max_size: int = 20
    window: timedelta = timedelta(days=1)
    across: tuple[str, ...] = ()
    min_kept: float = 0.5

    def __post_init__(self) -> None:
        if self.by not in list(ClusterBy):
            raise InvalidInputError(f"by={self.by!r}; there are: {', '.join(ClusterBy)}")
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
        unknown = set(self.across) - set(SCOPE_LEVELS)
        if unknown:
            raise InvalidInputError(
                f"across={sorted(unknown)}; the scope levels are: {', '.join(SCOPE_LEVELS)}"
            )
        if not 0.0 <= self.min_kept <= 1.0:
            raise InvalidInputError(f"min_kept={self.min_kept} is not within 0..1")

    def boundary(self) -> list[str]:
        """The scope levels that no cluster crosses."""
        return [level for level in SCOPE_LEVELS if level not in self.across]

    def to_json(self) -> dict[str, Any]:
        """As JSON values; the window in seconds."""
        values = asdict(self)
        return {
            **values,
            "by": str(self.by),
            "window": self.window.total_seconds(),
            "across": list(self.across),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ConsolidateOptions:
        """The inverse of `to_json`."""
        window = timedelta(seconds=values["window"])
        return cls(**{**values, "window": window, "across": tuple(values["across"])})
