"""What the legs found: rows of one version, by their addresses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.search.fusion import Floats
from lance_memory.storage import Snapshot

__all__ = ["Addresses", "Candidates", "Frame", "Leg", "Union", "union"]

Addresses: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Leg:
    """Rows that one leg found, best first: addresses and cosine or BM25, both [n]."""

    addresses: Addresses
    scores: Floats

    @classmethod
    def empty(cls) -> Leg:
        """Of a leg that was not asked."""
        return cls(np.empty(0, dtype=np.uint64), np.empty(0))

    def first(self, size: int) -> Leg:
        """The best `size`."""
        return Leg(self.addresses[:size], self.scores[:size])

    @classmethod
    def near(cls, rows: pa.Table) -> Leg:
        """Of the engine's answer by vector."""
        return cls._sorted(rows, 1.0 - rows["_distance"].to_numpy().astype(np.float64))

    @classmethod
    def said(cls, rows: pa.Table) -> Leg:
        """Of the engine's answer by words."""
        return cls._sorted(rows, rows["_score"].to_numpy().astype(np.float64))

    @classmethod
    def _sorted(cls, rows: pa.Table, scores: Floats) -> Leg:
        """Ties by address: the engine's own order of equal rows changes with their number."""
        addresses = rows["_rowaddr"].to_numpy()
        order = np.lexsort((addresses, -scores))
        return cls(addresses[order], scores[order])


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows of both legs; NaN where a leg did not see the row. All [n]."""

    addresses: Addresses
    cosines: Floats
    words: Floats


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of both legs.

    `head` has what is fused: the best of each leg, knowing nothing of what lies deeper. `whole`
    begins with these rows; the others follow by cosine, then by words. So the order does not depend
    on how deep a page made the legs look. Of `whole` the first `by_vector` are the head and what
    the vector leg saw; had it looked deeper, more would stand between these and the others.
    """

    head: Candidates
    whole: Candidates
    by_vector: int


def union(near: Leg, said: Leg, *, first: int) -> Union:
    """All rows of both legs; the `first` of each are the head, ties in favour of the words."""
    top = near.first(first), said.first(first)
    head = _distinct([top[1].addresses, top[0].addresses])
    seen = _distinct([head, near.addresses[first:]])
    whole = _distinct([seen, said.addresses[first:]])
    return Union(_candidates(head, *top), _candidates(whole, near, said), by_vector=len(seen))


def _distinct(addresses: Sequence[Addresses]) -> Addresses:
    """Each address once, in the order of the first places."""
    found, place = np.unique(np.concatenate(addresses), return_index=True)
    return found[np.argsort(place)]


def _candidates(addresses: Addresses, near: Leg, said: Leg) -> Candidates:
    return Candidates(addresses, _aligned(near, addresses), _aligned(said, addresses))


def _aligned(leg: Leg, addresses: Addresses) -> Floats:
    order = np.argsort(addresses)
    aligned = np.full(len(addresses), np.nan)
    aligned[order[np.searchsorted(addresses, leg.addresses, sorter=order)]] = leg.scores
    return aligned


class Frame:
    """A few columns of the candidates of one search or of many, read at once."""

    def __init__(
        self, snapshot: Snapshot, addresses: Sequence[Addresses], columns: Collection[str]
    ) -> None:
        self._addresses = np.unique(np.concatenate([*addresses, np.empty(0, dtype=np.uint64)]))
        self._rows = snapshot.take(self._addresses, sorted(columns)) if columns else pa.table({})

    def rows(self, addresses: Addresses) -> pa.Table:
        """The columns of these rows, in this order."""
        if not self._rows.num_columns:
            return self._rows
        return self._rows.take(pa.array(np.searchsorted(self._addresses, addresses)))
