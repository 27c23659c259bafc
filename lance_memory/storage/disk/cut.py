"""Data files that were cut short when they were written.

pylance 14.0.2 passes over the error of a file's last write: where the disk, a quota or a limit on
the size of files ends within the last few kilobytes, it goes on as if the file were whole, and the
version that is made of it cannot be read. So sizes are compared before anything is committed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lance_memory.storage.engine import NoSpaceError, name_of, translated

if TYPE_CHECKING:
    from lance import FragmentMetadata

__all__ = ["refuse_cut"]


def refuse_cut(fragments: Iterable[FragmentMetadata], home: str) -> None:
    """Refuse new fragments with a file that is shorter than what was written to it.

    Args:
        fragments: of a version that is not committed yet.
        home: the directory of their branch; an object store keeps whole objects or none.

    Raises:
        NoSpaceError: says which file.
        MissingFileError: one is not there.
    """
    if "://" in home:
        return
    for fragment in fragments:
        for file in fragment.files:
            path = f"{home}/data/{name_of(file)}"
            with translated(f"look at {path}"):
                there = os.stat(path).st_size  # noqa: PTH116 (making a Path takes longer than this)
            if file.file_size_bytes and there != file.file_size_bytes:
                raise NoSpaceError(
                    f"could not write {path}: {there} of {file.file_size_bytes} "
                    "bytes are there: the disk is full, or the size of files is limited; nothing "
                    "was written: free some"
                )
