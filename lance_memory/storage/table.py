"""The `memories` table: made, opened, read at a version, committed to."""

from __future__ import annotations

import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lance_memory.errors import (
    ConflictError,
    NotFoundError,
    StorageError,
    StoreFormatError,
)
from lance_memory.files import to_disk
from lance_memory.record.schema import SCHEMA_VERSION, StoreFormat, arrow_schema, read_format
from lance_memory.storage import indices
from lance_memory.storage.change import ChangeSet, Plan, commit, tried
from lance_memory.storage.disk.durable import Durability, OnDisk, Settling, Sync
from lance_memory.storage.disk.whole import Damage, Versions
from lance_memory.storage.engine import (
    CommitConflictError,
    MissingFileError,
    UnexplainedError,
    lance,
    translated,
)
from lance_memory.storage.files.readable import manifest_name
from lance_memory.storage.opening import (
    MAIN,
    TABLE_NAME,
    alone_making,
    create_table,
    home_of,
    of_version,
    open_newest,
    opener,
    refuse_other_things,
    table_uri,
)
from lance_memory.storage.place import Place
from lance_memory.storage.rewritten import branch_of
from lance_memory.storage.snapshot import Snapshot

__all__ = ["Table"]

_SETTLING = 5
_PLAIN = re.compile(r"[\w./ =@,:+-]*", re.ASCII)  # of a path that the engine writes as it is
_PATIENCE = 10.0
_LONGEST_WAIT = 30.0
_LOOK_AGAIN = 0.01


