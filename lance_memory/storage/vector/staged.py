"""Vectors of a model that the table does not have yet, kept beside it until it is switched."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.errors import ConflictError
from lance_memory.record.filters import is_one_of
from lance_memory.record.identity import content_hash
from lance_memory.record.rows import EMBEDDING, embeddings, vector_array
from lance_memory.record.schema import StoreFormat, embedding_field
from lance_memory.storage.disk.leftovers import remove
from lance_memory.storage.journal import Journal
from lance_memory.storage.place import Place

__all__ = ["STAGED", "StagedVectors", "discard_staged", "nobody_stages", "staged_tables"]

STAGED = "reembed-"
"""Side tables whose names begin so hold vectors that were made, and not switched to yet."""

_LOCK = "reembed.lock"
_HASH = "content_hash"
_WHOLE = 2**62


class StagedVectors:
    """The side table of one model: content hash → vector; it has no text.

    A vector depends on the text and the model alone, so equal contents share one, on every branch,
    and what an interrupted run has made is there for the next.
    """

    def __init__(
        self, place: Place, fmt: StoreFormat, *, storage_options: Mapping[str, str] | None = None
    ) -> None:
        self._place = place
        self._name = f"{STAGED}{content_hash(f'{fmt.dimension} {fmt.embedding_model}')[:12]}"
        self._dimension = fmt.dimension
        self._journal = Journal(
            place.uri,
            self._name,
            schema=pa.schema([pa.field(_HASH, pa.string(), nullable=False), embedding_field(fmt)]),
            storage_options=storage_options,
        )

    def put(self, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Keep the vectors of contents, float32 [n, d], durably."""
        columns = [pa.array(hashes, pa.string()), vector_array(vectors)]
        self._journal.append(pa.table(columns, schema=self._journal.schema))
        self._journal.upkeep(keep=_WHOLE)

    def known(self, hashes: Collection[str] | None = None) -> set[str]:
        """Which of these contents, or of all, there is a vector of."""
        predicate = None if hashes is None else is_one_of(_HASH, hashes)
        rows = self._journal.scan(predicate, columns=[_HASH])
        return set(rows[_HASH].to_pylist())

    def vectors_of(self, hashes: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of contents, float32 [n, d], in this order.

        Raises:
            ConflictError: there is none of some of them.
        """
        if not hashes:
            return np.empty((0, self._dimension), np.float32)
        rows = self._journal.scan(is_one_of(_HASH, set(hashes)))
        place = {found: i for i, found in enumerate(rows[_HASH].to_pylist())}
        if not place.keys() >= set(hashes):
            raise ConflictError(
                f"vectors that were made are gone from {self._name}: another process removed them; "
                "nothing was changed: run it again"
            )
        return embeddings(rows.select([EMBEDDING]))[[place[one] for one in hashes]]

    def discard_others(self) -> None:
        """Remove what was left over of other models."""
        discard_staged(self._place, but=self._name)

    def discard(self) -> None:
        """Remove all that was made."""
        discard_staged(self._place)


def nobody_stages(place: Place, *, wait: float) -> AbstractContextManager[None]:
    """No other process re-embeds the store while the block lasts.

    In an object store there is no such lock.

    Raises:
        ConflictError: one still does after so many seconds.
    """
    return place.alone(_LOCK, wait=wait)


def staged_tables(place: Place) -> tuple[str, ...]:
    """The names of the side tables that hold such vectors, of whatever model."""
    tops = {name.split("/")[0] for name in place.names() if name.startswith(STAGED)}
    return tuple(sorted(top for top in tops if top.endswith(".lance")))


def discard_staged(place: Place, *, but: str | None = None) -> None:
    """Remove the side tables of all models, or of all but the one that is named."""
    files = [name for name in place.names() if name.startswith(STAGED)]
    gone = [name for name in files if but is None or not name.startswith(f"{but}.")]
    for name in gone:
        place.remove(name)
    for folder in {name.split("/")[0] for name in gone}:
        remove(place.uri, folder)
