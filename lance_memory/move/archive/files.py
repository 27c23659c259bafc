"""An archive as files: a directory, or one .zip of it, with a manifest of all that is in it."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from lance_memory.errors import InvalidInputError, NotFoundError, StorageError, StoreFormatError
from lance_memory.files import beside, new_file, saving
from lance_memory.move.private import (
    digest,
    local_place,
    refuse_inside_a_store,
    safe_name,
    settle,
)
from lance_memory.move.signed import checksum, signed, told_in
from lance_memory.record.schema import SCHEMA_VERSION, StoreFormat
from lance_memory.wording import counted

__all__ = [
    "MANIFEST",
    "Archive",
    "ArchiveManifest",
    "ArchivedFile",
    "archive_format",
    "archive_place",
    "packed",
    "refuse_present",
]

MANIFEST = "manifest.json"
_FORMAT = "lance-memory store archive 1"
_LARGEST_MANIFEST = 64 << 20
_CHUNK = 1 << 20
_PACKED = ".zip"
_LIKE_A_FILES = re.compile(r"\.[A-Za-z][A-Za-z0-9]+")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # so that the same memories are the same bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedFile:
    """One file of an archive: its name, memories, bytes and SHA-256 in hex."""

    name: str
    memories: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveManifest:
    """What an archive says of itself.

    Attributes:
        version: of the store, that it was made from.
        branch: the line of versions.
        at: the moment that decided what is visible.
        memories: how many there are, and `states` how many in each state.
        states: state → memories.
        scope: the scope that it was kept to, "" for a level that was not given.
        filtered: whether more than the scope was asked for, so that related memories may be absent.
        embedding_model: whose vectors these are, of `dimension` numbers, compared by `metric`.
        dimension: numbers of a vector.
        metric: of the vectors.
        schema_version: of the columns.
        store_id: the store's own name, where it has one.
        files: what the archive consists of beside its manifest.
    """

    version: int
    branch: str
    at: datetime
    memories: int
    states: Mapping[str, int]
    scope: Mapping[str, str]
    filtered: bool
    embedding_model: str
    dimension: int
    metric: str
    schema_version: int
    store_id: str
    files: tuple[ArchivedFile, ...]

    def __str__(self) -> str:
        states = ", ".join(f"{n:,} {state}" for state, n in self.states.items())
        told = counted(self.memories, "memory", "memories")
        return (
            f"{told}{f' ({states})' if states else ''} of version {self.version} in "
            f"{counted(len(self.files), 'file')}, with vectors of {self.embedding_model!r}"
        )

    @property
    def format(self) -> StoreFormat:
        """Of a store that takes these memories as they are."""
        return StoreFormat(
            embedding_model=self.embedding_model, dimension=self.dimension, metric=self.metric
        )

    @property
    def checksum(self) -> str:
        """SHA-256 of everything that is said here, and so of all files, in hex."""
        return checksum(self._told())

    def to_json(self) -> str:
        """As the manifest's text."""
        return signed(self._told())

    def _told(self) -> dict[str, Any]:
        return {"format": _FORMAT, **asdict(self), "at": self.at.isoformat()}

    @classmethod
    def from_json(cls, text: bytes, where: str) -> ArchiveManifest:
        """What `to_json` has written.

        Raises:
            StoreFormatError: it is something else, of a later release, or was changed since.
        """
        try:
            told = told_in(text, form=_FORMAT)
            del told["format"]
            files = tuple(ArchivedFile(**file) for file in told.pop("files"))
            at = datetime.fromisoformat(told.pop("at"))
            made = cls(**told, files=files, at=at)
            sound = made._sound()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StoreFormatError(
                f"{where} is no manifest of an archive, or is damaged ({error}); nothing was "
                "written: name what `lmem export-store` has made"
            ) from error
        if not sound:
            raise StoreFormatError(
                f"{where} is damaged or was changed since it was made (a name or number in it is "
                "wrong); nothing was written: use another copy"
            )
        if made.schema_version > SCHEMA_VERSION:
            raise StoreFormatError(
                f"{where} is of schema version {made.schema_version}; this release reads up to "
                f"{SCHEMA_VERSION}: upgrade lance-memory"
            )
        return made

    def _sound(self) -> bool:
        """Whether the values are of a kind that can be, and every name stays in the archive."""
        numbers = [self.version, self.memories, self.dimension, self.schema_version]
        numbers += [n for file in self.files for n in (file.memories, file.bytes)]
        names = [file.name for file in self.files]
        return (
            all(type(number) is int and number >= 0 for number in numbers)
            and all(safe_name(name) and "/" not in name and name != MANIFEST for name in names)
            and len(set(names)) == len(names)
            and sum(file.memories for file in self.files) == self.memories
            and 0 < self.dimension <= 1 << 16
            and isinstance(self.embedding_model, str)
            and self.metric == "cosine"
            and self.at.tzinfo is not None
        )


