"""A batch on its way in: embedded where it needs to be, and only what is new of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.admission.admit import admit
from lance_memory.admission.known import KnownContents
from lance_memory.record.intake import Taken
from lance_memory.record.results import AddManyResult
from lance_memory.record.rows import EMBEDDING, embeddings, patched, valid_vectors, vector_array
from lance_memory.storage import Snapshot

__all__ = ["Addition", "Embed", "Progress", "embedded"]

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
Progress = Callable[[int, int], None]
_CHUNK = 256


class Addition:
    """One batch. `new_rows` decides against the version that the commit is about to build on."""

    def __init__(
        self, taken: Taken, *, embed: Embed, known_contents: KnownContents, now: datetime
    ) -> None:
        self._taken = taken
        self._embed = embed
        self._contents = known_contents
        self._now = now
        self._known: Mapping[int, tuple[str, str]] = {}
        self._read: Snapshot | None = None

    def prepare(self, latest: Callable[[], Snapshot], progress: Progress | None) -> None:
        """Embed what seems to be new, before the commit, because it takes long."""
        if not valid_vectors(self._taken.rows).all():
            fresh = self._admitted(latest())
            self._taken = embedded(self._taken, self._embed, only=fresh, progress=progress)

    def new_rows(self, snapshot: Snapshot) -> pa.Table:
        """The rows of the batch that `snapshot` does not hold, all embedded."""
        rows = self._admitted(snapshot)
        if not valid_vectors(rows).all():  # a twin that was there has gone since
            self._taken = embedded(self._taken, self._embed, only=rows)
            rows = self._admitted(snapshot)
        self._read = snapshot
        return rows

    def result(
        self, uri: str, written: Snapshot, *, upkeep: str, warnings: tuple[str, ...] = ()
    ) -> AddManyResult:
        """What became of the batch; `upkeep` and `warnings` are part of it."""
        if self._read is not None:
            self._contents.learn(self._taken.words, read=self._read, written=written)
        ids = self._taken.rows["id"].to_pylist()
        known = self._known
        return AddManyResult(
            uri=uri,
            version=written.version,
            ids=tuple(known[i][0] if i in known else own for i, own in enumerate(ids)),
            stored=len(ids) - len(known),
            already_there={i: reason for i, (_, reason) in known.items()},
            upkeep=upkeep,
            warnings=warnings,
        )

    def _admitted(self, snapshot: Snapshot) -> pa.Table:
        found = admit(snapshot, self._taken, known_contents=self._contents, now=self._now)
        self._known = found.known
        return found.rows


def embedded(
    taken: Taken, embed: Embed, *, only: pa.Table | None = None, progress: Progress | None = None
) -> Taken:
    """The rows, embedded where they lack a vector (and, with `only`, are among those)."""
    rows = taken.rows
    present = valid_vectors(rows)
    ids, texts = rows["id"].to_pylist(), rows["content"].to_pylist()
    wanted = set(ids if only is None else only["id"].to_pylist())
    lacking = [i for i in np.flatnonzero(~present).tolist() if ids[i] in wanted]
    if not lacking:
        return taken
    vectors = embeddings(rows)
    for start in range(0, len(lacking), _CHUNK):
        chunk = lacking[start : start + _CHUNK]
        vectors[chunk] = embed([texts[i] for i in chunk])
        if progress is not None:
            progress(start + len(chunk), len(lacking))
    present[lacking] = True
    column = vector_array(vectors, valid=present)
    return replace(taken, rows=patched(rows, {EMBEDDING: column}))
