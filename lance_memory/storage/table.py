"""The `memories` table: made, opened, read at a version, committed to."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from lance_memory.errors import ConflictError, NotFoundError, StorageError, StoreFormatError
from lance_memory.record.schema import StoreFormat, arrow_schema, read_format
from lance_memory.storage import indices
from lance_memory.storage.change import ChangeSet, Plan, commit, tried
from lance_memory.storage.engine import lance, translated
from lance_memory.storage.lock import held
from lance_memory.storage.snapshot import Snapshot

__all__ = ["TABLE_NAME", "Table", "absolute", "refuse_other_things"]

TABLE_NAME = "memories.lance"
_STORAGE_VERSION = "2.1"
_MAIN = "main"


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
        branch: str = _MAIN,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self.uri = uri
        self.branch = branch
        self.schema = dataset.schema
        self.format = read_format(self.schema, uri)
        self.storage_options = dict(storage_options) if storage_options else None
        self._newest = Snapshot(dataset)
        self.writing = threading.RLock()  # an embedder, called from a plan, may write here too

    @classmethod
    def open(cls, uri: str, *, storage_options: Mapping[str, str] | None = None) -> Table:
        """The store at `uri`.

        Raises:
            NotFoundError: nothing is there.
            StoreFormatError: something else is there, or the store is from a later release.
        """
        options = dict(storage_options) if storage_options else None
        refuse_other_things(uri)
        try:
            with translated(f"open {uri}", absent=NotFoundError):
                dataset = lance.dataset(_table_uri(uri), storage_options=options)
        except NotFoundError as error:
            raise NotFoundError(
                f"there is no store at {uri}; make one with `lmem init` or MemoryStore.open(path)"
            ) from error
        return cls(dataset, uri=uri, storage_options=options)

    @classmethod
    def create(
        cls, uri: str, fmt: StoreFormat, *, storage_options: Mapping[str, str] | None = None
    ) -> Table:
        """A new, empty store at `uri`; the one that is there, if another was faster.

        Raises:
            StoreFormatError: the directory holds something else.
            StorageError: it cannot be written to.
        """
        options = dict(storage_options) if storage_options else None
        refuse_other_things(uri)
        schema = arrow_schema(fmt)
        with _alone(uri):
            with suppress(NotFoundError):
                return cls.open(uri, storage_options=options)
            try:
                with translated(f"create {uri}"):
                    dataset = lance.write_dataset(
                        schema.empty_table(),
                        _table_uri(uri),
                        schema=schema,
                        mode="create",
                        data_storage_version=_STORAGE_VERSION,
                        storage_options=options,
                    )
            except ConflictError:
                return cls.open(uri, storage_options=options)
        return cls(dataset, uri=uri, storage_options=options)

    @classmethod
    def open_or_create(
        cls, uri: str, fmt: StoreFormat, *, storage_options: Mapping[str, str] | None = None
    ) -> Table:
        """The store at `uri`, made with the format `fmt` where there is none.

        Raises:
            StoreFormatError: something else is there.
            StorageError: it cannot be written to.
        """
        try:
            return cls.open(uri, storage_options=storage_options)
        except NotFoundError:
            return cls.create(uri, fmt, storage_options=storage_options)

    @property
    def home(self) -> str:
        """Where this branch keeps the files that are its own: its indices and its versions.

        A dataset that was checked out on a branch names the table's own directory.
        """
        root = _table_uri(self.uri)
        return root if self.branch == _MAIN else f"{root}/tree/{self.branch}"

    def ensure_text_index(self) -> None:
        """Make the index that word search needs: in a new store, or where a kill left none."""
        if indices.has_text_index(self.latest()):
            return
        with _alone(self.uri):
            if not indices.has_text_index(self.latest()):
                indices.create_text_index(self.own())

    def latest(self) -> Snapshot:
        """The newest version, also when another process wrote it."""
        with translated(f"look for the newest version of {self.uri}"):
            current = self._newest
            newest = current.dataset.latest_version
            if newest == current.version:
                return current
            fresh = current.sibling(current.dataset.checkout_version((self._branch_ref, newest)))
        self._adopt(fresh)
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
                return self._newest.sibling(dataset)
        except NotFoundError as error:
            raise self._unknown(version) from error

    def _unknown(self, version: int) -> NotFoundError:
        return NotFoundError(
            f"there is no version {version} of {self.uri} (the newest is "
            f"{self.latest().version}); `lmem log` lists what is there"
        )

    def own(self) -> Snapshot:
        """The newest version on a handle of its own.

        For engine calls that change their handle (indices, upkeep, tags, branches): on the shared
        one they fail, and make others fail, while another thread reads.
        """
        return self.at(self.latest().version)

    def commit(self, plan: Plan) -> tuple[ChangeSet, Snapshot]:
        """Make `plan` one version; see `change.commit`."""
        with self.writing:
            return commit(
                self.latest, plan, published=self._adopt, storage_options=self.storage_options
            )

    def trial(self, snapshot: Snapshot, change: ChangeSet) -> AbstractContextManager[Snapshot]:
        """What `change` would make of `snapshot`, for a look; see `change.tried`."""
        return tried(snapshot, change, home=self.home, storage_options=self.storage_options)

    def on_branch(self, name: str) -> Table:
        """The table on the branch `name`; its writes are not seen here, nor the other way round.

        Raises:
            NotFoundError: no such branch.
        """
        ref = None if name == _MAIN else name
        with translated(f"open branch {name!r} of {self.uri}", absent=NotFoundError):
            dataset = self._newest.dataset.checkout_version((ref, None))
        return Table(dataset, uri=self.uri, branch=name, storage_options=self.storage_options)

    def lancedb(self, *, version: int | None) -> Any:
        """The same table through LanceDB; without a version it looks for the newest each time."""
        import lancedb  # takes seconds, and only who asks for it pays

        with translated(f"open {self.uri} with LanceDB"):
            return lancedb.connect(
                self.uri,
                storage_options=self.storage_options,
                read_consistency_interval=timedelta(0) if version is None else None,
            ).open_table(
                TABLE_NAME.removesuffix(".lance"), branch=self._branch_ref, version=version
            )

    @property
    def _branch_ref(self) -> str | None:
        return None if self.branch == _MAIN else self.branch

    def _adopt(self, snapshot: Snapshot) -> None:
        if snapshot.version > self._newest.version:
            self._newest = snapshot


def _alone(uri: str) -> AbstractContextManager[None]:
    """Keeps this user's other processes from making a store while the block lasts.

    The engine overwrites a table that another makes between its look and its commit. The lock lies
    outside the store, whose directory has to be empty until then. In an object store there is none.

    Raises:
        StorageError: there is no directory for temporary files, or no lock in it.
    """
    if "://" in uri:
        return nullcontext()
    try:
        place = Path(tempfile.gettempdir())
    except OSError as error:
        raise StorageError(f"{uri} cannot be made: {error}; set TMPDIR to one") from error
    # By number: a user of a container often has no name. Windows gives each its own directory.
    user = f"-{os.getuid()}" if hasattr(os, "getuid") else ""
    return held(place / f"lance-memory{user}.lock", wait=None)


def absolute(path: str | os.PathLike[str]) -> str:
    """A local path made absolute, `~` expanded; a URI with a scheme is left as it is."""
    text = os.fspath(path)
    return text if "://" in text else str(Path(text).expanduser().absolute())


def _table_uri(uri: str) -> str:
    return f"{uri.rstrip('/')}/{TABLE_NAME}"


def refuse_other_things(uri: str) -> None:
    """Refuse a local path that is a file, or a directory with something else in it.

    Raises:
        StoreFormatError: says which.
    """
    if "://" in uri:
        return
    path = Path(uri)
    if path.is_file():
        raise StoreFormatError(f"{uri} is a file; a store is a directory")
    if path.is_dir() and not (path / TABLE_NAME).exists() and any(path.iterdir()):
        raise StoreFormatError(
            f"{uri} holds other files and no store; name an empty or a new directory"
        )
