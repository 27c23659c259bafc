"""Vectors of a model that the table does not have yet, kept beside it until it is switched."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

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

__all__ = ["STAGED", "StagedVectors"]

STAGED = "reembed-"
"""Side tables whose names begin so hold vectors that were made, and not switched to yet."""

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
        self._discard(keep=self._name)

    def discard(self) -> None:
        """Remove all that was made."""
        self._discard(keep=None)

    def _discard(self, *, keep: str | None) -> None:
        files = [name for name in self._place.names() if name.startswith(STAGED)]
        for name in files:
            if keep is None or not name.startswith(f"{keep}."):
                self._place.remove(name)
        for folder in {name.split("/")[0] for name in files}:
            if keep is None or not folder.startswith(f"{keep}."):
                remove(self._place.uri, folder)
