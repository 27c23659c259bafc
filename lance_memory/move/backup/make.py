"""backup: a store's files, its history included, as they were at one moment.

Lance's files never change, and each has a name of its own, so a backup copies those that no earlier
one has. Writers go on meanwhile. The newest version of each line is kept from clean-up; where an
older one is cleaned up between the look and the copy, the backup is without it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Collection, Container, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from lance_memory.errors import ConflictError, InvalidInputError, NotFoundError, StorageError
from lance_memory.move.archive.export import kept_readable
from lance_memory.move.backup.target import Backup, BackupFiles, DamagedFile, Stored, Target
from lance_memory.move.private import local_place
from lance_memory.storage import Table
from lance_memory.storage.disk.manifest import bases_of
from lance_memory.storage.files.inventory import VersionOf, manifest_of, take_stock
from lance_memory.storage.files.lines import lines_of, located
from lance_memory.storage.files.side_tables import files_of_side_table, loose_files, side_tables
from lance_memory.storage.history import HOLD, all_branches
from lance_memory.storage.place import Place
from lance_memory.storage.table import TABLE_NAME
from lance_memory.storage.upkeep.retain import Retain, to_clean

__all__ = ["BackupResult", "back_up", "surplus", "verified"]

_ATTEMPTS = 8
_CHUNK = 1 << 20
_REFS = f"{TABLE_NAME}/_refs"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupResult:
    """A backup that was made, and what it took.

    Attributes:
        target: the directory of the backups, absolute.
        backup: what was made.
        copied: how many files the target did not have.
        copied_bytes: of those.
        removed: names of the backups that were let go.
        removed_bytes: of the files that no backup needs any more.
        left_out: versions that were cleaned up while they were copied, as "branch:version"; and
            manifests of versions that are damaged, by file.
        damaged: what `verify` found wrong with the target, and the store could not mend.
    """

    target: str
    backup: Backup
    copied: int
    copied_bytes: int
    removed: tuple[str, ...]
    removed_bytes: int
    left_out: tuple[str, ...]
    damaged: tuple[DamagedFile, ...]


def back_up(
    table: Table, path: str | os.PathLike[str], *, now: datetime, keep: Retain | None, verify: bool
) -> BackupResult:
    """Add a backup to `path`; see `Maintenance.backup`."""
    path = local_place(path, "a backup")
    _refuse_own_directory(table, path)
    target = Target(path)
    target.make()
    with target.alone():
        earlier = target.all()
        _refuse_other_store(table, earlier, path)
        damaged = verified(target, earlier) if verify else []
        copying = _Copying(table, target, earlier, bad={_sha(one.file) for one in damaged})
        made = copying.made(now)
        target.add(made)
        manifests = [*earlier, made]
        removed = _rotated(target, manifests, keep, now=now)
        left = [one for one in manifests if one.backup.name not in removed]
        freed = target.sweep(left)
        checked = _unmended(target, left, damaged, copying.fresh) if verify else []
    return BackupResult(
        target=str(path),
        backup=made.backup,
        copied=len(copying.fresh),
        copied_bytes=sum(one.size for one in copying.fresh),
        removed=tuple(removed),
        removed_bytes=freed,
        left_out=tuple(sorted(copying.left_out)),
        damaged=tuple(checked),
    )


def verified(target: Target, manifests: Collection[BackupFiles]) -> list[DamagedFile]:
    """Read every file of these backups, and say which are not what they were."""
    wanted = dict.fromkeys(one for made in manifests for one in made.files.values())
    return _damaged(target, manifests, wanted)


def _damaged(
    target: Target, manifests: Collection[BackupFiles], wanted: Collection[Stored]
) -> list[DamagedFile]:
    wrong = {one: reason for one in wanted if (reason := target.wrong(one))}
    found = []
    for one, reason in wrong.items():
        having = [made for made in manifests if one in made.files.values()]
        paths = {p for made in having for p, content in made.files.items() if content == one}
        found.append(
            DamagedFile(
                file=target.path_of(one),
                reason=reason,
                paths=tuple(sorted(paths)[:10]),
                backups=tuple(made.backup.name for made in having),
            )
        )
    return found


def _unmended(
    target: Target,
    manifests: Collection[BackupFiles],
    damaged: Collection[DamagedFile],
    fresh: Collection[Stored],
) -> list[DamagedFile]:
    """Of what was damaged or is new, what does not read back right."""
    before = {_sha(one.file) for one in damaged}
    contents = dict.fromkeys(one for made in manifests for one in made.files.values())
    suspects = [one for one in contents if one.sha256 in before or one in fresh]
    return _damaged(target, manifests, suspects)


def _sha(file: str) -> str:
    return file.rpartition("/")[2]


def _refuse_own_directory(table: Table, path: Path) -> None:
    inside = "://" not in table.uri and Path(table.uri) in (path, *path.parents)
    if inside:
        raise InvalidInputError(
            f"{path} is inside the store; backups of a store lie elsewhere, best on another disk"
        )


def _refuse_other_store(table: Table, earlier: Collection[BackupFiles], path: Path) -> None:
    """One target has the backups of one store.

    Raises:
        ConflictError: these are another's.
    """
    for made in earlier:
        known, own = made.backup.store_id, table.format.store_id
        same = known == own if known and own else made.backup.uri == table.uri
        if not same:
            raise ConflictError(
                f"{path} has the backups of another store ({made.backup.uri}); nothing was "
                f"written: name another directory for those of {table.uri}"
            )


def surplus(made_at: Sequence[datetime], keep: Retain, *, now: datetime) -> list[int]:
    """Positions of the backups that are not to be kept; the last one, the newest, always is."""
    newest = len(made_at) - 1
    return to_clean(dict(enumerate(made_at)), keep, now=now, pinned=[newest])


def _rotated(
    target: Target, manifests: list[BackupFiles], keep: Retain | None, *, now: datetime
) -> list[str]:
    """Remove the backups that are not to be kept."""
    if keep is None:
        return []
    gone = surplus([made.backup.made_at for made in manifests], keep, now=now)
    names = [manifests[i].backup.name for i in gone]
    for name in names:
        target.drop(name)
    return names


@dataclass(slots=True)
class _Copying:
    """One backup on its way.

    Attributes:
        bad: SHA-256 of contents that are damaged in the target.
        fresh: contents that the target did not have.
        left_out: versions that cannot be had; manifests that are damaged.
    """

    table: Table
    target: Target
    earlier: Collection[BackupFiles]
    bad: Collection[str]
    fresh: dict[Stored, None] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    place: Place = field(init=False)
    known: dict[str, Stored] = field(init=False)
    waiting: Collection[str] = field(init=False)
    bases: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.table = self.table.on_branch("main")
        options = self.table.storage_options
        self.place = Place(self.table.uri, storage_options=options)
        self.known = {n: one for made in self.earlier for n, one in made.files.items()}
        # What an interrupted backup has copied; its contents are there, and no manifest says where.
        self.waiting = self.target.unreferenced(self.earlier).keys()

    def made(self, now: datetime) -> BackupFiles:
        """Copy everything; the manifest of it."""
        with ExitStack() as held:
            lines = ["main", *(one.name for one in all_branches(self.table))]
            newest = {name: self.table.on_branch(name).latest() for name in lines}
            for name, snapshot in newest.items():
                line = self.table.on_branch(name)
                held.enter_context(kept_readable(line, snapshot.version))
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
        whole = {version for version, needs in versions.items() if not needs & gone}
        self.left_out = {f"{b}:{n}" for b, n in versions.keys() - whole} | {*stock.damaged}
        needed = shared.union(*(versions[version] for version in whole))
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
        digest, size = hashlib.sha256(), 0
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
        one = Stored(sha256=digest.hexdigest(), size=size)
        return one if one.sha256 in self.waiting and self.target.holds(one) else None

    def _kept(self, content: bytes) -> Stored:
        return self._taken(*self.target.keep(io.BytesIO(content), replacing=self.bad))

    def _taken(self, one: Stored, new: bool) -> Stored:  # noqa: FBT001 (what `keep` answers)
        if new:
            self.fresh[one] = None
        return one


def _branch_named(file: str, lines: Collection[str]) -> bool:
    """Whether it is the file of one of these branches."""
    return unquote(file.removesuffix(".json")) in lines
