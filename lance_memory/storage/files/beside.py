"""What lies beside the memories: the side tables, such as the query log, and loose files."""

from __future__ import annotations

from dataclasses import dataclass

from lance_memory.errors import LanceMemoryError, NotFoundError
from lance_memory.storage.engine import lance, translated
from lance_memory.storage.files.tracked import tracked
from lance_memory.storage.opening import TABLE_NAME
from lance_memory.storage.place import Place
from lance_memory.storage.table import Table

__all__ = ["SideTable", "files_of_side_table", "look_beside", "loose_files", "side_tables"]

_PASSING = (".lock", ".new")
"""Endings of files that mean nothing once the process that made them is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideTable:
    """A side table: its rows and versions, or why it cannot be read."""

    name: str
    rows: int = 0
    versions: int = 0
    broken: str = ""


def look_beside(table: Table) -> list[SideTable]:
    """Every table beside the memories. All rows are read, and none is kept.

    Raises:
        StorageError: the store's directory cannot be listed.
    """
    return [_read(table, directory) for directory in side_tables(table.place)]


def side_tables(place: Place) -> list[str]:
    """The directories of the side tables, from the store's on."""
    tops = {name.split("/", 1)[0] for name in place.names() if "/" in name}
    return sorted(top for top in tops if top.endswith(".lance") and top != TABLE_NAME)


def loose_files(place: Place) -> list[str]:
    """The files of the store's directory that are no table's, such as what a pass left behind."""
    return [
        name
        for name in place.names()
        if not name.split("/", 1)[0].endswith(".lance") and not name.endswith(_PASSING)
    ]


def files_of_side_table(table: Table, name: str) -> frozenset[str]:
    """What the newest version of a side table consists of, from the store's directory on.

    Its earlier versions are nobody's: a side table has no history.

    Raises:
        NotFoundError: it is gone.
        StorageError: it was compacted while it was looked at; look again.
    """
    with translated(f"list the files of {table.uri}/{name}", absent=NotFoundError):
        dataset = lance.dataset(f"{table.uri}/{name}", storage_options=table.storage_options)
        found = tracked(dataset)
    newest = int(dataset.version)
    return frozenset(f"{name}/{file.path}" for file in found if file.version == newest)


def _read(table: Table, directory: str) -> SideTable:
    name = directory.removesuffix(".lance")
    try:
        with translated(f"read the side table {name}"):
            dataset = lance.dataset(
                f"{table.uri.rstrip('/')}/{directory}", storage_options=table.storage_options
            )
            rows = sum(len(batch) for batch in dataset.to_batches())
            versions = len(dataset.version_refs())
    except LanceMemoryError as error:
        return SideTable(name=name, broken=str(error))
    return SideTable(name=name, rows=rows, versions=versions)
