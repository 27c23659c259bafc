"""Taking memories out of a store, whole, and bringing them into one."""

from lance_memory.move.archive.export import ArchiveSource, export_archive
from lance_memory.move.archive.files import ArchivedFile, ArchiveManifest, archive_format
from lance_memory.move.archive.importing import ImportPlan, ImportResult, import_archive
from lance_memory.move.archive.merging import ImportConflict, OnConflict
from lance_memory.move.archive.putting_away import (
    ArchiveResult,
    file_in,
    place_to_put_away,
    put_away,
    retiring,
)
from lance_memory.move.backup.make import BackupResult, back_up
from lance_memory.move.backup.manifest import Backup, DamagedFile
from lance_memory.move.backup.restore import BackupSet, RestoreResult
from lance_memory.move.private import local_place

__all__ = [
    "ArchiveManifest",
    "ArchiveResult",
    "ArchiveSource",
    "ArchivedFile",
    "Backup",
    "BackupResult",
    "BackupSet",
    "DamagedFile",
    "ImportConflict",
    "ImportPlan",
    "ImportResult",
    "OnConflict",
    "RestoreResult",
    "archive_format",
    "back_up",
    "export_archive",
    "file_in",
    "import_archive",
    "local_place",
    "place_to_put_away",
    "put_away",
    "retiring",
]
