"""The vector index: made beside the table, looked at, and only then made a part of it.

An index is built on one pinned snapshot without being committed. Its row ids are compared with
the table's, a caller's check searches it through a detached version that no reader sees, and one
commit puts it in the place of the old one. Whatever fails leaves the table as it was.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.errors import ConflictError, StorageError
from lance_memory.record.filters import present
from lance_memory.record.rows import EMBEDDING
from lance_memory.storage.described import VECTOR_INDEX, left_over
from lance_memory.storage.disk.leftovers import remove
from lance_memory.storage.engine import CommitConflictError, lance, translated
from lance_memory.storage.indices import commit_indices, drop_left_over
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.vector.facts import row_ids_of, segments_of
from lance_memory.storage.vector.notes import noted
from lance_memory.storage.vector.rows import vectors
from lance_memory.wording import counted

if TYPE_CHECKING:
    from lance_memory.storage.table import Table

__all__ = [
    "CodedRows",
    "Segment",
    "build_by_engine",
    "build_from_codes",
    "install",
]

Segment: TypeAlias = lance.Index
"""An index, or a part of one, whose files are written; committed or not."""

CodedRows = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint8]]
"""Row ids uint64 [n], partitions uint32 [n], and codes uint8 [n, bytes]."""

T = TypeVar("T")
Report = Callable[[str, int, int], None]
"""Told of a step of the engine: its name, how much is done, and of how much (0: unknown)."""

_LOOKED_UP = 10_000
"""Missing rows that are looked at before an index is refused: vectors of no direction."""


def build_by_engine(
    snapshot: Snapshot,
    kind: str,
    *,
    partitions: int,
    options: Mapping[str, Any],
    report: Report | None = None,
) -> Segment:
    """An index that Lance trains and encodes itself, over all of the snapshot; not committed.

    Args:
        snapshot: on a handle of its own.
        kind: "IVF_FLAT", "IVF_SQ", "IVF_RQ" or "IVF_HNSW_SQ".
        partitions: cells of the inverted file.
        options: what else the engine takes for the kind.
        report: is told how far it is.

    Raises:
        StorageError: the engine could not; nothing was changed.
    """
    told = dict(options)
    if report is not None:
        told["progress_callback"] = lambda step: report(
            str(step.stage), int(step.completed), int(step.total or 0)
        )
    with translated(f"build {kind}"):
        return _uncommitted(snapshot, kind, partitions=partitions, **told)


def build_from_codes(
    snapshot: Snapshot,
    *,
    centroids: NDArray[np.float32],
    codebook: NDArray[np.float32],
    coded: Iterable[CodedRows],
) -> Segment:
    """An IVF_PQ index of a model and codes that were computed outside; not committed.

    Args:
        snapshot: the pinned snapshot that the row ids in `coded` were read from.
        centroids: float32 [K, d].
        codebook: float32 [M, 256, d / M].
        coded: the rows' partitions and codes, each row once.

    Raises:
        StorageError: the engine could not; nothing was changed.
    """
    sub_vectors = len(codebook)
    with tempfile.TemporaryDirectory() as directory, translated("build IVF_PQ"):
        buffers = _written(coded, f"{directory}/codes", width=sub_vectors)
        return _uncommitted(
            snapshot,
            "IVF_PQ",
            partitions=len(centroids),
            num_sub_vectors=sub_vectors,
            num_bits=8,
            ivf_centroids=centroids,
            pq_codebook=codebook,
            precomputed_shuffle_buffers=buffers,
            precomputed_shuffle_buffers_path=f"{directory}/codes/data",
        )


def install(
    table: Table,
    snapshot: Snapshot,
    segments: Sequence[Segment],
    *,
    check: Callable[[Snapshot], T],
    notes: Mapping[str, str],
) -> tuple[int, T]:
    """Put the index in the place of the one that is there, once it has proved good.

    Args:
        table: the table.
        snapshot: what it was built on; a compaction since is a conflict.
        segments: what the builders gave.
        check: searches it through a snapshot that has it, and raises where it is not good.
        notes: kept with the index through folds and compactions, and read back as
            `IndexFacts.notes`.

    Returns:
        The version that it made, and what `check` gave. Others may have made newer ones since.

    Raises:
        StorageError: rows are missing in it, are there twice, or are none of the table's; or
            `check` raised it. The table is as it was.
        ConflictError: the rows were rewritten since, or another index was made: build it again.
    """
    named = [noted(segment, notes) for segment in segments]
    try:
        _refuse_other_rows(table, snapshot, segments)
        with translated("look at the new index"):
            found = _looked_at(table, snapshot, named, check)
    except BaseException:
        _discard(table, snapshot, segments)
        raise
    try:
        with translated("commit the index"):
            committed = commit_indices(snapshot, named, removed=_replaced(snapshot))
    except CommitConflictError as error:  # after another failure it may be committed: files stay
        _discard(table, snapshot, segments)
        raise ConflictError(
            "the rows were rewritten, or indexed by somebody else, while their index was built; "
            "nothing was changed: build it again"
        ) from error
    if drop_left_over(Snapshot(committed)):
        raise ConflictError(
            "the vectors were switched to another model while their index was built, and it was "
            "removed again: build it again"
        )
    return int(committed.version), found


def _uncommitted(snapshot: Snapshot, kind: str, *, partitions: int, **options: Any) -> Segment:
    return snapshot.dataset.create_index_uncommitted(
        EMBEDDING,
        kind,
        name=VECTOR_INDEX,
        metric="cosine",
        num_partitions=partitions,
        fragment_ids=sorted(snapshot.fragment_ids),
        replace=True,  # the engine asks for it where the name is taken; nothing is replaced yet
        **options,
    )


def _written(coded: Iterable[CodedRows], uri: str, *, width: int) -> list[str]:
    """The codes as a dataset of the form that the engine takes; the names of its files."""
    schema = pa.schema(
        [
            ("row_id", pa.uint64()),
            ("__ivf_part_id", pa.uint32()),
            ("__pq_code", pa.list_(pa.uint8(), width)),
        ]
    )
    batches = (
        pa.record_batch(
            [
                pa.array(ids),
                pa.array(partitions),
                pa.FixedSizeListArray.from_arrays(pa.array(codes.reshape(-1)), width),
            ],
            schema=schema,
        )
        for ids, partitions, codes in coded
    )
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    dataset = lance.write_dataset(reader, uri, data_storage_version="stable")
    return [file.path for part in dataset.get_fragments() for file in part.data_files()]


def _refuse_other_rows(table: Table, snapshot: Snapshot, segments: Sequence[Segment]) -> None:
    """The engine takes whatever row ids it is given, and counts fragments, not rows: look."""
    with translated("read the new index"):
        folders = [f"{table.home}/_indices/{segment.uuid}" for segment in segments]
        found = np.concatenate([row_ids_of(snapshot, folder) for folder in folders])
    covered = {int(i) for segment in segments for i in segment.fragment_ids}
    expected = _row_ids(snapshot, covered & snapshot.fragment_ids)
    unique = np.unique(found)
    missing = _with_direction(snapshot, np.setdiff1d(expected, unique))
    doubled = len(found) - len(unique)
    strange = _strange(unique, expected, covered, fresh=_fresh(snapshot, segments))
    if missing or doubled or strange:
        raise StorageError(
            f"the index was not installed: of {counted(len(expected), 'row')} it lacks "
            f"{missing:,}, has {doubled:,} twice, and has {strange:,} that are none of the "
            "table's; build it again"
        )


def _strange(
    found: NDArray[np.uint64], expected: NDArray[np.uint64], covered: set[int], *, fresh: bool
) -> int:
    """How many of the row ids found are none of the table's.

    A fresh index has none but those expected. An adopted one keeps those of rows that were
    deleted since, which a search leaves out: of its own fragments they have to be.
    """
    if fresh:
        return len(np.setdiff1d(found, expected, assume_unique=True))
    return int(np.count_nonzero(~np.isin(found >> np.uint64(32), sorted(covered))))


def _fresh(snapshot: Snapshot, segments: Sequence[Segment]) -> bool:
    """Whether they were built on this very snapshot, and not adopted of another version."""
    return all(segment.dataset_version == snapshot.version for segment in segments)


def _row_ids(snapshot: Snapshot, fragments: set[int]) -> NDArray[np.uint64]:
    """The rows of these fragments that have an embedding; of none there are none."""
    if not fragments:
        return np.empty(0, np.uint64)
    with translated("list the rows"):
        rows = snapshot.dataset.scanner(
            columns=[],
            filter=present(EMBEDDING),
            with_row_id=True,
            fragments=[snapshot.fragment(i) for i in sorted(fragments)],
        ).to_table()
    ids: NDArray[np.uint64] = rows["_rowid"].to_numpy()
    return ids


def _with_direction(snapshot: Snapshot, ids: NDArray[np.uint64]) -> int:
    """How many of these rows an index could hold: not those of zeros, which another tool wrote."""
    if not len(ids) or len(ids) > _LOOKED_UP:
        return len(ids)
    found = [rows[np.isin(batch, ids)] for batch, rows in vectors(snapshot)]
    lengths = np.linalg.norm(np.concatenate(found), axis=1)
    return int(np.count_nonzero(np.isfinite(lengths) & (lengths > 0)))


def _looked_at(
    table: Table, snapshot: Snapshot, segments: list[Segment], check: Callable[[Snapshot], T]
) -> T:
    """Let `check` search the index through a detached version, which is in no list of versions."""
    detached = commit_indices(snapshot, segments, removed=_replaced(snapshot), detached=True)
    try:
        return check(Snapshot(detached))
    finally:
        remove(table.home, f"_versions/d{detached.version}.manifest")


def _replaced(snapshot: Snapshot) -> list[Segment]:
    """The index that is there, and one over vectors of a former model that has its name."""
    return [*segments_of(snapshot), *left_over(snapshot.dataset)]


def _discard(table: Table, snapshot: Snapshot, segments: Sequence[Segment]) -> None:
    """Remove the files of an index that no version has; clean-up would, after a week.

    An adopted index is another version's, and stays.
    """
    for segment in segments:
        if _fresh(snapshot, [segment]):
            remove(table.home, f"_indices/{segment.uuid}")
