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
    """The edges of rows with `id`, `superseded_by` and `relationships`."""
    found: list[Edge] = []
    for row in rows.select(["id", SUPERSEDED_BY, "relationships"]).to_pylist():
        found += _outgoing(row)
        if row[SUPERSEDED_BY] is not None:
            found.append(Edge(start=row["id"], relation=SUPERSEDED_BY, target=row[SUPERSEDED_BY]))
    return found


def _outgoing(row: Mapping[str, Any]) -> Iterator[Edge]:
    for entry in row["relationships"] or ():
        yield Edge(start=row["id"], relation=entry["relation"], target=entry["target"])


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