class Archive:
    """An archive that is there. Nothing is unpacked, and no link is followed.

    Raises:
        NotFoundError: nothing is at the path.
        StoreFormatError: something else is, or the manifest is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip = self._opened()
        with self.reading(MANIFEST) as file:
            text = file.read(_LARGEST_MANIFEST)
        self.manifest = ArchiveManifest.from_json(text, self.named(MANIFEST))

    def named(self, name: str) -> str:
        """A file of it, for messages."""
        return f"{self.path}:{name}" if self._zip else str(self.path / name)

    def reading(self, name: str) -> BinaryIO:
        """A file of it, to be read.

        Raises:
            StorageError: it is not there, or is a link.
        """
        path = self.path / name
        try:
            if self._zip is not None:
                return cast("BinaryIO", self._zip.open(name))
            if path.is_file() and not path.is_symlink():
                return path.open("rb")
            reason: Exception | None = None
        except (OSError, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
            reason = error
        raise StorageError(
            f"{self.named(name)} is missing, damaged or a link, so the archive is not whole; "
            "nothing was written: use another copy"
        ) from reason

    def check(self, file: ArchivedFile) -> None:
        """Read a file and compare it with the manifest.

        Raises:
            StorageError: names the file that is missing, cut short or changed.
        """
        try:
            with self.reading(file.name) as stream:
                sha256, size = digest(stream, limit=file.bytes)
        except (OSError, EOFError, zipfile.BadZipFile, ValueError) as error:
            if isinstance(error, StorageError):
                raise
            raise self.damaged(file.name, f"it cannot be read: {error}") from error
        if size != file.bytes:
            more = "more" if size > file.bytes else f"{size}"
            raise self.damaged(file.name, f"it has {more} bytes of {file.bytes}")
        if sha256 != file.sha256:
            raise self.damaged(file.name, "its SHA-256 is another")

    def damaged(self, name: str, why: str) -> StorageError:
        """The error for a file that is not what the manifest says."""
        return StorageError(
            f"{self.named(name)} is damaged: {why}; nothing was written: use another copy"
        )

    def close(self) -> None:
        """Let go of the files."""
        if self._zip is not None:
            self._zip.close()

    def _opened(self) -> zipfile.ZipFile | None:
        if self.path.is_dir():
            if not (self.path / MANIFEST).is_file():
                raise StoreFormatError(
                    f"{self.path} is no archive: it has no {MANIFEST} (or was not finished); name "
                    "what `lmem export-store` has made"
                )
            return None
        if not self.path.exists():
            raise NotFoundError(f"there is no archive at {self.path}")
        try:
            return zipfile.ZipFile(self.path)
        except (OSError, zipfile.BadZipFile, ValueError) as error:
            raise StoreFormatError(
                f"{self.path} is no archive, or is cut short or damaged ({error}); nothing was "
                "written: name what `lmem export-store` has made"
            ) from error


def archive_format(path: str | os.PathLike[str]) -> StoreFormat:
    """The format of a store that takes the archive at `path` as it is.

    Raises:
        NotFoundError, StoreFormatError: as for `Archive`.
    """
    archive = Archive(local_place(path, "an archive"))
    archive.close()
    return archive.manifest.format


def archive_place(
    path: str | os.PathLike[str], *, files: Collection[str] = (_PACKED,)
) -> tuple[Path, str]:
    """Where an archive is to be, and as which of these kinds of file; "" for a directory.

    Raises:
        InvalidInputError: it is a URI, inside a store, or ends like another kind of file.
    """
    place = local_place(path, "an archive")
    refuse_inside_a_store(place, "an archive")
    ending = place.suffix.lower()
    if ending in files:
        return place, ending
    if _LIKE_A_FILES.fullmatch(place.suffix):
        raise InvalidInputError(
            f"{place} ends like a file of another kind; an archive is a file that ends in "
            f"{' or '.join(files)}, or a directory without such an ending"
        )
    return place, ""


def refuse_present(path: Path) -> None:
    """Refuse to write where something is.

    Raises:
        InvalidInputError: a file is there, or a directory that is not empty.
    """
    if path.is_symlink() or path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise InvalidInputError(
            f"something is at {path} already; nothing was written: name another place"
        )


def packed(directory: Path, path: Path, ending: str) -> None:
    """Put a finished directory at `path`: as it is, or as one .zip; see `archive_place`.

    Raises:
        StorageError: it cannot be written; nothing is left of it.
    """
    with saving(f"write {path}"):
        if ending != _PACKED:
            settle(directory, path)
            return
        with beside(path) as folder:
            whole = folder / "whole.zip"
            with new_file(whole) as file, zipfile.ZipFile(file, "w", allowZip64=True) as made:
                for name in _in_order(directory):
                    member = zipfile.ZipInfo(name, date_time=_EPOCH)
                    member.external_attr = 0o600 << 16
                    with (
                        (directory / name).open("rb") as source,
                        made.open(member, "w", force_zip64=True) as target,
                    ):
                        shutil.copyfileobj(cast("IO[bytes]", source), target, _CHUNK)
            with whole.open("rb") as file:
                os.fsync(file.fileno())
            settle(whole, path)


def _in_order(directory: Path) -> Iterator[str]:
    names = sorted(path.name for path in directory.iterdir())
    yield from (name for name in names if name != MANIFEST)
    yield MANIFEST
