"""What the gate lets pass: a rate, a quality, a likeness and a budget."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from lance_memory.record.arguments import duration, instance, real, text, whole
from lance_memory.service.breaker import LONGEST_REST

__all__ = ["Budget", "GatePolicy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a tenant may have ingested in a calendar month, UTC; None: any number.

    Attributes:
        calls: conversations.
        tokens: of all their messages, as the gate's counter counts them.
    """

    calls: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePolicy:
    """The bounds of the gate's four layers.

    Attributes:
        per_minute: conversations of one user in any minute of real time; None: any number, because
            a log that is read in has many. Without a user, of the tenant.
        rates: where those are counted: "memory://" in this process; for several, a Redis server,
            named as for a ledger: "redis://host:6379/0?prefix=my-agents".
        least_quality: 0..1; a conversation that scores less is blocked.
        most_alike: a cosine; an input that is nearer to a late one is a duplicate, if it also says
            nothing new.
        last: how many of a user's inputs are compared with; 0: none are, and none are kept.
        remembered: how long those are kept.
        budget: of each tenant.
        budgets: of tenants that have another, by name.
        events: the registered back-end events, whose conversations are neither scored nor
            compared; None: whatever a conversation names as its source is one.
        failures: after how many failures in a row a layer is left alone.
        rest: seconds for which it is, at most a day.

    Raises:
        InvalidInputError: a value is out of bounds.
    """

    per_minute: int | None = None
    rates: str = field(default="memory://", repr=False)  # may hold a password
    least_quality: float = 0.35
    most_alike: float = 0.92
    last: int = 5
    remembered: timedelta = timedelta(days=7)
    budget: Budget = field(default_factory=Budget)
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    events: Collection[str] | None = None
    failures: int = 3
    rest: float = 30.0

    def __post_init__(self) -> None:
        if self.per_minute is not None:
            whole("per_minute", self.per_minute, least=1)
        text("rates", self.rates)
        real("least_quality", self.least_quality, least=0, most=1)
        real("most_alike", self.most_alike, least=-1, most=1)
        whole("last", self.last, least=0, most=100)
        duration("remembered", self.remembered)
        for budget in (self.budget, *self.budgets.values()):
            instance("budget", budget, Budget, "a Budget")
        whole("failures", self.failures, least=1)
        real("rest", self.rest, least=0, most=LONGEST_REST, without=0)

    def budget_of(self, tenant: str) -> Budget:
        """The tenant's own, or everybody's."""
        return self.budgets.get(tenant, self.budget)

    def is_event(self, source: str) -> bool:
        """Whether that source is a registered back-end event, and no people talking."""
        return bool(source) and (self.events is None or source in self.events)
