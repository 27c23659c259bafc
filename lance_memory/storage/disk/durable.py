"""What survives a power cut: files and directories are put on the disk before a write is told of.

The engine syncs nothing: what it has written survives a killed process, and lies in the memory of
the operating system until that writes it out. Here is what puts it on the disk
(design/014-durability.md).
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from lance_memory.errors import StorageError
from lance_memory.files import to_disk
from lance_memory.storage.disk.referred import referred
from lance_memory.storage.engine import MissingFileError, lance
from lance_memory.storage.files.readable import manifest_name

if TYPE_CHECKING:
    from lance_memory.storage.snapshot import Snapshot

__all__ = ["Durability", "OnDisk", "Settling", "Sync", "Ticket"]

Sync = Callable[[Path], None]
"""Puts one file's content, or one directory's names, on the disk."""

_REMEMBERED = 50_000
"""Names known to be on the disk, at most; 10 MB. Beyond, they are looked at again."""

_NAMES_OF_MANY = (".manifest", ".json")
"""Of files whose names can be another's one day: of a version, a tag, a branch."""

_UNABLE = {errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EROFS}


class Durability(StrEnum):
    """What a write that was acknowledged survives.

    `process`: that any process is killed. `power`: also that the power fails, on a local disk that
    keeps its word; every write then waits for the disk. In an object store both are the same: an
    acknowledged put is the service's to keep.
    """

    PROCESS = "process"
    POWER = "power"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """What has to be on the disk before the write that made `version` is told of."""

    files: tuple[Path, ...]
    version: int


