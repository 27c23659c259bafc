"""Backups of one store in a directory: files by their checksum, and a manifest for each backup.

    TARGET/files/ab/ab12...      every content once, by its SHA-256, whatever files had it
    TARGET/backups/NAME.json     which files a backup has, by their checksums
    TARGET/lock

A backup is there when its manifest is; a manifest is written last and never changed.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from lance_memory.errors import (
    InvalidInputError,
    NotFoundError,
    StorageError,
    StoreFormatError,
)
from lance_memory.files import BACKUPS, CONTENTS, make_private, saving, to_disk, write_whole
from lance_memory.move.backup.manifest import NAME, BackupFiles, DamagedFile, Manifests, Stored
from lance_memory.move.private import copied, digest
from lance_memory.record.times import utc
from lance_memory.storage.lock import held

__all__ = ["Target"]


class Target:
    """The directory of backups; nothing is written outside of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files = path / CONTENTS
        self._backups = path / BACKUPS

    def make(self) -> None:
        """Make the directories.

        Raises:
            StoreFormatError: something else is there.
            StorageError: it cannot be written to.
        """
        if self.path.is_file() or (
            self.path.is_dir() and not self._backups.is_dir() and any(self.path.iterdir())
        ):
            raise StoreFormatError(
                f"{self.path} holds other things and no backups; name an empty or a new directory"
            )
        with saving(f"make {self.path}"):
            for directory in (self.path, self._backups, self._files):
                make_private(directory)

    @contextmanager
    def alone(self, *, reading: bool = False) -> Iterator[None]:
        """Nobody else backs up, restores or rotates meanwhile. Reading makes nothing.

        Raises:
            ConflictError: somebody does.
            NotFoundError: no backups are kept there, to be read.
        """
        lock = self.path / "lock"
        with ExitStack() as stack:
            if not reading:
                stack.enter_context(held(lock, wait=0.0))
                lock.chmod(0o600)
            elif self.names() and lock.is_file():  # else a copy, where nobody has backed up yet
                with suppress(StorageError):  # a medium that is only read
                    stack.enter_context(held(lock, wait=0.0))
            yield

    # -- manifests ------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The backups, by the times in their names.

        Raises:
            NotFoundError: no backups are kept there.
        """
        if not self._backups.is_dir():
            raise NotFoundError(f"there are no backups at {self.path}; `lmem backup` makes one")
        return sorted(p.stem for p in self._backups.glob("*.json") if NAME.fullmatch(p.stem))

    def read(self, name: str) -> BackupFiles:
        """A backup's manifest.

        Raises:
            StorageError: it is damaged.
        """
        path = self._manifest(name)
        with saving(f"read {path}"):
            found = BackupFiles.from_json(path.read_bytes(), str(path))
        if found.backup.name != name:
            raise StorageError(f"{path} is the manifest of {found.backup.name}, renamed")
        return found

    def all(self) -> Manifests:
        """Every manifest.

        Raises:
            NotFoundError: no backups are kept there.
        """
        sound: list[BackupFiles] = []
        damaged: list[DamagedFile] = []
        for name in self.names():
            try:
                sound.append(self.read(name))
            except StorageError as error:
                file = self._manifest(name).relative_to(self.path).as_posix()
                damaged.append(DamagedFile(file=file, reason=str(error), paths=(), backups=(name,)))
        sound.sort(key=lambda made: (made.backup.sequence, made.backup.name))
        return Manifests(sound=tuple(sound), damaged=tuple(damaged))

    def add(self, made: BackupFiles) -> None:
        """Put a manifest there: from now on there is the backup, whatever becomes of the power."""
        path = self._manifest(made.backup.name)
        folders = {self._content(one).parent for one in made.files.values()}
        with saving(f"write {path}"):
            for folder in (*sorted(folders), self._files, self.path, self.path.parent):
                to_disk(folder)  # the names of the contents, which are on the disk themselves
            write_whole(path, made.to_json())
            path.chmod(0o600)
            to_disk(path.parent)

    def drop(self, name: str) -> None:
        """Remove a manifest; its files go with `sweep`."""
        with saving(f"remove the backup {name}"):
            self._manifest(name).unlink()

    def free_name(self, at: datetime) -> str:
        """A name that begins with this time."""
        while True:
            name = _name_of(at)
            if not self._manifest(name).exists():
                return name
            at += timedelta(microseconds=1)

    def chosen(self, at: str | datetime | None) -> BackupFiles:
        """The last backup, the one of that name (or beginning of one), or the last by a moment.

        Raises:
            NotFoundError: there is none, or several have such names.
            InvalidInputError: `at` is something else.
            StorageError: the manifest of the one that is named is damaged.
        """
        if isinstance(at, str):
            return self.read(self._named(at))
        if not (at is None or isinstance(at, datetime)):
            raise InvalidInputError(f"at={at!r:.120}; it takes the name of a backup, or a datetime")
        until = None if at is None else utc(at, "at")
        found = self.all()
        fitting = [one for one in found.sound if until is None or one.backup.made_at <= until]
        if not fitting and found.damaged:
            raise StorageError(found.damaged[-1].reason)
        if not fitting:
            by = "" if until is None else f" from before {until.isoformat()}"
            raise NotFoundError(f"there is no backup{by} at {self.path}; {self._told()}")
        return fitting[-1]

    def _named(self, start: str) -> str:
        """The one name that is, or begins with, these letters."""
        names = self.names()
        fitting = [start] if start in names else [n for n in names if n.startswith(start)]
        if len(fitting) != 1:
            found = "several backups have names" if fitting else "no backup has a name"
            raise NotFoundError(
                f"{found} that begin{'' if fitting else 's'} with {start!r}; {self._told()}"
            )
        return fitting[0]

    def _told(self) -> str:
        return f"there are: {', '.join(self.names()) or 'none'}"

    # -- files ----------------------------------------------------------------------------

    def holds(self, one: Stored) -> bool:
        """Whether there is a file of this content's name and size."""
        path = self._content(one)
        return path.is_file() and not path.is_symlink() and path.stat().st_size == one.size

    def keep(self, source: BinaryIO, *, replacing: Collection[str] = ()) -> tuple[Stored, bool]:
        """Copy a stream, unless its content is there: which it is, and whether it was new.

        Contents whose SHA-256 is in `replacing` are damaged here, and are written anew.
        """
        fresh = self._files / f".{secrets.token_hex(8)}.new"
        try:
            sha256, size = copied(source, fresh)
            one = Stored(sha256=sha256, size=size)
            if self.holds(one) and sha256 not in replacing:
                return one, False
            path = self._content(one)
            make_private(path.parent)
            fresh.replace(path)
            return one, True
        finally:
            fresh.unlink(missing_ok=True)

    @contextmanager
    def reading(self, one: Stored) -> Iterator[BinaryIO]:
        """A content, to be read."""
        path = self._content(one)
        if path.is_symlink() or not path.is_file():
            raise StorageError(f"{path} is missing, or a link")
        with path.open("rb") as file:
            yield file

    def wrong(self, one: Stored) -> str:
        """What is wrong with a content; "" if it is what it was."""
        try:
            with self.reading(one) as file:
                sha256, size = digest(file)
        except OSError as error:  # StorageError too
            return str(error)
        if size != one.size:
            return f"it has {size} bytes of {one.size}"
        return "" if sha256 == one.sha256 else "its SHA-256 is another"

    def path_of(self, one: Stored) -> str:
        """A content's file, from the target on."""
        return self._content(one).relative_to(self.path).as_posix()

    def unreferenced(self, manifests: Collection[BackupFiles]) -> dict[str, Path]:
        """SHA-256 → file of the contents that no backup has."""
        used = {one.sha256 for made in manifests for one in made.files.values()}
        found = (path for path in self._files.rglob("*") if path.is_file())
        return {path.name: path for path in found if path.name not in used}

    def sweep(self, manifests: Collection[BackupFiles]) -> int:
        """Remove the contents that no backup has; how many bytes."""
        freed = 0
        with saving(f"remove files of {self.path}"):
            for path in self.unreferenced(manifests).values():
                freed += path.stat().st_size
                path.unlink()
        return freed

    def _manifest(self, name: str) -> Path:
        return self._backups / f"{name}.json"

    def _content(self, one: Stored) -> Path:
        return self._files / one.sha256[:2] / one.sha256


def _name_of(at: datetime) -> str:
    return utc(at, "at").strftime("%Y-%m-%dT%H-%M-%S.%fZ")
