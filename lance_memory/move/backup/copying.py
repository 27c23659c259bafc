"""A store's files, its history included, as they were at one moment.

Lance's files never change, and each has a name of its own, so a backup copies those that no earlier
one has. Writers go on meanwhile. The newest version of each line is kept from clean-up; where an
older one is cleaned up between the look and the copy, the backup is without it.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Collection, Container, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO
from urllib.parse import unquote

from lance_memory.errors import InvalidInputError, NotFoundError, StorageError
from lance_memory.move.backup.manifest import Backup, BackupFiles, Manifests, Stored
from lance_memory.move.backup.target import Target
from lance_memory.move.private import digest
from lance_memory.storage import Table
from lance_memory.storage.disk.manifest import bases_of
from lance_memory.storage.files.beside import files_of_side_table, loose_files, side_tables
from lance_memory.storage.files.inventory import VersionOf, manifest_of, take_stock
from lance_memory.storage.files.lines import lines_of, located
from lance_memory.storage.naming import HOLD, all_branches, holding
from lance_memory.storage.opening import TABLE_NAME
from lance_memory.storage.place import Place

__all__ = ["Copying"]

_ATTEMPTS = 8
_REFS = f"{TABLE_NAME}/_refs"
_TRANSACTIONS = "/_transactions/"


@dataclass(slots=True)
class Copying:
    """One backup on its way.

    Attributes:
        earlier: the backups that there are.
        bad: SHA-256 of contents that are damaged in the target.
        fresh: contents that the target did not have.
        left_out: versions that cannot be had; manifests that are damaged; lost transactions.
    """

    table: Table
    target: Target
    earlier: Manifests
    bad: set[str]
    fresh: dict[Stored, None] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    place: Place = field(init=False)
    known: dict[str, Stored] = field(init=False)
    waiting: Collection[str] = field(init=False)
    bases: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.table = self.table.on_branch("main")
        self.place = self.table.place
        self.known = {n: one for made in self.earlier.sound for n, one in made.files.items()}
        # What an interrupted backup has copied; its contents are there, and no manifest says where.
        self.waiting = self.target.unreferenced(self.earlier.sound).keys()

    def made(self, now: datetime) -> BackupFiles:
        """Copy everything; the manifest of it."""
        with ExitStack() as held:
            lines = ["main", *(one.name for one in all_branches(self.table))]
            newest = {name: self.table.on_branch(name).latest() for name in lines}
            for name, snapshot in newest.items():
                line = self.table.on_branch(name)
                held.enter_context(holding(line, snapshot.version))
            files, versions = self._history({n: one.version for n, one in newest.items()})
        if ("main", newest["main"].version) not in versions:
            raise StorageError(
                f"the newest version of {self.table.uri} cannot be copied: a file of it is missing "
                "or damaged; `lmem doctor` says which"
            )
        files.update(self._refs(versions))
        for name in side_tables(self.place):
            files.update(self._side_table(name))
        for name in loose_files(self.place):
            files.update(self._if_there(name))
        return BackupFiles(
            backup=Backup(
                name=self.target.free_name(now),
                made_at=now,
                sequence=self.earlier.next,
                uri=self.table.uri,
                store_id=self.table.format.store_id,
                version=newest["main"].version,
                memories=newest["main"].count(),
                files=len(files),
                bytes=sum(one.size for one in files.values()),
            ),
            files=files,
            bases=self.bases,
        )

    def _history(self, newest: Mapping[str, int]) -> tuple[dict[str, Stored], set[VersionOf]]:
        """The files of the versions of every line up to these, and the versions that are whole."""
        stock = take_stock(self.table)
        versions = {
            version: needs
            for version, needs in stock.versions.items()
            if version[1] <= newest.get(version[0], 0)  # what came since is another moment's
        }
        shared = self._shared(versions, stock.present)
        files: dict[str, Stored] = {}
        gone: set[str] = set()
        for path in sorted(shared.union(*versions.values())):
            try:
                size = stock.present[path].size if path in stock.present else None
                files[path] = self._copied(path, size=size)
            except NotFoundError:
                gone.add(path)
        unneeded = {path for path in gone if _TRANSACTIONS in path}  # each manifest has a copy
        whole = {v for v, needs in versions.items() if not needs & gone - unneeded}
        self.left_out = {f"{b}:{n}" for b, n in versions.keys() - whole} | {*stock.damaged}
        needed = shared.union(*(versions[version] for version in whole))
        self.left_out |= needed & unneeded
        return {path: one for path, one in files.items() if path in needed}, whole

    def _shared(self, versions: Collection[VersionOf], present: Container[str]) -> set[str]:
        """Note where versions share files, and find those that a copied store has here after all.

        A branch names its parent's directory by its absolute path, and goes on doing so when the
        store is copied. What it reads there lies here too, under the same names.

        Raises:
            InvalidInputError: it does not: the directory is another store's.
        """
        shared: set[str] = set()
        for branch, number in sorted(versions):
            try:
                bases = bases_of(self.place.read(manifest_of(branch, number)))
            except NotFoundError:  # cleaned up meanwhile
                continue
            for base in bases:
                if base not in self.bases:
                    self.bases[base], copies = self._inside(base, present)
                    shared |= copies
        return shared

    def _inside(self, base: str, present: Container[str]) -> tuple[str, set[str]]:
        """A directory that versions share, from the store's on; the files of a copied one."""
        inner = f"{TABLE_NAME}{base.rpartition(f'/{TABLE_NAME}')[2]}"
        own = self._own(base, inner)
        names = set() if own else self._read_from(base)
        copies = {f"{inner}/{name}" for name in names}
        if own or (copies and all(path in present for path in copies)):
            return inner, copies
        raise InvalidInputError(
            f"{self.table.uri} was checked out of another store and reads files of {base}, which a "
            "backup would not have; copy what it holds with export_store instead"
        )

    def _own(self, base: str, inner: str) -> bool:
        if self.place.local is None:
            return located(self.table, base, "") == f"{self.place.uri}/{inner}/"
        place = self.place.local / inner
        return os.path.realpath(base.removeprefix("file://")) == os.path.realpath(place)

    def _read_from(self, base: str) -> set[str]:
        """What versions read of a directory, from there on."""
        files = {
            file
            for line in lines_of(self.table).values()
            for version in line.versions.values()
            for file in version.files
        }
        start = located(self.table, base, "")
        return {file.removeprefix(start) for file in files if file.startswith(start)}

    def _refs(self, versions: Collection[VersionOf]) -> dict[str, Stored]:
        """The tags and branches of what is in the backup, but for holds."""
        found: dict[str, Stored] = {}
        lines = {branch for branch, _ in versions}
        for path in self.place.names(_REFS):
            name = path.rpartition("/")[2]
            if not name.endswith(".json") or name.startswith(HOLD):
                continue
            try:
                content = self.place.read(path)
            except NotFoundError:  # removed meanwhile
                continue
            told = json.loads(content)
            tag = path.startswith(f"{_REFS}/tags/")
            at = (told.get("branch") or "main", told.get("version"))
            if at in versions if tag else _branch_named(name, lines):
                found[path] = self._kept(content)
        return found

    def _side_table(self, name: str) -> dict[str, Stored]:
        """The files of a table beside the memories, all of one version of it."""
        for _ in range(_ATTEMPTS):
            try:
                paths = files_of_side_table(self.table, name)
                return {path: self._copied(path, size=None) for path in sorted(paths)}
            except NotFoundError:
                if name not in side_tables(self.place):
                    return {}
            except StorageError:
                continue  # its manifests were removed while they were listed
        raise StorageError(
            f"{self.table.uri}/{name} cannot be copied: it was compacted {_ATTEMPTS} times "
            "meanwhile, or is damaged; `lmem doctor` says which"
        )

    def _if_there(self, name: str) -> dict[str, Stored]:
        try:
            return {name: self._kept(self.place.read(name))}
        except NotFoundError:
            return {}

    def _copied(self, path: str, *, size: int | None) -> Stored:
        """A file's content, in the target: copied, unless an earlier backup has the file.

        Manifests are read in any case: after a restore their names are used again.
        """
        known = self.known.get(path)
        named_once = "/_versions/" not in path
        if known is not None and named_once and size in (None, known.size):
            sound = self.target.holds(known) and known.sha256 not in self.bad
            if sound:
                return known
        with self.place.reading(path) as file:
            if self.waiting and (found := self._waiting(file)):
                return found
            file.seek(0)
            return self._taken(*self.target.keep(file, replacing=self.bad))

    def _waiting(self, file: BinaryIO) -> Stored | None:
        """The content, if an interrupted backup has copied it."""
        sha256, size = digest(file)
        one = Stored(sha256=sha256, size=size)
        if sha256 not in self.waiting:
            return None
        if self.target.wrong(one):
            self.bad.add(sha256)
            return None
        return one

    def _kept(self, content: bytes) -> Stored:
        return self._taken(*self.target.keep(io.BytesIO(content), replacing=self.bad))

    def _taken(self, one: Stored, new: bool) -> Stored:  # noqa: FBT001 (what `keep` answers)
        if new:
            self.fresh[one] = None
        return one


def _branch_named(file: str, lines: Collection[str]) -> bool:
    """Whether it is the file of one of these branches."""
    return unquote(file.removesuffix(".json")) in lines
