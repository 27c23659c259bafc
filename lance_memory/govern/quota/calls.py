"""How often a tenant has written in this day and month, counted beside the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Final

from lance_memory.govern.quota.limits import Resource
from lance_memory.ledger import Ledger

__all__ = ["Call", "Calls"]

SPACE: Final = "quota"
"""One value for each tenant and resource: the period that is counted, and how many calls."""

_PERIODS: Final = {Resource.CALLS_A_DAY: "%Y-%m-%d", Resource.CALLS_A_MONTH: "%Y-%m"}
_AHEAD: Final = {
    Resource.CALLS_A_DAY: timedelta(days=1),
    Resource.CALLS_A_MONTH: timedelta(days=31),
}
"""How far ahead another's clock may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that is counted.

    Attributes:
        tenant: whose.
        resource: as what.
        period: in which day or month.
        total: how many there are with it.
    """

    tenant: str
    resource: Resource
    period: str
    total: int


class Calls:
    """The counters of all tenants; a call is counted before it is made, and given back if it fails.

    So callers in several processes never share what is left. A process that is killed in between
    leaves its call counted. Every method raises StorageError where the ledger cannot be reached.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def used(self, tenant: str, resource: Resource, *, at: datetime) -> int:
        """How many calls there were in the day or month of that moment."""
        return _counting(resource, *self._counted(tenant, resource)[1], at)[1]

    def take(
        self, tenant: str, resource: Resource, *, at: datetime, hard: int | None
    ) -> Call | int:
        """Count one more; where that is above `hard`, how many there are already, and none more.

        A clock that is a little behind another's counts in the other's period. A period that is
        further ahead was some wrong clock's: it is left, else it would last until it comes.
        """
        while True:
            old, known = self._counted(tenant, resource)
            period, total = _counting(resource, *known, at)
            if hard is not None and total + 1 > hard:
                return total
            if self._swapped(tenant, resource, old, f"{period} {total + 1}"):
                return Call(tenant=tenant, resource=resource, period=period, total=total + 1)

    def give_back(self, calls: Sequence[Call]) -> None:
        """They were not made after all; those of a period that is over stay counted."""
        for call in calls:
            done = False
            while not done:
                old, (period, total) = self._counted(call.tenant, call.resource)
                text = f"{period} {max(0, total - 1)}"
                done = period != call.period or self._swapped(call.tenant, call.resource, old, text)

    def _counted(self, tenant: str, resource: Resource) -> tuple[bytes | None, tuple[str, int]]:
        """The value as it is, and what it says."""
        value = self._ledger.get(SPACE, _key(tenant, resource))
        period, _, total = (value or b"").decode().partition(" ")
        return value, (period, int(total or 0))

    def _swapped(self, tenant: str, resource: Resource, old: bytes | None, new: str) -> bool:
        return self._ledger.swap(SPACE, _key(tenant, resource), old=old, new=new.encode())


def _counting(resource: Resource, period: str, total: int, at: datetime) -> tuple[str, int]:
    """The period that calls of a moment count in, and how many there are, by what was counted."""
    now, ahead = _period(resource, at), _period(resource, at + _AHEAD[resource])
    return (period, total) if now <= period <= ahead else (now, 0)


def _period(resource: Resource, at: datetime) -> str:
    return at.astimezone(UTC).strftime(_PERIODS[resource])


def _key(tenant: str, resource: Resource) -> str:
    """Without the tenant's name, which may be a person's."""
    name = blake2b(tenant.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{name}/{resource}"
