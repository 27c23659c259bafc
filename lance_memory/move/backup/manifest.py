"""What a backup is said to be: its manifest, and what is told of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime

from lance_memory.errors import StorageError
from lance_memory.move.private import safe_name
from lance_memory.move.signed import signed, told_in
from lance_memory.record.times import parse_instant

__all__ = ["NAME", "Backup", "BackupFiles", "DamagedFile", "Manifests", "Stored"]

NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}Z")
"""Of a backup, and of its manifest."""

_FORMAT = "lance-memory backup 1"
_HEX = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """One backup: a store as it was at a moment, its history included.

    Attributes:
        name: its own, which begins with its time.
        made_at: when, by the clock of then.
        sequence: which one of the target's it is, whatever the clock said: later ones have more.
        uri: the store's.
        store_id: the store's own name; "" for one of schema 1.
        version: the newest.
        memories: rows of the newest version.
        files: how many it has.
        bytes: of all its files, also those that other backups have too.
    """

    name: str
    made_at: datetime
    sequence: int
    uri: str
    store_id: str
    version: int
    memories: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedFile:
    """A file of the target that is not what it was, and whom it concerns.

    Attributes:
        file: in the target.
        reason: what is wrong with it.
        paths: what it is in the store, at most ten; none for a backup's manifest.
        backups: the backups that need it.
    """

    file: str
    reason: str
    paths: tuple[str, ...]
    backups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A content: its SHA-256 in hex, and its bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFiles:
    """A backup's manifest.

    Attributes:
        backup: what is told of it.
        files: path from the store's directory on → content.
        bases: directories by which versions name each other's → where these are, from the store's
            directory on.
    """

    backup: Backup
    files: Mapping[str, Stored]
    bases: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """As the manifest's text."""
        told = {
            "format": _FORMAT,
            "backup": {**asdict(self.backup), "made_at": self.backup.made_at.isoformat()},
            "files": {name: [one.sha256, one.size] for name, one in sorted(self.files.items())},
            "bases": dict(self.bases),
        }
        return signed(told)

    @classmethod
    def from_json(cls, text: bytes, where: str) -> BackupFiles:
        """What `to_json` has written.

        Raises:
            StorageError: it is damaged, or names files outside the store.
        """
        try:
            told = told_in(text, form=_FORMAT)
            said = told["backup"]
            backup = Backup(**{**said, "made_at": parse_instant(said["made_at"], "made_at")})
            files = {name: Stored(sha256=s, size=n) for name, (s, n) in told["files"].items()}
            bases = dict(told["bases"])
            sound = (
                all(safe_name(name) for name in (*files, *bases.values()))
                and all(_sound(one) for one in files.values())
                and NAME.fullmatch(backup.name)
                and type(backup.sequence) is int
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StorageError(
                f"{where} is damaged, or no manifest of a backup: {error}"
            ) from error
        if not sound:
            raise StorageError(
                f"{where} is damaged, or was changed since it was made: a name or number in it is "
                "wrong"
            )
        return cls(backup=backup, files=files, bases=bases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """The manifests of a target.

    Attributes:
        sound: those that can be read, in the order that they were made in.
        damaged: the others. While there is one, nobody knows which files its backup has.
    """

    sound: tuple[BackupFiles, ...]
    damaged: tuple[DamagedFile, ...]

    @property
    def next(self) -> int:
        """The number of the next backup: above all, also of those that cannot be read."""
        newest = max((made.backup.sequence for made in self.sound), default=0)
        return newest + len(self.damaged) + 1


def _sound(one: Stored) -> bool:
    number = type(one.size) is int and one.size >= 0
    return number and isinstance(one.sha256, str) and _HEX.fullmatch(one.sha256) is not None
