"""select → cluster → transform → sink: a pass is planned here, and committed as one change set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.curate import cluster as clustering
from lance_memory.curate.facts import kept
from lance_memory.curate.merge import successor_row
from lance_memory.curate.options import ClusterBy, ConsolidateOptions
from lance_memory.curate.plan import ClusterPlan, ConsolidationPlan
from lance_memory.curate.transform import Derived, Transform
from lance_memory.errors import RejectedError
from lance_memory.record.identity import new_id, new_ids
from lance_memory.record.intake import take_in
from lance_memory.record.memory import SCOPE_LEVELS, Memory, Scope
from lance_memory.record.rows import EMBEDDING, embeddings, superseded, to_memories
from lance_memory.storage import Audit, ChangeSet, Snapshot

__all__ = ["change_set", "plan_consolidation"]

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


def plan_consolidation(
    snapshot: Snapshot,
    predicate: str | None,
    *,
    options: ConsolidateOptions,
    transform: Transform,
    embed: Embed,
    now: datetime,
) -> ConsolidationPlan:
    """Plan a pass over the rows of `snapshot` that pass the predicate. Writes nothing.

    Only narrow columns and the vectors of the selected rows are held; whole memories are read
    for the clusters alone.
    """
    selected = _select(snapshot, predicate, options)
    found = sorted(_clusters(selected, options), key=lambda members: members[0])
    ids = selected["id"].to_pylist()
    wanted = [ids[p] for members in found for p in members]
    rows = snapshot.by_ids(wanted, columns=snapshot.schema.names)
    by_id = {memory.id: memory for memory in to_memories(rows)}
    groups = [[by_id[ids[p]] for p in members] for members in found]
    identifiers = new_ids(len(groups), now)
    clusters = [
        _planned(
            members,
            _transformed(tuple(members), transform, options),
            identifier=identifier,
            schema=snapshot.schema,
            now=now,
        )
        for members, identifier in zip(groups, identifiers, strict=True)
    ]
    return ConsolidationPlan(
        version=snapshot.version,
        at=now,
        op_id=new_id(now),
        options=options,
        clusters=tuple(_embedded(clusters, embed)),
        selected=len(selected),
    )


def change_set(snapshot: Snapshot, plan: ConsolidationPlan, *, audit: Audit) -> ChangeSet:
    """The plan as one change set: derived rows in, sources superseded by them."""
    accepted = plan.accepted
    derived = [dict(cluster.derived) for cluster in accepted if cluster.derived is not None]
    successor = {
        source: str(row["id"])
        for cluster, row in zip(accepted, derived, strict=True)
        for source in cluster.sources
    }
    rows = snapshot.by_ids(list(successor), columns=snapshot.schema.names)
    present = rows["id"].to_pylist()
    by = pa.array([successor[identifier] for identifier in present], pa.string())
    return ChangeSet(
        audit=audit,
        inserts=take_in(derived, schema=snapshot.schema, scope=Scope(), now=plan.at).rows,
        updates=superseded(rows, by=by, reason="consolidated", now=plan.at),
        seen={i: seen for cluster in accepted for i, seen in cluster.sources.items()},
    )


def _select(snapshot: Snapshot, predicate: str | None, options: ConsolidateOptions) -> pa.Table:
    """Narrow columns and vectors, oldest event first."""
    columns = ["id", *SCOPE_LEVELS, "kind", "actor", "event_at", "created_at", EMBEDDING]
    rows = snapshot.scan(predicate, columns=columns)
    if options.by == ClusterBy.SIMILARITY:
        rows = rows.filter(rows[EMBEDDING].is_valid())
    happened = pc.coalesce(rows["event_at"], rows["created_at"])
    rows = rows.append_column("happened_at", happened)
    return rows.sort_by([("happened_at", "ascending"), ("id", "ascending")])


def _clusters(rows: pa.Table, options: ConsolidateOptions) -> Iterator[list[int]]:
    """Positions of the rows of each cluster with at least `min_size` members."""
    labels = options.boundary()
    if options.by == ClusterBy.SIMILARITY:
        labels += ["kind", "actor"]
    elif options.by in (ClusterBy.SESSION, ClusterBy.RUN):
        labels = [*dict.fromkeys([*labels, str(options.by)])]
    vectors = clustering.unit(embeddings(rows))
    times = rows["happened_at"].to_pylist()
    columns = [rows[label].to_pylist() for label in labels]
    groups = clustering.grouped(list(zip(*columns, strict=True)) or [()] * len(rows))
    if options.by in (ClusterBy.SESSION, ClusterBy.RUN):
        named = rows[str(options.by)].to_pylist()
        groups = [group for group in groups if named[group[0]]]
    for group in groups:
        for members in _within(group, vectors, times, options):
            if len(members) >= options.min_size:
                yield members


def _within(
    group: list[int],
    vectors: NDArray[np.float32],
    times: Sequence[datetime],
    options: ConsolidateOptions,
) -> Iterator[list[int]]:
    if options.by == ClusterBy.SIMILARITY:
        near = clustering.near_duplicates(
            vectors[group], floor=options.min_similarity, max_size=options.max_size
        )
        yield from ([group[place] for place in members] for members in near)
        return
    parts = [group]
    if options.by == ClusterBy.WINDOW:
        split = clustering.windows([times[p] for p in group], options.window)
        parts = [[group[place] for place in members] for members in split]
    for part in parts:
        for start in range(0, len(part), options.max_size):
            yield part[start : start + options.max_size]


def _planned(
    members: Sequence[Memory],
    transformed: tuple[Derived | None, str],
    *,
    identifier: str,
    schema: pa.Schema,
    now: datetime,
) -> ClusterPlan:
    row = None
    derived, reason = transformed
    if derived is not None:
        row = successor_row(members, derived, identifier=identifier, now=now)
        try:
            take_in([row], schema=schema, scope=Scope(), now=now)
        except RejectedError as error:
            row, reason = None, f"the transform gave a malformed memory: {error}"
    known = [m.embedding for m in members if m.embedding is not None]
    tightness = clustering.cohesion(clustering.unit(np.stack(known))) if known else 0.0
    return ClusterPlan(
        sources={m.id: (m.revision, m.updated_at, m.content_hash) for m in members},
        cohesion=round(tightness, 4),
        derived=row,
        reason=reason,
        contents=tuple(m.content for m in members),
    )


def _transformed(
    members: Sequence[Memory], transform: Transform, options: ConsolidateOptions
) -> tuple[Derived | None, str]:
    answer = transform(members)
    if answer is None:
        return None, "the transform left it alone"
    derived = Derived(content=answer) if isinstance(answer, str) else answer
    if not isinstance(derived, Derived) or not isinstance(derived.content, str):
        return None, f"the transform gave {answer!r}; it gives a text, a Derived or None"
    if not derived.content.strip():
        return None, "the transform gave an empty text"
    share = kept([m.content for m in members], derived.content)
    if share < options.min_kept:
        return None, f"the transform kept {share:.0%} of the sources' numbers and names"
    return derived, ""


def _embedded(clusters: Sequence[ClusterPlan], embed: Embed) -> Iterator[ClusterPlan]:
    """The clusters with their derived rows' vectors, embedded in one go."""
    texts = [str(c.derived["content"]) for c in clusters if c.derived is not None]
    vectors = iter(embed(texts).tolist() if texts else ())
    for cluster in clusters:
        if cluster.derived is None:
            yield cluster
        else:
            yield replace(cluster, derived={**cluster.derived, EMBEDDING: next(vectors)})
