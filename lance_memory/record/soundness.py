"""What must hold of the rows of one version, as functions from rows to the ids that break it.

They look at whole columns; `COLUMNS` are those that they need.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.record.identity import content_hashes
from lance_memory.record.memory import SCOPE_LEVELS, State
from lance_memory.record.rows import embeddings, one_array, valid_vectors

__all__ = [
    "COLUMNS",
    "FOLLOWED",
    "Edge",
    "bad_vectors",
    "contents_held_twice",
    "doubled_ids",
    "edges",
    "from_the_future",
    "in_circles",
    "keys_held_twice",
    "nowhere",
    "successions",
    "unacknowledged",
    "unlike_their_state",
    "wrongly_hashed",
]

COLUMNS = (
    "id",
    "revision",
    "key",
    "content_hash",
    *SCOPE_LEVELS,
    "role",
    "actor",
    "created_at",
    "updated_at",
    "event_at",
    "expires_at",
    "state",
    "state_at",
    "superseded_by",
    "relationships",
)

FOLLOWED = ("consolidates", "updates")
"""Relations that lead from a successor to what it took the place of; they never go in circles."""

_SAME = ("content_hash", "actor", "role", "event_at", *SCOPE_LEVELS)
_TIMES = ("created_at", "updated_at", "state_at")


class Edge(NamedTuple):
    """A memory that names another, and how."""

    start: str
    relation: str
    target: str


def doubled_ids(rows: pa.Table) -> list[str]:
    """Ids that several rows have."""
    counted = rows.group_by("id").aggregate([("id", "count")])
    doubled: list[str] = counted.filter(pc.greater(counted["id_count"], 1))["id"].to_pylist()
    return sorted(doubled)


def keys_held_twice(rows: pa.Table, moment: datetime) -> list[str]:
    """Live memories that have their key together with another one of their scope."""
    held = rows.filter(pc.and_(_live(rows, moment), rows["key"].is_valid()))
    return _together(held, ("key", *SCOPE_LEVELS))


def contents_held_twice(rows: pa.Table, moment: datetime) -> list[str]:
    """Live memories that say the same as another one of their scope, and of the same event."""
    return _together(rows.filter(_live(rows, moment)), _SAME)


def unlike_their_state(rows: pa.Table) -> list[str]:
    """Superseded memories without a successor, and others that have one."""
    superseded = pc.equal(rows["state"], str(State.SUPERSEDED))
    return _ids(rows, pc.not_equal(superseded, rows["superseded_by"].is_valid()))


def edges(rows: pa.Table) -> list[Edge]:
    """Every relationship that the rows carry."""
    lists = one_array(rows["relationships"])
    flat = pc.list_flatten(lists)
    starts = one_array(rows["id"]).take(pc.list_parent_indices(lists))
    columns = starts, pc.struct_field(flat, "relation"), pc.struct_field(flat, "target")
    return [Edge(*edge) for edge in zip(*(c.to_pylist() for c in columns), strict=True)]


def nowhere(rows: pa.Table, found: list[Edge]) -> list[Edge]:
    """Those of the edges whose target is not among the rows."""
    known = set(rows["id"].to_pylist())
    return [edge for edge in found if edge.target not in known]


def unacknowledged(rows: pa.Table, found: list[Edge]) -> list[str]:
    """Superseded memories whose successor is there and does not name them."""
    named = {(edge.start, edge.target) for edge in found}
    known = set(rows["id"].to_pylist())
    pairs = zip(rows["superseded_by"].to_pylist(), rows["id"].to_pylist(), strict=True)
    return sorted(i for by, i in pairs if by in known and (by, i) not in named)


def successions(rows: pa.Table) -> list[Edge]:
    """Who took whose place, as the replaced memories tell."""
    replaced = rows.filter(rows["superseded_by"].is_valid())
    pairs = zip(replaced["id"].to_pylist(), replaced["superseded_by"].to_pylist(), strict=True)
    return [Edge(start, "superseded_by", target) for start, target in pairs]


def in_circles(found: list[Edge]) -> list[str]:
    """Memories that lead back to themselves along the edges."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    if not found:
        return []
    names = sorted({name for edge in found for name in (edge.start, edge.target)})
    place = {name: i for i, name in enumerate(names)}
    ends = np.array([(place[e.start], place[e.target]) for e in found], np.int64)
    graph = coo_matrix((np.ones(len(ends), np.int8), ends.T), shape=(len(names), len(names)))
    _, part = connected_components(graph, directed=True, connection="strong")
    crowded = np.flatnonzero(np.bincount(part)[part] > 1)
    alone = ends[ends[:, 0] == ends[:, 1], 0]
    return [names[i] for i in np.union1d(crowded, alone).tolist()]


def from_the_future(rows: pa.Table, moment: datetime) -> list[str]:
    """Memories that were written after `moment`, as they say."""
    late = [pc.greater(rows[name], pa.scalar(moment, rows[name].type)) for name in _TIMES]
    return _ids(rows, pc.or_(pc.or_(late[0], late[1]), late[2]))


def wrongly_hashed(rows: pa.Table) -> list[str]:
    """Memories whose content is not the one that was hashed; needs `content`."""
    hashes = pa.array(content_hashes(rows["content"].to_pylist()), pa.string())
    return _ids(rows, pc.not_equal(one_array(rows["content_hash"]), hashes))


def bad_vectors(rows: pa.Table) -> Mapping[str, list[str]]:
    """Ids by what is wrong with their vectors; needs `embedding`.

    "missing": there is none, "zero": it has no direction, "not finite": it has a NaN or infinity.
    """
    valid, vectors = valid_vectors(rows), embeddings(rows)
    finite = np.logical_and.reduce(np.isfinite(vectors), axis=1)
    zero = np.logical_and(finite, ~(vectors != 0).any(axis=1))
    masks = {"missing": ~valid, "zero": valid & zero, "not finite": valid & ~finite}
    return {name: _ids(rows, pa.array(mask)) for name, mask in masks.items()}


def _live(rows: pa.Table, moment: datetime) -> pa.ChunkedArray:
    states = pa.array([str(State.ACTIVE), str(State.PENDING)])
    expiry = pc.greater(rows["expires_at"], pa.scalar(moment, rows["expires_at"].type))
    unexpired = pc.fill_null(expiry, fill_value=True)
    return pc.and_(pc.is_in(rows["state"], states), unexpired)


def _together(rows: pa.Table, columns: tuple[str, ...]) -> list[str]:
    """The ids of rows that agree with another one in all of the columns."""
    grouped = rows.group_by(list(columns)).aggregate([("id", "list")])
    several = grouped.filter(pc.greater(pc.list_value_length(grouped["id_list"]), 1))
    ids: list[str] = pc.list_flatten(several["id_list"]).to_pylist()
    return sorted(ids)


def _ids(rows: pa.Table, mask: pa.Array | pa.ChunkedArray) -> list[str]:
    chosen: list[str] = rows.filter(mask)["id"].to_pylist()
    return sorted(chosen)
