"""Build the vector index of a table: choose, train, encode, prove, install."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from lance_memory.errors import ConflictError, InvalidInputError
from lance_memory.index.health import IndexRecall
from lance_memory.index.model import IvfPqModel
from lance_memory.index.proof import Proof, prove
from lance_memory.index.sample import drawn
from lance_memory.index.sizes import RQ_BITS, partitions_for, sample_rows, spec_for
from lance_memory.index.trainer import Trainer, pick
from lance_memory.record.rows import EMBEDDING
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.table import Table
from lance_memory.storage.vector.index import (
    CodedRows,
    Segment,
    build_by_engine,
    build_from_codes,
    install,
)
from lance_memory.storage.vector.rows import count_vectors, vectors
from lance_memory.wording import counted

__all__ = ["IndexKind", "IndexProgress", "IndexReport", "build_index", "known_kind"]

IndexProgress = Callable[[str, int, int], None]
"""Told (step, done, in all); 0 in all where it is not known."""

_ATTEMPTS = 4

_PQ_FROM_ROWS = 256
"""Fewer vectors cannot train 256 codes; "auto" takes what needs no training then."""


class IndexKind(StrEnum):
    """What an index keeps of a vector; see design/007 for what each costs and recalls."""

    AUTO = "auto"
    IVF_PQ = "ivf_pq"
    IVF_RQ = "ivf_rq"
    IVF_FLAT = "ivf_flat"
    IVF_SQ = "ivf_sq"
    IVF_HNSW_SQ = "ivf_hnsw_sq"


_ENGINE_OPTIONS: dict[IndexKind, dict[str, Any]] = {
    IndexKind.IVF_RQ: {"num_bits": RQ_BITS},
    IndexKind.IVF_FLAT: {},
    IndexKind.IVF_SQ: {},
    IndexKind.IVF_HNSW_SQ: {"m": 20, "ef_construction": 150},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """The index that was built, as it proved itself before it was installed.

    `trainer` is who trained it and `reason` why it was that one. `rows` are the vectors in it,
    `coverage` their share of all, `bytes` its size on disk. `seconds` names the steps: train,
    encode, write, check. `recall` is the recall@10 over a sample, against an exact scan.
    `version` is the one that the index is part of.
    """

    version: int
    kind: str
    trainer: str
    reason: str
    partitions: int
    sub_vectors: int | None
    rows: int
    unindexed_rows: int
    coverage: float
    bytes: int
    seconds: dict[str, float]
    recall: IndexRecall


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What is to be built, decided before anything is read."""

    kind: IndexKind
    reason: str
    trainer: Trainer | None
    partitions: int | None
    sub_vectors: int | None
    seed: int
    progress: IndexProgress | None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def trainer_name(self) -> str:
        return self.trainer.name if self.trainer else "lance"

    @property
    def notes(self) -> dict[str, str]:
        return {"trainer": self.trainer_name, "reason": self.reason}

    def told(self, step: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(step, done, total)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the seconds of what happens inside to those of the step."""
        start = time.perf_counter()
        yield
        took = time.perf_counter() - start
        self.seconds[step] = self.seconds.get(step, 0.0) + took


class _Trained(NamedTuple):
    """A model, and who encodes with it."""

    model: IvfPqModel
    trainer: Trainer


def build_index(
    table: Table,
    *,
    kind: IndexKind | str = IndexKind.AUTO,
    trainer: str | None = None,
    partitions: int | None = None,
    sub_vectors: int | None = None,
    seed: int = 0,
    progress: IndexProgress | None = None,
) -> IndexReport:
    """Build the vector index over all vectors, in the place of the one that is there.

    Everything is read from one pinned version. Rows that are written meanwhile stay unindexed
    until upkeep folds them; a compaction meanwhile makes it start over. The index is installed
    once every row is in it once, and a sample of queries finds its neighbours.

    Args:
        table: the table.
        kind: "auto" takes IVF_PQ where a GPU trains it or a trainer is named, else IVF_RQ.
        trainer: of IVF_PQ, as for `pick`.
        partitions: cells of the inverted file; by default one for 4,096 vectors.
        sub_vectors: of IVF_PQ: bytes that a vector is coded in; by default one for 8 dimensions.
        seed: of the sample and of the training.
        progress: see `IndexProgress`.

    Raises:
        StoreFormatError: the store is of an earlier schema.
        InvalidInputError: an unknown kind or trainer, one that cannot be used here, sizes that
            do not fit, or too few vectors.
        MissingExtraError: the trainer is not installed.
        ConflictError: compactions, or other builds, came between several times.
        StorageError: the index failed its check, or the disk is full; nothing was changed.
    """
    table.refuse_writes()
    order = _decided(
        table,
        known_kind(kind),
        trainer,
        partitions=partitions,
        sub_vectors=sub_vectors,
        seed=seed,
        progress=progress,
    )
    trained = _trained(table.own(), order, order.trainer) if order.trainer else None
    for attempt in range(_ATTEMPTS):
        try:
            return _built(table, order, trained)
        except ConflictError:
            time.sleep(random.uniform(0, 0.02 * 2**attempt))
    raise ConflictError(
        f"the rows were rewritten, or indexed by somebody else, {_ATTEMPTS} times while their "
        "index was built; nothing was changed: build it again when upkeep is done"
    )


def known_kind(kind: str, *, argument: str = "kind") -> IndexKind:
    """The kind of that name.

    Raises:
        InvalidInputError: there is none; it names the argument.
    """
    if kind not in set(IndexKind):
        raise InvalidInputError(f"{argument}={kind!r}; there are: {', '.join(IndexKind)}")
    return IndexKind(kind)


def _decided(table: Table, kind: IndexKind, trainer: str | None, **sizes: Any) -> _Order:
    """The kind, and for IVF_PQ the trainer; the reason is told and kept with the index."""
    if kind not in (IndexKind.AUTO, IndexKind.IVF_PQ):
        if trainer is not None or sizes["sub_vectors"] is not None:
            raise InvalidInputError(f"{kind} has no trainer and no sub-vectors; only ivf_pq has")
        return _Order(kind=kind, reason="it was asked for", trainer=None, **sizes)
    choice = pick(trainer)
    named = trainer is not None or sizes["sub_vectors"] is not None
    enough = choice.on_gpu and count_vectors(table.latest()) >= _PQ_FROM_ROWS
    if kind is IndexKind.IVF_PQ or named or enough:
        return _Order(kind=IndexKind.IVF_PQ, reason=choice.reason, trainer=choice.trainer, **sizes)
    dimension = table.schema.field(EMBEDDING).type.list_size
    if choice.on_gpu:
        reason = f"IVF_PQ takes {_PQ_FROM_ROWS} vectors to train, and there are fewer"
    else:
        reason = choice.reason
    if dimension % 8:
        reason = f"{reason}; IVF_RQ needs a dimension that 8 divides, and it is {dimension}"
        return _Order(kind=IndexKind.IVF_SQ, reason=reason, trainer=None, **sizes)
    return _Order(kind=IndexKind.IVF_RQ, reason=reason, trainer=None, **sizes)


def _built(table: Table, order: _Order, trained: _Trained | None) -> IndexReport:
    """One attempt, on one pinned handle; a model stays good when rows come and go."""
    snapshot = table.own()
    count = _counted(snapshot)
    if trained is None:
        segment = _by_engine(snapshot, order, count)
    else:
        segment = _by_codes(snapshot, order, trained, count)
    order.told("check", 0, 0)
    with order.timed("check"):
        version, proof = install(table, snapshot, [segment], check=prove, notes=order.notes)
    return _report(version, order, proof)


def _counted(snapshot: Snapshot) -> int:
    count = count_vectors(snapshot)
    if not count:
        raise InvalidInputError("the store has no vectors to index; add memories first")
    return count


def _by_engine(snapshot: Snapshot, order: _Order, count: int) -> Segment:
    given = order.partitions
    cells = partitions_for(count) if given is None else given
    if not 1 <= cells <= count:
        raise InvalidInputError(
            f"partitions={cells} of {counted(count, 'vector')}; it is from 1 to as many"
        )
    with order.timed("write"):
        return build_by_engine(
            snapshot,
            order.kind.upper(),
            partitions=cells,
            options=_ENGINE_OPTIONS[order.kind],
            report=order.told,
        )


def _by_codes(snapshot: Snapshot, order: _Order, trained: _Trained, count: int) -> Segment:
    model = trained.model
    with order.timed("write"):  # the rows are encoded as they are written
        return build_from_codes(
            snapshot,
            centroids=model.centroids,
            codebook=model.codebook,
            coded=_coded(snapshot, order, trained, count),
        )


def _trained(snapshot: Snapshot, order: _Order, trainer: Trainer) -> _Trained:
    count = _counted(snapshot)
    spec = spec_for(
        count,
        snapshot.dimension,
        partitions=order.partitions,
        sub_vectors=order.sub_vectors,
        seed=order.seed,
    )
    order.told("train", 0, 0)
    with order.timed("train"):
        sample = drawn(snapshot, sample_rows(spec, snapshot.dimension), seed=spec.seed)
        model = trainer.train(sample, spec)
    return _Trained(model, trainer)


def _coded(snapshot: Snapshot, order: _Order, trained: _Trained, count: int) -> Iterator[CodedRows]:
    done, model = 0, trained.model
    for ids, rows in vectors(snapshot, batch_size=65_536):
        with order.timed("encode"):
            partitions, codes = trained.trainer.encode(model, rows)
        yield ids, partitions, codes
        done += len(ids)
        order.told("encode", done, count)


def _report(version: int, order: _Order, proof: Proof) -> IndexReport:
    seconds = {name: round(took, 3) for name, took in order.seconds.items()}
    if "encode" in seconds:
        seconds["write"] = round(seconds["write"] - seconds["encode"], 3)
    return IndexReport(
        version=version,
        kind=proof.info.kind,
        trainer=order.trainer_name,
        reason=order.reason,
        partitions=proof.info.partitions,
        sub_vectors=proof.info.sub_vectors,
        rows=proof.info.rows,
        unindexed_rows=proof.info.unindexed_rows,
        coverage=proof.info.coverage,
        bytes=proof.info.bytes,
        seconds=seconds,
        recall=proof.recall,
    )
