"""What the files of a store hold, whichever version needs them: deleted rows included.

A row that was deleted or replaced stays in its data file until the file is rewritten, and the file
until every version that needs it is cleaned up. So what is to be forgotten is looked for in files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.record.lineage import SUPERSEDED_BY
from lance_memory.storage.engine import MissingFileError, lance, translated
from lance_memory.storage.files.lines import Version
from lance_memory.storage.place import Place

__all__ = ["Needles", "Stains", "passing", "rows_in"]

_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NAMING = ("id", SUPERSEDED_BY, "relationships")
_OF_INDEX = ("values", "keys")


def rows_in(
    path: str, columns: Iterable[str] | None = None, *, options: Mapping[str, str] | None
) -> pa.Table:
    """All rows of one data or index file, those that a version leaves out included.

    Args:
        path: the file.
        columns: which of them, as far as the file has them; None: all.
        options: the object store's.

    Raises:
        MissingFileError: it is not there any more.
        StorageError: it is no such file, or damaged.
    """
    from lance.file import LanceFileReader  # after `engine` has set what lance reads on import

    given = dict(options) if options else None
    with translated(f"read {path}"):
        names = LanceFileReader(path, given).metadata().schema.names
        wanted = names if columns is None else [name for name in columns if name in names]
        if not wanted:
            return pa.table({})
        return LanceFileReader(path, given, columns=wanted).read_all(batch_size=8_192).to_table()


def passing(rows: pa.Table, predicate: str | None) -> pa.Table:
    """Those of the rows of a file that pass a predicate, as the engine understands it."""
    if predicate is None or not len(rows):
        return rows
    with translated("choose memories"):
        return lance.write_dataset(rows, "memory://").to_table(filter=predicate)


class Needles:
    """Ids, and other texts, to be found in bytes and in texts."""

    def __init__(self, ids: Collection[str], texts: Collection[str] = ()) -> None:
        self.ids = frozenset(ids)
        self._uuids = {raw for i in self.ids if _UUID.fullmatch(raw := i.encode())}
        rest = [i.encode() for i in self.ids if i.encode() not in self._uuids]
        self._others = [*rest, *(text.encode() for text in texts)]
        self._shortest = min(map(len, [*self._uuids, *self._others]), default=0)

    @property
    def all_uuids(self) -> bool:
        """Whether all ids have the form that is found in bytes in one pass."""
        return len(self._uuids) == len(self.ids)

    def within(self, raw: bytes) -> str | None:
        """One of them that is in `raw`."""
        if len(raw) < self._shortest:
            return None
        for found in _UUID.findall(raw) if self._uuids else ():
            if found in self._uuids:
                return str(found.decode())
        return next((other.decode() for other in self._others if other in raw), None)


class Stains:
    """Which files name one of these memories. Files never change, so each is read once."""

    def __init__(
        self, place: Place, ids: Collection[str], *, options: Mapping[str, str] | None
    ) -> None:
        self._place = place
        self._ids = pa.array(sorted(ids), pa.string())
        self._needles = Needles(ids)
        self._options = options
        self._known: dict[str, bool] = {}

    def on(self, version: Version) -> bool:
        """Whether a file that the version needs has one."""
        return (
            any(map(self.in_rows, version.data))
            or any(map(self.in_index, version.indices))
            or any(map(self.in_record, version.records))
        )

    def in_rows(self, path: str) -> bool:
        """Whether a row of the data file is one of them, or points to one."""
        return self._remembered(
            path, lambda: self._named(rows_in(path, _NAMING, options=self._options))
        )

    def in_index(self, path: str) -> bool:
        """Whether an index file has one of the ids; words are in a form that cannot be read."""
        if not path.endswith(".lance"):
            return False
        return self._remembered(
            path, lambda: self._listed(rows_in(path, _OF_INDEX, options=self._options))
        )

    def in_record(self, path: str) -> bool:
        """Whether the bytes of a manifest or a transaction have one."""
        return self._remembered(path, lambda: self._needles.within(self.read(path)) is not None)

    def read(self, path: str) -> bytes:
        """The bytes of a file of the store."""
        if "://" not in path:
            with translated(f"read {path}"):
                return Path(path).read_bytes()
        return self._place.read(path.removeprefix(f"{self._place.uri}/"))

    def _remembered(self, path: str, look: Callable[[], bool]) -> bool:
        known = self._known.get(path)
        if known is None:
            try:
                known = bool(look())
            except MissingFileError:
                return False
            self._known[path] = known
        return known

    def _named(self, rows: pa.Table) -> bool:
        found = self._listed(rows)
        if not found and "relationships" in rows.column_names:
            edges = pc.list_flatten(rows["relationships"])
            found = self._any(pc.struct_field(edges, "target"))
        return found

    def _listed(self, rows: pa.Table) -> bool:
        return any(self._any(column) for column in rows.columns if pa.types.is_string(column.type))

    def _any(self, values: pa.ChunkedArray) -> bool:
        return bool(pc.any(pc.is_in(values, self._ids)).as_py())
