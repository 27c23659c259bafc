"""restore: a backup becomes a store again, checked before it appears."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

from lance_memory.errors import InvalidInputError, LanceMemoryError, StorageError
from lance_memory.files import beside, make_private, new_file, saving
from lance_memory.move.archive.files import refuse_present
from lance_memory.move.backup.make import surplus, verified
from lance_memory.move.backup.manifest import Backup, BackupFiles, DamagedFile
from lance_memory.move.backup.target import Target
from lance_memory.move.private import copied, local_place, refuse_inside_a_store, settle
from lance_memory.record.arguments import instance
from lance_memory.record.times import utc
from lance_memory.storage import Retain, Table
from lance_memory.storage.disk.manifest import rebased
from lance_memory.storage.disk.moved import fit
from lance_memory.storage.disk.named import named
from lance_memory.storage.history import versions
from lance_memory.storage.naming import all_branches, all_tags
from lance_memory.storage.opening import TABLE_NAME
from lance_memory.wording import counted

__all__ = ["BackupSet", "RestoreResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """A store that was made of a backup: where it is, and what it was made of."""

    uri: str
    backup: Backup


class BackupSet:
    """The backups in a directory that `MemoryStore.backup` has made; none needs its store."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._target = Target(local_place(path, "a backup"))

    def backups(self) -> list[Backup]:
        """The backups whose manifests can be read, the last one first.

        They are in the order that they were made in, whatever the clock said.

        Raises:
            NotFoundError: no backups are kept there.
        """
        return [made.backup for made in reversed(self._target.all().sound)]

    def damaged(self) -> list[DamagedFile]:
        """The manifests that cannot be read.

        Each is a backup that cannot be restored, unless another copy of its manifest is put there.
        While there is one, a backup removes nothing; it may be removed by hand.

        Raises:
            NotFoundError: no backups are kept there.
        """
        return list(self._target.all().damaged)

    def verify(self) -> list[DamagedFile]:
        """Read every file of every backup again, and say which are not what they were.

        Raises:
            NotFoundError: no backups are kept there.
            ConflictError: a backup is being made.
        """
        with self._target.alone(reading=True):
            found = self._target.all()
            return [*found.damaged, *verified(self._target, found.sound)]

    def surplus(self, keep: Retain, *, now: datetime) -> list[Backup]:
        """The backups that `MemoryStore.backup(keep=...)` would remove if it was called now.

        None while a manifest is damaged.
        """
        instance("keep", keep, Retain, "a Retain")
        if not self._target.path.is_dir():
            return []
        found = self._target.all()
        if found.damaged:
            return []
        made = [one.backup for one in found.sound]
        gone = surplus([*(one.made_at for one in made), utc(now, "now")], keep, now=now)
        return [made[i] for i in gone]

    def restore(
        self, path: str | os.PathLike[str], *, at: str | datetime | None = None
    ) -> RestoreResult:
        """Make the store at `path` that a backup is of: versions, tags, branches, side tables.

        It is built beside its place and looked through: every checksum, every line of versions.
        What the backed-up store has written since is not in it; both have the same store id.

        Args:
            path: a new or empty directory of a local disk.
            at: the name of a backup, the beginning of one, or a moment, for the last backup that
                is not younger; None: the last that was made, of those whose manifest can be read.

        Raises:
            NotFoundError: there is no such backup.
            InvalidInputError: something is at `path`, or that is inside a store or the backups.
            ConflictError: a backup is being made.
            StorageError: a file of the backup is damaged; names it. Nothing is left at `path`.
        """
        place = local_place(path, "what is restored")
        refuse_present(place)
        self._refuse_inside(place)
        with (
            self._target.alone(reading=True),
            saving(f"restore to {place}"),
            beside(place) as fresh,
        ):
            made = self._target.chosen(at)
            root = fresh / "store"
            _fill(self._target, made, root)
            _rebase(made, root, place=root)
            _look_through(made, root)
            _rebase(made, root, place=place, target=self._target)
            settle(root, place)
        return RestoreResult(uri=str(place), backup=made.backup)

    def _refuse_inside(self, place: Path) -> None:
        refuse_inside_a_store(place, "what is restored")
        target, real = (Path(os.path.realpath(p)) for p in (self._target.path, place))
        if target in (real, *real.parents):
            raise InvalidInputError(
                f"{place} is inside the backups at {self._target.path}; name another place"
            )


def _fill(target: Target, made: BackupFiles, root: Path) -> None:
    """Every file of the backup, checked while it is copied."""
    for name, one in made.files.items():
        path = root / name
        for above in reversed(PurePosixPath(name).parents):
            make_private(root / above)
        with target.reading(one) as source:
            found = copied(source, path, limit=one.size)
        if found != (one.sha256, one.size):
            raise StorageError(
                f"{target.path / target.path_of(one)}, which is {name} of the store, is damaged; "
                "nothing was restored: name another backup, or mend it with "
                "`lmem backup --verify` while the store is there"
            )


def _rebase(made: BackupFiles, root: Path, *, place: Path, target: Target | None = None) -> None:
    """Make versions that share files look for them at `place`, and refs know their sizes."""
    if not made.bases:
        return
    where = {base: str(place / inner) for base, inner in made.bases.items()}

    def moved(base: str) -> str:
        if base not in where:
            raise StorageError(f"{base} is not a directory that the backup's manifest names")
        return where[base]

    for name, one in made.files.items():
        if "/_versions/" in name and name.startswith(f"{TABLE_NAME}/"):
            with target.reading(one) if target else (root / name).open("rb") as file:
                before = file.read()
            after = rebased(before, moved)
            if after != before:
                _replace(root / name, after)
    for ref in named(root / TABLE_NAME):
        fit(ref, root / TABLE_NAME)


def _replace(path: Path, content: bytes) -> None:
    path.unlink()
    with new_file(path) as file:
        file.write(content)


def _look_through(made: BackupFiles, root: Path) -> None:
    """Open what was restored: the newest version, every branch and every tag.

    Raises:
        StorageError: something is not as it was.
    """
    try:
        table = Table.open(str(root))
        memories, newest = table.latest().count(), table.latest().version
        lines = [table, *(table.on_branch(one.name) for one in all_branches(table))]
        for line in lines:
            line.latest().scan(columns=["id"])
            known = set(versions(line))
            for version in all_tags(line).values():
                line.at(version).count()
            if not known:
                raise StorageError(f"the branch {line.branch} has no version")
    except LanceMemoryError as error:
        raise StorageError(
            f"the backup {made.backup.name} does not make a sound store; nothing was restored: "
            f"{error}"
        ) from error
    if (memories, newest) != (made.backup.memories, made.backup.version):
        raise StorageError(
            f"the backup {made.backup.name} gives {counted(memories, 'memory', 'memories')} at "
            f"version {newest}, not {made.backup.memories} at {made.backup.version}; nothing "
            "was restored"
        )
