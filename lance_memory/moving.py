"""Moving: memories that are put away in files, and come from them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Unpack

from lance_memory.admission import Progress
from lance_memory.curate import retirement
from lance_memory.move import (
    ArchiveManifest,
    ArchiveResult,
    ImportPlan,
    ImportResult,
    OnConflict,
    import_archive,
    local_place,
    place_to_put_away,
    put_away,
    retiring,
)
from lance_memory.record.arguments import one_of
from lance_memory.record.filters import Where
from lance_memory.retaining import Retaining
from lance_memory.storage import Audit, ChangeSet, Snapshot

__all__ = ["Moving"]


class Moving(Retaining):
    """The verbs that move memories out and in; `export_store` is one of every view."""

    def archive(
        self,
        path: str | os.PathLike[str],
        *,
        reason: str = "",
        dry_run: bool = False,
        **where: Unpack[Where],
    ) -> ArchiveResult:
        """Write memories to a file and retire them; `unretire` or `revert` brings them back.

        The file is on the disk and was read back before they are retired, as one version. A crash
        in between leaves the file alone, and the same call goes on from there.

        Args:
            path: a new file x.jsonl or x.parquet, with every column; or, as for `export_store`, a
                directory or x.zip. Other endings are refused.
            reason: kept with each memory, and shown by `log`.
            dry_run: write nothing; the result says how many there are.
            where: see `Where`; visible memories by default, and a scope is needed.

        Raises:
            InvalidInputError: something else is at `path`, or a filter makes no sense.
            ScopeError: a filter without any scope.
            ConflictError: a memory was changed meanwhile, or is superseded; none was retired.
            StorageError: the file cannot be written, or does not read back; or it is there, and
                the store cannot be written to, so that none was retired.
        """
        place = place_to_put_away(path)
        source = self._archive_source(self._of_a_scope(where))
        if dry_run:
            version, found = source.snapshot.version, source.count()
            return ArchiveResult(uri=self.uri, version=version, path=str(place), memories=found)
        seen = put_away(source, place)

        def plan(snapshot: Snapshot) -> ChangeSet:
            rows = snapshot.by_ids(seen, columns=snapshot.schema.names)
            audit = self._audit("archive", reason, manifest={"archive": place.name})
            return replace(retirement(rows, audit=audit), seen=seen)

        with retiring(place):
            written = self._write(plan)
        return ArchiveResult(
            uri=self.uri,
            version=written.version,
            path=str(place),
            memories=len(seen),
            retired=written.updated,
            upkeep=written.upkeep,
        )

    def import_store(
        self,
        path: str | os.PathLike[str],
        *,
        on_conflict: OnConflict | str = OnConflict.REFUSE,
        embed: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ImportResult:
        """Store what an archive of `export_store` has, as one version, or none of it.

        Everything is checked before anything is written. Memories that are there as they are, and
        live ones whose content is there under another id, are not stored again: importing twice
        stores nothing. A scoped handle takes what lies within its scope.

        Args:
            path: a directory or a .zip.
            on_conflict: where an id is taken by another content, or a live key by another memory:
                "refuse" everything; "skip" it and keep what is here; or store it "fresh", under a
                new id (the same at each import), without a key that is taken. Relationships and
                successors of the archive then point to what stands for it.
            embed: embed anew where the archive's vectors are of another model than the store's.
            dry_run: check and decide, and write nothing; clashes are listed, not refused.
            progress: called with (embedded, to embed).

        Raises:
            NotFoundError: nothing is at `path`.
            StoreFormatError: something else is, or the vectors are of another model.
            StorageError: the archive is damaged or cut short; names the file.
            RejectedError: it holds what no store could, one memory or several together; names
                them, or the file.
            ConflictError: memories clash; `ids` lists them.
            EmbeddingError: the embedder failed.
        """

        def audit(manifest: ArchiveManifest) -> Audit:
            told = {"archive": manifest.checksum, "memories": manifest.memories}
            return self._audit("import", manifest=told)

        plan = ImportPlan(
            scope=self._scope,
            on_conflict=OnConflict(one_of("on_conflict", on_conflict, OnConflict)),
            embed=self._embed if embed else None,
            now=self._moment(),
            audit=audit,
            commit=self._commit,
            progress=progress,
        )
        place = local_place(path, "an archive")
        return import_archive(self._table, place, plan, dry_run=dry_run)
