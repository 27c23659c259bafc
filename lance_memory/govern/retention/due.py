"""Which memories are due: each rule as a predicate over narrow columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pyarrow as pa

from lance_memory.errors import InvalidInputError
from lance_memory.govern.retention.plan import Due, RetentionPlan
from lance_memory.govern.retention.policy import RetentionPolicy, RetentionRule, lasting
from lance_memory.record.arguments import instance, mapping
from lance_memory.record.filters import (
    Filter,
    all_of,
    any_of,
    equals,
    expired_by,
    is_one_of,
    less_important,
    live,
    none_of,
    unchanged_since,
)
from lance_memory.record.memory import Kind, State
from lance_memory.record.rows import FINGERPRINT, Fingerprint
from lance_memory.record.times import EARLIEST
from lance_memory.record.values import text_value
from lance_memory.storage import Snapshot

__all__ = ["plan_retention"]

_COLUMNS = ("id", "tenant", "kind", "event_at", "created_at", "state_at", *FINGERPRINT)
_BATCH = 16_384
_CLASH = "contradicts"


def plan_retention(
    snapshot: Snapshot,
    chosen: Filter,
    *,
    policy: RetentionPolicy,
    per_tenant: Mapping[str, RetentionPolicy],
    moment: datetime,
) -> RetentionPlan:
    """Look at every active memory that passes, a batch of narrow columns at a time.

    Args:
        snapshot: has the memories.
        chosen: which of them; its states are not asked about.
        policy: of tenants without one of their own.
        per_tenant: tenant → its own.
        moment: what ages count to.

    Raises:
        InvalidInputError: no policy, or a filter that names states.
    """
    _check(chosen, policy, per_tenant)
    active = replace(chosen, states=(State.ACTIVE,)).predicate(moment)
    held = _held(snapshot, moment)
    memories: list[Due] = []
    seen: dict[str, Fingerprint] = {}
    for one, whose in _groups(chosen, policy, per_tenant):
        for rule, predicate in _rules(one, moment):
            asked = all_of(active, whose, predicate, none_of(_evergreen(one)))
            reasons = {kind: _reason(one, rule, kind) for kind in Kind}
            for batch in snapshot.batches(asked, columns=_COLUMNS, batch_size=_BATCH):
                for due, content in _dues(batch, rule, reasons, moment):
                    if due.id not in held:
                        memories.append(due)
                        seen[due.id] = content
    memories.sort(key=lambda due: (-due.age, due.id))
    return RetentionPlan(
        version=snapshot.version,
        at=moment,
        considered=snapshot.count(active),
        memories=tuple(memories),
        policy=policy,
        per_tenant=dict(per_tenant),
        scope=chosen.scope,
        seen=seen,
    )


def _check(
    chosen: Filter, policy: RetentionPolicy, per_tenant: Mapping[str, RetentionPolicy]
) -> None:
    if chosen.states != "visible":
        raise InvalidInputError(
            f"states={chosen.states!r}; retention is about active memories, so leave states out"
        )
    instance("policy", policy, RetentionPolicy, "a RetentionPolicy")
    for tenant, own in mapping("per_tenant", per_tenant, "a mapping of tenants").items():
        text_value("tenant", tenant)
        instance(f"the policy of {tenant!r}", own, RetentionPolicy, "a RetentionPolicy")


def _groups(
    chosen: Filter, policy: RetentionPolicy, per_tenant: Mapping[str, RetentionPolicy]
) -> Iterator[tuple[RetentionPolicy, str | None]]:
    """Each policy, and the predicate of the tenants that it is of; one look for all alike."""
    if chosen.scope.tenant:
        yield per_tenant.get(chosen.scope.tenant, policy), None
        return
    alike: dict[str, tuple[RetentionPolicy, list[str]]] = {}
    for tenant, own in per_tenant.items():
        alike.setdefault(json.dumps(own.to_json(), sort_keys=True), (own, []))[1].append(tenant)
    for own, tenants in alike.values():
        yield own, is_one_of("tenant", sorted(tenants))
    yield policy, none_of(is_one_of("tenant", sorted(per_tenant))) if per_tenant else None


def _rules(policy: RetentionPolicy, moment: datetime) -> Iterator[tuple[RetentionRule, str]]:
    """Each rule, and the predicate of what it is the first to name."""
    found: list[tuple[RetentionRule, str | None]] = []
    raw = none_of(is_one_of("source", policy.made)) if policy.made else None
    if policy.expired:
        found.append((RetentionRule.EXPIRED, expired_by(moment)))
    aged = [
        f"({all_of(equals('kind', kind), unchanged_since(_before(moment, stay)))})"
        for kind, stay in policy.ages.items()
    ]
    if aged:
        found.append((RetentionRule.AGE, all_of(any_of(*aged), raw)))
    if policy.low_importance and policy.age(Kind.EPISODIC) is not None:
        old = unchanged_since(_before(moment, policy.low_importance_age))
        low = less_important(policy.low_importance)
        found.append(
            (RetentionRule.LOW_IMPORTANCE, all_of(equals("kind", Kind.EPISODIC), low, old, raw))
        )
    earlier: list[str] = []
    for rule, predicate in found:
        whole = all_of(predicate, *(none_of(one) for one in earlier))
        if predicate is not None and whole is not None:
            yield rule, whole
            earlier.append(predicate)


def _evergreen(policy: RetentionPolicy) -> str:
    """Has one of the tags; of no tags, no row has."""
    tags = [Filter(tags=(tag,), states="any").predicate(None) for tag in policy.evergreen_tags]
    return any_of(*(tag for tag in tags if tag))


def _held(snapshot: Snapshot, moment: datetime) -> frozenset[str]:
    """What a memory clashes with that waits for an answer: the answer is about both."""
    waiting = all_of(equals("state", State.PENDING), live(moment))
    columns = snapshot.scan(waiting, columns=["relationships"])["relationships"].to_pylist()
    edges = (edge for several in columns for edge in several or ())
    return frozenset(edge["target"] for edge in edges if edge["relation"] == _CLASH)


def _before(moment: datetime, age: timedelta) -> datetime:
    """That much earlier; no memory is older than the earliest moment."""
    return moment - age if age < moment - EARLIEST else EARLIEST


def _dues(
    batch: pa.RecordBatch, rule: RetentionRule, reasons: Mapping[Kind, str], moment: datetime
) -> Iterator[tuple[Due, Fingerprint]]:
    for row in batch.to_pylist():
        times = (row["event_at"], row["created_at"], row["state_at"])
        kind = Kind(row["kind"])
        due = Due(
            id=row["id"],
            tenant=row["tenant"],
            kind=kind,
            rule=rule,
            age=moment - max(time for time in times if time is not None),
            reason=reasons[kind],
        )
        yield due, (row["revision"], row["updated_at"], row["content_hash"])


def _reason(policy: RetentionPolicy, rule: RetentionRule, kind: Kind) -> str:
    if rule is RetentionRule.EXPIRED:
        return f"retention: {kind}, expired"
    if rule is RetentionRule.LOW_IMPORTANCE:
        low = f"importance below {policy.low_importance:g}"
        return f"retention: {low}, kept for {lasting(policy.low_importance_age)}"
    stay = policy.age(kind)
    return f"retention: {kind}, kept for {'good' if stay is None else lasting(stay)}"
