"""What the files of a store hold, whichever version needs them: deleted rows included.

A row that was deleted or replaced stays in its data file until the file is rewritten, and the file
until every version that needs it is cleaned up. So what is to be forgotten is looked for in files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.record.lineage import SUPERSEDED_BY
from lance_memory.record.rows import EMBEDDING
from lance_memory.storage.engine import MissingFileError, UnexplainedError, lance, translated
from lance_memory.storage.erase.needles import Needles
from lance_memory.storage.files.lines import Version
from lance_memory.storage.place import Place

__all__ = ["Stains", "columns_in", "passing", "rows_in"]

_NAMING = ("id", SUPERSEDED_BY, "relationships")
_OF_INDEX = ("values", "keys")


def columns_in(path: str, *, options: Mapping[str, str] | None) -> list[str]:
    """The names of the columns of one data or index file.

    Raises:
        MissingFileError, StorageError: as for `rows_in`.
    """
    from lance.file import LanceFileReader  # after `engine` has set what lance reads on import

    with translated(f"read {path}"):
        reader = LanceFileReader(path, dict(options) if options else None)
        return list(reader.metadata().schema.names)


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
        names = columns_in(path, options=options)
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


class Stains:
    """Which files name one of these memories. Files never change, so each is read once.

    A file on a local disk that cannot be read counts as one that does: nobody knows what it holds.

    Attributes:
        unreadable: those files.
    """

    def __init__(
        self, place: Place, ids: Collection[str], *, options: Mapping[str, str] | None
    ) -> None:
        self._place = place
        self._ids = pa.array(sorted(ids), pa.string())
        self._needles = Needles(ids)
        self._options = options
        self._known: dict[str, bool] = {}
        self.unreadable: set[str] = set()

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

    def in_orphan(self, path: str) -> bool:
        """Whether a data file that no version has is of them, or may be.

        It may where it has vectors without ids: those of a re-embedding that was killed.
        """

        def vectors_alone() -> bool:
            names = columns_in(path, options=self._options)
            return "id" not in names and any(name.startswith(EMBEDDING) for name in names)

        return self._remembered(f"orphan {path}", vectors_alone) or self.in_rows(path)

    def in_index(self, path: str) -> bool:
        """Whether an index file has one of the ids; words are in a form that cannot be read."""
        if not path.endswith(".lance"):
            return False
        return self._remembered(
            path, lambda: self._listed(rows_in(path, _OF_INDEX, options=self._options))
        )

    def in_record(self, path: str) -> bool:
        """Whether a manifest or a transaction tells of one, or quotes what one says."""
        return self._remembered(path, lambda: self._needles.recorded(self.read(path)))

    def also(self, texts: Collection[str]) -> None:
        """Look in records for what quotes these texts too; to be said before any was looked at."""
        self._needles = Needles(self._needles.ids, texts)

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
            except UnexplainedError:
                if "://" in path:
                    raise  # of a network, and not of the file
                self.unreadable.add(path)
                known = True
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
