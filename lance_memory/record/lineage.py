"""Walks over relationships: where a memory came from, and what replaced it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.record.memory import Memory
from lance_memory.record.results import Lineage, LineageNode

__all__ = ["DEEPEST", "Edge", "Step", "edges", "edges_near", "lineage", "walk"]

SUPERSEDED_BY = "superseded_by"
_OF_LINEAGE = frozenset({SUPERSEDED_BY, "consolidates", "updates"})
"""The relations between what took a memory's place and what it was made from."""
DEEPEST = 100
"""Generations of one tree at most: a value that is nested deeper cannot be written as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """`start` says of `target` that they are in this relation."""

    start: str
    relation: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A memory reached: over which relation, in which direction, after how many edges."""

    id: str
    relation: str
    direction: str
    depth: int


def edges(rows: pa.Table) -> list[Edge]:
    """The edges of rows with `id`, `superseded_by` and `relationships`."""
    return _made(_told(rows))


def edges_near(rows: pa.Table, start: str, *, depth: int) -> list[Edge]:
    """The edges that a walk from `start` goes over within `depth` steps, up or down.

    Of 200,000 edges in 0.05 s, where making all of them and walking takes 0.9 s.

    Args:
        rows: `id`, `superseded_by` and `relationships` of all memories that a walk may pass.
        start: an id.
        depth: steps at most.
    """
    told = starts, relations, targets = _told(rows)
    upwards = pc.equal(relations, SUPERSEDED_BY)
    lower, upper = pc.if_else(upwards, starts, targets), pc.if_else(upwards, targets, starts)
    ids = pa.chunked_array([lower, upper]).combine_chunks().dictionary_encode()
    origin = pc.index(ids.dictionary, start).as_py()
    if origin < 0:
        return []
    below, above = ids.indices.to_numpy().reshape(2, -1)
    passed = np.union1d(_passed(below, above, origin, depth), _passed(above, below, origin, depth))
    return _made([column.take(pa.array(passed)) for column in told])


def _made(told: Iterable[pa.Array]) -> list[Edge]:
    columns = (column.to_pylist() for column in told)
    return [Edge(start=s, relation=r, target=t) for s, r, t in zip(*columns, strict=True)]