class OnDisk:
    """What of one branch's files is known to be on the disk, and the way there for the rest.

    Threads that write at the same time share one sync: the first that finds none in progress does
    it for all that wait. After a failed one nothing is known any more: the operating system may
    have dropped what it could not write and call the next sync a success. So all who waited are
    told, and this handle refuses to sync again.
    """

    def __init__(self, home: Path, *, sync: Sync = to_disk) -> None:
        self._home = Path(os.path.realpath(home))
        self._sync = sync
        self._known: set[Path] = set()
        self._entered: set[Path] = set()  # directories whose own names are on the disk
        self._missing: set[Path] = set()
        self._whole = 0  # the newest version whose files all are
        self._settled = 0  # the newest version whose manifest is, too
        self._failed: OSError | None = None
        self._round = threading.Condition()
        self._waiting: set[Path] = set()
        self._started = self._ended = 0
        self._syncing = False

    def before(self, base: Snapshot, names: Iterable[str]) -> None:
        """Put on the disk what a commit is going to refer to: `names`, and all of its base.

        One writer at a time calls it.

        Raises:
            MissingFileError: clean-up has taken a file of the base.
            StorageError: the disk failed; nothing was committed.
        """
        files = [self._home / name for name in names]
        if base.version != self._whole:
            files += referred(base.dataset, self._home)
        self.put(files)
        self._whole = base.version

    def after(
        self, made: Snapshot, *, base: int | None = None, names: Iterable[str] = ()
    ) -> Ticket:
        """What is to be put on the disk after a commit.

        Args:
            made: the version.
            base: the version that `before` was called with; None: it was not called.
            names: the new files that `before` was not told of.
        """
        files = [self._home / name for name in names]
        if base is not None and made.version == base + 1:
            self._whole = made.version
        elif made.version > self._settled:  # files of other writers are in it
            files += referred(made.dataset, self._home)
        if made.version > self._settled:
            files.append(self._home / manifest_name(made.version))
        return Ticket(files=tuple(files), version=made.version)

    def settle(self, newest: Snapshot) -> None:
        """Put a version and all that it refers to on the disk, whoever has written it.

        Raises:
            MissingFileError: clean-up has taken a file of it.
            StorageError: the disk failed.
        """
        self.wait(self.after(newest))

    def wait(self, ticket: Ticket) -> None:
        """Come back when a sync that began after this call has put the ticket's files on the disk.

        Raises:
            MissingFileError: clean-up has taken one of them.
            StorageError: the disk failed; what of the write is on it is unknown.
        """
        if not ticket.files:
            return
        with self._round:
            self._waiting.update(ticket.files)
            due = self._started + 1
        while (batch := self._turn(due)) is not None:
            self._lead(batch)
        self._tell()
        gone = self._missing.intersection(ticket.files)
        if gone:
            raise MissingFileError(f"could not put {min(gone)} on the disk: it is gone")
        self._settled = max(self._settled, ticket.version)

    def put_version(self, dataset: lance.LanceDataset) -> None:
        """Put one version, whether or not it is the newest, and all it refers to on the disk.

        Raises:
            MissingFileError: it is not there any more.
            StorageError: the disk failed.
        """
        version = self._home / manifest_name(dataset.version)
        self.put([*referred(dataset, self._home), version])

    def put(self, files: Iterable[Path]) -> None:
        """Put files, and the names that lead to them, on the disk, unless they are known to be.

        Raises:
            MissingFileError: one of them is not there.
            StorageError: the disk failed.
        """
        gone = self._put(files)
        if gone:
            raise MissingFileError(f"could not put {min(gone)} on the disk: it is gone")

    # -- inside ---------------------------------------------------------------------------

    def _turn(self, due: int) -> set[Path] | None:
        """What to sync for all who wait; None once the round `due`, or a later one, has ended."""
        with self._round:
            while self._syncing and self._ended < due:
                self._round.wait()
            if self._ended >= due:
                return None
            self._syncing = True
            self._started += 1
            batch, self._waiting = self._waiting, set()
            return batch

    def _lead(self, batch: set[Path]) -> None:
        done = False
        try:
            self._missing |= self._put(sorted(batch))
            done = True
        finally:
            with self._round:
                self._syncing = False
                if done or self._failed:
                    self._ended = self._started
                else:  # interrupted: one of those who wait does it
                    self._waiting |= batch
                self._round.notify_all()

    def _tell(self) -> None:
        if self._failed is not None:
            raise StorageError(
                f"the disk failed ({self._failed}): whether this write, and what was not "
                "acknowledged before it, survives a power cut is unknown; look at the disk, open "
                "the store again, and write again what is missing"
            ) from self._failed

    def _put(self, files: Iterable[Path]) -> set[Path]:
        """Sync what is not known to be on the disk, then its names; what is not there."""
        self._tell()
        if len(self._known) > _REMEMBERED:
            self._known.clear()
            self._entered.clear()
        fresh = [path for path in dict.fromkeys(files) if path not in self._known]
        gone = {path for path in fresh if not self._there(path)}
        there = [path for path in fresh if path not in gone]
        folders = self._folders(there)
        for folder in folders:
            self._there(folder)
        self._known.update(path for path in there if path.suffix not in _NAMES_OF_MANY)
        self._entered.update(folders)
        return gone

    def _folders(self, files: Iterable[Path]) -> list[Path]:
        """The directories that have new names, of these files or of directories, deepest first."""
        found: set[Path] = set()
        for path in files:
            folder = path.parent
            found.add(folder)
            while folder not in self._entered and folder != folder.parent:
                folder = folder.parent
                found.add(folder)
        return sorted(found, key=lambda path: (-len(path.parts), path))

    def _there(self, path: Path) -> bool:
        """Sync one file or directory; whether it is there."""
        try:
            self._sync(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            # A directory above the table that this user cannot open is older than the table.
            if not (path in self._home.parents and error.errno in _UNABLE):
                self._failed = error
                self._tell()
        return True


class Settling:
    """One commit's way to the disk: what it refers to before it, its version after it."""

    def __init__(self, disk: OnDisk) -> None:
        self._disk = disk
        self._base: int | None = None
        self._names: tuple[str, ...] = ()
        self._ticket: Ticket | None = None

    def before(self, base: Snapshot, names: Iterable[str]) -> None:
        """To be called for each try to commit, with the new files of it; see `OnDisk.before`."""
        every = list(names)
        self._names = tuple(name for name in every if name.startswith("_transactions/"))
        self._disk.before(base, (name for name in every if name not in self._names))
        self._base = base.version

    def after(self, made: Snapshot) -> None:
        """To be called with the version that was made, or that had it all already."""
        self._ticket = self._disk.after(made, base=self._base, names=self._names)

    def wait(self) -> None:
        """Come back when the version is on the disk; see `OnDisk.wait`."""
        if self._ticket is not None:
            self._disk.wait(self._ticket)
