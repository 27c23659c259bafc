"""backup: a new one among those that a target has, rotation, and what is damaged."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lance_memory.errors import ConflictError
from lance_memory.move.backup.copying import Copying
from lance_memory.move.backup.manifest import Backup, BackupFiles, DamagedFile, Stored
from lance_memory.move.backup.target import Target
from lance_memory.move.private import local_place, refuse_inside_a_store
from lance_memory.record.arguments import instance
from lance_memory.storage import Table
from lance_memory.storage.upkeep.retain import Retain, to_clean
from lance_memory.wording import counted, some

__all__ = ["BackupResult", "back_up", "surplus", "verified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupResult:
    """A backup that was made, and what it took.

    Attributes:
        target: the directory of the backups, absolute.
        backup: what was made.
        copied: how many files the target did not have.
        copied_bytes: of those.
        removed: names of the backups that were let go.
        removed_bytes: of the files that no backup needs any more.
        left_out: versions that were cleaned up while they were copied, as "branch:version"; and,
            by file, manifests of versions that are damaged, and transactions that the store has
            lost: nobody needs those, as each version has a copy.
        damaged: the manifests of the target that cannot be read; and what `verify` found wrong with
            it, and the store could not mend. While a manifest cannot be read, nobody knows which
            files its backup has: nothing is removed.
    """

    target: str
    backup: Backup
    copied: int
    copied_bytes: int
    removed: tuple[str, ...]
    removed_bytes: int
    left_out: tuple[str, ...]
    damaged: tuple[DamagedFile, ...]

    def __str__(self) -> str:
        made = self.backup
        told = {
            "removed": self.removed,
            "left out": self.left_out,
            "damaged": [one.file for one in self.damaged],
        }
        notes = [f"; {name}: {some(values)}" for name, values in told.items() if values]
        return (
            f"backup {made.name} of version {made.version} at {self.target}: "
            f"{counted(made.files, 'file')}, {self.copied} copied{''.join(notes)}"
        )


def back_up(
    table: Table, path: str | os.PathLike[str], *, now: datetime, keep: Retain | None, verify: bool
) -> BackupResult:
    """Add a backup to `path`; see `Maintenance.backup`."""
    path = local_place(path, "a backup")
    refuse_inside_a_store(path, "a backup")
    if keep is not None:
        instance("keep", keep, Retain, "a Retain, or None")
    target = Target(path)
    target.make()
    with target.alone():
        earlier = target.all()
        _refuse_other_store(table, earlier.sound, path)
        damaged = verified(target, earlier.sound) if verify else []
        copying = Copying(table, target, earlier, bad={_sha(one.file) for one in damaged})
        made = copying.made(now)
        target.add(made)
        manifests = [*earlier.sound, made]
        removed, freed = [], 0
        if not earlier.damaged:
            removed = _rotated(target, manifests, keep, now=now)
            manifests = [one for one in manifests if one.backup.name not in removed]
            freed = target.sweep(manifests)
        checked = _unmended(target, manifests, damaged, copying.fresh) if verify else []
    return BackupResult(
        target=str(path),
        backup=made.backup,
        copied=len(copying.fresh),
        copied_bytes=sum(one.size for one in copying.fresh),
        removed=tuple(removed),
        removed_bytes=freed,
        left_out=tuple(sorted(copying.left_out)),
        damaged=(*earlier.damaged, *checked),
    )


def verified(target: Target, manifests: Collection[BackupFiles]) -> list[DamagedFile]:
    """Read every file of these backups, and say which are not what they were."""
    wanted = dict.fromkeys(one for made in manifests for one in made.files.values())
    return _damaged(target, manifests, wanted)


def _damaged(
    target: Target, manifests: Collection[BackupFiles], wanted: Collection[Stored]
) -> list[DamagedFile]:
    wrong = {one: reason for one in wanted if (reason := target.wrong(one))}
    found = []
    for one, reason in wrong.items():
        having = [made for made in manifests if one in made.files.values()]
        paths = {p for made in having for p, content in made.files.items() if content == one}
        found.append(
            DamagedFile(
                file=target.path_of(one),
                reason=reason,
                paths=tuple(sorted(paths)[:10]),
                backups=tuple(made.backup.name for made in having),
            )
        )
    return found


def _unmended(
    target: Target,
    manifests: Collection[BackupFiles],
    damaged: Collection[DamagedFile],
    fresh: Collection[Stored],
) -> list[DamagedFile]:
    """Of what was damaged or is new, what does not read back right."""
    before = {_sha(one.file) for one in damaged}
    contents = dict.fromkeys(one for made in manifests for one in made.files.values())
    suspects = [one for one in contents if one.sha256 in before or one in fresh]
    return _damaged(target, manifests, suspects)


def _sha(file: str) -> str:
    return file.rpartition("/")[2]


def _refuse_other_store(table: Table, earlier: Collection[BackupFiles], path: Path) -> None:
    """One target has the backups of one store.

    Raises:
        ConflictError: these are another's.
    """
    for made in earlier:
        known, own = made.backup.store_id, table.format.store_id
        same = known == own if known and own else made.backup.uri == table.uri
        if not same:
            raise ConflictError(
                f"{path} has the backups of another store ({made.backup.uri}); nothing was "
                f"written: name another directory for those of {table.uri}"
            )


def surplus(made_at: Sequence[datetime], keep: Retain, *, now: datetime) -> list[int]:
    """Positions of the backups that are not to be kept, of all in the order of their making.

    The last one always is.
    """
    newest = len(made_at) - 1
    return to_clean(dict(enumerate(made_at)), keep, now=now, pinned=[newest])


def _rotated(
    target: Target, manifests: list[BackupFiles], keep: Retain | None, *, now: datetime
) -> list[str]:
    """Remove the backups that are not to be kept."""
    if keep is None:
        return []
    gone = surplus([made.backup.made_at for made in manifests], keep, now=now)
    names = [manifests[i].backup.name for i in gone]
    for name in names:
        target.drop(name)
    return names
