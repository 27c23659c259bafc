"""The small files beside a store's table, on a local disk or in an object store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO

import pyarrow.compute as pc

from lance_memory.errors import NotFoundError
from lance_memory.files import write_whole
from lance_memory.storage.engine import lance, translated
from lance_memory.storage.lock import held

__all__ = ["Place"]


class Place:
    """A directory of files, each written as a whole and read as a whole.

    On a local disk through the operating system; elsewhere through the engine, with the same
    options as the table.
    """

    def __init__(self, uri: str, *, storage_options: Mapping[str, str] | None = None) -> None:
        self.uri = uri.rstrip("/")
        self.local = None if "://" in uri else Path(uri)
        self._options = dict(storage_options) if storage_options else None

    def names(self, under: str = "") -> list[str]:
        """The files below `under`, as paths from here, sorted; none where there is no directory."""
        if self.local is not None:
            files = _files(self.local / under)
            return sorted(path.relative_to(self.local).as_posix() for path, _ in files)
        with translated(f"list the files of {self.uri}"):
            return sorted(self._session().list(under or None))

    def size(self) -> int:
        """The bytes of all files; in an object store, of those of the tables."""
        if self.local is not None:
            return sum(size for _, size in _files(self.local))
        tables = {name.partition("/")[0] for name in self.names() if ".lance/" in name}
        with translated(f"list the files of {self.uri}"):
            return sum(self._size_of(table) for table in sorted(tables))

    def _size_of(self, table: str) -> int:
        dataset = lance.dataset(f"{self.uri}/{table}", storage_options=self._options)
        files = dataset.all_files().read_all()
        return int(pc.sum(files["size_bytes"]).as_py() or 0)

    def read(self, name: str) -> bytes:
        """A file's content.

        Raises:
            NotFoundError: there is none.
            StorageError: it cannot be read.
        """
        with self.reading(name) as file:
            return file.read()

    @contextmanager
    def reading(self, name: str) -> Iterator[BinaryIO]:
        """A file to be read a part at a time; from an object store it is fetched first.

        Raises:
            NotFoundError: there is none.
            StorageError: it cannot be read.
        """
        with ExitStack() as stack, translated(f"read {self.uri}/{name}", absent=NotFoundError):
            path = None if self.local is None else self.local / name
            if path is None:
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                path = Path(folder) / "copy"
                self._session().download_file(name, str(path))
            yield stack.enter_context(path.open("rb"))

    def write(self, name: str, content: bytes) -> None:
        """Make `content` the file's; after a kill or a power cut it is the old or the new one.

        Raises:
            StorageError: it cannot be written; the file is as it was.
        """
        with translated(f"write {self.uri}/{name}"):
            if self.local is not None:
                (self.local / name).parent.mkdir(parents=True, exist_ok=True)
                write_whole(self.local / name, content)
                return
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder) / "copy"
                copy.write_bytes(content)
                self._session().upload_file(str(copy), name)

    def remove(self, name: str) -> None:
        """Remove a file; none is fine.

        Raises:
            StorageError: it cannot be removed.
        """
        with translated(f"remove {self.uri}/{name}"):
            if self.local is not None:
                (self.local / name).unlink(missing_ok=True)
            elif self._session().contains(name):
                self._session().delete_file(name)

    def alone(self, name: str, *, wait: float | None) -> AbstractContextManager[None]:
        """Hold a lock named `name` between processes of one machine; in an object store, nothing.

        There what is done alone has to be safe when two do it. See `lock.held`.
        """
        return nullcontext() if self.local is None else held(self.local / name, wait=wait)

    def _session(self) -> Any:
        from lance.file import LanceFileSession

        return LanceFileSession(self.uri, self._options)


def _files(start: Path) -> Iterator[tuple[Path, int]]:
    """The files below a directory, each with its size; upkeep may take some away meanwhile."""

    def passed(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | PermissionError):
            raise error

    for directory, _, names in os.walk(start, onerror=passed):
        for name in names:
            with suppress(FileNotFoundError):
                path = Path(directory, name)
                found = path.stat()
                if S_ISREG(found.st_mode):
                    yield path, found.st_size
