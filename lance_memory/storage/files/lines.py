"""The lines of a store, main and every branch, and which files each of their versions needs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lance_memory.errors import NotFoundError, StorageError
from lance_memory.storage.described import described
from lance_memory.storage.disk.referred import referred
from lance_memory.storage.engine import MissingFileError, UnexplainedError, translated
from lance_memory.storage.files.readable import manifest_name
from lance_memory.storage.files.tracked import tracked
from lance_memory.storage.opening import TABLE_NAME
from lance_memory.storage.table import Table

if TYPE_CHECKING:
    from datetime import datetime

    from lance_memory.storage.snapshot import Snapshot

__all__ = [
    "Line",
    "StoredFile",
    "Version",
    "indices_of_branches",
    "lines_of",
    "listed",
    "located",
    "opened",
    "raw_tags",
    "stored_files",
    "torn_versions",
]

_MAIN = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What one version is made of; every file by the path or URI that it can be read from."""

    number: int
    data: frozenset[str]
    indices: frozenset[str]
    records: frozenset[str]
    """Its manifest, its transaction and its deletions, which say what was done. Of a branch,
    `indices` has only those made on it."""

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


def indices_of_branches(lines: Mapping[str, Line]) -> frozenset[str]:
    """The ids of the indices that versions of branches have, those of their parents included."""
    versions = [line.table.at(v) for line in lines.values() if line.forked for v in line.versions]
    every = [index for one in versions for index in described(one.dataset).values()]
    return frozenset(str(segment.uuid) for index in every for segment in index.segments)


def located(table: Table, base: str, name: str) -> str:
    """Where a file is read from; the engine leaves out the scheme of an object store."""
    if "://" in base or "://" not in table.uri:
        return f"{base.rstrip('/')}/{name}"
    scheme, _, rest = table.uri.partition("://")
    bucket = rest.partition("/")[0]
    inside = base.strip("/")
    start = "" if inside.startswith(f"{bucket}/") else f"{bucket}/"
    return f"{scheme}://{start}{inside}/{name}"


def torn_versions(table: Table) -> list[int]:
    """The versions of a branch whose manifests cannot be read."""
    return [number for number, snapshot in _opened(table) if snapshot is None]


def _versions(table: Table) -> dict[int, Version]:
    try:
        return listed(table)
    except UnexplainedError:
        if table.is_remote:
            raise  # of a network, and not of a file
        return opened(table)


def listed(table: Table) -> dict[int, Version]:
    """The versions of a branch, as the engine lists them: all or none.

    Raises:
        StorageError: a manifest is damaged, or the directory cannot be listed.
    """
    with translated(f"list the files of {table.branch}"):
        found = tracked(table.own().dataset)
    parts: dict[int, dict[str, set[str]]] = {}
    for file in found:
        kinds = parts.setdefault(file.version, {"data": set(), "index": set(), "": set()})
        kinds.get(file.kind, kinds[""]).add(located(table, file.base, file.path))
    return {
        number: Version(
            number=number,
            data=frozenset(kinds["data"]),
            indices=frozenset(kinds["index"]),
            records=frozenset(kinds[""]),
        )
        for number, kinds in parts.items()
    }


def opened(table: Table) -> dict[int, Version]:
    """The versions whose manifests can be read, one after the other, without their transactions.

    Of a branch on a local disk.
    """
    return {n: _of_manifest(table, one) for n, one in _opened(table) if one is not None}


def _opened(table: Table) -> Iterator[tuple[int, Snapshot | None]]:
    """Each version of a branch, without that whose manifest cannot be read."""
    with translated("list versions"):
        numbers = sorted(int(ref["version"]) for ref in table.latest().dataset.version_refs())
    for number in numbers:
        try:
            yield number, table.at(number)
        except (NotFoundError, MissingFileError):
            continue  # cleaned up meanwhile
        except StorageError:
            yield number, None


def _of_manifest(table: Table, snapshot: Snapshot) -> Version:
    """What one version refers to, as far as its manifest says: the engine lists all or none."""
    files = {os.fspath(path) for path in referred(snapshot.dataset, Path(table.home))}
    data = frozenset(file for file in files if "/data/" in file)
    indices = frozenset(file for file in files if "/_indices/" in file)
    return Version(
        number=snapshot.version,
        data=data,
        indices=indices,
        records=frozenset([f"{table.home}/{manifest_name(snapshot.version)}"])
        | (files - data - indices),
    )
