"""What tenants use, looked at inside each commit: so two writers cannot pass a limit together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

import pyarrow.compute as pc

from lance_memory.errors import QuotaExceededError, StorageError
from lance_memory.govern.quota.calls import Call, Calls
from lance_memory.govern.quota.counting import Amounts, counted, grown, handed_over
from lance_memory.govern.quota.limits import CALLS, STORED, Limit, Quotas, Resource, whose
from lance_memory.govern.quota.status import QuotaStatus, QuotaUse
from lance_memory.ledger import Ledger
from lance_memory.storage import ChangeSet, Plan, Snapshot
from lance_memory.telemetry import count
from lance_memory.wording import worded

__all__ = ["Commit", "Meter"]

Commit = Callable[[Plan], tuple[ChangeSet, Snapshot]]
"""Makes a plan one version, and calls it again after a lost race."""

_WHAT: Final = {
    Resource.ROWS: "[memory|memories]",
    Resource.BYTES: "[byte|bytes]",
    Resource.VECTORS: "[vector|vectors]",
    Resource.CALLS_A_DAY: "[write|writes] of this day",
    Resource.CALLS_A_MONTH: "[write|writes] of this month",
}


class Meter:
    """Knows the quotas of one table's tenants, and what they use; safe to share between threads.

    What a tenant has at a version is counted once. From then on the handle's own writes are added
    to it; when another's version came in between, it is counted again.

    Args:
        quotas: whose limit is what.
        ledger: where calls are counted.
        sleep: lets time pass, in seconds.
    """

    def __init__(
        self, quotas: Quotas, *, ledger: Ledger, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self.quotas = quotas
        self.calls = Calls(ledger)
        self._sleep = sleep
        self._lock = threading.Lock()
        self._version = 0
        self._known: dict[tuple[str, Resource], int] = {}

    def committed(self, plan: Plan, commit: Commit) -> tuple[ChangeSet, Snapshot]:
        """What `commit` makes of the plan, if every tenant's quota has room for it.

        Above a soft limit it returns later, and `warnings` of the change says so.

        Raises:
            QuotaExceededError: a hard limit would be passed; nothing was written.
            StorageError: the ledger that calls are counted in cannot be reached.
        """
        if not self.quotas:
            return commit(plan)
        looked = _Looked(self, plan)
        try:
            change, made = commit(looked)
        except BaseException:
            looked.give_back()
            raise
        looked.give_back(unless=looked.called)
        if change:
            self._carry(looked, made)
        if looked.wait:
            self._sleep(looked.wait)
        return change, made

    def used(self, snapshot: Snapshot, tenant: str, resource: Resource) -> int:
        """How much a tenant has of a limited resource at a version, as far as it is known."""
        key = (tenant, resource)
        with self._lock:
            if snapshot.version > self._version:
                self._version, self._known = snapshot.version, {}
            if snapshot.version == self._version and key in self._known:
                return self._known[key]
        found = counted(snapshot, tenant, resource)
        with self._lock:
            if snapshot.version == self._version:
                self._known[key] = found
        return found

    def status(self, snapshot: Snapshot, tenant: str, *, at: datetime) -> QuotaStatus:
        """What a tenant uses of everything, counted anew."""
        quota = self.quotas.of(tenant)
        uses = []
        for resource in Resource:
            limit = quota.limit(resource)
            if resource in STORED:
                used: int | None = counted(snapshot, tenant, resource)
            else:
                used = self.calls.used(tenant, resource, at=at) if limit else None
            uses.append(QuotaUse(resource=resource, used=used, soft=limit.soft, hard=limit.hard))
        return QuotaStatus(tenant=tenant, version=snapshot.version, at=at, uses=tuple(uses))

    def _carry(self, looked: _Looked, made: Snapshot) -> None:
        """Take over to the version that was made what was known of the one before it."""
        with self._lock:
            if self._version != looked.version or made.version != looked.version + 1:
                return
            self._version = made.version
            for tenant, amounts in looked.growth.items():
                for resource, more in amounts.items():
                    if (tenant, resource) in self._known:
                        self._known[tenant, resource] += more


class _Looked:
    """One commit: its plan, and what quotas say of what was planned last.

    Attributes:
        version: of the snapshot that was planned on.
        growth: tenant → how much more of each resource.
        wait: seconds by which the write is to return later.
        called: the calls that it counts as.
    """

    def __init__(self, meter: Meter, plan: Plan) -> None:
        self._meter = meter
        self._plan = plan
        self._taken: dict[tuple[str, Resource], Call] = {}
        self.version = 0
        self.growth: dict[str, Amounts] = {}
        self.wait = 0.0
        self.called: set[tuple[str, Resource]] = set()

    def __call__(self, snapshot: Snapshot) -> ChangeSet:
        """The plan, checked."""
        change = self._plan(snapshot)
        self.version, self.growth, self.wait, self.called = snapshot.version, {}, 0.0, set()
        quotas = self._meter.quotas
        touched = {scope.tenant for scope in change.scopes()} if change else set()
        bound = sorted(tenant for tenant in touched if quotas.of(tenant))
        if not bound:
            return change
        self.growth = grown(snapshot, change, bound, _measures(quotas, bound))
        new = set(pc.unique(change.inserts["tenant"]).to_pylist()) if change.inserts else set()
        told: list[str] = []
        for tenant, more in self.growth.items():
            asked = dict(more)
            if asked.get(Resource.BYTES, 0) > 0:
                asked[Resource.BYTES] -= handed_over(change, tenant)
            told += self._stored(snapshot, tenant, asked)
            if _is_call(asked, inserts=tenant in new):  # last: what is refused counts as none
                told += self._called(tenant, at=change.audit.at)
        return replace(change, warnings=(*change.warnings, *told)) if told else change

    def give_back(self, *, unless: Collection[tuple[str, Resource]] = ()) -> None:
        """Calls that were counted, and not made after all."""
        gone = [call for key, call in self._taken.items() if key not in unless]
        with suppress(StorageError):  # a call is counted too many; what was done is done
            self._meter.calls.give_back(gone)

    def _stored(self, snapshot: Snapshot, tenant: str, more: Amounts) -> list[str]:
        """What is to be told of a tenant; of each resource by itself, whatever the others lose.

        Raises:
            QuotaExceededError: it has no room.
        """
        told = []
        for resource in STORED:
            limit, asked = self._meter.quotas.of(tenant).limit(resource), more.get(resource, 0)
            if limit and asked > 0:
                used = self._meter.used(snapshot, tenant, resource)
                if limit.hard is not None and used + asked > limit.hard:
                    raise _refusal(tenant, resource, used=used, asked=asked, limit=limit.hard)
                told += self._told(tenant, resource, used + asked, limit)
        return told

    def _called(self, tenant: str, *, at: datetime) -> list[str]:
        """The same of its calls, of which this is one.

        Raises:
            QuotaExceededError: it has none left.
        """
        told = []
        for resource in CALLS:
            limit = self._meter.quotas.of(tenant).limit(resource)
            if limit:
                told += self._told(tenant, resource, self._call(tenant, resource, limit, at), limit)
        return told

    def _call(self, tenant: str, resource: Resource, limit: Limit, at: datetime) -> int:
        """How many calls there are with this one, which is counted once however often it tries."""
        key = (tenant, resource)
        if key not in self._taken:
            taken = self._meter.calls.take(tenant, resource, at=at, hard=limit.hard)
            if not isinstance(taken, Call):
                raise _refusal(tenant, resource, used=taken, asked=1, limit=limit.hard or 0)
            self._taken[key] = taken
        self.called.add(key)
        return self._taken[key].total

    def _told(self, tenant: str, resource: Resource, used: int, limit: Limit) -> list[str]:
        """That it is above its soft limit, and how long the write waits for it."""
        if limit.soft is None or used <= limit.soft:
            return []
        wait = self._meter.quotas.of(tenant).longest_wait * limit.pressure(used)
        self.wait = max(self.wait, wait)
        count("quota.pressed", tenant=tenant, resource=resource)
        slow = f"; the write waited {wait:.3f} s" if wait else ""
        of_hard = "" if limit.hard is None else f"{used:,} of "
        has = of_hard + _amount(resource, used if limit.hard is None else limit.hard)
        return [f"{whose(tenant)} has {has}, above the soft limit of {limit.soft:,}{slow}"]


def _measures(quotas: Quotas, tenants: Collection[str]) -> set[Resource]:
    """What has to be known of a change; whether it is a call is told by its rows and bytes."""
    limits = {r for tenant in tenants for r in Resource if quotas.of(tenant).limit(r)}
    calls = {Resource.BYTES} if limits.intersection(CALLS) else set()
    return {Resource.ROWS, *calls, *limits.intersection(STORED)}


def _is_call(more: Amounts, *, inserts: bool) -> bool:
    """Whether a change adds memories or bytes; what leaves fewer memories cleans up."""
    rows = more[Resource.ROWS]
    return rows >= 0 and (inserts or rows > 0 or more.get(Resource.BYTES, 0) > 0)


def _amount(resource: Resource, number: int) -> str:
    return worded(f"{{n}} {_WHAT[resource]}", number)


def _refusal(
    tenant: str, resource: Resource, *, used: int, asked: int, limit: int
) -> QuotaExceededError:
    count("quota.refused", tenant=tenant, resource=resource)
    room = (
        "wait for the next one"
        if resource in CALLS
        else "make room (`lmem retention` for what is old or expired; retire, delete, consolidate)"
    )
    return QuotaExceededError(
        f"{whose(tenant)} has {_amount(resource, used)}, and {asked:,} more would be above its "
        f"limit of {limit:,}; nothing was written: {room}, or raise the limit",
        tenant=tenant,
        resource=resource,
        used=used,
        asked=asked,
        limit=limit,
    )
