"""Select and cluster: which memories of one version belong together.

Narrow columns are read in a stream; vectors group by group, in bins of bounded size; contents only
of rows that are near another. So a pass over a large table holds its ids and times, and one bin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.curate.cluster.groups import LARGE, cohesion, near_duplicates, windows
from lance_memory.curate.cluster.members import Members, blocks_of
from lance_memory.curate.options import ClusterBy, ConsolidateOptions
from lance_memory.facts.distinct import Facts, facts
from lance_memory.storage import Snapshot

__all__ = ["Found", "Selection", "select"]

_BATCH = 65_536
_NAMED = (ClusterBy.SESSION, ClusterBy.RUN, ClusterBy.TENANT)
_PREFIX = "prefix"
_ENDS = ("expires_at", "valid_to")
_OPEN = -(2**63)
"""An end that there is not; no time is written so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A cluster: its members, oldest event first, and how alike they are.

    Attributes:
        ids: two or more; those of one moment by their ids.
        addresses: the members' row addresses in that version, in the order of `ids`.
        cohesion: mean cosine over all pairs of the members that have a vector, -1..1; 1.0 where
            only one has, 0.0 where none has.
    """

    ids: tuple[str, ...]
    addresses: tuple[int, ...]
    cohesion: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What was found among how many memories; clusters by their earliest member."""

    considered: int
    clusters: Sequence[Found]


Stop: TypeAlias = Callable[[], bool]
Places: TypeAlias = NDArray[np.int64]
"""Positions in the sorted rows, ascending: oldest event first."""


def select(
    snapshot: Snapshot,
    predicate: str | None,
    options: ConsolidateOptions,
    *,
    rows: int | None = None,
    stop: Stop = lambda: False,
) -> Selection:
    """Find the clusters among the rows of `snapshot` that pass the predicate.

    Args:
        snapshot: the version.
        predicate: which rows; None: all.
        options: how to cluster. By similarity, rows without a vector are near to nothing: they
            count as considered, for to ask which they are is to read all vectors.
        rows: consider only so many, those learned last (`created_at`) first.
        stop: asked between groups and blocks; what is found by then is the answer.
    """
    table = _narrow(snapshot, predicate, options)
    if rows is not None and rows < len(table):
        newest = [("created_at", "descending"), ("id", "ascending")]
        table = table.sort_by(newest).slice(0, rows)
    considered = len(table)
    table, groups = _grouped(table, options)
    members = Members(snapshot=snapshot, addresses=table["_rowaddr"].to_numpy())
    if options.by == ClusterBy.SIMILARITY:
        found = list(_alike(members, groups, options, stop))
    else:
        found = list(_structural(members, table, groups, options, stop))
    return Selection(considered=considered, clusters=_in_order(table, found))


def _narrow(snapshot: Snapshot, predicate: str | None, options: ConsolidateOptions) -> pa.Table:
    """Id, labels, times and row address of the rows that pass; labels as numbers of texts."""
    columns = ["id", *_columns(options), "event_at", "created_at", "_rowaddr"]
    batches = snapshot.batches(predicate, columns=columns, batch_size=_BATCH)
    parts = [_labelled(pa.table(batch), options) for batch in batches]
    if not parts:
        schema = [snapshot.schema.field(name) for name in columns[:-1]]
        nothing = pa.schema([*schema, pa.field("_rowaddr", pa.uint64())]).empty_table()
        parts = [_labelled(nothing, options)]
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def _labels(options: ConsolidateOptions) -> list[str]:
    """What all members of a cluster have in common.

    When they end is such: what they become must not outlive the one that had to go first, nor be
    current where one of them no longer is.
    """
    labels = [*options.boundary(), *_ENDS]
    if options.by == ClusterBy.SIMILARITY:
        labels += ["kind", "actor"]
    elif options.by in _NAMED or options.by == ClusterBy.PREFIX:
        labels.append(str(options.by))
    return list(dict.fromkeys(labels))


def _columns(options: ConsolidateOptions) -> list[str]:
    labels = [label for label in _labels(options) if label != _PREFIX]
    return [*labels, "key"] if options.by == ClusterBy.PREFIX else labels


