"""How the side tables of a store are, journals such as the query log and the audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_memory.errors import LanceMemoryError
from lance_memory.storage.engine import lance, translated
from lance_memory.storage.files.side_tables import side_tables
from lance_memory.storage.place import Place

if TYPE_CHECKING:
    from lance_memory.storage.table import Table

__all__ = ["SideTable", "look_beside"]


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
    place = Place(table.uri, storage_options=table.storage_options)
    return [_read(table, directory) for directory in side_tables(place)]


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
