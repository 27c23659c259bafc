"""The table at one version: reads, and nothing but reads."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.errors import StorageError
from lance_memory.record.filters import is_one_of
from lance_memory.record.rows import EMBEDDING, FINGERPRINT, Fingerprint
from lance_memory.record.schema import StoreFormat, read_format
from lance_memory.storage.described import TEXT_INDEX, VECTOR_INDEX, covered, described
from lance_memory.storage.engine import UnexplainedError, lance, translated
from lance_memory.storage.files.readable import damaged_in, manifest_name
from lance_memory.storage.ranking.columns import RankingColumns
from lance_memory.storage.ranking.kept import Files, Kept
from lance_memory.storage.ranking.nearest import nearest
from lance_memory.storage.ranking.wording import (
    korean_forms,
    korean_stems,
    korean_words,
    text_query,
    words_beginning,
)

__all__ = ["Located", "Snapshot"]

_ANEW = "an index can be built anew: `lmem doctor --deep --fix`"
_LIST_LIMIT = 2_000
"""Beyond as many ids, one pass over the narrow id column beats a predicate that lists them."""

_REMEMBERED = 64
"""Predicates of which a snapshot remembers how many rows pass."""


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

    def __init__(
        self,
        dataset: lance.LanceDataset,
        *,
        kept: Kept | None = None,
        stands_for: int | None = None,
    ) -> None:
        self.dataset = dataset
        self.stands_for = stands_for  # the version that this one was rewritten from
        self.kept = kept or Kept()
        self._counts: dict[str, int] = {}
        self._passing: dict[str, NDArray[np.uint64]] = {}
        self._files: dict[int, Files] = {}
        self._reading = threading.Lock()
        self._fresh: list[str] | None = None

    def sibling(self, dataset: lance.LanceDataset) -> Snapshot:
        """Another version of the same branch; what is kept of the fragments carries over."""
        return Snapshot(dataset, kept=self.kept)

    def followed_by(self, dataset: lance.LanceDataset) -> Snapshot:
        """The version that a change set has made of this one, of which rows alone are new.

        So its columns need not be read, unless another writer's version came in between.
        """
        made = self.sibling(dataset)
        if made.version == self.version + 1:
            made.schema, made.format = self.schema, self.format
        return made

    @property
    def version(self) -> int:
        return int(self.dataset.version) if self.stands_for is None else self.stands_for

    @cached_property
    def schema(self) -> pa.Schema:
        try:
            with translated(f"read the columns of version {self.version}"):
                return self.dataset.schema
        except UnexplainedError as error:
            raise StorageError(
                f"{error}; damaged: {manifest_name(self.version)}; other versions can be read"
            ) from error

    @cached_property
    def format(self) -> StoreFormat:
        """What the table says of itself at this version."""
        return read_format(self.schema, f"version {self.version}")

    @property
    def dimension(self) -> int:
        """The length of the vectors."""
        return int(self.schema.field(EMBEDDING).type.list_size)

    @property
    def vector_field(self) -> int:
        """The engine's number of the column of the vectors; another one after a switch."""
        return int(self.dataset.lance_schema.field(EMBEDDING).id())

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
        with self.naming(f"read version {self.version}"):
            return self.dataset.to_table(
                columns=self.columns if columns is None else list(columns),
                filter=predicate,
                limit=limit,
            )

    @cached_property
    def fragment_ids(self) -> frozenset[int]:
        """The ids of the fragments. A fragment's rows never change, they only go."""
        with self.naming(f"list the fragments of version {self.version}"):
            return frozenset(map(int, self.dataset.fragment_ids()))

    def fragment(self, identifier: int) -> lance.LanceFragment:
        """The fragment with this id, which is one of this version."""
        return self.dataset.get_fragment(identifier)

    def of_fragments(self, ids: Collection[int], *, columns: Sequence[str]) -> pa.Table:
        """The rows of these fragments."""
        with self.naming(f"read version {self.version}"):
            parts = [self.fragment(i).to_table(columns=list(columns)) for i in sorted(ids)]
        return pa.concat_tables(parts) if parts else self.scan(columns=columns, limit=0)

    def ever_in(self, ids: Collection[int], *, columns: Sequence[str]) -> pa.Table:
        """The rows of these fragments, and those that were deleted of them since they were made."""
        with self.naming(f"read version {self.version}"):
            rows = self.dataset.scanner(
                columns=list(columns),
                fragments=[self.fragment(i) for i in sorted(ids)],
                include_deleted_rows=True,
                with_row_id=True,  # the engine gives deleted rows with it alone
            ).to_table()
        return rows.select(list(columns))

    def batches_of(
        self, ids: Sequence[int], *, columns: Sequence[str], batch_size: int
    ) -> Iterator[pa.Table]:
        """The rows of these fragments, in the order of `ids`, some at a time; small ones together.

        A scan of several fragments at once gives them in an order of its own.
        """
        some: list[pa.RecordBatch] = []
        with self.naming(f"read version {self.version}"):
            for i in ids:
                for batch in self.fragment(i).to_batches(
                    columns=list(columns), batch_size=batch_size
                ):
                    some.append(batch)
                    if sum(map(len, some)) >= batch_size:
                        yield pa.Table.from_batches(some)
                        some = []
        if some:
            yield pa.Table.from_batches(some)

    def batches(
        self, predicate: str | None, *, columns: Sequence[str], batch_size: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows that pass, a batch at a time."""
        with self.naming(f"read version {self.version}"):
            yield from self.dataset.to_batches(
                columns=list(dict.fromkeys(columns)), filter=predicate, batch_size=batch_size
            )

    def count(self, predicate: str | None = None) -> int:
        """How many rows pass."""
        with self.naming(f"count rows at version {self.version}"):
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

    def batches_by_ids(
        self, ids: Collection[str], *, columns: Sequence[str], batch_size: int
    ) -> Iterator[pa.Table]:
        """The rows with these ids, in storage order, so many in memory at a time."""
        addresses = np.sort(self.locate(ids).addresses)
        for start in range(0, len(addresses), batch_size):
            yield self.take(addresses[start : start + batch_size], columns)

    def locate(self, ids: Collection[str]) -> Located:
        """Where the rows with these ids lie, and which revision of them."""
        names = ["id", *FINGERPRINT]
        few = len(ids) <= _LIST_LIMIT
        with self.naming(f"read version {self.version}"):
            rows = self.dataset.to_table(
                columns=names,
                filter=is_one_of("id", ids) if few else None,
                with_row_address=True,
            )
        if not few:
            rows = rows.filter(pc.is_in(rows["id"], pa.array(ids, pa.string())))
        return Located(rows=rows.select(names), addresses=rows["_rowaddr"].to_numpy())

    def take(self, addresses: NDArray[np.uint64], columns: Sequence[str]) -> pa.Table:
        """The rows at these addresses, in this order."""
        with self.naming(f"read version {self.version}"):
            return self.dataset._take_rows(addresses.tolist(), columns=list(columns))

    def centroids(self) -> NDArray[np.float32] | None:
        """Of the vector index's partitions, float32 [K, d]; None where there is no index."""
        if VECTOR_INDEX not in described(self.dataset):
            return None
        with self.naming("read the centroids of the vector index"):
            middles = self.dataset.centroids(index_name=VECTOR_INDEX)
        return np.asarray(middles.flatten(), dtype=np.float32).reshape(len(middles), -1)

    def files(self, fragment: int) -> Files:
        """What the fragment consists of."""
        if fragment not in self._files:
            with self.naming(f"read version {self.version}"):
                parts = self.fragment(fragment).metadata.files
            self._files[fragment] = tuple(part.path for part in parts)
        return self._files[fragment]

    def passing(self, predicate: str | None) -> int:
        """How many rows pass; counted once for a predicate."""
        if predicate is None:
            return self.count()
        known = self._counts.get(predicate)
        if known is None:
            _forget_many(self._counts)
            known = self._counts[predicate] = self.count(predicate)
        return known

    def addresses(self, predicate: str | None) -> NDArray[np.uint64]:
        """Where the rows that pass lie, uint64 [n]; for few rows, as it is remembered."""
        text = predicate or ""
        known = self._passing.get(text)
        if known is None:
            _forget_many(self._passing)
            with self.naming(f"read version {self.version}"):
                rows = self.dataset.to_table(columns=[], filter=predicate, with_row_address=True)
            known = self._passing[text] = rows["_rowaddr"].to_numpy()
        return known

    @cached_property
    def ranking_columns(self) -> RankingColumns:
        """What ranking asks of the rows, in memory."""
        return self.kept.columns.of(self)

    def nearest(
        self,
        vector: NDArray[np.float32],
        *,
        k: int,
        predicate: str | None = None,
    ) -> pa.Table:
        """The k rows nearest by cosine: `_rowaddr` and `_distance` = 1 - cosine, nearest first.

        Exact where few rows pass the predicate. Else by the vector index where there is one, the
        rows that it does not cover included, and the deeper the fewer rows pass.
        """
        return nearest(self, vector, k=k, predicate=predicate)

    def matching(
        self,
        text: str,
        *,
        k: int,
        predicate: str | None = None,
    ) -> pa.Table:
        """The k rows that match the words best: `_rowaddr` and BM25 `_score`, best first.

        `text` is split into words by the index's own tokenizer; nothing in it is an operator.
        Korean words are found with whatever particle hangs on them.
        """
        stems = korean_stems(text)
        # The engine looks for beginnings of words in the index only.
        fresh = words_beginning(stems, self._fresh_korean()) if stems else []
        words = " ".join([text, *korean_forms(text), *fresh])
        query = text_query(words, "content", stems=stems)
        with self.naming("search by words", index=TEXT_INDEX):
            return self.dataset.to_table(
                columns=["_score"],
                with_row_address=True,
                full_text_query=query,
                limit=k,
                filter=predicate,
                prefilter=True,
            )

    @contextmanager
    def naming(self, action: str, *, index: str | None = None) -> Iterator[None]:
        """`translated`; where the engine does not say what is wrong, the damaged file is named.

        The interpreter may not live to tell: see `readable`.
        """
        try:
            with translated(action):
                yield
        except UnexplainedError as error:
            if not self._damaged and index is None:
                raise
            if not self._damaged:
                raise StorageError(f"{error}; damaged: the index {index}; {_ANEW}") from error
            told = "; ".join(f"{file} ({why})" for file, why in sorted(self._damaged.items()))
            raise StorageError(
                f"could not {action}: damaged: {told}. Versions without it can be read; {_ANEW}"
            ) from error

    @cached_property
    def _damaged(self) -> dict[str, str]:
        """The files of this version that cannot be read; looked for once, after a failure."""
        try:
            return damaged_in(self.dataset)
        except StorageError:
            return {}  # the failure that is being looked into says enough

    def _fresh_korean(self) -> list[str]:
        """The Korean words of the fragments that the text index does not cover; read once."""
        with self._reading:
            if self._fresh is None:
                self._fresh = korean_words(self._contents_outside(TEXT_INDEX))
            return self._fresh

    def _contents_outside(self, index: str) -> list[str]:
        """The contents of the fragments that the index does not cover."""
        outside = self.fragment_ids - covered(described(self.dataset).get(index))
        if not outside:
            return []
        contents: list[str] = self.of_fragments(outside, columns=["content"])["content"].to_pylist()
        return contents


def _forget_many(remembered: dict[str, Any]) -> None:
    """Make room: predicates that name a moment are never asked again."""
    if len(remembered) >= _REMEMBERED:
        remembered.clear()
