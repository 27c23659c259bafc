"""A journal: a bounded side table of the store, whose rows are appended and forgotten for good.

It is beside the memories and not among them: an append makes no version of `memories`, and what
is deleted from it is gone from its files too.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.errors import ConflictError, NotFoundError
from lance_memory.storage.disk.aside import mended
from lance_memory.storage.disk.durable import OnDisk
from lance_memory.storage.engine import (
    IN_FLIGHT,
    CommitConflictError,
    MissingFileError,
    lance,
    translated,
)
from lance_memory.storage.lock import held

__all__ = ["Choose", "Journal"]

T = TypeVar("T")

Choose = Callable[[pa.Table], NDArray[np.bool_]]
"""Which of the rows of a table are meant, bool [n]."""

_ATTEMPTS = 8
_BEHIND = 16
"""Versions behind the newest that stay: a writer of another process may be about to follow one, and
would make its number once more if that were free."""

_PATIENCE = 60.0
"""Seconds that a deletion waits for another process's upkeep, which takes well below one."""

_FRAGMENT_ROWS = 8_192
"""Fragments of as many rows are not merged any more, so each row is written a bounded number of
times."""

_VERSIONS = 32
"""So many may be made before upkeep merges their files and removes them."""

_SURPLUS = 20
"""Rows are dropped when there are more than what is kept, by one in so many: reading their ids for
each batch would take a hundred times as long as writing it."""

_ROW_ADDRESS = "_rowaddr"


