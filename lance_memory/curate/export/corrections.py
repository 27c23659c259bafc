"""Which memories correct which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from lance_memory.curate.export.frame import Frame, Turn
from lance_memory.record import lineage
from lance_memory.record.memory import State

__all__ = ["EDGE_COLUMNS", "corrections"]

EDGE_COLUMNS = ("id", lineage.SUPERSEDED_BY, "relationships")
_CORRECTS = ("updates", "contradicts")
"""Relations that say so. One that consolidates its sources does not call them wrong."""


def corrections(frame: Frame, edges: pa.Table) -> Mapping[str, list[Turn]]:
    """Id of a memory that stands → the hidden ones that it corrects, at whatever remove.

    Args:
        frame: the rows; a correction of or by another one does not count.
        edges: `EDGE_COLUMNS` of the same rows.
    """
    told = list(_told(edges))
    wanted = {identifier for pair in told for identifier in pair[:2]}
    known = {turn.id: turn for turn in frame.turns() if turn.id in wanted}
    claims: dict[str, tuple[bool, int, str]] = {}
    for old, new, final in told:
        if old in known and new in known and known[old].hidden:
            claim = (final, known[new].place, new)
            claims[old] = max(claim, claims.get(old, claim))
    newer = {old: new for old, (_, _, new) in claims.items()}
    found: dict[str, list[Turn]] = {}
    for old in sorted(newer, key=lambda identifier: known[identifier].place):
        standing = _standing(old, newer, known)
        if standing:
            found.setdefault(standing, []).append(known[old])
    return found


def _told(edges: pa.Table) -> Iterator[tuple[str, str, bool]]:
    """(corrected, correcting, whether it is the successor), for each edge that says so."""
    columns = (edges[name].to_pylist() for name in ("id", lineage.SUPERSEDED_BY))
    successor = dict(zip(*columns, strict=True))
    for edge in lineage.edges(edges):
        if edge.relation in _CORRECTS:
            yield edge.target, edge.start, successor.get(edge.target) == edge.start


def _standing(old: str, newer: Mapping[str, str], known: Mapping[str, Turn]) -> str | None:
    """The end of the chain of corrections, if it is one that stands."""
    seen = {old}
    while old in newer and newer[old] not in seen:
        old = newer[old]
        seen.add(old)
    return old if known[old].state == State.ACTIVE else None
