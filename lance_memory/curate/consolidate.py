"""The sink that writes back: a pass is planned here, and committed as one change set."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.curate.cluster.select import Found, select
from lance_memory.curate.guard import Answered, Guard, Search, guarded
from lance_memory.curate.merge import agreeing, averaged, successor_row
from lance_memory.curate.options import Bounds, ClusterBy, ConsolidateOptions, OnFailure
from lance_memory.curate.plan import ClusterPlan, ConsolidationPlan
from lance_memory.curate.transform.execute import Execution, Outcome, outcomes
from lance_memory.curate.transform.protocol import Derived, Transform
from lance_memory.errors import InvalidInputError, RejectedError, StoppedError
from lance_memory.facts import dropped
from lance_memory.record.identity import new_id, new_ids
from lance_memory.record.intake import take_in
from lance_memory.record.memory import Memory, Scope
from lance_memory.record.rows import EMBEDDING, FINGERPRINT, superseded, to_memories
from lance_memory.storage import Audit, ChangeSet, Snapshot
from lance_memory.wording import counted, worded

__all__ = ["Needs", "Pass", "change_set", "plan_consolidation"]

Embed = Callable[[Sequence[str]], NDArray[np.float32]]

_READ_AT_ONCE = 1_000
"""Sources whose whole rows are read in one go, on their way to the transform."""


_KINDS = {
    "options": ConsolidateOptions,
    "execution": Execution,
    "bounds": Bounds,
    "stop": threading.Event,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What is asked of one pass; see `MemoryStore.consolidate`."""

    options: ConsolidateOptions
    transform: Transform
    execution: Execution
    guard: Guard | None
    bounds: Bounds
    stop: threading.Event

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            if not isinstance(getattr(self, name), kind):
                hint = " (a transform goes into transform=)" if name == "options" else ""
                raise InvalidInputError(
                    f"{name} is {getattr(self, name)!r}; it takes {kind.__name__}{hint}"
                )
        if not (self.guard is None or isinstance(self.guard, Guard)):
            raise InvalidInputError(f"guard is {self.guard!r}; it takes a Guard, or None")
        if not callable(self.transform):
            raise InvalidInputError(f"transform is {self.transform!r}; it takes a callable")

    def deadline(self) -> Deadline:
        """Its time begins now."""
        seconds = self.bounds.max_seconds
        end = None if seconds is None else time.monotonic() + seconds
        return Deadline(stop=self.stop, end=end)

    def refuse_stopped(self) -> None:
        """A pass that was asked to stop writes nothing.

        Raises:
            StoppedError: it was.
        """
        if self.stop.is_set():
            raise StoppedError("the pass was asked to stop; nothing was written")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """When a pass looks at no further cluster."""

    stop: threading.Event
    end: float | None

    def over(self) -> bool:
        """Whether it was asked to stop, or its time is up."""
        return self.stop.is_set() or (self.end is not None and time.monotonic() > self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a pass needs of the rooms that it may not import.

    Attributes:
        embed: texts → float32 [n, d].
        search: a snapshot → what searches it.
        trial: a snapshot and a change set → what the store would be, while the block lasts.
        answered: questions that were recorded, and the memories that answered them.
    """

    embed: Embed
    search: Callable[[Snapshot], Search]
    trial: Callable[[Snapshot, ChangeSet], AbstractContextManager[Snapshot]]
    answered: Answered


def plan_consolidation(
    snapshot: Snapshot,
    predicate: str | None,
    asked: Pass,
    needs: Needs,
    *,
    now: datetime,
) -> ConsolidationPlan:
    """Plan a pass over the rows of `snapshot` that pass the predicate. Commits nothing.

    Only narrow columns, and the vectors of one boundary at a time, are held; whole memories are
    read for the clusters alone.

    Raises:
        StoppedError: `asked.stop` was set.
        EmbeddingError: a derived text could not be embedded.
        StorageError: the guard's trial could not be written.
    """
    deadline = asked.deadline()
    rows, predicate = asked.bounds.max_rows, asked.bounds.within(predicate)
    selection = select(snapshot, predicate, asked.options, rows=rows, stop=deadline.over)
    found = selection.clusters
    clusters = list(_clusters(snapshot, found, asked, deadline, now=now))
    cut = _cut(asked, deadline, looked_at=len(clusters), there=len(found))
    asked.refuse_stopped()
    plan = ConsolidationPlan(
        version=snapshot.version,
        at=now,
        op_id=new_id(now),
        options=asked.options,
        clusters=tuple(_embedded(clusters, needs.embed)),
        selected=selection.considered,
        cut=cut,
    )
    if asked.guard is not None and plan.accepted:
        plan = _guarded(snapshot, plan, asked, needs)
    asked.refuse_stopped()
    return plan


def change_set(snapshot: Snapshot, plan: ConsolidationPlan, *, audit: Audit) -> ChangeSet:
    """The plan as one change set: derived rows in, sources superseded by them.

    Raises:
        InvalidInputError: the plan gives a key that none of its sources has.
    """
    accepted = plan.accepted
    derived = [dict(cluster.derived) for cluster in accepted if cluster.derived is not None]
    successor = {
        source: str(row["id"])
        for cluster, row in zip(accepted, derived, strict=True)
        for source in cluster.sources
    }
    rows = snapshot.by_ids(list(successor), columns=snapshot.schema.names)
    present = rows["id"].to_pylist()
    columns = (rows[name].to_pylist() for name in (*FINGERPRINT, "key"))
    found = dict(zip(present, zip(*columns, strict=True), strict=True))
    for cluster in accepted:
        same = [i for i, seen in cluster.sources.items() if found.get(i, ())[:-1] == seen]
        keys = {i: found[i][-1] for i in same}
        _refuse_foreign_key(cluster, keys)
    by = pa.array([successor[identifier] for identifier in present], pa.string())
    return ChangeSet(
        audit=audit,
        inserts=take_in(derived, schema=snapshot.schema, scope=Scope(), now=plan.at).rows,
        updates=superseded(rows, by=by, reason="consolidated", now=plan.at),
        seen={i: seen for cluster in accepted for i, seen in cluster.sources.items()},
    )


def _refuse_foreign_key(cluster: ClusterPlan, keys: Mapping[str, str | None]) -> None:
    """A derived memory has a key of its sources, or none; a saved plan may have been edited.

    Where sources were changed since, and are not among `keys`, the commit will say so.

    Raises:
        InvalidInputError: it has another.
    """
    row = cluster.derived or {}
    key = row.get("key")
    there = cluster.sources.keys() <= keys.keys()
    if key is not None and there and key not in {keys[source] for source in cluster.sources}:
        raise InvalidInputError(
            f"the plan gives {row['id']} the key {key!r}, which none of its sources has; "
            "was the file edited?"
        )


def _cut(asked: Pass, deadline: Deadline, *, looked_at: int, there: int) -> str:
    """Why not all clusters were looked at; empty where they were."""
    bounds = asked.bounds
    if asked.stop.is_set():
        return "it was asked to stop"
    if bounds.max_seconds is not None and deadline.over():
        return f"{bounds.max_seconds:g} s were over"
    if looked_at == there:
        return ""
    if looked_at == bounds.max_clusters or bounds.max_clusters is not None:
        asked_for = worded("{n} [cluster was|clusters were] asked for", bounds.max_clusters or 0)
        return f"{asked_for}, and {worded('{n} [is|are] there', there)}"
    return "a cluster failed, and all or nothing was asked for"


def _clusters(
    snapshot: Snapshot, found: Sequence[Found], asked: Pass, deadline: Deadline, *, now: datetime
) -> Iterator[ClusterPlan]:
    """Each cluster as its transform left it, up to as many as were asked for."""
    waiting: deque[list[Memory]] = deque()

    def members() -> Iterator[list[Memory]]:
        for cluster in _read(snapshot, found):
            waiting.append(cluster)
            yield cluster

    planner = _Planner(schema=snapshot.schema, options=asked.options, now=now)
    identifiers = new_ids(len(found), now)
    accepted = 0
    made = outcomes(members(), asked.transform, asked.execution, stop=deadline.over)
    for one, identifier, outcome in zip(found, identifiers, made, strict=False):
        planned = planner.plan(waiting.popleft(), outcome, one.cohesion, identifier)
        yield planned
        accepted += planned.derived is not None
        ended = planned.failed and asked.options.on_failure == OnFailure.ALL_OR_NOTHING
        if ended or accepted == asked.bounds.max_clusters:
            return


def _read(snapshot: Snapshot, found: Sequence[Found]) -> Iterator[list[Memory]]:
    """The members of each cluster, oldest first; read some clusters at a time."""
    start = 0
    while start < len(found):
        end, size = start, 0
        while end < len(found) and size < _READ_AT_ONCE:
            size += len(found[end].ids)
            end += 1
        addresses = [address for one in found[start:end] for address in one.addresses]
        rows = snapshot.take(np.array(addresses, dtype=np.uint64), snapshot.schema.names)
        memories = iter(to_memories(rows))
        for one in found[start:end]:
            yield list(islice(memories, len(one.ids)))
        start = end


_MORE = 1_000
"""Characters that a derived text may have beyond its sources'. A longer one is no consolidation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planner:
    """From a cluster and what its transform gave to what would be written."""

    schema: pa.Schema
    options: ConsolidateOptions
    now: datetime

    def plan(
        self, members: Sequence[Memory], outcome: Outcome, cohesion: float, identifier: str
    ) -> ClusterPlan:
        contents = tuple(memory.content for memory in members)
        plan = ClusterPlan(
            sources={m.id: (m.revision, m.updated_at, m.content_hash) for m in members},
            scope=_shared_scope(members),
            cohesion=round(cohesion, 4),
            reason=outcome.reason,
            failed=outcome.failed,
            may_pass=outcome.may_pass,
            contents=contents,
        )
        if outcome.derived is None:
            return plan
        longest = sum(map(len, contents)) + _MORE
        if len(outcome.derived.content) > longest:
            return plan.left_alone(
                f"the transform gave {counted(len(outcome.derived.content), 'character')}, and the "
                f"sources have {longest - _MORE:,}"
            )
        lost = dropped(contents, outcome.derived.content)
        plan = replace(plan, dropped=lost.missing)
        if lost.share > self.options.max_dropped:
            return plan.left_alone(
                f"the transform dropped {lost.share:.0%} of the sources' numbers, names and "
                "negations"
            )
        return self._with_row(plan, members, outcome.derived, identifier)

    def _with_row(
        self, plan: ClusterPlan, members: Sequence[Memory], derived: Derived, identifier: str
    ) -> ClusterPlan:
        """The plan with the row to insert, if what the transform gave makes one."""
        alike = self.options.by == ClusterBy.SIMILARITY
        row = successor_row(
            members,
            derived,
            identifier=identifier,
            now=self.now,
            combined=agreeing if alike else averaged,
        )
        try:
            take_in([row], schema=self.schema, scope=Scope(), now=self.now)
        except RejectedError as error:
            return plan.left_alone(f"the transform gave a malformed memory: {error}")
        return replace(plan, derived=row)


def _shared_scope(members: Sequence[Memory]) -> Scope:
    """The levels in which all members agree."""
    first, *others = (memory.scope.names() for memory in members)
    return Scope(**{n: v if all(o[n] == v for o in others) else "" for n, v in first.items()})


def _embedded(clusters: Sequence[ClusterPlan], embed: Embed) -> Iterator[ClusterPlan]:
    """The clusters with their derived rows' vectors, embedded in one go."""
    texts = [str(c.derived["content"]) for c in clusters if c.derived is not None]
    vectors = iter(embed(texts).tolist() if texts else ())
    for cluster in clusters:
        if cluster.derived is None:
            yield cluster
        else:
            yield replace(cluster, derived={**cluster.derived, EMBEDDING: next(vectors)})


def _guarded(
    snapshot: Snapshot, plan: ConsolidationPlan, asked: Pass, needs: Needs
) -> ConsolidationPlan:
    """The plan without the clusters that would make recall worse."""
    guard = asked.guard or Guard()

    def planned(clusters: Sequence[ClusterPlan]) -> AbstractContextManager[Search]:
        return _as_planned(snapshot, replace(plan, clusters=tuple(clusters)), needs)

    measured = guarded(
        plan.clusters,
        guard,
        refuse_stopped=asked.refuse_stopped,
        answered=needs.answered,
        before=needs.search(snapshot),
        after=planned,
    )
    return replace(plan, clusters=tuple(measured))


@contextmanager
def _as_planned(snapshot: Snapshot, plan: ConsolidationPlan, needs: Needs) -> Iterator[Search]:
    """Searches the store as the plan would leave it."""
    change = change_set(snapshot, plan, audit=Audit(operation="trial", at=plan.at))
    with needs.trial(snapshot, change) as result:
        yield needs.search(result)
