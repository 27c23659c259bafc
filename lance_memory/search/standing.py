"""Where a memory stands in the conversations: a consolidated one where its sources stood.

Its own scope may name no session, and its time is that of the latest source. Without this, what was
said around the sources would no longer lead to it: on LoCoMo that cost more recall than
consolidation gained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_memory.search.candidates import Addresses
from lance_memory.storage import RankingColumns, Snapshot

__all__ = ["Standing", "standing"]

_GENERATIONS = 16
"""Summaries of summaries that are looked through; far more than anyone stacks."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The rows that candidates stand for: whose each is, and its address; by candidate. [m]."""

    owners: NDArray[np.intp]
    rows: Addresses

    def any(self, true: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Of each candidate, whether it is true of one of its rows."""
        if not len(self.owners):
            return true
        starts = np.flatnonzero(np.append(True, self.owners[1:] != self.owners[:-1]))
        found: NDArray[np.bool_] = np.logical_or.reduceat(true, starts)
        return found


def standing(
    snapshot: Snapshot, columns: RankingColumns, candidates: Sequence[Addresses]
) -> list[Standing]:
    """Of the candidates of each question: themselves, and all that they were made from."""
    sources = _sources(snapshot, columns, candidates)
    return [_of(rows, *sources) for rows in candidates]


def _of(
    rows: Addresses, derived: Addresses, starts: NDArray[np.intp], made_from: Addresses
) -> Standing:
    place = np.searchsorted(derived, rows)
    known = np.zeros(len(rows), dtype=np.bool_)
    if len(derived):
        known = derived[place.clip(max=len(derived) - 1)] == rows
    parts = [np.arange(len(rows))]
    found = [rows]
    for owner in np.flatnonzero(known):
        mine = made_from[starts[place[owner]] : starts[place[owner] + 1]]
        parts.append(np.full(len(mine), owner))
        found.append(mine)
    owners, addresses = np.concatenate(parts), np.concatenate(found)
    order = np.argsort(owners, kind="stable")
    return Standing(owners[order], addresses[order])


def _sources(
    snapshot: Snapshot, columns: RankingColumns, candidates: Sequence[Addresses]
) -> tuple[Addresses, NDArray[np.intp], Addresses]:
    """The derived candidates, ascending; where the sources of each begin; all sources."""
    every = np.unique(np.concatenate([*candidates, np.empty(0, dtype=np.uint64)]))
    derived = every[columns.derived(every)]
    owners = [np.empty(0, dtype=np.intp)]
    found = [np.empty(0, dtype=np.uint64)]
    whose, rows = np.arange(len(derived)), derived
    for _ in range(_GENERATIONS):
        if not len(rows):
            break
        ids = snapshot.take(rows, ["id"])["id"].to_pylist()
        place, sources = columns.sources(ids)
        owners.append(whose[place])
        found.append(sources)
        again = columns.derived(sources)
        whose, rows = whose[place][again], sources[again]
    owner, made_from = np.concatenate(owners), np.concatenate(found)
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(derived) + 1))
    return derived, starts, made_from[order]
