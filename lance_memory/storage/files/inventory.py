"""The files of a store: which there are, which versions refer to them, and which nobody does."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lance_memory.errors import LanceMemoryError
from lance_memory.storage import history, naming
from lance_memory.storage.files.lines import StoredFile, Version, listed, opened, stored_files
from lance_memory.storage.files.readable import manifest_name
from lance_memory.storage.opening import TABLE_NAME

if TYPE_CHECKING:
    from lance_memory.storage.table import Table

__all__ = ["Inventory", "VersionOf", "manifest_of", "take_stock"]

VersionOf = tuple[str, int]
"""A branch and a version of it."""

_OF_THE_TABLE = ("_refs/", "_versions/latest_version_hint.json")


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """What lies in the table's directory, and what every version of every branch refers to.

    Attributes:
        present: the files that there are, by path.
        versions: what each version refers to, files of this store alone: a checkout's are partly
            another's.
        damaged: manifests that cannot be read, with what the engine says. While there is one,
            nobody knows what its version refers to, and transactions are not among `versions`.
    """

    present: Mapping[str, StoredFile]
    versions: Mapping[VersionOf, frozenset[str]]
    damaged: Mapping[str, str]

    @cached_property
    def referring(self) -> dict[str, list[VersionOf]]:
        """File → the versions that refer to it, in order."""
        found: dict[str, list[VersionOf]] = {}
        for version in sorted(self.versions):
            for path in self.versions[version]:
                found.setdefault(path, []).append(version)
        return found

    @cached_property
    def missing(self) -> list[str]:
        """Files that a version refers to and that are not there."""
        return sorted(path for path in self.referring if path not in self.present)

    @cached_property
    def orphans(self) -> list[StoredFile]:
        """Files that no version refers to: of killed writers, of changes that were only tried."""
        return [
            file
            for path, file in sorted(self.present.items())
            if path not in self.referring and not _belongs(path)
        ]

    def bytes_of(self, version: VersionOf) -> tuple[int, int]:
        """What a version takes on the disk: in all, and in files that no other version has."""
        sizes = {p: self.present[p].size for p in self.versions[version] if p in self.present}
        own = [size for path, size in sizes.items() if len(self.referring[path]) == 1]
        return sum(sizes.values()), sum(own)


def take_stock(table: Table) -> Inventory:
    """List the files of all branches. Reads every manifest, and nothing else.

    Raises:
        StorageError: the directory cannot be listed.
    """
    present = {file.name: file for file in stored_files(table)}
    versions: dict[VersionOf, frozenset[str]] = {}
    damaged: dict[str, str] = {}
    for branch in ["main", *(one.name for one in naming.all_branches(table))]:
        try:
            line = table.on_branch(branch)
            versions.update(_of_this_store(line, listed(line)))
        except LanceMemoryError as error:
            damaged.update(_damaged(table, branch, error))
            versions.update(_as_far_as_can_be_read(table, branch))
    return Inventory(present=present, versions=versions, damaged=damaged)


def manifest_of(branch: str, version: int) -> str:
    """The path of a version's manifest, from the store's directory on."""
    tree = "" if branch == "main" else f"tree/{branch}/"
    return f"{TABLE_NAME}/{tree}{manifest_name(version)}"


def _of_this_store(line: Table, found: Mapping[int, Version]) -> dict[VersionOf, frozenset[str]]:
    """Of each version of a branch the files that are this store's."""
    home = f"{line.uri.rstrip('/')}/"
    return {
        (line.branch, number): frozenset(
            file.removeprefix(home) for file in version.files if file.startswith(home)
        )
        for number, version in found.items()
    }


def _as_far_as_can_be_read(table: Table, branch: str) -> dict[VersionOf, frozenset[str]]:
    """The versions beside the damaged ones; they are whole all the same."""
    with suppress(LanceMemoryError):
        line = table.on_branch(branch)
        if not line.is_remote:
            return _of_this_store(line, opened(line))
    return {}


def _damaged(table: Table, branch: str, error: LanceMemoryError) -> dict[str, str]:
    """Which of a branch's manifests cannot be read; the branch itself, if none of them."""
    found: dict[str, str] = {}
    try:
        line = table.on_branch(branch)
        numbers = history.versions(line)
    except LanceMemoryError:
        return {f"{TABLE_NAME}/tree/{branch}": str(error)}
    for number in numbers:
        try:
            history.entry(line, number)
        except LanceMemoryError as reason:
            found[manifest_of(branch, number)] = str(reason)
    return found or {manifest_of(branch, numbers[-1]): str(error)}


def _belongs(path: str) -> bool:
    """Whether it is the table's own, or a manifest, which is a version by itself."""
    inside = path.removeprefix(f"{TABLE_NAME}/")
    name = inside.rpartition("/")[2]
    numbered = name.endswith(".manifest") and not name.startswith("d")
    return numbered or any(part in inside for part in _OF_THE_TABLE)
