"""Where an export goes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lance_memory.curate.export.options import ExportFileType, ExportOptions
from lance_memory.errors import InvalidInputError
from lance_memory.files import store_around

__all__ = ["TRAIN", "VALIDATION", "Target"]

TRAIN, VALIDATION = "train", "validation"
_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The files of one export.

    Attributes:
        directory: where they are.
        files: split name → file name.
        manifest: the manifest's file name.
        file_type: how the examples are written.
        outdated: names that an export of another shape has there, and that would pass for part
            of this one.
    """

    directory: Path
    files: Mapping[str, str]
    manifest: str
    file_type: ExportFileType
    outdated: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: str | os.PathLike[str], options: ExportOptions) -> Target:
        """A path that ends in .jsonl or .parquet is a file; any other is a directory.

        Raises:
            InvalidInputError: a split into one file, a suffix that says otherwise than
                `file_type`, a remote path, a place inside a store, or something is there and
                `overwrite` is off.
        """
        name = os.fspath(path)
        if "://" in name or "\0" in name or not name:
            raise InvalidInputError(f"{name!r} is no place on this machine; give a local path")
        place = Path(path)
        store = store_around(place)
        if store is not None:
            raise InvalidInputError(
                f"{name!r} is inside the store {store}; exports lie elsewhere: what is in a store "
                "is looked through, and cleared, when something is forgotten"
            )
        suffix = place.suffix.removeprefix(".").lower()
        single = suffix in list(ExportFileType)
        target = (
            _file(place, ExportFileType(suffix), options) if single else _folder(place, options)
        )
        target._refuse_taken(overwrite=options.overwrite)
        return target

    def _refuse_taken(self, *, overwrite: bool) -> None:
        place = os.fspath(self.directory)
        if self.directory.exists() and not self.directory.is_dir():
            raise InvalidInputError(
                f"{place!r} is a file; give a directory, or a name that ends in .jsonl or .parquet"
            )
        names = (*self.files.values(), self.manifest, *self.outdated)
        taken = [name for name in names if (self.directory / name).exists()]
        if any((self.directory / name).is_dir() for name in taken):
            raise InvalidInputError(f"{place!r} has a directory by the name of {taken[0]!r}")
        if taken and not overwrite:
            raise InvalidInputError(
                f"{place!r} has an export already ({', '.join(taken)}); name another place, "
                "or ask to overwrite it"
            )


def _file(place: Path, kind: ExportFileType, options: ExportOptions) -> Target:
    if options.file_type not in (None, kind):
        raise InvalidInputError(
            f"{place.name!r} is to be {options.file_type}, and its suffix says {kind}"
        )
    if options.validation:
        raise InvalidInputError(
            f"{place.name!r} is one file, and a split makes two; give a directory"
        )
    return Target(
        directory=place.parent,
        files={TRAIN: place.name},
        manifest=f"{place.name}.{_MANIFEST}",
        file_type=kind,
    )


def _folder(place: Path, options: ExportOptions) -> Target:
    kind = ExportFileType(options.file_type or ExportFileType.JSONL)
    splits = (TRAIN, VALIDATION) if options.validation else (TRAIN,)
    files = {split: f"{split}.{kind}" for split in splits}
    usual = {f"{split}.{kind}" for split in (TRAIN, VALIDATION) for kind in ExportFileType}
    return Target(
        directory=place,
        files=files,
        manifest=_MANIFEST,
        file_type=kind,
        outdated=tuple(sorted(usual - set(files.values()))),
    )
