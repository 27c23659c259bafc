"""What the versions of a line refer to, as the engine lists it."""

from __future__ import annotations

from typing import NamedTuple

from lance_memory.storage.engine import lance

__all__ = ["TrackedFile", "tracked"]


class TrackedFile(NamedTuple):
    """A file that a version refers to.

    Attributes:
        version: the number of the version.
        kind: "data", "deletion", "index", "manifest" or "transaction".
        base: the directory that `path` begins at.
        path: the file, from there on.
    """

    version: int
    kind: str
    base: str
    path: str


def tracked(dataset: lance.LanceDataset) -> list[TrackedFile]:
    """The files of every version of a dataset's line; call it within `translated`.

    All of them or none: where one manifest is damaged, the engine raises.
    """
    rows = dataset.tracked_files().read_all()
    columns = (rows[name].to_pylist() for name in ("version", "type", "base_uri", "path"))
    return [
        TrackedFile(int(version), kind.partition(" ")[0], base, path)
        for version, kind, base, path in zip(*columns, strict=True)
    ]
