"""How much a tenant may have: limits by resource, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import instance, mapping, real, whole
from lance_memory.record.values import text_value
from lance_memory.wording import counted

__all__ = ["CALLS", "STORED", "Limit", "Quota", "Quotas", "Resource", "whose"]

_LONGEST_WAIT: Final = 5.0


class Resource(StrEnum):
    """What a quota limits.

    Of a tenant's memories count those that are active or pending, of every kind, whether they have
    expired or not: what is superseded or retired takes nothing, so that cleaning up makes room. Nor
    does the workspace: who is full must be able to change the policy that makes room.

    ROWS: memories. BYTES: of what was written into them, in UTF-8: content, key, role, actor,
    source_ref, tags, relation, target and note of relationships, and metadata as compact JSON,
    where it is not empty. Ids, names of scopes, kinds, sources, states, numbers and times have
    none. VECTORS: memories that have one. CALLS_A_DAY, CALLS_A_MONTH: writes that added memories,
    or bytes to them, and did not leave fewer memories, by the UTC calendar.
    """

    ROWS = "rows"
    BYTES = "bytes"
    VECTORS = "vectors"
    CALLS_A_DAY = "calls_a_day"
    CALLS_A_MONTH = "calls_a_month"


STORED: Final = (Resource.ROWS, Resource.BYTES, Resource.VECTORS)
CALLS: Final = (Resource.CALLS_A_DAY, Resource.CALLS_A_MONTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Of one resource; None: there is none.

    Attributes:
        soft: above it writes are told so, and are slowed down where there is a hard one too.
        hard: no write leads above it.
    """

    soft: int | None = None
    hard: int | None = None

    def __post_init__(self) -> None:
        for name in ("soft", "hard"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), least=0)
        if self.soft is not None and self.hard is not None and self.soft > self.hard:
            raise InvalidInputError(
                f"soft={self.soft} is above hard={self.hard}; nothing could ever reach it"
            )

    def __bool__(self) -> bool:
        return self.soft is not None or self.hard is not None

    def __str__(self) -> str:
        limits = {"soft": self.soft, "hard": self.hard}
        told = (f"{name} {number:,}" for name, number in limits.items() if number is not None)
        return ", ".join(told) or "no limit"

    def pressure(self, used: int) -> float:
        """How far it is from the soft limit to the hard one, 0..1; 0 where one is missing."""
        if self.soft is None or self.hard is None or used <= self.soft:
            return 0.0
        return min(1.0, (used - self.soft) / max(1, self.hard - self.soft))


_NONE: Final = Limit()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What one tenant may have; see `Resource` for what counts.

    Attributes:
        rows: memories.
        bytes: of content, metadata, tags, relationships and names, see `Resource`.
        vectors: memories that have one.
        calls_a_day: writes that add memories or bytes, in a calendar day, UTC.
        calls_a_month: the same in a calendar month.
        longest_wait: seconds, at most 5. A write above a soft limit returns that much later when
            the hard limit is reached, and less the further it is from it: in proportion.
    """

    rows: Limit = _NONE
    bytes: Limit = _NONE
    vectors: Limit = _NONE
    calls_a_day: Limit = _NONE
    calls_a_month: Limit = _NONE
    longest_wait: float = 0.2

    def __post_init__(self) -> None:
        for resource in Resource:
            instance(resource, self.limit(resource), Limit, "a Limit")
        real("longest_wait", self.longest_wait, least=0, most=_LONGEST_WAIT)

    def __bool__(self) -> bool:
        return any(self.limit(resource) for resource in Resource)

    def __str__(self) -> str:
        limits = [f"{r} {self.limit(r)}" for r in Resource if self.limit(r)]
        return "; ".join(limits) or "no limits"

    def limit(self, resource: Resource) -> Limit:
        """Of one resource."""
        found: Limit = getattr(self, resource)
        return found

    @classmethod
    def from_json(cls, values: Any) -> Quota:
        """From JSON: {"rows": {"soft": 80, "hard": 100}, "bytes": 1000000, "longest_wait": 0.1}.

        A number alone is a hard limit.

        Raises:
            InvalidInputError: something else is there.
        """
        known = mapping("quota", values, "a JSON object", known=[*Resource, "longest_wait"])
        known |= {str(r): _limit(str(r), known[r]) for r in Resource if r in known}
        return cls(**known)

    def to_json(self) -> dict[str, Any]:
        """The inverse of `from_json`; what has no limit is left out."""
        limits = {str(r): self.limit(r) for r in Resource if self.limit(r)}
        told: dict[str, Any] = {
            name: {k: v for k, v in (("soft", one.soft), ("hard", one.hard)) if v is not None}
            for name, one in limits.items()
        }
        return {**told, "longest_wait": self.longest_wait}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """Whose quota is what.

    Attributes:
        default: of every tenant that is not named; of memories without a tenant too.
        tenants: tenant → its own, which takes the whole place of the default.
    """

    default: Quota = field(default_factory=Quota)
    tenants: Mapping[str, Quota] = field(default_factory=dict)

    def __post_init__(self) -> None:
        instance("default", self.default, Quota, "a Quota")
        for tenant, quota in mapping("tenants", self.tenants, "a mapping of tenants").items():
            text_value("tenant", tenant)
            instance(f"the quota of {tenant!r}", quota, Quota, "a Quota")

    def __bool__(self) -> bool:
        return any([self.default, *self.tenants.values()])

    def __str__(self) -> str:
        own = f"; {counted(len(self.tenants), 'tenant')} with their own" if self.tenants else ""
        return f"by default {self.default}{own}"

    def of(self, tenant: str) -> Quota:
        """The tenant's own, or everybody's."""
        return self.tenants.get(tenant, self.default)

    @classmethod
    def given(cls, quotas: Quota | Quotas | None) -> Quotas:
        """What a caller gave, as one value: a `Quota` is every tenant's; None: there is none.

        Raises:
            InvalidInputError: it is something else.
        """
        if isinstance(quotas, Quota):
            return cls(default=quotas)
        return cls() if quotas is None else instance("quotas", quotas, cls, "a Quota or Quotas")

    @classmethod
    def from_json(cls, values: Any) -> Quotas:
        """From JSON: {"default": {...}, "tenants": {"acme": {...}}}, each a `Quota`.

        Raises:
            InvalidInputError: something else is there.
        """
        known = mapping("quotas", values, "a JSON object", known=["default", "tenants"])
        tenants = mapping("tenants", known.get("tenants", {}), "a JSON object")
        return cls(
            default=Quota.from_json(known.get("default", {})),
            tenants={name: Quota.from_json(quota) for name, quota in tenants.items()},
        )


def whose(tenant: str) -> str:
    """A tenant as a message names it."""
    return f"tenant {tenant!r}" if tenant else "what has no tenant"


def _limit(name: str, value: Any) -> Limit:
    if isinstance(value, Mapping):
        return Limit(**mapping(name, value, "limits", known=["soft", "hard"]))
    return Limit(hard=value)
