"""What a tenant uses of its quota, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lance_memory.govern.quota.limits import Limit, Resource, whose
from lance_memory.html import Told

__all__ = ["QuotaStatus", "QuotaUse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """One resource.

    Attributes:
        used: how much there is; None: of calls without a limit, which nobody counts.
        soft, hard: its limits; None: there is none.
    """

    resource: Resource
    used: int | None
    soft: int | None = None
    hard: int | None = None

    @property
    def over_soft(self) -> bool:
        """Whether writes are told, and slowed down."""
        return self.soft is not None and (self.used or 0) > self.soft

    @property
    def full(self) -> bool:
        """Whether nothing more goes in."""
        return self.hard is not None and (self.used or 0) >= self.hard

    def __str__(self) -> str:
        limit = Limit(soft=self.soft, hard=self.hard)
        used = "not counted" if self.used is None else f"{self.used:,}"
        return f"{self.resource} {used}" + (f" ({limit})" if limit else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaStatus(Told):
    """What one tenant uses, at one version.

    Attributes:
        tenant: "" stands for memories without one.
        version: at which memories were counted.
        at: by which calls were.
        uses: of every resource.
    """

    tenant: str
    version: int
    at: datetime
    uses: tuple[QuotaUse, ...]

    @property
    def over_soft(self) -> bool:
        """Whether anything is above its soft limit."""
        return any(use.over_soft for use in self.uses)

    @property
    def full(self) -> bool:
        """Whether anything is at its hard limit."""
        return any(use.full for use in self.uses)

    def of(self, resource: Resource | str) -> QuotaUse:
        """One resource.

        Raises:
            ValueError: there is no such resource.
        """
        wanted = Resource(resource)
        return next(use for use in self.uses if use.resource is wanted)

    def __str__(self) -> str:
        mark = "full" if self.full else "above a soft limit" if self.over_soft else "has room"
        return f"{whose(self.tenant)}: {mark}; {'; '.join(map(str, self.uses))}"