class Journal:
    """One side table, made by its first append. Safe to use from many threads and processes.

    The column `id` sorts by time. Appends of several processes do not meet. Deletions and upkeep
    of one store exclude each other by a lock file on a local disk, and optimistically elsewhere;
    a lock goes with its process.
    """

    def __init__(
        self,
        store: str,
        name: str,
        *,
        schema: pa.Schema,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self.schema = schema
        self._name = name
        self._uri = f"{store.rstrip('/')}/{name}.lance"
        self._options = dict(storage_options) if storage_options else None
        self._disk = None if "://" in store else OnDisk(Path(self._uri))
        self._lock_file = None if "://" in store else Path(store) / f"{name}.lock"
        self._newest: lance.LanceDataset | None = None
        self._tended: int | None = None

    @property
    def version(self) -> int:
        """A number that grows with every change; 0 before the first append."""
        dataset = self._latest()
        return 0 if dataset is None else int(dataset.version)

    def append(self, rows: pa.Table) -> None:
        """Add rows of the journal's schema, durably.

        Raises:
            StorageError: the disk is full or cannot be written to; nothing was added.
        """
        if self._tended is None:  # whoever makes a multiple of _VERSIONS finds that it is time
            self._tended = self.version - self.version % _VERSIONS

        def write() -> None:
            if self._latest() is None:
                self._create()
            self._newest = lance.write_dataset(
                rows.cast(self.schema), self._uri, mode="append", storage_options=self._options
            )

        self._again("append to", write)

    def scan(
        self, predicate: str | None = None, *, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows that pass the predicate, in no order; none before the first append."""
        names = self.schema.names if columns is None else list(columns)

        def read() -> pa.Table:
            dataset = self._latest()
            if dataset is None:
                return self.schema.empty_table().select(names)
            return dataset.to_table(columns=names, filter=predicate)

        return self._again("read", read)

    def count(self) -> int:
        """How many rows there are."""
        dataset = self._latest()
        return 0 if dataset is None else int(dataset.count_rows())

    def delete(
        self, choose: Choose, *, columns: Sequence[str], predicate: str | None = None
    ) -> int:
        """Remove rows, also from the files; how many.

        Args:
            choose: says which, of a table with these columns.
            columns: what it looks at.
            predicate: which rows it is shown; no text of it is written anywhere.

        What a process that was killed while it wrote has left in a file of its own is no row, and
        that file goes with the first upkeep after seven days.

        Raises:
            ConflictError: another process's upkeep holds the journal.
            StorageError: the disk is full or cannot be written to.
        """
        if self._latest() is None:
            return 0
        with self._alone(wait=_PATIENCE):
            gone = self._masked(choose, columns, predicate)
            if gone:
                self._compact(threshold=0.0, now=True)
            return gone

    def settle(self) -> None:
        """Put all rows on the disk, so that they survive a power cut too.

        Raises:
            StorageError: the disk failed.
        """
        dataset = self._latest()
        if self._disk is not None and dataset is not None:
            self._disk.put_version(dataset)

    def upkeep(self, *, keep: int | None) -> None:
        """Drop all rows but the newest `keep`, and merge and remove files, where it is time to.

        With None no row is dropped.

        To be called after an append. It is time to once there are 5 % more rows, or many files;
        another process that is at it is left to it.

        Raises:
            StorageError: the disk is full or cannot be written to.
        """
        dataset = self._latest()
        if dataset is None:
            return
        crowded = keep is not None and self.count() > keep + keep // _SURPLUS
        due = self._tended is not None and dataset.version - self._tended >= _VERSIONS
        if not (crowded or due):
            return
        with suppress(ConflictError), self._alone(wait=0.0):
            if keep is not None and crowded:
                self._masked(lambda rows: _older(rows["id"], keep), ["id"], None)
            if due:
                self._compact(threshold=0.1)
                self._tended = self.version

    # -- inside ---------------------------------------------------------------------------

    def _latest(self) -> lance.LanceDataset | None:
        """The newest version, also when another process wrote it; None before the first append."""
        known = self._newest
        try:
            with translated(f"open the journal {self._name}", absent=NotFoundError):
                if known is None:
                    known = self._opened()
                elif known.version != (newest := known.latest_version):
                    known = known.checkout_version(newest)
        except NotFoundError:
            if self._newest is None:
                return None
            self._newest = None  # removed as a whole, or this version by another's upkeep
            return self._latest()
        self._newest = known
        return known

    def _opened(self) -> lance.LanceDataset:
        """The newest version that a power cut has left whole."""

        def at(version: int | None) -> lance.LanceDataset:
            with translated(f"open the journal {self._name}", absent=NotFoundError):
                return lance.dataset(self._uri, version=version, storage_options=self._options)

        return at(None) if "://" in self._uri else mended(self._uri, at)

    def _create(self) -> None:
        """An empty table, unless another process has made one.

        The engine's own "create" overwrites what one makes between its look and its commit.
        """
        with suppress(ConflictError, MissingFileError), translated(f"create {self._uri}"):
            lance.LanceDataset.commit(
                self._uri,
                lance.LanceOperation.Overwrite(self.schema, []),
                max_retries=0,
                storage_options=self._options,
            )

    def _masked(self, choose: Choose, columns: Sequence[str], predicate: str | None) -> int:
        """Deletion vectors over the chosen rows, as one version; how many rows."""

        def mask() -> int:
            dataset = lance.dataset(self._uri, storage_options=self._options)
            rows = dataset.to_table(columns=list(columns), filter=predicate, with_row_address=True)
            addresses = rows[_ROW_ADDRESS].to_numpy()[choose(rows)]
            if len(addresses):
                lance.LanceDataset.commit(
                    dataset,
                    _deletion(dataset, addresses),
                    read_version=dataset.version,
                    max_retries=0,
                    storage_options=self._options,
                )
            return len(addresses)

        return self._again("delete from", mask)

    def _compact(self, *, threshold: float, now: bool = False) -> None:
        """Write deleted rows out of the files, merge small ones, and remove the versions before.

        The last few stay for writers in flight, unless all must go `now`.
        """

        def compact() -> None:
            dataset = lance.dataset(self._uri, storage_options=self._options)
            dataset.optimize.compact_files(
                target_rows_per_fragment=_FRAGMENT_ROWS,
                materialize_deletions=True,
                materialize_deletions_threshold=threshold,
            )
            if self._disk is not None:  # else a power cut may leave neither old files nor new ones
                self._disk.put_version(dataset)
            if now:
                time.sleep(IN_FLIGHT)
                dataset.cleanup_old_versions(older_than=timedelta(0))
            else:
                dataset.cleanup_old_versions(retain_versions=_BEHIND)

        self._again("compact", compact)

    def _again(self, what: str, action: Callable[[], T]) -> T:
        """Run an action; once more where a race was lost, or upkeep took the files it read."""
        lost: Exception | None = None
        for attempt in range(_ATTEMPTS):
            try:
                with translated(f"{what} the journal {self._name}"):
                    return action()
            except (CommitConflictError, ConflictError, MissingFileError) as error:
                lost = error
            time.sleep(random.uniform(0, 0.01 * 2**attempt))
        if isinstance(lost, MissingFileError):
            raise lost
        raise ConflictError(
            f"could not {what} the journal {self._name}: other processes were faster "
            f"{_ATTEMPTS} times; try again"
        ) from lost

    def _alone(self, *, wait: float) -> AbstractContextManager[None]:
        """No other process of this machine deletes or compacts meanwhile."""
        return nullcontext() if self._lock_file is None else held(self._lock_file, wait=wait)


def _deletion(
    dataset: lance.LanceDataset, addresses: NDArray[np.uint64]
) -> lance.LanceOperation.Delete:
    """The operation that removes the rows at these addresses."""
    updated, removed = [], []
    numbers, rows = addresses >> np.uint64(32), addresses & np.uint64(0xFFFF_FFFF)
    for number in np.unique(numbers).tolist():
        rest = dataset.get_fragment(number).delete_rows(rows[numbers == number].tolist())
        if rest is None:
            removed.append(number)
        else:
            updated.append(rest)
    return lance.LanceOperation.Delete(updated, removed, predicate="rows by address")


def _older(ids: pa.ChunkedArray, keep: int) -> NDArray[np.bool_]:
    """All but the `keep` greatest ids."""
    texts = ids.to_numpy()
    mask = np.zeros(len(texts), np.bool_)
    mask[np.argsort(texts, kind="stable")[: max(0, len(texts) - keep)]] = True
    return mask
