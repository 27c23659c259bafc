"""The proof: every version, file and index is searched for what was forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.errors import NotFoundError, StorageError
from lance_memory.govern.forget.marker import MARKER
from lance_memory.govern.forget.results import ForgetProof
from lance_memory.govern.forget.round import Round
from lance_memory.storage import Snapshot
from lance_memory.storage.engine import MissingFileError
from lance_memory.storage.erase.stains import Needles, rows_in
from lance_memory.storage.files.lines import Line, lines_of, raw_tags, stored_files

__all__ = ["Evidence", "prove"]

_RAW_NEEDLES = 16
"""So many ids and as many texts are looked for in bytes; ids that are UUIDs are all found."""

_SEARCHED = 8
_PIECE = 40
_SHORTEST_PIECE = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was known of the memories before they went; a run after a kill may know less."""

    texts: Sequence[str] = ()
    vectors: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), np.float32))


def prove(work: Round, evidence: Evidence) -> ForgetProof:
    """Search everything that is left.

    Raises:
        StorageError: something of the memories is there still; says where.
    """
    search = _Search(work, evidence)
    search.files()
    search.versions()
    proof = search.proof()
    if proof.found:
        raise StorageError(
            f"{len(proof.found)} places still hold what was to be forgotten "
            f"({', '.join(proof.found[:3])}); nothing else is left: run `lmem forget --finish`"
        )
    return proof


class _Search:
    def __init__(self, work: Round, evidence: Evidence) -> None:
        self._work = work
        self._evidence = evidence
        ids = _sample(sorted(work.marker.ids))
        pieces = {p for text in _sample(evidence.texts) if (p := _piece(text))}
        self._raw = Needles(work.marker.ids if work.needles.all_uuids else ids, sorted(pieces))
        self._needles = len(ids) + len(pieces)
        self._counts = dict.fromkeys(("data", "index", "raw", "versions", "searches"), 0)
        self._mentioned: set[str] = set()
        self._found: list[str] = []

    def proof(self) -> ForgetProof:
        return ForgetProof(
            versions=self._counts["versions"],
            data_files=self._counts["data"],
            index_files=self._counts["index"],
            searches=self._counts["searches"],
            raw_files=self._counts["raw"],
            raw_needles=self._needles,
            mentioned=tuple(sorted(self._mentioned)),
            found=tuple(self._found),
        )

    def files(self) -> None:
        """Read every data and index file, whoever needs it, and scan the bytes of all files."""
        for file in stored_files(self._work.table):
            try:
                self._read(file.path, f"/{file.name}")
            except MissingFileError:
                continue  # cleaned up meanwhile
        if self._work.place.local is None:
            return
        for name in self._work.place.names():
            if name != MARKER:
                self._scan(name)

    def versions(self) -> None:
        """Look at the files of each version, and ask the newest and the tagged ones."""
        lines = lines_of(self._work.table)
        tagged = raw_tags(self._work.table).values()
        for line in lines.values():
            for version in line.versions.values():
                self._counts["versions"] += 1
                if self._work.stains.on(version):
                    self._found.append(f"version {version.number} of {line.name}")
            numbers = {version for name, version in tagged if name == line.name}
            for number in sorted(numbers & line.versions.keys()):
                self._ask(line, line.table.at(number))
            self._newest(line)

    def _newest(self, line: Line) -> None:
        try:
            self._ask(line, line.table.latest())
        except MissingFileError:  # somebody made a newer one and cleaned this up
            self._ask(line, line.table.latest())

    def _read(self, path: str, name: str) -> None:
        if "/data/" in name:
            self._counts["data"] += 1
            if self._work.stains.in_rows(path):
                self._found.append(path)
        elif "/_indices/" in name:
            self._counts["index"] += 1
            if self._work.stains.in_index(path):
                self._found.append(path)

    def _scan(self, name: str) -> None:
        try:
            raw = self._work.place.read(name)
        except NotFoundError:
            return
        self._counts["raw"] += 1
        hit = self._raw.within(raw)
        if hit is None:
            return
        mentions = self._mentions(name)
        self._mentioned |= mentions
        if not mentions:
            self._found.append(f"{self._work.place.uri}/{name}")

    def _mentions(self, name: str) -> set[str]:
        """The memories of a data or index file that stay, and mention what was forgotten."""
        if not name.endswith(".lance") or "memories.lance/" not in name:
            return set()
        path = f"{self._work.place.uri}/{name}"
        rows = rows_in(path, options=self._work.table.storage_options)
        found: set[str] = set()
        for column in _texts(rows):
            values = column.to_pylist()
            hits = [i for i, v in enumerate(values) if v and self._raw.within(str(v).encode())]
            names = rows["id"] if "id" in rows.column_names else None
            found |= {names[i].as_py() if names is not None else "(in an index)" for i in hits}
        return found - set(self._work.marker.ids)

    def _ask(self, line: Line, snapshot: Snapshot) -> None:
        """Neither a look nor an index may lead to one of the memories."""
        gone = set(self._work.marker.ids)
        answers = [snapshot.matching(text, k=10) for text in self._evidence.texts[:_SEARCHED]]
        vectors = self._evidence.vectors[:_SEARCHED]
        if vectors.shape[1] == snapshot.dimension:  # a version may have vectors of another model
            answers += [snapshot.nearest(vector, k=10) for vector in vectors]
        self._counts["searches"] += len(answers)
        found = [snapshot.take(answer["_rowaddr"].to_numpy(), ["id"]) for answer in answers]
        found.append(snapshot.by_ids(self._work.marker.ids, columns=["id"]))
        if any(gone.intersection(rows["id"].to_pylist()) for rows in found):
            self._found.append(f"version {snapshot.version} of {line.name}, when it is asked")


def _sample(values: Sequence[str]) -> list[str]:
    step = max(1, -(-len(values) // _RAW_NEEDLES))
    return list(values[::step])


def _piece(text: str) -> str:
    """What is looked for of a text: its beginning, where that is long enough to tell."""
    piece = text[:_PIECE]
    return piece if len(piece) >= _SHORTEST_PIECE else ""


def _texts(rows: pa.Table) -> Iterator[pa.ChunkedArray]:
    for name in rows.column_names:
        kind = rows[name].type
        if pa.types.is_string(kind) or pa.types.is_large_binary(kind) or pa.types.is_list(kind):
            yield rows[name]
