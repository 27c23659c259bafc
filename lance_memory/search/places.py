"""Where memories stand in their sessions: what was said just before and after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_memory.search.candidates import Addresses
from lance_memory.storage import RankingColumns

__all__ = ["Places", "places"]


@dataclass(frozen=True, slots=True)
class Places:
    """Where the rows of some sessions stand in them; by ascending address. All [n]."""

    addresses: Addresses
    positions: NDArray[np.int64]

    def of(self, addresses: Addresses) -> NDArray[np.int64]:
        """The position of each of these rows; 0 for a row of no or of another session."""
        positions = np.zeros(len(addresses), dtype=np.int64)
        if len(self.addresses):
            found = np.searchsorted(self.addresses, addresses).clip(max=len(self.addresses) - 1)
            known = self.addresses[found] == addresses
            positions[known] = self.positions[found[known]]
        return positions


def places(columns: RankingColumns, sessions: NDArray[np.uint64]) -> Places:
    """Every row of these sessions, in whatever state.

    A session is one whole scope; its rows stand in the order of `list`: by when they happened, then
    by when they were stored, `seq`, and place in the table.
    """
    rows = columns.rows_of(sessions)
    order = np.lexsort((rows.addresses, rows.seq, rows.created, rows.happened, rows.sessions))
    sorted_ = rows.sessions[order]
    starts = np.flatnonzero(np.append(True, sorted_[1:] != sorted_[:-1]))[: len(order)]
    lengths = np.diff(starts, append=len(order))
    positions = np.empty(len(order), dtype=np.int64)
    positions[order] = np.arange(len(order)) - np.repeat(starts, lengths)
    by_address = np.argsort(rows.addresses)
    return Places(rows.addresses[by_address], positions[by_address])
