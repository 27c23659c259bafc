"""What a table says of itself, and its vectors, changed as one version that touches no row."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.errors import ConflictError
from lance_memory.record.rows import EMBEDDING, vector_array
from lance_memory.record.schema import CLOSED, StoreFormat, embedding_field
from lance_memory.storage import indices
from lance_memory.storage.change import Audit, ChangeSet, properties
from lance_memory.storage.engine import CommitConflictError, MissingFileError, lance, translated
from lance_memory.storage.naming import holding
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.upkeep.steps import alone

if TYPE_CHECKING:
    from lance import DataFile, FragmentMetadata, LanceOperation
    from lance.schema import LanceSchema

    from lance_memory.storage.table import Table

__all__ = ["VectorsOf", "say", "switch_vectors"]

VectorsOf = Callable[
    [Snapshot, Sequence[int]], Iterator[tuple[pa.ChunkedArray, NDArray[np.float32]]]
]
"""The content hashes and the vectors, float32 [n, d], of the rows of fragments of the snapshot, one
fragment after another and each in storage order, some rows at a time. May take its time."""

_ATTEMPTS = 60
_POLITE = 2
"""After as many lost races the writers wait for the next try."""

_CLOSED = 10.0
"""Seconds; a switch takes a small part of one."""

_ROWS = 2_048
"""Rows whose vectors are written at once."""

_GROUP_ROWS = 65_536

_NEXT = f"{EMBEDDING}_next"
_HASH = "content_hash"


def say(
    table: Table,
    plan: Callable[[Snapshot], Mapping[str, str]],
    *,
    audit: Callable[[], Audit],
) -> Snapshot | None:
    """Change the table's metadata as one version.

    Two that do so at the same time exclude each other: the one that comes second plans again.

    Args:
        table: on the branch in question.
        plan: the keys that change and their values; nothing: there is nothing to do.
        audit: who and why; asked at the moment of the commit.

    Returns:
        The version it made; None where there was nothing to do.

    Raises:
        ConflictError: the race was lost too often.
    """
    for attempt in range(_ATTEMPTS):
        snapshot = table.latest()
        values = plan(snapshot)
        if not values:
            return None
        operation = lance.LanceOperation.UpdateConfig(
            schema_metadata_updates=lance.LanceOperation.UpdateMap(updates=dict(values))
        )
        made = _published(table, snapshot, operation, audit())
        if made is not None:
            return made
        _wait(attempt)
    raise _overtaken("change what the table says of itself")


def switch_vectors(
    table: Table,
    fmt: StoreFormat,
    *,
    vectors_of: VectorsOf,
    audit: Callable[[Snapshot], Audit],
) -> tuple[Snapshot, Snapshot]:
    """Put other vectors in the place of those that are there, of all rows, as one version.

    The new ones are a column of their own in files beside the old ones; the version takes the old
    column out of the schema and gives its name to the new one. So no row is written again, the
    other indices stay as they are, and earlier versions have what they had. Every other write
    conflicts: what was added meanwhile gets a vector too, and nothing of the former model follows.
    The vector index goes with its column.

    Args:
        table: on the branch in question.
        fmt: the model and dimension that the vectors are of.
        vectors_of: see `VectorsOf`; asked once for each fragment, those that come meanwhile too.
        audit: who and why, for a commit over this snapshot.

    Returns:
        The version before, and the one that was made.

    Raises:
        ConflictError: other writers were faster too often. Nothing was changed.
    """
    column = _Column(fmt, vectors_of)
    with holding(table, table.latest().version):
        column.written(table.latest())  # this takes long, and the rest is quick
    for attempt in range(_ATTEMPTS):
        with ExitStack() as held:
            # A fold under way would bring the old index back. It may wait for `writing`, so this
            # lock is taken first.
            held.enter_context(alone(table))
            if attempt >= _POLITE:
                held.enter_context(table.writing)
                column.written(table.latest())
                _close(table)
            snapshot, made = _tried(table, column, audit)
        if made is not None:
            indices.drop_left_over(made)
            return snapshot, made
        _wait(attempt)
    raise _overtaken("switch the vectors")


def _tried(
    table: Table, column: _Column, audit: Callable[[Snapshot], Audit]
) -> tuple[Snapshot, Snapshot | None]:
    """The version that was read, and the one that was made of it; None: somebody was faster."""
    snapshot = table.latest()
    try:
        operation = _switched(snapshot, column.written(snapshot), column.fmt)
        return snapshot, _published(table, snapshot, operation, audit(snapshot))
    except MissingFileError:
        if table.latest().version == snapshot.version:
            raise
        return snapshot, None  # clean-up took the files of the version that was read


def _close(table: Table) -> None:
    """Let every writer wait for a moment, of whatever process: a loop of adds would always win.

    It is a version without a record, and says until when; so a killed run closes nothing for long.
    """
    until = time.time() + _CLOSED
    updates = {CLOSED: str(until)}
    operation = lance.LanceOperation.UpdateConfig(
        schema_metadata_updates=lance.LanceOperation.UpdateMap(updates=updates)
    )
    for attempt in range(_ATTEMPTS):
        if _published(table, table.latest(), operation, None) is not None:
            return
        _wait(attempt)
    raise _overtaken("switch the vectors")


@dataclass(slots=True)
class _Column:
    """The new column, a file for each fragment; a repeated attempt writes what is missing."""

    fmt: StoreFormat
    vectors_of: VectorsOf
    files: dict[tuple[str, ...], DataFile] = field(default_factory=dict)

    def written(self, snapshot: Snapshot) -> list[FragmentMetadata]:
        """The fragments of the snapshot, each with its new column."""
        ids, number = sorted(snapshot.fragment_ids), _free_number(snapshot)
        for some in _in_groups(snapshot, [i for i in ids if snapshot.files(i) not in self.files]):
            self._write(snapshot, some)
        return [self._with_column(snapshot, i, number) for i in ids]

    def _with_column(self, snapshot: Snapshot, identifier: int, number: int) -> FragmentMetadata:
        file = self.files[snapshot.files(identifier)]
        file.fields = [number]
        metadata: FragmentMetadata = snapshot.fragment(identifier).metadata
        return replace(metadata, files=[*metadata.files, file])

    def _write(self, snapshot: Snapshot, ids: Sequence[int]) -> None:
        """The vectors of some fragments, a file for each.

        They wait in a file that the operating system may put aside: the engine asks for them from
        inside, where it can be asked for nothing, and a fragment may have a million rows.
        """
        with tempfile.TemporaryFile() as waiting:
            hashes = [self._put(waiting, *part) for part in self.vectors_of(snapshot, ids)]
            waiting.flush()
            expected = pa.chunked_array([c for h in hashes for c in h.chunks], pa.string())
            shape = (len(expected), self.fmt.dimension)
            vectors = np.memmap(waiting, np.float32, mode="r", shape=shape)
            schema = pa.schema([embedding_field(self.fmt).with_name(_NEXT)])
            done = 0

            @lance.batch_udf(output_schema=schema)  # type: ignore[untyped-decorator,unused-ignore]
            def batch(rows: pa.RecordBatch) -> pa.RecordBatch:
                nonlocal done
                there = slice(done, done + len(rows))
                done += len(rows)
                if not pa.chunked_array([rows[_HASH]]).equals(expected[there]):
                    raise ValueError("the rows come in another order than they were read in")
                return pa.RecordBatch.from_arrays([vector_array(vectors[there])], schema=schema)

            with translated(f"write the vectors of {self.fmt.embedding_model}"):
                for i in ids:
                    fragment = snapshot.fragment(i)
                    made, _ = fragment.merge_columns(batch, columns=[_HASH], batch_size=_ROWS)
                    self.files[snapshot.files(i)] = made.files[-1]

    @staticmethod
    def _put(
        waiting: IO[bytes], hashes: pa.ChunkedArray, vectors: NDArray[np.float32]
    ) -> pa.ChunkedArray:
        waiting.write(np.ascontiguousarray(vectors, np.float32).tobytes())
        return hashes


def _in_groups(snapshot: Snapshot, ids: Sequence[int]) -> Iterator[list[int]]:
    """Fragments that are written at once: many small ones, for which each look takes as long."""
    some: list[int] = []
    rows = 0
    for i in ids:
        some.append(i)
        rows += int(snapshot.fragment(i).count_rows())
        if rows >= _GROUP_ROWS:
            yield some
            some, rows = [], 0
    if some:
        yield some


def _switched(
    snapshot: Snapshot, fragments: Sequence[FragmentMetadata], fmt: StoreFormat
) -> LanceOperation.BaseOperation:
    """A Merge, which conflicts with every other write and keeps the indices of other columns."""
    return lance.LanceOperation.Merge(
        fragments=fragments,
        schema=_schema(snapshot, replace(fmt, vectors_since=snapshot.version + 1)),
        preserves_nullability=False,
    )


def _schema(snapshot: Snapshot, fmt: StoreFormat) -> LanceSchema:
    """The schema with a vector column of a free number, and the format's metadata.

    The engine numbers columns by their order, and has no call to give one a number. But a schema
    is pickled as its metadata and its columns, one by one; so it is put together from the columns
    that stay and from one that stands at the right place in a schema of placeholders.
    """
    from lance.schema import LanceSchema

    there, number = snapshot.dataset.lance_schema, _free_number(snapshot)
    make, (_, *columns) = there.__reduce__()
    names = [column.name() for column in _flat(there.fields())]
    metadata = {**(snapshot.schema.metadata or {}), **_encoded(fmt)}
    metadata.pop(CLOSED.encode(), None)
    placeholders = [pa.field(f"_{i}", pa.int8()) for i in range(number)]
    shifted = LanceSchema.from_pyarrow(
        pa.schema([*placeholders, embedding_field(fmt)], metadata=metadata)
    )
    _, (described, *shifted_columns) = shifted.__reduce__()
    place = names.index(EMBEDDING)
    columns[place] = shifted_columns[number]
    made: LanceSchema = make(described, *columns)
    return made


def _encoded(fmt: StoreFormat) -> dict[bytes, bytes]:
    return {key.encode(): value.encode() for key, value in fmt.to_metadata().items()}


def _flat(columns: Sequence[Any]) -> Iterator[Any]:
    """Columns and those inside them, in the order of the pickled ones."""
    for column in columns:
        yield column
        yield from _flat(column.children())


def _free_number(snapshot: Snapshot) -> int:
    """Above those that columns have, also those that are gone and are still in a file."""
    columns = {int(column.id()) for column in _flat(snapshot.dataset.lance_schema.fields())}
    parts = [snapshot.fragment(i).metadata.files for i in snapshot.fragment_ids]
    return 1 + max(columns.union(int(n) for files in parts for file in files for n in file.fields))


def _published(
    table: Table,
    snapshot: Snapshot,
    operation: LanceOperation.BaseOperation,
    audit: Audit | None,
) -> Snapshot | None:
    """The version that the operation makes; None: somebody was faster."""
    transaction = lance.Transaction(
        read_version=snapshot.version,
        operation=operation,
        transaction_properties=properties(ChangeSet(audit=audit)) if audit else {},
    )
    try:
        with translated(f"commit {audit.operation if audit else 'a pause'}"):
            dataset = lance.LanceDataset.commit(
                snapshot.dataset,
                transaction,
                max_retries=0,
                storage_options=table.storage_options,
            )
    except CommitConflictError:
        return None
    made = snapshot.sibling(dataset)
    table.adopt(made)
    table.settle_version(made.version)
    return made


def _wait(attempt: int) -> None:
    time.sleep(random.uniform(0, min(0.002 * 2**attempt, 0.05)))


def _overtaken(what: str) -> ConflictError:
    return ConflictError(
        f"could not {what}: other writers were faster {_ATTEMPTS} times; nothing was changed: "
        "try again"
    )
