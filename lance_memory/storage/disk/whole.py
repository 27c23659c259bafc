"""Whether a version is whole after a power cut, and the way back to the last one that is.

A power cut leaves files that were never synced empty, short, full of zeros, or away. A store whose
newest version refers to such a file is opened at the last version that does not, and says so:

- `check(snapshot)`: the torn files of one version, cheaply;
- `damage(table)`: what is wrong with the newest versions, as a value, or None;
- `set_aside(table)`: take the torn versions out of the way, so that writes can go on.

Only files on a local disk are looked at: an object store keeps whole objects or none.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lance_memory.errors import LanceMemoryError, NotFoundError, StorageError
from lance_memory.storage.disk.durable import OnDisk, to_disk
from lance_memory.storage.disk.referred import files_of_rows, segments
from lance_memory.storage.engine import lance, translated
from lance_memory.storage.files.readable import manifest_name

if TYPE_CHECKING:
    from lance_memory.storage.snapshot import Snapshot
    from lance_memory.storage.table import Table

__all__ = ["Damage", "Versions", "check", "damage", "last_whole", "mended", "set_aside"]

ASIDE = "torn"
"""The directory beside the table that torn manifests and refs are moved to."""

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
        count = f"{len(every)} file{'' if len(every) == 1 else 's'}"
        return f"{read}: {names} ({count}; a power cut leaves such)"


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


class _NoneWholeError(StorageError):
    """Every version is torn."""


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

    def newest(self) -> tuple[lance.LanceDataset, int, list[str]]:
        """The newest version, or the last whole one; the newest by name; what is torn of others.

        Raises:
            NotFoundError: there is none.
            StorageError: none is whole, or the directory cannot be read.
        """
        for _ in range(_LOOKS):
            with translated(f"list the versions in {self.home}"):
                numbers = self.numbers()
            if not numbers:
                return self._at(None), 0, []  # tells what is there in place of a store
            found, torn = self._last_whole(numbers)
            with translated(f"list the versions in {self.home}"):
                moved = self.numbers()[:1] != numbers[:1]
            if torn and moved:
                continue  # another process's clean-up took the version that was looked at
            if found is None:
                raise _NoneWholeError(
                    f"no version in {self.home} is whole ({', '.join(torn[:3])}); restore the "
                    "store from a backup"
                )
            return found, numbers[0], torn
        raise StorageError(f"the versions in {self.home} change too fast; try again")

    def _last_whole(self, numbers: list[int]) -> tuple[lance.LanceDataset | None, list[str]]:
        torn: list[str] = []
        for number in numbers:
            dataset = self._opened(number)
            bad = [manifest_name(number)] if dataset is None else _torn_rows(dataset, self.home)
            if not bad:
                return dataset, torn
            torn += [os.fspath(self.home / name) for name in bad]
        return None, torn

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


def last_whole(table: Table) -> int:
    """The newest version of the table's branch that is whole.

    Raises:
        StorageError: there is none.
    """
    return table.latest().version if table.is_remote else int(table.by_name().newest()[0].version)


def damage(table: Table) -> Damage | None:
    """What is torn of the newest versions, and of the tags and branches; None: nothing.

    Raises:
        StorageError: no version is whole, or the directory cannot be read.
    """
    if table.is_remote:
        return None
    return found_torn(table.root, table.by_name())[1]


def found_torn(root: str, versions: Versions) -> tuple[lance.LanceDataset, Damage | None]:
    """The version of the table at `root` that is to be read, and what is torn."""
    dataset, newest, torn = versions.newest()
    files = [*torn, *_torn_refs(root)]
    broken = _torn_indices(dataset, versions.home)
    if not (files or broken):
        return dataset, None
    store = os.path.realpath(Path(root).parent)
    return dataset, Damage(
        version=newest,
        opened=int(dataset.version),
        files=tuple(_within(store, file) for file in files),
        indices=tuple(_within(store, file) for file in broken),
    )


def _within(store: str, file: str) -> str:
    """The path from the store's directory on; of another store's file, which it shares, whole."""
    name = os.path.relpath(file, store)
    return file if name.startswith("..") else name


def torn_refs(table: Table) -> list[str]:
    """The tags and branches that say nothing, as paths from the store's directory on."""
    if table.is_remote:
        return []
    store = os.path.realpath(table.uri)
    return [os.path.relpath(file, store) for file in _torn_refs(table.root)]


def _torn_refs(root: str) -> Iterator[str]:
    """The tags and branches that say nothing: one of them hides all the others."""
    for path in sorted(Path(os.path.realpath(root), "_refs").glob("*/*.json")):
        try:
            json.loads(path.read_bytes())
        except FileNotFoundError:
            continue
        except ValueError:
            yield os.fspath(path)


def mended(uri: str, at: Callable[[int | None], lance.LanceDataset]) -> lance.LanceDataset:
    """The newest version of a side table; its torn ones are set aside at once.

    What they had is of no account: a journal that matters is put on the disk before it is needed.

    Raises:
        NotFoundError: there is none, or every version was torn.
        StorageError: a file cannot be moved.
    """
    versions = Versions(uri, at)
    try:
        dataset, _, torn = versions.newest()
        last = int(dataset.version)
    except _NoneWholeError:
        dataset, torn, last = None, [uri], 0
    if torn:
        with translated(f"set aside what is torn in {uri}"):
            for number in versions.numbers():
                if number > last:
                    _moved(versions.home / manifest_name(number), versions.home.parent)
    return at(None) if dataset is None else dataset


def set_aside(table: Table) -> list[str]:
    """Move the torn versions, tags and branches away, so that the last whole one is the newest.

    They go to the directory `torn` beside the table, under the path they had; nothing is deleted.
    Writes go on from the last whole version. What only the torn ones had is not in the store any
    more: no write that was acknowledged with `durability="power"` is among it.

    Returns:
        What was moved, as paths from the store's directory on; empty where nothing is torn, or
        only indices are: those are to be built anew.

    Raises:
        StorageError: a file cannot be moved, or no version is whole.
    """
    found = damage(table)
    if found is None:
        return []
    store = Path(os.path.realpath(table.uri))
    home = Path(os.path.realpath(table.home))
    numbers = [n for n in table.by_name().numbers() if n > found.opened]
    moving = [home / manifest_name(number) for number in numbers]
    moving += map(Path, _torn_refs(table.root))
    with translated(f"set aside what is torn in {store}"):
        moved = [_moved(path, store) for path in moving]
    OnDisk(home).put([new for _, new in moved])
    for folder in sorted({old.parent for old, _ in moved}):
        to_disk(folder)
    return [os.path.relpath(old, store) for old, _ in moved]


def _moved(path: Path, store: Path) -> tuple[Path, Path]:
    """Move a file out of the table; where it was, and where it is."""
    target = store / ASIDE / path.relative_to(store)
    target.parent.mkdir(parents=True, exist_ok=True)
    number = 0
    while target.exists():
        number += 1
        target = target.with_name(f"{path.name}.{number}")
    path.rename(target)
    return path, target