def _labelled(rows: pa.Table, options: ConsolidateOptions) -> pa.Table:
    """Without the rows that lack what they are to be grouped by."""
    if options.by == ClusterBy.PREFIX:
        names = pc.coalesce(rows["key"], rows["id"])
        parts = pc.split_pattern(names, options.separator, max_splits=1, reverse=True)
        prefix = pc.if_else(pc.equal(pc.list_value_length(parts), 2), pc.list_element(parts, 0), "")
        rows = rows.append_column(_PREFIX, prefix)
    happened = pc.coalesce(rows["event_at"], rows["created_at"])
    kept = {"id": rows["id"], "happened_at": happened, "created_at": rows["created_at"]}
    ends = {name: pc.fill_null(rows[name].cast(pa.int64()), _OPEN) for name in _ENDS}
    labels = {
        f"by {name}": ends.get(name, rows[name]).dictionary_encode() for name in _labels(options)
    }
    return pa.table({**kept, **labels, "_rowaddr": rows["_rowaddr"]})


def _grouped(rows: pa.Table, options: ConsolidateOptions) -> tuple[pa.Table, list[Places]]:
    """The rows group by group, each oldest event first, and the places of each group."""
    if options.by in _NAMED or options.by == ClusterBy.PREFIX:
        rows = rows.filter(pc.not_equal(rows[f"by {options.by}"].cast(pa.string()), ""))
    number = np.zeros(len(rows), np.int64)
    for name in _labels(options):
        column = rows[f"by {name}"].combine_chunks()
        codes = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, number = np.unique(number * len(column.dictionary) + codes, return_inverse=True)
    keys = rows.select(["id", "happened_at", "created_at", "_rowaddr"])
    keys = keys.append_column("group", pa.array(number))
    order = [("group", "ascending"), ("happened_at", "ascending"), ("id", "ascending")]
    keys = keys.sort_by(order).combine_chunks()
    starts = np.flatnonzero(np.diff(keys["group"].to_numpy(), prepend=-1))
    groups = np.split(np.arange(len(keys)), starts[1:]) if len(keys) else []
    return keys, [group for group in groups if len(group) >= options.min_size]


def _alike(
    members: Members, groups: list[Places], options: ConsolidateOptions, stop: Stop
) -> Iterator[tuple[Places, float]]:
    """Near rows of each group, and their cohesion."""
    for group, vectors in members.each(groups, stop=stop):
        for places in _near(members, group, vectors, options, stop):
            if len(places) >= options.min_size:
                yield group[places], cohesion(vectors[places])
        del vectors  # a view of its bin, which the next one takes the place of


def _near(
    members: Members,
    group: Places,
    vectors: NDArray[np.float32],
    options: ConsolidateOptions,
    stop: Stop,
) -> list[list[int]]:
    def facts_at(places: NDArray[np.int64]) -> list[Facts]:
        return facts(members.contents(group[places]))

    large = len(group) >= LARGE
    return near_duplicates(
        vectors,
        floor=options.min_similarity,
        max_size=options.max_size,
        method=options.method,
        facts=facts_at if options.distinct else None,
        blocks=blocks_of(vectors, members.snapshot.centroids()) if large else None,
        stop=stop,
    )


def _structural(
    members: Members,
    rows: pa.Table,
    groups: list[Places],
    options: ConsolidateOptions,
    stop: Stop,
) -> Iterator[tuple[Places, float]]:
    """The groups, cut by time and size, and the cohesion of those members that have a vector."""
    parts = [part for group in groups for part in _cut(group, rows, options)]
    for part, vectors in members.each(parts, stop=stop):
        known = vectors[vectors.any(axis=1)]
        yield part, cohesion(known) if len(known) else 0.0
        del vectors


def _cut(group: Places, rows: pa.Table, options: ConsolidateOptions) -> Iterator[Places]:
    parts = [group]
    if options.by == ClusterBy.WINDOW:
        times = rows["happened_at"].slice(group[0], len(group)).to_pylist()
        parts = [group[places] for places in windows(times, options.window)]
    for part in parts:
        for start in range(0, len(part), options.max_size):
            cut = part[start : start + options.max_size]
            if len(cut) >= options.min_size:
                yield cut


def _in_order(rows: pa.Table, found: list[tuple[Places, float]]) -> list[Found]:
    """By the earliest member: its time, then its id."""
    ids, times = rows["id"], rows["happened_at"].cast(pa.int64())

    def earliest(one: tuple[Places, float]) -> Any:
        place = int(one[0][0])
        return times[place].as_py(), ids[place].as_py()

    addresses = rows["_rowaddr"].to_numpy()
    return [
        Found(
            ids=tuple(ids.take(pa.array(places)).to_pylist()),
            addresses=tuple(addresses[places].tolist()),
            cohesion=tightness,
        )
        for places, tightness in sorted(found, key=earliest)
    ]
