"""A table's path: what may be there, how it is made, and how a version of it is opened."""

from __future__ import annotations

import os
import tempfile
import unicodedata
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from lance_memory.errors import (
    InvalidInputError,
    NotFoundError,
    StorageError,
    StoreFormatError,
)
from lance_memory.files import holds_backups, make_private
from lance_memory.storage.disk.whole import Damage, Versions, found_torn
from lance_memory.storage.engine import UnexplainedError, lance, translated
from lance_memory.storage.lock import held

__all__ = [
    "MAIN",
    "TABLE_NAME",
    "absolute",
    "alone_making",
    "create_table",
    "home_of",
    "of_version",
    "open_newest",
    "opener",
    "refuse_other_things",
    "table_uri",
]

TABLE_NAME = "memories.lance"
MAIN = "main"
_STORAGE_VERSION = "2.1"
_METADATA_CACHE = 64 * 2**20
_INDEX_CACHE = 2**30
"""Bytes that the engine keeps of manifests and file footers, and of indices. By itself it takes
1 GiB and 6 GiB, and the manifests of a long loop of writes fill what they are given."""
_UNOPENABLE = ("Cc", "Cs")  # Unicode categories: controls and surrogates


def open_newest(
    uri: str,
    storage_options: dict[str, str] | None,
    *,
    branch: str = MAIN,
    main: lance.LanceDataset | None = None,
) -> tuple[lance.LanceDataset, Damage | None]:
    """The newest version of a branch, or the last whole one and what is wrong with it."""
    at = opener(uri, storage_options, branch, main)
    if "://" in uri:
        return at(None), None
    return found_torn(table_uri(uri), Versions(home_of(uri, branch), at))


def opener(
    uri: str,
    storage_options: dict[str, str] | None,
    branch: str,
    main: lance.LanceDataset | None,
) -> Callable[[int | None], lance.LanceDataset]:
    """Opens a version of a branch by its number, and the newest for None.

    `main` is a handle on any version; without it the branch is main.
    """
    ref = None if branch == MAIN else branch
    where = f"open {uri}" if ref is None else f"open branch {branch!r} of {uri}"

    def at(version: int | None) -> lance.LanceDataset:
        with translated(where, absent=NotFoundError):
            if main is None:
                root = table_uri(uri)
                return lance.dataset(
                    root,
                    version=version,
                    storage_options=storage_options,
                    metadata_cache_size_bytes=_METADATA_CACHE,
                    index_cache_size_bytes=_INDEX_CACHE,
                )
            return main.checkout_version((ref, version))

    return at


def create_table(uri: str, schema: pa.Schema, options: dict[str, str] | None) -> None:
    """Make an empty table.

    Raises:
        ConflictError, MissingFileError: in an object store, another has made one meanwhile.
    """
    if "://" not in uri:
        make_private(Path(uri))
        lance.write_dataset(
            schema.empty_table(),
            table_uri(uri),
            schema=schema,
            mode="create",
            data_storage_version=_STORAGE_VERSION,
        )
        return
    # As "create" overwrites what another makes between its look and its commit, and here no lock
    # keeps others away. Without rows the engine takes its own storage version for this, 2.2.
    made = lance.LanceOperation.Overwrite(schema, [])
    lance.LanceDataset.commit(table_uri(uri), made, max_retries=0, storage_options=options)


def home_of(uri: str, branch: str) -> str:
    """Where a branch keeps the files that are its own."""
    root = table_uri(uri)
    return root if branch == MAIN else f"{root}/tree/{branch}"


def alone_making(uri: str) -> AbstractContextManager[None]:
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


def of_version(dataset: lance.LanceDataset, version: int) -> lance.LanceDataset:
    """The dataset, which is of that version: of a manifest of zeros the engine makes version 0."""
    if dataset.version != version:
        raise UnexplainedError(f"could not open version {version}: it says that it is another")
    return dataset


def absolute(path: str | os.PathLike[str]) -> str:
    """A local path made absolute, `~` expanded; a `file:` URI as the path that it names.

    Another URI is left as it is, but for slashes at its end.

    Raises:
        InvalidInputError: the engine cannot open such a name.
    """
    text = os.fsdecode(path)
    if not text.isprintable() and any(unicodedata.category(c) in _UNOPENABLE for c in text):
        raise InvalidInputError(
            f"path={text!r} has control characters, or bytes that are no text; name another"
        )
    scheme, mark, rest = text.partition("://")
    if mark and scheme.lower() == "file":
        if not rest.startswith("/"):
            raise InvalidInputError(f"path={text!r} names no local path; write file:///a/path")
        text = unquote(rest)
    elif mark:
        if set(rest) & set("?#"):  # what follows them is no part of the engine's path
            raise InvalidInputError(f"path={text!r} has '?' or '#'; write '%3F' or '%23'")
        return text if not rest else text.rstrip("/")
    return str(Path(text).expanduser().absolute())


def table_uri(uri: str) -> str:
    """The table's own directory, of the store's."""
    return f"{uri.rstrip('/')}/{TABLE_NAME}"


def refuse_other_things(uri: str) -> None:
    """Refuse a local path that is a file, or a directory with something else in it.

    Raises:
        InvalidInputError: the engine would keep the branches of such a path elsewhere.
        StoreFormatError: says which.
        StorageError: the path cannot be looked at.
    """
    if "://" in uri:
        return
    if "?" in uri:  # pylance 14.0.2 takes what follows for a query, of branches
        raise InvalidInputError(f"{uri!r} has '?'; a store's path cannot: name another")
    path = Path(uri)
    with translated(f"open {uri}"):
        if path.is_file():
            raise StoreFormatError(f"{uri} is a file; a store is a directory")
        if holds_backups(path):
            raise StoreFormatError(
                f"{uri} holds backups, and is no store: `lmem backups {uri} --verify` looks them "
                f"over, `lmem restore {uri} PATH` makes a store of the newest"
            )
        if path.is_dir() and not (path / TABLE_NAME).exists() and any(path.iterdir()):
            raise StoreFormatError(
                f"{uri} holds other files and no store; name an empty or a new directory"
            )
        table = path / TABLE_NAME
        rows = any((table / "data").glob("*.lance"))  # a making that was cut short left none
        if rows and not any((table / "_versions").glob("*.manifest")):
            raise StoreFormatError(
                f"{uri} has files of memories and no version of them: a store was copied in part, "
                f"or damaged; restore {TABLE_NAME}/_versions, or the store from a backup"
            )
