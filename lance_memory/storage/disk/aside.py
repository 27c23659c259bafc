"""What a power cut has torn, moved out of the way; nothing is deleted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lance_memory.files import to_disk
from lance_memory.storage.disk.durable import OnDisk
from lance_memory.storage.disk.named import named, torn_refs
from lance_memory.storage.disk.whole import NoneOpensError, Versions
from lance_memory.storage.engine import lance, translated
from lance_memory.storage.files.readable import manifest_name
from lance_memory.storage.lock import UPKEEP, held

if TYPE_CHECKING:
    from lance_memory.storage.table import Table

__all__ = ["mended", "set_aside"]

_ASIDE = "torn"
"""The directory beside the table that torn manifests and refs are moved to."""

_PATIENCE = 60.0
"""Seconds that are waited for others who do the same, or for a step of upkeep."""


def mended(uri: str, at: Callable[[int | None], lance.LanceDataset]) -> lance.LanceDataset:
    """The newest version of a side table; its torn ones are set aside at once.

    What they had is of no account: a journal that matters is put on the disk before it is needed.

    Raises:
        NotFoundError: there is none, or every version was torn.
        ConflictError: others are at it for too long.
        StorageError: a file cannot be moved.
    """
    versions = Versions(uri, at)
    dataset, torn = _looked(versions)
    if torn:
        store = versions.home.parent
        # Who was faster may have made a version of a torn one's number: so look again, alone.
        with held(store / f"{versions.home.stem}.mending.lock", wait=_PATIENCE):
            dataset, torn = _looked(versions)
            _move([versions.home / manifest_name(number) for number in torn], store)
    return at(None) if dataset is None else dataset


def _looked(versions: Versions) -> tuple[lance.LanceDataset | None, tuple[int, ...]]:
    """The version of a side table that is read, and the torn ones above it; None: all are."""
    try:
        look = versions.look()
    except NoneOpensError as error:
        return None, error.torn
    return look.dataset, look.torn


def set_aside(table: Table) -> list[str]:
    """Move the torn versions, tags and branches away: the version that is read becomes the newest.

    So are the tags and branches on versions that go, as later writes use the numbers anew and these
    would name other contents. All goes to the directory `torn` beside the table, under the path it
    had, and nothing is deleted. But data files that no version has any more are taken for nobody's
    after seven days: for a look at them, copy the store before.

    No write that was acknowledged with `durability="power"` is among it. With "process" there may
    be: what a power cut takes of those, nobody knows.

    Returns:
        What was moved, as paths from the store's directory on; empty where nothing is torn, or
        only indices are: those are to be built anew.

    Raises:
        ConflictError: upkeep has been at work for too long.
        StorageError: a file cannot be moved, or no version can be opened.
    """
    if table.is_remote or table.damage is None:
        return []
    home, store = (Path(os.path.realpath(place)) for place in (table.home, table.uri))
    with table.place.alone(UPKEEP, wait=_PATIENCE):
        look = table.by_name().look()
        moving = [home / manifest_name(number) for number in look.torn]
        moving += map(Path, torn_refs(table.root))
        if look.torn:
            moving += _beyond(table.root, table.branch, int(look.dataset.version))
        moved = _move(moving, store)
    OnDisk(home).put([new for _, new in moved])
    for folder in sorted({old.parent for old, _ in moved}):
        to_disk(folder)
    return [os.path.relpath(old, store) for old, _ in moved]


def _beyond(root: str, branch: str, last: int) -> list[Path]:
    """The tags and branches on versions of a branch above `last`, and what is on those in turn.

    Of a branch it is the file that names it, and the directory of its versions: the name is free.
    """
    left, ends, found = named(root), {branch: last}, []
    while more := [one for one in left if one.version > ends.get(one.branch, one.version)]:
        left = [one for one in left if one not in more]
        found += [one.path for one in more]
        for one in (one for one in more if not one.is_tag):
            ends[one.name] = 0
            found.append(Path(os.path.realpath(root), "tree", one.name, "_versions"))
    return [path for path in found if path.exists()]


def _move(paths: Iterable[Path], store: Path) -> list[tuple[Path, Path]]:
    with translated(f"set aside what is torn in {store}"):
        return [_moved(path, store) for path in paths]


def _moved(path: Path, store: Path) -> tuple[Path, Path]:
    """Move a file out of the table; where it was, and where it is."""
    target = store / _ASIDE / path.relative_to(store)
    target.parent.mkdir(parents=True, exist_ok=True)
    number = 0
    while target.exists():
        number += 1
        target = target.with_name(f"{path.name}.{number}")
    path.rename(target)
    return path, target
