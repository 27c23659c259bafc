"""From neighbour lists to clusters: greedy, connected components, average linkage.

Each method takes a graph and which rows are free, gives disjoint clusters of two or more, and marks
their rows as taken. None leaves two free rows that are near each other and might be together, but
for rows whose lists were cut short: those look again, see `groups.near_duplicates`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_memory.curate.options import ClusterMethod
from lance_memory.facts.distinct import Apart
from lance_memory.index import Graph

__all__ = ["METHODS", "Method", "Near"]

_LINKED = 2_048
"""Rows that average linkage sees at once: all their pairs are held, 50 MB. Of a larger component
the strongest links make parts of so many."""

_NEVER = 1e9
"""A distance that no mean over the pairs of `_LINKED` rows brings down to a cosine's."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Near:
    """Which rows are near which, and what a cluster may be.

    Attributes:
        vectors: unit rows, float32 [n, d].
        graph: the neighbours of each row that it may be with, nearest first.
        unsure: bool [n], rows that may have more neighbours than the graph says.
        wanted: free neighbours with which an unsure row does not look again.
        floor: the least mean cosine of two parts that average linkage joins.
        max_size: members of a cluster.
        apart: which rows must not be in one cluster; None: all may.
    """

    vectors: NDArray[np.float32]
    graph: Graph
    unsure: NDArray[np.bool_]
    wanted: int
    floor: float
    max_size: int
    apart: Apart | None

    def may_join(self, row: int, members: Sequence[int]) -> bool:
        """Whether the row conflicts with no member."""
        apart = self.apart
        return apart is None or all(apart.conflict(row, member) is None for member in members)


Method: TypeAlias = Callable[[Near, NDArray[np.bool_]], list[list[int]]]


def _greedy(near: Near, free: NDArray[np.bool_]) -> list[list[int]]:
    """The row with the most neighbours takes its nearest free ones; then the next row."""
    counts = np.diff(near.graph.offsets)
    order = np.lexsort((np.arange(len(counts)), -counts))[: np.count_nonzero(counts)]
    clusters = []
    for centre in order.tolist():
        if free[centre]:
            members = _around(near, centre, free)
            if len(members) > 1:
                free[members] = False
                clusters.append(members)
    return clusters


def _around(near: Near, centre: int, free: NDArray[np.bool_]) -> list[int]:
    """The centre and its nearest free neighbours; alone where it had better look again."""
    start, end = near.graph.offsets[centre : centre + 2]
    others = near.graph.index[start:end]
    others = others[free[others]]
    members = [centre]
    if near.unsure[centre] and len(others) < near.wanted:
        return members
    for other in others.tolist():
        if len(members) == near.max_size:
            break
        if near.may_join(other, members):
            members.append(other)
    return members


def _components(near: Near, free: NDArray[np.bool_]) -> list[list[int]]:
    """Rows that are linked through others; what is too large, or conflicts, is cut.

    There the strongest links are made first, and those left out that would make a part too large
    or bring a conflict into it.
    """
    clusters = []
    for part in _connected(near, free):
        members = part.members.tolist()
        if len(members) > near.max_size or not _agree(near, members):
            clusters += _strongest_first(near, part, limit=near.max_size, guarded=True)
        else:
            clusters.append(members)
    return _taken(clusters, free)


def _average(near: Near, free: NDArray[np.bool_]) -> list[list[int]]:
    """Average linkage inside each component, down to the floor, again for what is left free."""
    clusters: list[list[int]] = []
    while True:
        found = []
        for part in _connected(near, free):
            pieces = [part.members.tolist()]
            if len(part.members) > _LINKED:
                pieces = _strongest_first(near, part, limit=_LINKED, guarded=False)
            found += [cluster for piece in pieces for cluster in _linked(near, piece)]
        clusters += _taken(found, free)
        if not found:
            return clusters


METHODS: dict[ClusterMethod, Method] = {
    ClusterMethod.GREEDY: _greedy,
    ClusterMethod.COMPONENTS: _components,
    ClusterMethod.AVERAGE: _average,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """A connected component: its rows, ascending, and its links, the strongest first."""

    members: NDArray[np.int64]
    links: NDArray[np.int64]


def _connected(near: Near, free: NDArray[np.bool_]) -> Iterator[_Part]:
    """The components of two rows or more of the graph among the free rows."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph, n = near.graph, len(free)
    one = np.repeat(np.arange(n), np.diff(graph.offsets))
    both = free[one] & free[graph.index]
    one, other, cosines = one[both], graph.index[both].astype(np.int64), graph.similarity[both]
    links = coo_array((np.ones(len(one), np.bool_), (one, other)), shape=(n, n))
    _, label = connected_components(links, directed=False)
    order = np.lexsort((other, one, -cosines, label[one]))
    pairs = np.stack([one, other], axis=1)[order]
    _, first = np.unique(label[pairs[:, 0]], return_index=True)
    for some in np.split(pairs, first[1:]) if len(pairs) else ():
        yield _Part(members=np.unique(some), links=some)


def _strongest_first(near: Near, part: _Part, *, limit: int, guarded: bool) -> list[list[int]]:
    """Join along the links while no part exceeds the limit or, if guarded, conflicts."""
    home = {row: [row] for row in part.members.tolist()}
    for one, other in part.links.tolist():
        a, b = home[one], home[other]
        if a is b or len(a) + len(b) > limit:
            continue
        if guarded and not all(near.may_join(row, b) for row in a):
            continue
        large, small = (a, b) if len(a) >= len(b) else (b, a)
        large += small
        home.update((row, large) for row in small)
    parts = {id(members): members for members in home.values()}
    return [members for members in parts.values() if len(members) > 1]


def _linked(near: Near, members: list[int]) -> list[list[int]]:
    """The tree of average linkage, cut where a join is below the floor, too large or conflicts."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    rows = near.vectors[members]
    distances = (1.0 - rows @ rows.T).astype(np.float64)
    if near.apart is not None:
        places = np.array(members, np.int64)
        distances[~near.apart.allowed(places, places)] = _NEVER
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(distances, checks=False), "average")
    parts = {i: [member] for i, member in enumerate(members)}
    for step, (a, b, height, size) in enumerate(tree.tolist(), start=len(members)):
        whole = a in parts and b in parts
        if whole and height <= 1.0 - near.floor and size <= near.max_size:
            parts[step] = parts.pop(int(a)) + parts.pop(int(b))
    return [part for part in parts.values() if len(part) > 1]


def _agree(near: Near, members: Sequence[int]) -> bool:
    apart = near.apart
    return apart is None or all(
        apart.conflict(one, other) is None for one, other in combinations(members, 2)
    )


def _taken(clusters: list[list[int]], free: NDArray[np.bool_]) -> list[list[int]]:
    for members in clusters:
        free[members] = False
    return clusters
