"""Whether a version is whole after a power cut, and the way back to the last one that is.

A power cut leaves files that were never synced empty, short, full of zeros, or away. A store whose
newest version refers to such a file is opened at the last version that does not, and says so:

- `check(snapshot)`: the torn files of one version, cheaply;
- `damage(table)`: what is wrong with the newest versions, as a value, or None;
- `torn_rows(table)`: what is wrong with the version that is read, of which nothing is given up.

Only what was written shortly before the end is a power cut's. Where an older file is damaged, going
back would give up acknowledged versions for nothing: the newest is read, and what of it can be.

Only files on a local disk are looked at: an object store keeps whole objects or none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lance_memory.errors import LanceMemoryError, NotFoundError, StorageError
from lance_memory.storage.disk.named import torn_refs
from lance_memory.storage.disk.referred import files_of_rows, place_here, segments
from lance_memory.storage.engine import lance, translated
from lance_memory.storage.files.readable import manifest_name
from lance_memory.wording import counted

if TYPE_CHECKING:
    from lance_memory.storage.snapshot import Snapshot
    from lance_memory.storage.table import Table

__all__ = [
    "Damage",
    "Look",
    "NoneOpensError",
    "Versions",
    "check",
    "damage",
    "found_torn",
    "torn_rows",
]

UNWRITTEN = timedelta(minutes=2)
"""What is written this long before a power cut is on the disk, synced or not. Linux writes out what
has waited for 30 s, and looks every 5 s (`dirty_expire_centisecs`, `dirty_writeback_centisecs`);
other systems do so sooner. The rest is for disks that are slow or busy."""

_MANIFEST = re.compile(r"(\d+)\.manifest")
_LAST = 2**64 - 1
_END = b"LANC"
_END_OF_ARROW = b"ARROW1"
_TAIL = 16
"""Bytes that a manifest ends with: where its head lies, the format's version, and four letters."""

_LOOKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """The newest versions are torn, and the store is read at the last whose rows are whole.

    `version` is the newest by name, `opened` the one that is read, `files` what is torn, as paths
    from the store's directory on. The two are one where only tags or branches are torn, or
    `indices` of a version whose rows are whole: those can be built again.
    """

    version: int
    opened: int
    files: tuple[str, ...]
    indices: tuple[str, ...] = ()

    def __str__(self) -> str:
        every = (*self.files, *self.indices)
        names = ", ".join(every[:3]) + (", ..." if len(every) > 3 else "")
        if self.opened != self.version:
            read = f"opened at version {self.opened}, because version {self.version} is torn"
        elif self.indices:
            read = f"the rows of version {self.version} are whole, but indices of it are torn"
        else:
            read = f"version {self.version} is whole, but a tag or branch is torn"
        return f"{read}: {names} ({counted(len(every), 'file')}; a power cut leaves such)"


def check(snapshot: Snapshot, home: str | None = None) -> list[str]:
    """The files of a version that are missing, short, or without their end.

    Each is looked at by its size and its last bytes, not read: some 10 µs a file. Of an index all
    parts together have to have the size that the manifest records.

    Args:
        snapshot: the version.
        home: the directory of its branch; by default that of main.

    Returns:
        Their paths, sorted.

    Raises:
        StorageError: the version cannot be read, or a file may not be.
    """
    place = snapshot.dataset.uri if home is None else home
    if "://" in place:
        return []
    home_of = Path(os.path.realpath(place))
    dataset = snapshot.dataset
    return sorted([*_torn_rows(dataset, home_of), *_torn_indices(dataset, home_of)])


def _torn_rows(dataset: lance.LanceDataset, home: Path) -> list[str]:
    with translated(f"look at the files of version {dataset.version}"):
        found = [
            path
            for path, size, fragment in files_of_rows(dataset, home)
            if not (
                _ends(path, _END, size)
                if fragment is None
                else _deletions_whole(dataset, path, fragment)
            )
        ]
    return sorted({os.fspath(path) for path in found})


