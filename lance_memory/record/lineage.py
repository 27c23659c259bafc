"""Walks over relationships: where a memory came from, and what replaced it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

__all__ = ["Step", "edges", "walk"]

SUPERSEDED_BY = "superseded_by"


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
    """The edges of rows with `id`, `superseded_by` and `relationships`.

    `superseded_by` counts as an edge where the successor carries none to its source.
    """
    found: list[Edge] = []
    successors: list[Edge] = []
    for row in rows.select(["id", SUPERSEDED_BY, "relationships"]).to_pylist():
        found += _outgoing(row)
        if row[SUPERSEDED_BY] is not None:
            successors.append(
                Edge(start=row["id"], relation=SUPERSEDED_BY, target=row[SUPERSEDED_BY])
            )
    carried = {(edge.target, edge.start) for edge in found}
    return found + [e for e in successors if (e.start, e.target) not in carried]


def _outgoing(row: Mapping[str, Any]) -> Iterator[Edge]:
    for entry in row["relationships"] or ():
        yield Edge(start=row["id"], relation=entry["relation"], target=entry["target"])


def walk(graph: Sequence[Edge], start: str, *, relation: str | None, depth: int) -> list[Step]:
    """Everything within `depth` edges of `start`, nearest first; each memory once.

    A walk keeps its direction, so from a source it climbs to successors and never comes back
    down to that successor's other sources. Cycles end where they began.
    """
    chosen = [edge for edge in graph if relation is None or edge.relation == relation]
    steps = [*_walk(chosen, start, "out", depth), *_walk(chosen, start, "in", depth)]
    first: dict[str, Step] = {}
    for step in sorted(steps, key=lambda s: (s.depth, s.direction != "out", s.relation, s.id)):
        first.setdefault(step.id, step)
    return list(first.values())


def _walk(graph: Sequence[Edge], start: str, direction: str, depth: int) -> Iterator[Step]:
    ahead: dict[str, list[tuple[str, str]]] = {}
    for edge in graph:
        here, there = (edge.start, edge.target) if direction == "out" else (edge.target, edge.start)
        ahead.setdefault(here, []).append((there, edge.relation))
    seen = {start}
    frontier = [start]
    for level in range(1, depth + 1):
        reached: list[str] = []
        for identifier in frontier:
            for there, name in ahead.get(identifier, ()):
                if there not in seen:
                    seen.add(there)
                    reached.append(there)
                    yield Step(id=there, relation=name, direction=direction, depth=level)
        frontier = reached
