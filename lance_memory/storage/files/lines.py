"""The lines of a store, main and every branch, and which files each of their versions needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_memory.storage.engine import translated
from lance_memory.storage.table import TABLE_NAME, Table

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Line", "StoredFile", "Version", "lines_of", "located", "raw_tags", "stored_files"]

_MAIN = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What one version is made of; every file by the path or URI that it can be read from."""

    number: int
    data: frozenset[str]
    indices: frozenset[str]
    records: frozenset[str]
    """Its manifest and its transaction, which say what was done. Of a branch, `indices` has only
    those made on it."""

    @property
    def files(self) -> frozenset[str]:
        return self.data | self.indices | self.records


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Main or a branch; `forked` is the branch and version that it began at."""

    table: Table
    versions: Mapping[int, Version]
    forked: tuple[str, int] | None

    @property
    def name(self) -> str:
        return self.table.branch

    @property
    def newest(self) -> int:
        return max(self.versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file of the table's directory: where it is read from, its name there, and its age."""

    path: str
    name: str
    size: int
    modified: datetime


def lines_of(table: Table) -> dict[str, Line]:
    """Main and all branches, the store's own included."""
    main = table.on_branch(_MAIN)
    with translated("list branches"):
        found = main.branch_refs()
    lines = {_MAIN: Line(table=main, versions=_versions(main), forked=None)}
    for name, branch in sorted(found.items()):
        one = main.on_branch(name)
        forked = (branch["parent_branch"] or _MAIN, int(branch["parent_version"]))
        lines[name] = Line(table=one, versions=_versions(one), forked=forked)
    return lines


def raw_tags(table: Table) -> dict[str, tuple[str, int]]:
    """Tag → the branch and version that it is on, of every branch, the store's own included."""
    with translated("list tags"):
        found = table.tag_refs()
    return {name: (tag["branch"] or _MAIN, int(tag["version"])) for name, tag in found.items()}


def stored_files(table: Table) -> list[StoredFile]:
    """Every file of the table's directory, of all branches, needed or not."""
    main = table.on_branch(_MAIN)
    with translated("list the files"):
        rows = main.own().dataset.all_files().read_all().to_pylist()
    return [
        StoredFile(
            path=located(table, row["base_uri"], row["path"]),
            name=f"{TABLE_NAME}/{row['path']}",
            size=row["size_bytes"],
            modified=row["last_modified"],
        )
        for row in rows
    ]


def located(table: Table, base: str, name: str) -> str:
    """Where a file is read from; the engine leaves out the scheme of an object store."""
    if "://" in base or "://" not in table.uri:
        return f"{base.rstrip('/')}/{name}"
    scheme, _, rest = table.uri.partition("://")
    bucket = rest.partition("/")[0]
    inside = base.strip("/")
    start = "" if inside.startswith(f"{bucket}/") else f"{bucket}/"
    return f"{scheme}://{start}{inside}/{name}"


def _versions(table: Table) -> dict[int, Version]:
    with translated(f"list the files of {table.branch}"):
        rows = table.own().dataset.tracked_files().read_all().to_pylist()
    parts: dict[int, dict[str, set[str]]] = {}
    for row in rows:
        kinds = parts.setdefault(int(row["version"]), {"data": set(), "index": set(), "": set()})
        kind = row["type"].partition(" ")[0]
        kinds.get(kind, kinds[""]).add(located(table, row["base_uri"], row["path"]))
    return {
        number: Version(
            number=number,
            data=frozenset(kinds["data"]),
            indices=frozenset(kinds["index"]),
            records=frozenset(kinds[""]),
        )
        for number, kinds in parts.items()
    }
