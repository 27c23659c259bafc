"""A store that was moved or copied by hand, whose branches look for files where it was.

The engine writes into the manifests of a branch the absolute path of the directory that its parent
has its files in (see `manifest`). What they read there is in the store too: so they are told.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lance_memory.errors import LanceMemoryError, StorageError
from lance_memory.files import write_whole
from lance_memory.storage.disk.manifest import bases_of, rebased
from lance_memory.storage.disk.named import Named, named
from lance_memory.storage.disk.referred import place_here
from lance_memory.storage.engine import translated
from lance_memory.storage.files.readable import manifest_name
from lance_memory.storage.files.tracked import tracked
from lance_memory.storage.lock import UPKEEP

if TYPE_CHECKING:
    from lance_memory.storage.table import Table

__all__ = ["Moved", "brought_home", "fit", "look_for_moved"]

_PATIENCE = 60.0
_MAIN = "main"

Moved = dict[str, dict[str, str]]
"""Branch → directory that its versions look in → where in this store the same files are."""


def look_for_moved(table: Table) -> Moved:
    """The branches that look for files elsewhere which are in this store, under the same names.

    A directory of another store, which a checkout shares, has files that are not here.

    Raises:
        StorageError: the branches cannot be listed.
    """
    if table.is_remote:
        return {}
    with translated("list branches"):
        names = [None, *table.branch_refs()]
    found = {name or _MAIN: _elsewhere(table, name) for name in names}
    return {name: places for name, places in found.items() if places}


def _elsewhere(table: Table, branch: str | None) -> dict[str, str]:
    files: dict[str, set[str]] = defaultdict(set)
    with suppress(LanceMemoryError), translated("list the files of a branch"):  # torn: told of so
        # Not by `on_branch`, which refuses a branch that looks elsewhere.
        line = table.own().dataset.checkout_version((branch, None))
        for file in tracked(line):
            files[file.base].add(file.path)
    places = {}
    for base, names in files.items():
        here = place_here(base, table.root)
        if here is not None and all((here / name).is_file() for name in names):
            places[base] = os.fspath(here)
    return places


def brought_home(table: Table) -> list[str]:
    """Make every version look for the files of this store in this store; which manifests changed.

    Their paths are from the store's directory on. Each is replaced as a whole, so after a kill it
    is the old or the new one, and the rest is done by the next call.

    Raises:
        ConflictError: upkeep has been at work for too long.
        StorageError: a file cannot be written.
    """
    root = Path(os.path.realpath(table.root))
    changed: list[str] = []
    with table.place.alone(UPKEEP, wait=_PATIENCE), translated(f"mend the branches of {root}"):
        for branch, places in look_for_moved(table).items():
            home = root if branch == _MAIN else root / "tree" / branch
            manifests = sorted(home.glob("_versions/*.manifest"))
            fresh = [manifest for manifest in manifests if _rebased(manifest, places)]
            changed += [os.fspath(manifest.relative_to(root.parent)) for manifest in fresh]
        for one in named(root):
            fit(one, root)
    return changed


def _rebased(manifest: Path, places: dict[str, str]) -> bool:
    """Whether the manifest named one of these directories, and names another now."""
    content = manifest.read_bytes()
    with suppress(StorageError):  # damaged, which is told of so
        if places.keys() & {*bases_of(content)}:
            write_whole(manifest, rebased(content, lambda base: places.get(base, base)))
            return True
    return False


def fit(one: Named, root: Path) -> None:
    """Make a tag or a branch know how long the manifest is that it points to.

    Raises:
        OSError: its file cannot be written.
    """
    home = root if one.branch == _MAIN else root / "tree" / one.branch
    manifest = home / manifest_name(one.version)
    if one.size is None or not manifest.is_file():
        return
    size = manifest.stat().st_size
    if size != one.size:
        write_whole(one.path, json.dumps({**one.told, "manifestSize": size}, indent=2))