class Table:
    """One Lance table on one branch. Safe to use from many threads at once.

    Reads take a `Snapshot`, which never changes. Commits of one process run one after another
    through a lock; other processes are met optimistically (see `change.commit`).
    """

    def __init__(
        self,
        dataset: lance.LanceDataset,
        *,
        uri: str,
        branch: str = MAIN,
        storage_options: Mapping[str, str] | None = None,
        durability: Durability = Durability.PROCESS,
        sync: Sync = to_disk,
        damage: Damage | None = None,
    ) -> None:
        self.uri = uri
        self.branch = branch
        self.schema = dataset.schema
        self.format = read_format(self.schema, uri)
        self.storage_options = dict(storage_options) if storage_options else None
        self._newest = Snapshot(dataset)
        self.writing = threading.RLock()  # an embedder, called from a plan, may write here too
        self.durability = durability
        self._sync = sync
        self._disk = None if self.is_remote else OnDisk(Path(self.home), sync=sync)
        self._damage = damage

    @classmethod
    def open(
        cls,
        uri: str,
        *,
        storage_options: Mapping[str, str] | None = None,
        durability: Durability = Durability.PROCESS,
        sync: Sync = to_disk,
    ) -> Table:
        """The store at `uri`; at its last whole version where the newest is torn (see `damage`).

        Args:
            uri: the store's directory.
            storage_options: the engine's options for it.
            durability: what an acknowledged write survives.
            sync: puts one file, or one directory's names, on the disk.

        Raises:
            NotFoundError: nothing is there.
            StoreFormatError: something else is there, or the store is from a later release.
            StorageError: no version of it is whole.
        """
        options = dict(storage_options) if storage_options else None
        refuse_other_things(uri)
        try:
            dataset, damage = open_newest(uri, options)
        except NotFoundError as error:
            raise NotFoundError(
                f"there is no store at {uri}; make one with `lmem init` or MemoryStore.open(path)"
            ) from error
        return cls(
            dataset,
            uri=uri,
            storage_options=options,
            durability=durability,
            sync=sync,
            damage=damage,
        )

    @classmethod
    def create(
        cls,
        uri: str,
        fmt: StoreFormat,
        *,
        storage_options: Mapping[str, str] | None = None,
        durability: Durability = Durability.PROCESS,
        sync: Sync = to_disk,
    ) -> Table:
        """A new, empty store at `uri`, with an id; the one that is there, if another was faster.

        Raises:
            StoreFormatError: the directory holds something else.
            StorageError: it cannot be written to.
        """
        options = dict(storage_options) if storage_options else None
        how: dict[str, Any] = {
            "storage_options": options,
            "durability": durability,
            "sync": sync,
        }
        refuse_other_things(uri)
        schema = arrow_schema(fmt if fmt.store_id else replace(fmt, store_id=str(uuid.uuid4())))
        with alone_making(uri):
            with suppress(NotFoundError):
                return cls.open(uri, **how)
            try:
                with suppress(ConflictError), translated(f"create {uri}"):
                    create_table(uri, schema, options)
            except MissingFileError:
                if "://" not in uri:
                    raise
            made = cls.open(uri, **how)
            if durability is Durability.POWER:
                made.settle()  # rows that no version has are refused, so a version comes first
            return made

    @classmethod
    def open_or_create(
        cls,
        uri: str,
        fmt: StoreFormat,
        *,
        storage_options: Mapping[str, str] | None = None,
        durability: Durability = Durability.PROCESS,
    ) -> Table:
        """The store at `uri`, made with the format `fmt` where there is none.

        Raises:
            StoreFormatError: something else is there.
            StorageError: it cannot be written to.
        """
        try:
            return cls.open(uri, storage_options=storage_options, durability=durability)
        except NotFoundError:
            return cls.create(uri, fmt, storage_options=storage_options, durability=durability)

    @property
    def home(self) -> str:
        """Where this branch keeps the files that are its own: its indices and its versions.

        A dataset that was checked out on a branch names the table's own directory.
        """
        return home_of(self.uri, self.branch)

    @property
    def root(self) -> str:
        """The table's own directory, whatever the branch."""
        return table_uri(self.uri)

    @property
    def place(self) -> Place:
        """The store's directory: the small files beside the table, and its locks."""
        return Place(self.uri, storage_options=self.storage_options)

    @property
    def is_remote(self) -> bool:
        """Whether it is in an object store."""
        return "://" in self.uri

    def ensure_text_index(self) -> None:
        """Make the index that word search needs: in a new store, or where a kill left none.

        Not in a store of an earlier schema, which is only read.
        """
        if self.is_of_earlier_schema or self.damage or indices.has_text_index(self.latest()):
            return
        with alone_making(self.uri):
            if indices.has_text_index(self.latest()):
                return
            try:
                indices.create_text_index(self.own())
            except (ConflictError, CommitConflictError):  # in an object store nobody is alone
                if not indices.has_text_index(self.latest()):
                    raise

    def latest(self) -> Snapshot:
        """The newest version, also when another process wrote it; the last whole one of a torn."""
        if self._damage is not None and self._look_again():
            return self._newest
        with translated(f"look for the newest version of {self.uri}"):
            current = self._newest
            newest = current.dataset.latest_version
            if newest == current.version:
                return current
            fresh = current.sibling(current.dataset.checkout_version((self._branch_ref, newest)))
        self.adopt(fresh)
        return fresh

    def at(self, version: int) -> Snapshot:
        """The table as of `version`.

        Raises:
            NotFoundError: no such version, or its files were cleaned up.
        """
        if not 0 < version < 2**63:  # the engine takes unsigned 64-bit numbers
            raise self._unknown(version)
        try:
            with translated(f"open version {version} of {self.uri}", absent=NotFoundError):
                dataset = self._newest.dataset.checkout_version((self._branch_ref, version))
                return self._newest.sibling(of_version(dataset, version))
        except NotFoundError as error:
            rewritten = self._rewritten(version)
            if rewritten is None:
                raise self._unknown(version) from error
            return rewritten
        except UnexplainedError as error:
            place = self.home.removeprefix(f"{self.uri.rstrip('/')}/")
            raise StorageError(
                f"{error}; damaged: {place}/{manifest_name(version)}; other versions can be read"
            ) from error

    def _rewritten(self, version: int) -> Snapshot | None:
        """What took the place of a version that something was forgotten from."""
        name = branch_of(self.branch, version)
        try:
            with translated(f"open version {version} of {self.uri}", absent=NotFoundError):
                dataset = self._newest.dataset.checkout_version((name, None))
        except NotFoundError:
            return None
        return Snapshot(dataset, kept=self._newest.kept, stands_for=version)

    def reference(self, version: int) -> tuple[str | None, int]:
        """What the engine calls a version of this branch: its branch there, and its number.

        Raises:
            NotFoundError: as for `at`.
        """
        snapshot = self.at(version)
        if snapshot.stands_for is None:
            return self._branch_ref, version
        return branch_of(self.branch, version), int(snapshot.dataset.version)

    def _unknown(self, version: int) -> NotFoundError:
        newest = self.latest().version
        gone = " any more: it was cleaned up" if 0 < version < newest else ""
        return NotFoundError(
            f"there is no version {version} of {self.uri}{gone} (the newest is {newest}); "
            "`lmem log` lists what is there"
        )

    def own(self) -> Snapshot:
        """The newest version on a handle of its own.

        For engine calls that change their handle (indices, upkeep, tags, branches): on the shared
        one they fail, and make others fail, while another thread reads.
        """
        return self.at(self.latest().version)

    @property
    def damage(self) -> Damage | None:
        """What is torn of the newest versions, as long as it is; None: nothing was when opened."""
        if self._damage is not None:
            self._look_again()
        return self._damage

    def _look_again(self) -> bool:
        """Whether the store is still torn: another process may have set that aside."""
        dataset, self._damage = open_newest(
            self.uri, self.storage_options, branch=self.branch, main=self._newest.dataset
        )
        if dataset.version != self._newest.version:
            self._newest = self._newest.sibling(dataset)
        return self._damage is not None

    def by_name(self) -> Versions:
        """The versions of this branch on a local disk, the torn ones too."""
        main = self._newest.dataset
        return Versions(self.home, opener(self.uri, self.storage_options, self.branch, main))

    def settle(self) -> Snapshot:
        """Put the newest version and all that it refers to on the disk, whoever wrote it; which.

        To be called before files of earlier versions are removed, whatever the durability: until
        then those may be all that a power cut leaves. What is removed then must not be this
        version. In an object store there is nothing to do.

        Raises:
            StorageError: the disk failed.
        """
        for _ in range(_SETTLING):
            newest = self.latest()
            try:
                if self._disk is not None:
                    self._disk.settle(newest)
            except MissingFileError:  # another process's clean-up, which has settled a newer one
                continue
            return newest
        raise StorageError(f"the versions of {self.uri} change too fast; try again")

    def settle_version(self, version: int) -> None:
        """Put a version on the disk, where writes are to survive a power cut; as one gets a name.

        Raises:
            NotFoundError: no such version.
            StorageError: the disk failed.
        """
        if self._disk is not None and self.durability is Durability.POWER:
            snapshot = self.at(version)
            if snapshot.stands_for is None:
                self._disk.put_version(snapshot.dataset)

    def settle_files(self, paths: Iterable[str]) -> None:
        """Put files on the disk, such as a tag's, where writes are to survive a power cut.

        Raises:
            StorageError: the disk failed.
        """
        if self._disk is not None and self.durability is Durability.POWER:
            self._disk.put([Path(os.path.realpath(path)) for path in paths])

    @property
    def is_of_earlier_schema(self) -> bool:
        """Whether it was opened as a table that this release reads, and does not write."""
        return self.format.schema_version < SCHEMA_VERSION

    def refuse_damaged(self) -> None:
        """To be called before anything is written, upkeep too.

        Raises:
            StorageError: the newest version is torn; names `lmem doctor --fix`.
        """
        damage = self.damage
        if damage is not None:
            raise StorageError(
                f"{self.uri} is {damage}: it can be read, and nothing is written until `lmem "
                "doctor --fix` has set aside what is torn, or built it anew"
            )

    def refuse_writes(self) -> None:
        """To be called before anything is written, tags and indices too.

        Raises:
            StoreFormatError: the store is of an earlier schema; names `lmem migrate`.
            StorageError: the newest version is torn; names `lmem doctor --fix`.
        """
        self.refuse_damaged()
        if self.is_of_earlier_schema:
            line = "" if self.branch == MAIN else f"the branch {self.branch!r} of "
            where = f"{line}{self.uri}"
            raise StoreFormatError(
                f"{where} has schema version {self.format.schema_version}, and this release writes "
                f"{SCHEMA_VERSION}: it can only be read until `lmem migrate` has brought it up to "
                "date; nothing was written"
            )

    def tag_refs(self) -> dict[str, Any]:
        """Every tag of every branch as the engine tells of it; call it within `translated`."""
        return _undisturbed(lambda: dict(self.own().dataset.tags.list()))

    def branch_refs(self) -> dict[str, Any]:
        """Every branch but main as the engine tells of it; call it within `translated`."""
        return _undisturbed(lambda: dict(self.own().dataset.branches.list()))

    def for_refs(self) -> lance.LanceDataset:
        """A handle of its own on the newest version, for making tags and branches.

        For a local path with other characters than the engine keeps in its names, pylance 14.0.2
        also makes an empty directory of the written-out name beside it, or fails where it may not.
        Through its object store for files it makes none.
        """
        root = os.path.realpath(self.root)
        if self.is_remote or _PLAIN.fullmatch(root):
            return self.own().dataset
        with translated(f"open {self.uri}"):
            return lance.dataset(f"file-object-store://{quote(root)}").checkout_version(
                (self._branch_ref, self.latest().version)
            )

    def commit(self, plan: Plan, *, any_schema: bool = False) -> tuple[ChangeSet, Snapshot]:
        """Make `plan` one version; see `change.commit`.

        Args:
            plan: decides what to write.
            any_schema: it changes no column, and may be made on a branch of an earlier schema.

        Raises:
            StoreFormatError: the store is of an earlier schema, or was migrated or re-embedded
                since it was opened.
            StorageError: the newest version is torn; or, where writes are to survive a power
                cut, the disk failed.
        """
        if not any_schema:
            self.refuse_writes()
        disk = self._disk if self.durability is Durability.POWER else None
        settling = None if disk is None else Settling(disk)
        with self.writing:
            change, made = commit(
                self.latest,
                partial(self._planned, plan),
                published=self.adopt,
                home=self.home,
                storage_options=self.storage_options,
                settling=settling,
            )
        if settling is not None:
            try:
                settling.wait()
            except MissingFileError:
                self.settle()
        return change, made

    def _planned(self, plan: Plan, snapshot: Snapshot) -> ChangeSet:
        """The plan, unless what is behind it was made for another format than the table has now."""
        now = snapshot.format
        if now.closed_until and self._waited(now.closed_until):
            raise CommitConflictError("the vectors were switched, or not, meanwhile: plan again")
        if now.schema_version != self.format.schema_version:
            raise StoreFormatError(
                f"{self.uri} has schema version {now.schema_version} now, and was opened with "
                f"{self.format.schema_version}; nothing was written: open it again"
            )
        if not now.same_vectors(self.format):
            raise StoreFormatError(
                f"the vectors of {self.uri} are from the model {now.embedding_model!r} since "
                f"version {now.vectors_since}, and it was opened for those of "
                f"{self.format.embedding_model!r}; nothing was written: open it again with an "
                "embedder of the new model"
            )
        return plan(snapshot)

    def trial(self, snapshot: Snapshot, change: ChangeSet) -> AbstractContextManager[Snapshot]:
        """What `change` would make of `snapshot`, for a look; see `change.tried`."""
        return tried(snapshot, change, home=self.home, storage_options=self.storage_options)

    def on_branch(self, name: str) -> Table:
        """The table on the branch `name`, or on main; writes of either are not seen by the other.

        Raises:
            NotFoundError: no such branch.
        """
        if name == MAIN:
            return Table.open(
                self.uri,
                storage_options=self.storage_options,
                durability=self.durability,
                sync=self._sync,
            )
        if not name.isprintable():  # no name of a directory, which is looked for next
            raise NotFoundError(f"there is no branch {name!r} of {self.uri}")
        dataset, damage = open_newest(
            self.uri, self.storage_options, branch=name, main=self._newest.dataset
        )
        return Table(
            dataset,
            uri=self.uri,
            branch=name,
            storage_options=self.storage_options,
            durability=self.durability,
            sync=self._sync,
            damage=damage,
        )

    def lancedb(self, *, version: int | None) -> Any:
        """The same table through LanceDB; without a version it looks for the newest each time."""
        import lancedb  # takes seconds, and only who asks for it pays

        branch, number = (self._branch_ref, None) if version is None else self.reference(version)
        with translated(f"open {self.uri} with LanceDB"):
            return lancedb.connect(
                self.uri,
                storage_options=self.storage_options,
                read_consistency_interval=timedelta(0) if version is None else None,
            ).open_table(TABLE_NAME.removesuffix(".lance"), branch=branch, version=number)

    @property
    def _branch_ref(self) -> str | None:
        return None if self.branch == MAIN else self.branch

    def _waited(self, until: float) -> bool:
        """Wait for a switch of the vectors that is under way; whether there was any need to.

        None closes the table for as long as the longest wait: a time that is further away was
        written before the clock was set back, by a process that is gone.
        """
        left = until - time.time()
        if not 0 < left <= _LONGEST_WAIT:
            return False
        end = time.monotonic() + left
        while time.monotonic() < end and self.latest().format.closed_until == until:
            time.sleep(_LOOK_AGAIN)
        return True

    def adopt(self, snapshot: Snapshot) -> None:
        """Take a version that was just made as the newest, unless a newer one is known."""
        if snapshot.version > self._newest.version:
            self._newest = snapshot


def _undisturbed(look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What is listed; again where a file of the list was removed before it was read.

    Every reader that holds a version makes and removes such a file, so that many of them can
    disturb a look many times.
    """
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            with translated("list tags and branches"):
                return look()
        except MissingFileError:
            time.sleep(_LOOK_AGAIN)
    return look()
