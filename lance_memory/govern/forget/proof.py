"""The proof: every version, file and index is searched for what was forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.errors import NotFoundError, StorageError
from lance_memory.govern.forget.marker import is_mark
from lance_memory.govern.forget.results import ForgetProof
from lance_memory.govern.forget.round import Round
from lance_memory.storage import Snapshot
from lance_memory.storage.engine import MissingFileError, UnexplainedError
from lance_memory.storage.erase.needles import Needles, is_distinctive, is_uuid
from lance_memory.storage.erase.stains import rows_in
from lance_memory.storage.files.lines import Line, lines_of, raw_tags, stored_files
from lance_memory.storage.opening import TABLE_NAME
from lance_memory.storage.vector.staged import staged_tables
from lance_memory.wording import some, worded

__all__ = ["Evidence", "HeldBesideError", "prove"]

LEDGERS = "ingest/"
"""Where jobs and counters are; other people may say the same there."""

_LEDGER = "/ledger.sqlite"

_RAW_NEEDLES = 16
"""So many ids and as many texts are looked for in bytes; ids that are UUIDs are all found."""

_SEARCHED = 8
_TABLE = ".lance"
_RECORDS = ("/_versions/", "/_transactions/")


class HeldBesideError(StorageError):
    """The store has nothing of them any more, but `files` in its directory, which are others'."""

    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was known of the memories before they went.

    Attributes:
        texts: the beginnings of what they say, see `Needles`.
        short: how many texts are too short to be looked for.
        vectors: a few of theirs, none where a run after a kill finds none any more.
        beside: how many files of ledgers were searched already, and where something was found.
    """

    texts: Sequence[str] = ()
    short: int = 0
    vectors: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), np.float32))
    beside: tuple[int, Sequence[str]] = (0, ())


def prove(work: Round, evidence: Evidence) -> ForgetProof:
    """Search everything that is left.

    Raises:
        HeldBesideError: files that are not the store's have something of the memories still.
        StorageError: the store itself has, or both have; says where.
    """
    search = _Search(work, evidence)
    search.files()
    search.versions()
    proof = search.proof()
    if proof.found:
        told = worded("{n} [place still holds|places still hold]", len(proof.found))
        raise StorageError(
            f"{told} what was to be forgotten ({some(proof.found, 3)}); nothing else is "
            "left: run `lmem forget --finish`"
        )
    if search.beside:
        error = HeldBesideError(
            "the store has nothing of what was to be forgotten any more, but files in its "
            f"directory that are not its own have: remove {some(search.beside, 3)}, then run "
            "`lmem forget --finish`"
        )
        error.files = tuple(search.beside)
        raise error
    return proof


class _Search:
    def __init__(self, work: Round, evidence: Evidence) -> None:
        self._work = work
        self._evidence = evidence
        known = [i for i in sorted(work.marker.ids) if is_distinctive(i)]
        uuids = [i for i in known if is_uuid(i)]
        ids = [*uuids, *_sample([i for i in known if not is_uuid(i)])]
        texts = _sample(evidence.texts)
        self._raw = Needles(ids, texts)
        self._needles = len(ids) + len(texts)
        self.beside: list[str] = []
        self._counts = dict.fromkeys(("data", "index", "raw", "versions", "searches"), 0)
        self._mentioned: set[str] = set()
        self._counts["raw"], found = evidence.beside
        self._found: list[str] = [*found]

    def proof(self) -> ForgetProof:
        return ForgetProof(
            versions=self._counts["versions"],
            data_files=self._counts["data"],
            index_files=self._counts["index"],
            searches=self._counts["searches"],
            raw_files=self._counts["raw"],
            raw_needles=self._needles,
            unscanned=tuple(i for i in sorted(self._work.marker.ids) if not is_distinctive(i)),
            unscanned_texts=self._evidence.short,
            unreadable=tuple(sorted(self._work.stains.unreadable | self._work.torn)),
            mentioned=tuple(sorted(self._mentioned)),
            found=tuple(dict.fromkeys(self._found)),
        )

    def files(self) -> None:
        """Read every data and index file, whoever needs it, and scan the bytes of all files."""
        for file in stored_files(self._work.table):
            try:
                self._read(file.path, f"/{file.name}")
            except MissingFileError:
                continue  # cleaned up meanwhile
        self._found += staged_tables(self._work.place)
        if self._work.place.local is None:
            return
        for name in self._work.place.names():
            if not (is_mark(name) or _of_ledger(name)):
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
            if self._work.stains.in_rows(path) and not self._is_begun(path):
                self._found.append(path)
        elif "/_indices/" in name:
            self._counts["index"] += 1
            if self._work.stains.in_index(path) and not self._is_begun(path):
                self._found.append(path)

    def _is_begun(self, path: str) -> bool:
        """Whether it cannot be read, as a writer is at it, and nothing of them is in its bytes."""
        stains = self._work.stains
        return path in stains.unreadable and self._raw.within(stains.read(path)) is None

    def _scan(self, name: str) -> None:
        try:
            raw = self._work.place.read(name)
        except NotFoundError:
            return
        self._counts["raw"] += 1
        if self._raw.within(raw) is None:
            return
        place = f"{self._work.place.uri}/{name}"
        if _TABLE not in name.partition("/")[0]:
            if self._written(raw):
                self.beside.append(place)
        elif any(folder in name for folder in _RECORDS):
            if self._raw.recorded(raw):
                self._found.append(place)
        elif not name.endswith(_TABLE):
            self._found.append(place)
        else:
            self._look(name, place)

    def _written(self, raw: bytes) -> bool:
        """Whether a text names one, and not only what begins like it; what is no text does."""
        try:
            return self._raw.quoted(raw.decode())
        except UnicodeDecodeError:
            return True

    def _look(self, name: str, place: str) -> None:
        """A file of rows in which the bytes are: they may be there by chance, or be mentioned."""
        try:
            rows = rows_in(place, options=self._work.table.storage_options)
        except MissingFileError:
            return  # a writer's own, who has lost
        except UnexplainedError:
            self._found.append(place)
            return
        hits = {i for column in _texts(rows) for i in self._naming(column)}
        if hits and not name.startswith(TABLE_NAME):
            self._found.append(place)
        elif "id" in rows.column_names:
            self._mentioned |= {rows["id"][i].as_py() for i in hits}
        elif hits:
            self._mentioned.add("(in an index)")

    def _naming(self, column: pa.ChunkedArray) -> Iterator[int]:
        for i, value in enumerate(column.to_pylist()):
            found = self._raw.within(value) if isinstance(value, bytes) else self._raw.named(value)
            if found:
                yield i

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


def _of_ledger(name: str) -> bool:
    """Whether it is a ledger's, which `beside` is of."""
    return name.startswith(LEDGERS) and _LEDGER in name


def _sample(values: Sequence[str]) -> list[str]:
    step = max(1, -(-len(values) // _RAW_NEEDLES))
    return list(values[::step])


def _texts(rows: pa.Table) -> Iterator[pa.ChunkedArray]:
    """The columns that can have a text."""
    for name in rows.column_names:
        kind = rows[name].type
        if not (pa.types.is_primitive(kind) or pa.types.is_fixed_size_list(kind)):
            yield rows[name]
