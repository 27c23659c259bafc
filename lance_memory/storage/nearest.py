"""The rows nearest to a vector: through the index, or exactly where few rows pass the filter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.record.filters import all_of, present
from lance_memory.record.rows import EMBEDDING, embeddings, one_array, valid_vectors
from lance_memory.storage.depth import EXACT_ROWS, depth, exact_rows
from lance_memory.storage.engine import translated
from lance_memory.storage.kept import Files

if TYPE_CHECKING:
    from lance_memory.storage.snapshot import Snapshot

__all__ = ["nearest", "nearest_many"]

_SCAN_FROM = 10
"""A vector costs 8 us where it is looked up and 0.8 where all are read in a row."""

_BLOCK = 8_192
"""Rows of a block: its scores for 1,024 queries take 32 MB."""

_QUERIES = 1_024

_FIRST = 1_024
"""Rows that a search starts with: all of them are sorted, of later ones only the better."""

_READ, _COMPARE, _BY_INDEX = 1e-6, 8e-9, 4e-3
"""Seconds: to read a row, to compare it with a query, and of one query by the index."""

_ROUNDING = 1e-5
"""A float32 vector whose squared length is as near to 1 is a unit vector."""


def nearest(
    snapshot: Snapshot, vector: NDArray[np.float32], *, k: int, predicate: str | None
) -> pa.Table:
    """`_rowaddr` and `_distance` = 1 - cosine of the k nearest rows that pass, nearest first."""
    passing = snapshot.passing(predicate)
    if _exact_pays(snapshot, passing, predicate):
        return _exact(snapshot, vector, k=k, predicate=predicate)
    return _by_index(
        snapshot, vector, k=k, predicate=predicate, share=passing / max(snapshot.count(), 1)
    )


def nearest_many(
    snapshot: Snapshot, vectors: NDArray[np.float32], *, k: int, predicate: str | None
) -> list[pa.Table]:
    """The answer of `nearest` for each of the vectors [m, d].

    Many are answered in one pass that compares each row with each of them, exactly: at
    100k x 384 a thousand take 0.8 s, in place of 4 s.
    """
    passing = snapshot.passing(predicate)
    if passing <= EXACT_ROWS or not _one_pass_pays(passing, len(vectors)):
        return [nearest(snapshot, vector, k=k, predicate=predicate) for vector in vectors]
    best = [
        _Best.of(block / np.linalg.norm(block, axis=1, keepdims=True), k)
        for block in np.split(vectors, range(_QUERIES, len(vectors), _QUERIES))
    ]
    for addresses, rows in _vector_blocks(snapshot, predicate):
        for some in best:
            some.see(addresses, rows)
    return [table for some in best for table in some.tables()]


@dataclass(slots=True)
class _Best:
    """The best rows so far of a block of queries: cosines and addresses [m, k], best first."""

    queries: NDArray[np.float32]
    cosines: NDArray[np.float32]
    addresses: NDArray[np.uint64]

    @classmethod
    def of(cls, queries: NDArray[np.float32], k: int) -> _Best:
        shape = (len(queries), k)
        return cls(queries, np.full(shape, -np.inf, np.float32), np.zeros(shape, np.uint64))

    def see(self, addresses: NDArray[np.uint64], rows: NDArray[np.float32]) -> None:
        """Merge a block of rows; the first few set a floor that keeps most others out."""
        k = self.cosines.shape[1]
        first = max(_FIRST, k) if np.isneginf(self.cosines[:, -1]).any() else 0
        for part in (slice(0, first), slice(first, None)):
            if len(addresses[part]):
                self._merge(addresses[part], self.queries @ rows[part].T, k)

    def _merge(self, addresses: NDArray[np.uint64], scores: NDArray[np.float32], k: int) -> None:
        over = np.flatnonzero(scores > self.cosines[:, -1:])
        query, place = np.divmod(over, scores.shape[1])
        everyone = np.arange(len(self.queries))
        queries = np.concatenate([np.repeat(everyone, k), query])
        cosines = np.concatenate([self.cosines.ravel(), scores.ravel()[over]])
        rows = np.concatenate([self.addresses.ravel(), addresses[place]])
        order = np.lexsort((-cosines, queries))
        starts = np.searchsorted(queries[order], everyone)
        kept = order[starts[:, None] + np.arange(k)]
        self.cosines, self.addresses = cosines[kept], rows[kept]

    def tables(self) -> Iterator[pa.Table]:
        for addresses, cosines in zip(self.addresses, self.cosines, strict=True):
            there = ~np.isneginf(cosines)
            yield _table(addresses[there], cosines[there])


def _exact_pays(snapshot: Snapshot, passing: int, predicate: str | None) -> bool:
    """Whether to compare every row that passes; many only where they need not be read each time."""
    if passing <= EXACT_ROWS:
        return True
    if passing > exact_rows(snapshot.count()):
        return False
    return snapshot.kept.vectors.has_room(snapshot.addresses(predicate), snapshot.dimension)


def _one_pass_pays(rows: int, queries: int) -> bool:
    return rows * (_READ + _COMPARE * queries) < _BY_INDEX * queries


def _table(addresses: NDArray[np.uint64], cosines: NDArray[np.float32]) -> pa.Table:
    return pa.table({"_distance": 1.0 - cosines, "_rowaddr": addresses})


def _vector_blocks(
    snapshot: Snapshot, predicate: str | None
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.float32]]]:
    """Addresses uint64 [n] and unit vectors float32 [n, d] of the rows that pass, in blocks.

    A row without a vector, or with one that is all zero, is near to nothing and is left out.
    """
    with translated("read vectors"):
        batches = snapshot.dataset.to_batches(
            columns=[EMBEDDING],
            filter=all_of(predicate, present(EMBEDDING)),
            batch_size=_BLOCK,
            with_row_address=True,
        )
        for batch in batches:
            vectors = _unit(pa.table(batch))
            valid = np.isfinite(vectors[:, 0])
            yield batch["_rowaddr"].to_numpy()[valid], vectors[valid]


def _by_index(
    snapshot: Snapshot,
    vector: NDArray[np.float32],
    *,
    k: int,
    predicate: str | None,
    share: float,
) -> pa.Table:
    """By the vector index where there is one, and a scan of the rows that it does not cover."""
    deep = depth(k, share=share)
    with translated("search by vector"):
        return snapshot.dataset.to_table(
            columns=["_distance"],
            with_row_address=True,
            nearest={
                "column": EMBEDDING,
                "q": vector,
                "k": k,
                "metric": "cosine",
                "minimum_nprobes": deep.probes,  # and on, until a filtered page is full
                "refine_factor": deep.refine,
            },
            filter=predicate,
            prefilter=True,
        )


def _exact(
    snapshot: Snapshot, vector: NDArray[np.float32], *, k: int, predicate: str | None
) -> pa.Table:
    addresses = snapshot.addresses(predicate)
    cosines = _vectors(snapshot, addresses) @ (vector / np.linalg.norm(vector))
    # Stable and by address: rows that are equally near come in the same order every time.
    order = np.lexsort((addresses, -cosines))[:k]
    order = order[np.isfinite(cosines[order])]
    return _table(addresses[order], cosines[order])


def _vectors(snapshot: Snapshot, addresses: NDArray[np.uint64]) -> NDArray[np.float32]:
    """Unit vectors float32 [n, d], NaN where a row has none; kept for the next search."""
    if not len(addresses):
        return np.empty((0, snapshot.dimension), np.float32)
    fragments = np.unique(addresses >> np.uint64(32))
    files: dict[int, Files] = {int(f): snapshot.files(int(f)) for f in fragments}
    return snapshot.kept.vectors.get(addresses, files, read=lambda new: _read(snapshot, new))


def _read(snapshot: Snapshot, addresses: NDArray[np.uint64]) -> NDArray[np.float32]:
    if len(addresses) * _SCAN_FROM < snapshot.count():
        return _unit(snapshot.take(addresses, [EMBEDDING]))
    with translated("read vectors"):
        rows = snapshot.dataset.to_table(columns=[EMBEDDING], with_row_address=True)
    known = rows["_rowaddr"].to_numpy()
    order = np.argsort(known)
    places = order[np.searchsorted(known, addresses, sorter=order)]
    return _unit(rows.select([EMBEDDING]).take(places))


def _unit(rows: pa.Table) -> NDArray[np.float32]:
    """The embeddings as unit vectors; NaN where there is none or it has no direction."""
    column = one_array(rows[EMBEDDING])
    if column.null_count:
        vectors = embeddings(rows)
        vectors[~valid_vectors(rows)] = np.nan
    else:
        vectors = column.flatten().to_numpy().reshape(len(column), column.type.list_size)
    squares = np.einsum("ij,ij->i", vectors, vectors)
    if np.abs(squares - 1.0).max(initial=0.0) < _ROUNDING:
        return vectors  # as most models give them; another pass over 154 MB costs 0.3 s
    squares[squares == 0] = np.nan
    unit: NDArray[np.float32] = vectors / np.sqrt(squares)[:, None]
    return unit
