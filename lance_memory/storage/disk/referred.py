"""The local files that a version refers to, and what its manifest says of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from lance_memory.storage.described import described
from lance_memory.storage.engine import lance, translated

__all__ = ["files_of_rows", "place_here", "referred", "segments"]


def referred(dataset: lance.LanceDataset, home: Path) -> Iterator[Path]:
    """Data, deletion and index files, also those of the branches and stores that it shares.

    Its own manifest is not among them, and neither is what lies in an object store.

    Args:
        dataset: the version.
        home: the directory of its branch.

    Raises:
        StorageError: the version cannot be read.
    """
    yield from (path for path, _, _ in files_of_rows(dataset, home))
    for folder, _ in segments(dataset, home):
        yield from sorted(folder.glob("*"))


def files_of_rows(
    dataset: lance.LanceDataset, home: Path
) -> Iterator[tuple[Path, int | None, int | None]]:
    """The files of rows, each with its bytes; those of deletions, each with its fragment's id."""
    bases = _Bases(dataset, home)
    with translated("list the files of a version"):
        fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    for fragment in fragments:
        for file in fragment.files:
            folder = bases.folder(file.base_id, "data")
            if folder is not None:
                yield folder / file.path, file.file_size_bytes, None
        deletion = fragment.deletion_file
        if deletion is not None:
            folder = bases.folder(deletion.base_id, "")
            if folder is not None:
                yield folder / deletion.path(fragment.id), None, fragment.id


def segments(dataset: lance.LanceDataset, home: Path) -> Iterator[tuple[Path, int | None]]:
    """The directories of the indices, and how many bytes are in each."""
    bases = _Bases(dataset, home)
    for index in described(dataset).values():
        for segment in index.segments:
            folder = bases.folder(segment.base_id, "_indices")
            if folder is not None:
                yield folder / segment.uuid, segment.size_bytes


def place_here(base: str, root: str | os.PathLike[str]) -> Path | None:
    """Where a directory that a version shares files with would lie in the table at `root`.

    A branch names its parent's by an absolute path, and goes on doing so when the store is moved.

    Returns:
        The directory of the same name, if there is one; None where it is `base` itself.
    """
    top, path = Path(os.path.realpath(root)), base.removeprefix("file://").rstrip("/")
    before, mark, inner = path.rpartition(f"/{top.name}")
    here = top / inner.lstrip("/")
    if "://" in path or not mark or not before or not here.is_dir():
        return None
    return None if os.path.realpath(path) == os.path.realpath(here) else here


class _Bases:
    """Where the files lie that a version shares with others."""

    def __init__(self, dataset: lance.LanceDataset, home: Path) -> None:
        self._home = home
        with translated("list the places of a version"):
            self._bases = dataset.base_paths()
        self._found: dict[tuple[int, str], Path | None] = {}

    def folder(self, base: int | None, name: str) -> Path | None:
        """The directory `name` of a base; None where it is in an object store."""
        if base is None:
            return self._home / name
        if (base, name) not in self._found:
            self._found[base, name] = self._of_base(base, name)
        return self._found[base, name]

    def _of_base(self, base: int, name: str) -> Path | None:
        place = self._bases[base]
        path = place.path.removeprefix("file://")
        if "://" in path:
            return None
        # Only a table keeps its files in directories by kind.
        return Path(os.path.realpath(path), name if place.is_dataset_root else "")
