"""Taking memories out of a store, whole, and bringing them into one."""

from lance_memory.move.archive import ArchiveSource, export_archive
from lance_memory.move.archive_files import ArchivedFile, ArchiveManifest, archive_format
from lance_memory.move.backup import BackupResult, back_up
from lance_memory.move.backup_set import Backup, DamagedFile
from lance_memory.move.importing import ImportPlan, ImportResult, import_archive
from lance_memory.move.merging import ImportConflict, OnConflict
from lance_memory.move.private import local_place
from lance_memory.move.putting_away import ArchiveResult, put_away
from lance_memory.move.restore import BackupSet, RestoreResult

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
    "import_archive",
    "local_place",
    "put_away",
]