def _torn_indices(dataset: lance.LanceDataset, home: Path) -> list[str]:
    found: list[Path] = []
    with translated(f"look at the indices of version {dataset.version}"):
        for folder, size in segments(dataset, home):
            parts = sorted(folder.glob("*"))
            bad = [part for part in parts if not _ends(part, _END)]
            if not bad and (not parts or size not in (None, 0, _bytes(parts))):
                bad = [folder]
            found += bad
    return sorted({os.fspath(path) for path in found})


def _bytes(files: list[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def _ends(path: Path, end: bytes, size: int | None = None) -> bool:
    """Whether a file is there, has the size that was recorded, and ends as it should."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return False
    try:
        length = os.fstat(handle).st_size
        if length < len(end) or (size and size != length):
            return False
        os.lseek(handle, length - len(end), os.SEEK_SET)
        return os.read(handle, len(end)) == end
    finally:
        os.close(handle)


def _deletions_whole(dataset: lance.LanceDataset, path: Path, fragment: int) -> bool:
    """A bitmap has no end to tell it by, so the engine reads it."""
    if path.suffix == ".arrow":
        return _ends(path, _END_OF_ARROW)
    if not path.is_file():
        return False
    try:
        with translated("read deletions"):
            dataset.get_fragment(fragment).to_table(columns=[], with_row_address=True, limit=1)
    except LanceMemoryError:
        return False
    return True


class NoneOpensError(StorageError):
    """No version has a manifest that can be read; `torn` are their numbers."""

    torn: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What there is of one branch.

    Attributes:
        dataset: the version that is to be read.
        newest: the newest by name.
        torn: those above the one that is read, newest first.
        files: what is torn of these.
        lost: files of the rows of the version that is read, which no power cut has torn.
    """

    dataset: lance.LanceDataset
    newest: int
    torn: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class Versions:
    """The versions of one branch on a local disk, found by the names of their files.

    The engine opens none where the newest is torn; by its number it opens any other. A version is
    whole if its rows are: going back for the sake of an index would give up writes that are there.
    """

    def __init__(self, home: str, at: Callable[[int | None], lance.LanceDataset]) -> None:
        self.home = Path(os.path.realpath(home))
        self._at = at

    def numbers(self) -> list[int]:
        """Newest first."""
        try:
            names = [path.name for path in (self.home / "_versions").iterdir()]
        except FileNotFoundError:
            return []
        found = (_MANIFEST.fullmatch(name) for name in names)
        return sorted((_LAST - int(name[1]) for name in found if name), reverse=True)

    def look(self) -> Look:
        """The version that is to be read, and what is torn of those above it.

        It is the newest, or the last whole one if only versions that a power cut can have torn are
        above it; see `UNWRITTEN`. Else it is the newest whose manifest can be read.

        Raises:
            NotFoundError: there is none.
            NoneOpensError: none has a manifest that can be read.
            StorageError: the directory cannot be read.
        """
        for _ in range(_LOOKS):
            with translated(f"list the versions in {self.home}"):
                numbers = self.numbers()
            if not numbers:
                return Look(dataset=self._at(None), newest=0)  # tells what is there in its place
            found = self._looked(numbers)
            if found is not None and not (found.torn or found.lost):
                return found
            with translated(f"list the versions in {self.home}"):
                moved = self.numbers()[:1] != numbers[:1]
            if moved:
                continue  # another process's clean-up took the version that was looked at
            if found is None:
                error = NoneOpensError(
                    f"no version in {self.home} can be opened: the manifests are damaged "
                    f"({manifest_name(numbers[0])}); restore the store from a backup"
                )
                error.torn = tuple(numbers)
                raise error
            return found
        raise StorageError(f"the versions in {self.home} change too fast; try again")

    def _looked(self, numbers: list[int]) -> Look | None:
        """`look`, at these versions; None: none opens."""
        torn: list[int] = []
        files: list[str] = []
        kept: Look | None = None  # the newest that opens
        newest_at: datetime | None = None
        for number in numbers:
            dataset = self._opened(number)
            bad = [manifest_name(number)] if dataset is None else _torn_rows(dataset, self.home)
            found = None if dataset is None else self._read_at(dataset, numbers, torn, files)
            if found is not None and not (bad or torn):
                return found
            made = self._made(number, dataset)
            newest_at = newest_at or made
            old = newest_at - made > UNWRITTEN
            # Versions between two that are there were cleaned up: of what age is not known.
            if kept is not None and old and (bad or torn[-1] != number + 1):
                return kept
            if found is not None and not bad:
                return found
            if found is not None and kept is None:
                kept = replace(found, lost=tuple(bad))
                if old:
                    return kept
            torn.append(number)
            files += [os.fspath(self.home / name) for name in bad]
        return kept

    @staticmethod
    def _read_at(
        dataset: lance.LanceDataset, numbers: list[int], torn: list[int], files: list[str]
    ) -> Look:
        return Look(dataset=dataset, newest=numbers[0], torn=tuple(torn), files=tuple(files))

    def _made(self, number: int, dataset: lance.LanceDataset | None) -> datetime:
        """When a version was written, as the engine says, or its file where that says nothing."""
        if dataset is not None:
            with translated(f"read version {number}"):
                stamp: datetime = dataset.get_version()["timestamp"]
            return stamp.astimezone(UTC)
        try:
            stamp = datetime.fromtimestamp((self.home / manifest_name(number)).stat().st_mtime, UTC)
        except OSError:  # away by now
            return datetime.now(UTC)
        return stamp

    def _opened(self, number: int) -> lance.LanceDataset | None:
        """A version; None where its manifest is torn, or away by now."""
        path = self.home / manifest_name(number)
        with translated(f"read {path}"):
            if not _ends(path, _END) or path.stat().st_size <= _TAIL:
                return None
        try:
            dataset = self._at(number)
        except (StorageError, NotFoundError) as error:
            if isinstance(error.__cause__, NotImplementedError):
                raise  # whole, and from a later engine
            return None
        return dataset if dataset.version == number else None  # of zeros it makes version 0


def damage(table: Table) -> Damage | None:
    """What is torn of the newest versions, and of the tags and branches; None: nothing.

    Raises:
        StorageError: no version can be opened, or the directory cannot be read.
    """
    if table.is_remote:
        return None
    return found_torn(table.root, table.by_name())[1]


def torn_rows(table: Table) -> list[str]:
    """The files of the newest version's rows that are away, or not whole; looked at as by `check`.

    Returns:
        Their paths, from the store's directory on.

    Raises:
        StorageError: a file may not be looked at.
    """
    if table.is_remote:
        return []
    found = _torn_rows(table.latest().dataset, Path(os.path.realpath(table.home)))
    return [_within(os.path.realpath(table.uri), file) for file in found]


def found_torn(root: str, versions: Versions) -> tuple[lance.LanceDataset, Damage | None]:
    """The version of the table at `root` that is to be read, and what is torn.

    Raises:
        NotFoundError: there is none.
        StorageError: none can be opened; or the branch looks for files where the store was once.
    """
    look = versions.look()
    _refuse_moved(look, root)
    files = [*look.files, *torn_refs(root)]
    broken = _torn_indices(look.dataset, versions.home)
    if not (files or broken):
        return look.dataset, None
    store = os.path.realpath(Path(root).parent)
    return look.dataset, Damage(
        version=look.newest,
        opened=int(look.dataset.version),
        files=tuple(_within(store, file) for file in files),
        indices=tuple(_within(store, file) for file in broken),
    )


def _refuse_moved(look: Look, root: str) -> None:
    if not look.lost:
        return
    with translated("list the places of a version"):
        bases = [base.path for base in look.dataset.base_paths().values()]
    for base in bases:
        here = place_here(base, root)
        start = f"{os.path.realpath(base.removeprefix('file://'))}/"
        names = [file.removeprefix(start) for file in look.lost if file.startswith(start)]
        if here is not None and names and all((here / name).is_file() for name in names):
            raise StorageError(
                f"the store at {Path(root).parent} was moved or copied, and a branch of it still "
                f"looks for files in {base}, which are here too: `lmem doctor --fix` makes it look "
                "here"
            )


def _within(store: str, file: str) -> str:
    """The path from the store's directory on; of another store's file, which it shares, whole."""
    name = os.path.relpath(file, store)
    return file if name.startswith("..") else name