def _told(rows: pa.Table) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Start, relation and target of every edge; the successors that rows name come last."""
    lists = rows["relationships"].combine_chunks()
    entries = lists.flatten()
    replaced = rows.filter(pc.is_valid(rows[SUPERSEDED_BY]))
    starts = rows["id"].take(pc.list_parent_indices(lists))
    relation = pa.repeat(pa.scalar(SUPERSEDED_BY, entries.field("relation").type), len(replaced))
    return (
        pa.chunked_array(
            [*starts.chunks, *replaced["id"].chunks], rows["id"].type
        ).combine_chunks(),
        pa.concat_arrays([entries.field("relation"), relation]),
        pa.concat_arrays([entries.field("target"), replaced[SUPERSEDED_BY].combine_chunks()]),
    )


def _passed(
    behind: NDArray[np.int32], ahead: NDArray[np.int32], origin: int, depth: int
) -> NDArray[np.intp]:
    """Positions of the edges that a walk in one direction goes over.

    Args:
        behind: where each edge is entered, as the number of an id, int32 [n].
        ahead: where it leads, int32 [n].
        origin: the number of the id to begin with.
        depth: steps at most.
    """
    order = np.argsort(behind, kind="stable")
    entered = behind[order]
    seen = np.zeros(max(behind.max(), ahead.max()) + 1, dtype=np.bool_)
    frontier = np.array([origin], dtype=behind.dtype)
    passed = [order[:0]]
    for _ in range(depth):
        seen[frontier] = True
        first, last = (np.searchsorted(entered, frontier, side=s) for s in ("left", "right"))
        here = [order[low:high] for low, high in zip(first, last, strict=True)]
        passed += here
        reached = np.unique(ahead[np.concatenate([order[:0], *here])])
        frontier = reached[~seen[reached]]
        if not len(frontier):
            break
    return np.concatenate(passed)


def walk(graph: Sequence[Edge], start: str, *, relation: str | None, depth: int) -> list[Step]:
    """Everything within `depth` edges of `start`, nearest first; each memory once.

    A walk goes down to what memories came from, or up to what came of them, and never turns: so
    from a source it climbs to successors, not back down to their other sources. Cycles end where
    they began. Where `superseded_by` and the successor's own relationship lead to the same memory,
    the relationship is told.
    """
    chosen = [edge for edge in graph if relation is None or edge.relation == relation]
    steps = [*_walk(_ahead(chosen, up=False), start, depth)]
    steps += _walk(_ahead(chosen, up=True), start, depth)
    first: dict[str, Step] = {}
    for step in sorted(steps, key=lambda s: (s.depth, s.relation == SUPERSEDED_BY, s.id)):
        first.setdefault(step.id, step)
    return list(first.values())


def _ahead(graph: Sequence[Edge], *, up: bool) -> dict[str, list[tuple[Edge, bool]]]:
    """Id → edges to follow from there, and whether forwards. `superseded_by` points up."""
    ahead: dict[str, list[tuple[Edge, bool]]] = {}
    for edge in graph:
        forwards = up if edge.relation == SUPERSEDED_BY else not up
        ahead.setdefault(edge.start if forwards else edge.target, []).append((edge, forwards))
    return ahead


def _walk(ahead: Mapping[str, list[tuple[Edge, bool]]], start: str, depth: int) -> Iterator[Step]:
    seen = {start}
    frontier = [start]
    for level in range(1, depth + 1):
        if not frontier:
            return
        reached: list[str] = []
        for identifier in frontier:
            for edge, forwards in ahead.get(identifier, ()):
                there = edge.target if forwards else edge.start
                if there not in seen:
                    reached.append(there)
                    yield Step(
                        id=there,
                        relation=edge.relation,
                        direction="out" if forwards else "in",
                        depth=level,
                    )
        seen.update(reached)
        frontier = list(dict.fromkeys(reached))


def lineage(
    graph: Sequence[Edge], memories: Mapping[str, Memory], start: str, *, depth: int
) -> Lineage:
    """The successors of `start` and its sources, each a tree of at most `depth` generations.

    A memory that is reached on several ways stands at each of them, and what lies beyond it at the
    first one in reading order only: so cycles and diamonds end. What is not in `memories` is left
    out, with all that only it leads to.
    """
    chosen = [edge for edge in graph if edge.relation in _OF_LINEAGE]
    successors, sources = (
        _grown(_next_to(_ahead(chosen, up=up)), memories, start, depth=depth, step=step)
        for up, step in ((True, 1), (False, -1))
    )
    return Lineage(memory=memories[start], successors=successors, sources=sources)


def _next_to(ahead: Mapping[str, list[tuple[Edge, bool]]]) -> dict[str, dict[str, str]]:
    """Id → the ids next to it, each with its relation: `superseded_by` where no other is told."""
    found: dict[str, dict[str, str]] = {}
    for identifier, leaving in ahead.items():
        told = found.setdefault(identifier, {})
        for edge, forwards in leaving:
            there = edge.target if forwards else edge.start
            if told.get(there, SUPERSEDED_BY) == SUPERSEDED_BY:
                told[there] = edge.relation
    return found


def _grown(
    ahead: Mapping[str, Mapping[str, str]],
    memories: Mapping[str, Memory],
    start: str,
    *,
    depth: int,
    step: int,
) -> tuple[LineageNode, ...]:
    """The tree in one direction; `step` is what a generation counts: 1 up, -1 down."""
    shown: dict[str, int] = {}

    def near(identifier: str) -> list[tuple[Memory, str]]:
        """The memories next to one, oldest first, and their relations."""
        told = ahead.get(identifier, {})
        found = [(memories[i], relation) for i, relation in told.items() if i in memories]
        return sorted(found, key=lambda pair: (pair[0].happened_at, pair[0].id))

    def branches(identifier: str, level: int) -> tuple[LineageNode, ...]:
        shown[identifier] = level
        return tuple(node(memory, relation, level) for memory, relation in near(identifier))

    def node(memory: Memory, relation: str, level: int) -> LineageNode:
        # What was cut where it stood first, further from the start, is shown again.
        repeated = shown.get(memory.id, depth + 2) <= level + 1
        ends = repeated or level == depth
        nodes = () if ends else branches(memory.id, level + 1)
        if not ends and not any(n.more for branch in nodes for n in branch):
            shown[memory.id] = 0
        return LineageNode(
            memory=memory,
            relation=relation,
            generation=step * level,
            nodes=nodes,
            repeated=repeated,
            more=ends and not repeated and bool(near(memory.id)),
        )

    return branches(start, 1)
