"""The table at one version: reads, and nothing but reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.record.filters import is_one_of
from lance_memory.record.rows import EMBEDDING, FINGERPRINT, Fingerprint
from lance_memory.storage.engine import lance, translated

__all__ = ["Located", "Snapshot"]

_LIST_LIMIT = 2_000
"""Beyond as many ids, one pass over the narrow id column beats a predicate that lists them."""

_PROBES = 32
"""Partitions of the vector index that a search reads at least."""

_REFINE = 8
"""Of the quantised neighbours, k times as many are ranked again by their true vectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Rows found by id: their identity columns and addresses, in one order."""

    rows: pa.Table
    addresses: NDArray[np.uint64]

    def fingerprints(self) -> dict[str, Fingerprint]:
        """Id → what names one content of the row for good."""
        identity, *columns = (self.rows[name].to_pylist() for name in ("id", *FINGERPRINT))
        return dict(zip(identity, zip(*columns, strict=True), strict=True))


class Snapshot:
    """An immutable handle on one version. Safe to share between threads."""

    def __init__(self, dataset: lance.LanceDataset) -> None:
        self.dataset = dataset

    @property
    def version(self) -> int:
        return int(self.dataset.version)

    @cached_property
    def schema(self) -> pa.Schema:
        return self.dataset.schema

    @property
    def columns(self) -> list[str]:
        """Every column but the vectors, which are wide and seldom asked for."""
        return [name for name in self.schema.names if name != EMBEDDING]

    def written_at(self) -> datetime:
        """When the engine, which reports naive local time, wrote this version."""
        with translated(f"read version {self.version}"):
            stamp: datetime = self.dataset.get_version()["timestamp"]
        return stamp.astimezone(UTC)

    def scan(
        self,
        predicate: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """The rows that pass, in storage order; all columns but the vectors by default."""
        with translated(f"read version {self.version}"):
            return self.dataset.to_table(
                columns=self.columns if columns is None else list(columns),
                filter=predicate,
                limit=limit,
            )

    @cached_property
    def fragment_ids(self) -> frozenset[int]:
        """The ids of the fragments. A fragment's rows never change, they only go."""
        with translated(f"list the fragments of version {self.version}"):
            return frozenset(map(int, self.dataset.fragment_ids()))

    def fragment(self, identifier: int) -> lance.LanceFragment:
        """The fragment with this id, which is one of this version."""
        return self.dataset.get_fragment(identifier)

    def of_fragments(self, ids: Collection[int], *, columns: Sequence[str]) -> pa.Table:
        """The rows of these fragments."""
        with translated(f"read version {self.version}"):
            parts = [self.fragment(i).to_table(columns=list(columns)) for i in sorted(ids)]
        return pa.concat_tables(parts)

    def batches(
        self, predicate: str | None, *, columns: Sequence[str], batch_size: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows that pass, a batch at a time."""
        with translated(f"read version {self.version}"):
            yield from self.dataset.to_batches(
                columns=list(dict.fromkeys(columns)), filter=predicate, batch_size=batch_size
            )

    def count(self, predicate: str | None = None) -> int:
        """How many rows pass."""
        with translated(f"count rows at version {self.version}"):
            return int(self.dataset.count_rows(predicate))

    def by_ids(self, ids: Collection[str], *, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with these ids, in storage order; ids that are not there are left out."""
        if not ids:
            return self.scan(columns=columns, limit=0)
        if len(ids) <= _LIST_LIMIT:
            return self.scan(is_one_of("id", ids), columns=columns)
        wanted = pa.array(ids, pa.string())
        names = self.columns if columns is None else list(columns)
        parts = [
            batch.filter(pc.is_in(batch["id"], wanted))
            for batch in self.batches(None, columns=["id", *names], batch_size=8_192)
        ]
        return pa.concat_tables(
            [self.scan(columns=names, limit=0), *(pa.table(p).select(names) for p in parts if p)]
        )

    def locate(self, ids: Collection[str]) -> Located:
        """Where the rows with these ids lie, and which revision of them."""
        names = ["id", *FINGERPRINT]
        few = len(ids) <= _LIST_LIMIT
        with translated(f"read version {self.version}"):
            rows = self.dataset.to_table(
                columns=names,
                filter=is_one_of("id", ids) if few else None,
                with_row_address=True,
            )
        if not few:
            rows = rows.filter(pc.is_in(rows["id"], pa.array(ids, pa.string())))
        return Located(rows=rows.select(names), addresses=rows["_rowaddr"].to_numpy())

    def nearest(
        self,
        vector: NDArray[np.float32],
        *,
        k: int,
        predicate: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """The k rows nearest by cosine, with `_distance` = 1 - cosine, nearest first.

        Uses the vector index where there is one, and the rows that it does not cover too.
        """
        with translated("search by vector"):
            return self.dataset.to_table(
                columns=[*(columns or self.columns), "_distance"],
                nearest={
                    "column": EMBEDDING,
                    "q": vector,
                    "k": k,
                    "metric": "cosine",
                    "minimum_nprobes": _PROBES,  # and on, until a filtered page is full
                    "refine_factor": _REFINE,
                },
                filter=predicate,
                prefilter=True,
            )

    def matching(
        self,
        text: str,
        *,
        k: int,
        predicate: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """The k rows whose content best matches the words, with BM25 `_score`, best first.

        `text` is split into words by the index's own tokenizer; nothing in it is an operator.
        """
        query = lance.query.MatchQuery(text, "content")
        with translated("search by words"):
            return self.dataset.to_table(
                columns=[*(columns or self.columns), "_score"],
                full_text_query=query,
                limit=k,
                filter=predicate,
                prefilter=True,
            )
