"""Another embedding model for a store: new vectors beside the old ones, and one switch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.errors import ConflictError, InvalidInputError
from lance_memory.record.filters import is_one_of
from lance_memory.record.rows import EMBEDDING, embeddings, valid_vectors
from lance_memory.record.schema import StoreFormat
from lance_memory.storage import (
    Audit,
    Snapshot,
    StagedVectors,
    Table,
    naming,
    switch_vectors,
)
from lance_memory.storage.vector.staged import nobody_stages

__all__ = [
    "KEPT",
    "Model",
    "ReembedPlan",
    "ReembedProgress",
    "ReembedResult",
    "plan_reembedding",
    "reembed",
]

KEPT = "before-reembed-"
"""Tags whose names begin so keep the last version with the vectors of a former model."""

ReembedProgress = Callable[[int, int], None]
"""Told (memories that have their new vector, memories in all)."""

_HASH = "content_hash"
_ROWS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What makes the new vectors: texts → float32 [n, d], verified; and how many texts at once."""

    name: str
    dimension: int
    embed: Callable[[Sequence[str]], NDArray[np.float32]]
    batch_size: int = 256

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InvalidInputError(f"batch_size={self.batch_size}; a batch has one text or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedPlan:
    """What changing the model would take, at version `version`.

    Attributes:
        version: what was looked at.
        former_model: of the vectors that are there.
        former_dimension: their length.
        model: of the new ones; the same as before: there is nothing to do.
        dimension: their length.
        rows: memories, in whatever state; each keeps its id and its revision.
        contents: different texts among them; equal ones share a vector.
        made: contents that have a vector already, of an interrupted run.
        kept: contents whose vector is in a version that was kept when the store left this model.
    """

    version: int
    former_model: str
    former_dimension: int
    model: str
    dimension: int
    rows: int
    contents: int
    made: int
    kept: int

    @property
    def to_embed(self) -> int:
        """Contents that the model will be asked for."""
        return self.contents - self.made - self.kept

    def __bool__(self) -> bool:
        return (self.former_model, self.former_dimension) != (self.model, self.dimension)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedResult:
    """A model that was changed: the version that switched, and what it took.

    Attributes:
        uri: of the store.
        version: the one that has the new vectors; with nothing to do, the one that was found.
        former_version: the last one with the former vectors.
        tag: keeps that version; "": it was not asked for.
        model: of the vectors now.
        dimension: their length.
        rows: memories.
        embedded: contents that the model was asked for by this run.
        taken: contents whose vector an interrupted run or a kept version had.
        indices: that were built over the new vectors; until then searches are exact.
        index_refused: why a vector index was to be built, and is not; "": it is.
    """

    uri: str
    version: int
    former_version: int
    tag: str
    model: str
    dimension: int
    rows: int
    embedded: int = 0
    taken: int = 0
    indices: tuple[str, ...] = ()
    index_refused: str = ""


@dataclass(slots=True)
class _Run:
    """What one run has, and how far it is: rows that have a vector, of `rows`."""

    staged: StagedVectors
    model: Model
    kept: Sequence[Snapshot]
    progress: ReembedProgress | None
    rows: int
    done: int = 0
    embedded: int = 0
    taken: int = 0

    def vectors_of(
        self, snapshot: Snapshot, fragments: Sequence[int]
    ) -> Iterator[tuple[pa.ChunkedArray, NDArray[np.float32]]]:
        """Of each row of the fragments; those that were not made yet are made and kept first."""
        columns = [_HASH, "content"]
        for rows in snapshot.batches_of(fragments, columns=columns, batch_size=_ROWS):
            texts = dict(zip(rows[_HASH].to_pylist(), rows["content"].to_pylist(), strict=True))
            known = self.staged.known(texts)
            missing = self._out_of_kept([one for one in texts if one not in known])
            ready = self.done + len(rows) - len(missing)
            for start in range(0, len(missing), self.model.batch_size):
                batch = missing[start : start + self.model.batch_size]
                self.staged.put(batch, self.model.embed([texts[one] for one in batch]))
                self.embedded += len(batch)
                self._tell(ready + start + len(batch))
            self.done += len(rows)
            if not missing:
                self._tell(self.done)
            yield rows[_HASH], self.staged.vectors_of(rows[_HASH].to_pylist())

    def _tell(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done, max(self.rows, done))

    def _out_of_kept(self, hashes: list[str]) -> list[str]:
        """Take over the vectors that a kept version has; the contents that none has."""
        for snapshot in self.kept:
            if not hashes:
                break
            rows = snapshot.scan(is_one_of(_HASH, hashes), columns=[_HASH, EMBEDDING])
            rows = rows.filter(pa.array(valid_vectors(rows)))
            places = {one: i for i, one in enumerate(rows[_HASH].to_pylist())}
            if places:
                self.staged.put([*places], embeddings(rows)[[*places.values()]])
                self.taken += len(places)
            hashes = [one for one in hashes if one not in places]
        return hashes


def plan_reembedding(table: Table, model: Model) -> ReembedPlan:
    """What `reembed` would do; nothing is embedded or written."""
    snapshot = table.latest()
    hashes = snapshot.scan(columns=[_HASH])[_HASH].to_pylist()
    contents, former = set(hashes), snapshot.format
    wanted = _wanted(former, model)
    made = contents & _staged(table, wanted).known() if not former.same_vectors(wanted) else set()
    left = contents - made
    kept: set[str] = set()
    for one in _kept(table, wanted):
        kept |= left & set(one.scan(columns=[_HASH])[_HASH].to_pylist())
    return ReembedPlan(
        version=snapshot.version,
        former_model=former.embedding_model,
        former_dimension=former.dimension,
        model=model.name,
        dimension=model.dimension,
        rows=len(hashes),
        contents=len(contents),
        made=len(made),
        kept=len(kept),
    )


def reembed(
    table: Table,
    model: Model,
    *,
    audit: Callable[[Mapping[str, Any]], Audit],
    keep: bool,
    progress: ReembedProgress | None = None,
) -> ReembedResult:
    """Embed every content with the model, and switch the table to it, as one version.

    Args:
        table: on the branch whose vectors change; others keep theirs.
        model: what makes the vectors.
        audit: who and why, given what the commit's manifest is to say.
        keep: tag the last version with the former vectors.
        progress: see `ReembedProgress`.

    Raises:
        StoreFormatError: the store is of an earlier schema.
        ConflictError: another process re-embeds it, or writers were faster too often.
        EmbeddingError: the embedder failed. What it made until then is kept for the next run.
        StorageError: the disk is full, or a file is damaged.
    """
    table.refuse_writes()
    with ExitStack() as alone:
        try:
            alone.enter_context(nobody_stages(table.place, wait=0.0))
        except ConflictError as error:
            raise ConflictError(
                f"another process re-embeds {table.uri}; nothing was done: wait for it"
            ) from error
        return _reembedded(table, model, audit=audit, keep=keep, progress=progress)


def _reembedded(
    table: Table,
    model: Model,
    *,
    audit: Callable[[Mapping[str, Any]], Audit],
    keep: bool,
    progress: ReembedProgress | None,
) -> ReembedResult:
    snapshot = table.latest()
    former, wanted = snapshot.format, _wanted(snapshot.format, model)
    staged = _staged(table, wanted)
    if former.same_vectors(wanted):
        staged.discard()  # a run that was killed after its switch left them
        return _result(table, model, snapshot, snapshot, tag="")
    staged.discard_others()
    contents = set(snapshot.scan(columns=[_HASH])[_HASH].to_pylist())
    run = _Run(
        staged=staged,
        model=model,
        kept=_kept(table, wanted),
        progress=progress,
        rows=snapshot.count(),
        taken=len(contents & staged.known()),
    )

    def told(present: Snapshot) -> Audit:
        _refuse_other_than(present, former)
        sides = {"from": former, "to": wanted}
        return audit(
            {
                "rows": present.count(),
                **{
                    name: {"model": side.embedding_model, "dimension": side.dimension}
                    for name, side in sides.items()
                },
            }
        )

    before, made = switch_vectors(table, wanted, vectors_of=run.vectors_of, audit=told)
    tag = _tagged(table, before.version) if keep else ""
    table.settle()  # before what it was made of goes
    staged.discard()
    found = _result(table, model, before, made, tag=tag)
    return replace(found, embedded=run.embedded, taken=run.taken)


def _result(
    table: Table, model: Model, before: Snapshot, made: Snapshot, *, tag: str
) -> ReembedResult:
    return ReembedResult(
        uri=table.uri,
        version=made.version,
        former_version=before.version,
        tag=tag,
        model=model.name,
        dimension=model.dimension,
        rows=made.count(),
    )


def _wanted(former: StoreFormat, model: Model) -> StoreFormat:
    return replace(former, embedding_model=model.name, dimension=model.dimension)


def _staged(table: Table, fmt: StoreFormat) -> StagedVectors:
    return StagedVectors(table.place, fmt, storage_options=table.storage_options)


def _kept(table: Table, fmt: StoreFormat) -> list[Snapshot]:
    """The versions that were kept when the store left this very model, newest first."""
    numbers = [number for tag, number in naming.tags(table).items() if tag.startswith(KEPT)]
    found = [table.at(number) for number in sorted(numbers, reverse=True)]
    return [snapshot for snapshot in found if snapshot.format.same_vectors(fmt)]


def _tagged(table: Table, version: int) -> str:
    line = "" if table.branch == "main" else f"{table.branch}-"
    name = f"{KEPT}{line}v{version}"
    naming.create_tag(table, name, version, move=True)
    return name


def _refuse_other_than(present: Snapshot, former: StoreFormat) -> None:
    if not present.format.same_vectors(former):
        raise ConflictError(
            f"another process has switched the vectors to {present.format.embedding_model!r} "
            "meanwhile; nothing was changed: look again"
        )
