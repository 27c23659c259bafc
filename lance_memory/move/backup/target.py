"""Backups of one store in a directory: files by their checksum, and a manifest for each backup.

    TARGET/files/ab/ab12...      every content once, by its SHA-256, whatever files had it
    TARGET/backups/NAME.json     which files a backup has, by their checksums
    TARGET/lock

A backup is there when its manifest is; a manifest is written last and never changed.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from lance_memory.errors import NotFoundError, StorageError, StoreFormatError
from lance_memory.files import write_whole
from lance_memory.move.private import copied, make_private, safe_name, saving
from lance_memory.record.times import parse_instant, utc
from lance_memory.storage.lock import held

__all__ = ["Backup", "BackupFiles", "DamagedFile", "Stored", "Target"]

_FORMAT = "lance-memory backup 1"
_HEX = re.compile("[0-9a-f]{64}")
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}Z")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """One backup: a store as it was at a moment, its history included.

    Attributes:
        name: its own, which begins with its time.
        made_at: when.
        uri: the store's.
        store_id: the store's own name; "" for one of schema 1.
        version: the newest.
        memories: rows of the newest version.
        files: how many it has.
        bytes: of all its files, also those that other backups have too.
    """

    name: str
    made_at: datetime
    uri: str
    store_id: str
    version: int
    memories: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedFile:
    """A file of the target that is not what it was, and whom it concerns.

    Attributes:
        file: in the target.
        reason: what is wrong with it.
        paths: what it is in the store, at most ten.
        backups: the backups that need it.
    """

    file: str
    reason: str
    paths: tuple[str, ...]
    backups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A content: its SHA-256 in hex, and its bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFiles:
    """A backup's manifest.

    Attributes:
        backup: what is told of it.
        files: path from the store's directory on → content.
        bases: directories by which versions name each other's → where these are, from the store's
            directory on.
    """

    backup: Backup
    files: Mapping[str, Stored]
    bases: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """As the manifest's text."""
        told = {
            "format": _FORMAT,
            "backup": {**asdict(self.backup), "made_at": self.backup.made_at.isoformat()},
            "files": {name: [one.sha256, one.size] for name, one in sorted(self.files.items())},
            "bases": dict(self.bases),
        }
        return json.dumps({**told, "checksum": _checksum(told)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: bytes, where: str) -> BackupFiles:
        """What `to_json` has written.

        Raises:
            StorageError: it is damaged, or names files outside the store.
        """
        try:
            told = json.loads(text)
            checksum = told.pop("checksum")
            said = told["backup"]
            backup = Backup(**{**said, "made_at": parse_instant(said["made_at"], "made_at")})
            files = {name: Stored(sha256=s, size=n) for name, (s, n) in told["files"].items()}
            bases = dict(told["bases"])
            sound = (
                (told["format"], checksum) == (_FORMAT, _checksum(told))
                and all(safe_name(name) for name in (*files, *bases.values()))
                and all(_sound(one) for one in files.values())
                and _NAME.fullmatch(backup.name)
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StorageError(
                f"{where} is damaged, or no manifest of a backup: {error}"
            ) from error
        if not sound:
            raise StorageError(
                f"{where} is damaged, or was changed since it was made: its checksum, or a name or "
                "number in it, is wrong"
            )
        return cls(backup=backup, files=files, bases=bases)


class Target:
    """The directory of backups; nothing is written outside of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files = path / "files"
        self._backups = path / "backups"

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
            make_private(self._backups)
            make_private(self._files)

    @contextmanager
    def alone(self, *, reading: bool = False) -> Iterator[None]:
        """Nobody else backs up, restores or rotates meanwhile.

        Raises:
            ConflictError: somebody does.
        """
        with ExitStack() as stack:
            with suppress(*([StorageError] if reading else [])):  # a medium that is only read
                stack.enter_context(held(self.path / "lock", wait=0.0))
                (self.path / "lock").chmod(0o600)
            yield

    # -- manifests ------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The backups, oldest first.

        Raises:
            NotFoundError: no backups are kept there.
        """
        if not self._backups.is_dir():
            raise NotFoundError(f"there are no backups at {self.path}; `lmem backup` makes one")
        return sorted(p.stem for p in self._backups.glob("*.json") if _NAME.fullmatch(p.stem))

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

    def all(self) -> list[BackupFiles]:
        """Every manifest, oldest first.

        Raises:
            StorageError: one is damaged.
        """
        return [self.read(name) for name in self.names()]

    def add(self, made: BackupFiles) -> None:
        """Put a manifest there: from now on there is the backup."""
        path = self._manifest(made.backup.name)
        with saving(f"write {path}"):
            write_whole(path, made.to_json())
            path.chmod(0o600)

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
        """The newest backup, the one of that name (or beginning of one), or the newest by a moment.

        Raises:
            NotFoundError: there is none.
        """
        names = self.names()
        if isinstance(at, datetime):
            until = _name_of(at)
            fitting = [name for name in names if name <= until]
        else:
            fitting = names if at is None else [n for n in names if n.startswith(at)]
            if at is not None and at not in fitting and len(fitting) > 1:
                fitting = []
        if not fitting:
            raise NotFoundError(
                f"no one backup at {self.path} is {at or 'there'}; there are: "
                f"{', '.join(names) or 'none'}"
            )
        return self.read(fitting[-1])

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
            digest, size = copied(source, fresh)
            one = Stored(sha256=digest, size=size)
            if self.holds(one) and digest not in replacing:
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
        digest, size = hashlib.sha256(), 0
        try:
            with self.reading(one) as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    size += len(chunk)
        except OSError as error:  # StorageError too
            return str(error)
        if size != one.size:
            return f"it has {size} bytes of {one.size}"
        return "" if digest.hexdigest() == one.sha256 else "its SHA-256 is another"

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


def _sound(one: Stored) -> bool:
    number = type(one.size) is int and one.size >= 0
    return number and isinstance(one.sha256, str) and _HEX.fullmatch(one.sha256) is not None


def _checksum(told: Mapping[str, Any]) -> str:
    text = json.dumps(told, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
