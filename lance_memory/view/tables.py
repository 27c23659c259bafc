"""The rows as tables - Arrow, Polars, SQL, LanceDB - and as files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from lance_memory.curate.export import ExportManifest, ExportOptions, Source, export
from lance_memory.curate.transform.execute import Execution
from lance_memory.curate.transform.protocol import Transform
from lance_memory.errors import (
    InvalidInputError,
    ScopeError,
)
from lance_memory.move import ArchiveManifest, ArchiveSource, export_archive
from lance_memory.record.arguments import several
from lance_memory.record.filters import Filter, Where
from lance_memory.record.query import check_select
from lance_memory.storage import (
    naming,
)
from lance_memory.view.handle import Handle

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Tables"]

_NO_TABLE = re.compile(r"(?s)relation '.*' was not found")
_VALUES = re.compile(r"(?s)(?<= values): \[.*\]")  # that could not be converted


class Tables(Handle):
    """A handle whose rows are read as tables."""

    def to_arrow(self, *, columns: Sequence[str] | None = None, **where: Unpack[Where]) -> pa.Table:
        """The rows of this scope as Arrow, embeddings included; every state unless asked.

        Raises:
            InvalidInputError: no such column, or a filter makes no sense.
        """
        where.setdefault("states", "any")
        snapshot = self._snapshot()
        there = snapshot.schema.names
        asked = there if columns is None else _columns(columns, there)
        return snapshot.scan(self._predicate(where), columns=asked)

    def to_polars(self) -> pl.LazyFrame:
        """The rows of this scope, every state, as a lazy Polars frame over the table's files.

        It reads them when it is collected, and nothing keeps the version until then: after a while
        upkeep may have removed it, and Polars says that a file is not there. Collect it soon, or
        make it of a version with a tag: `store.at("a-tag").to_polars()`.
        """
        import polars as pl  # slow to import, and most callers never need it

        frame = pl.scan_pyarrow_dataset(self._snapshot().dataset)
        for name, value in self._scope.given().items():
            frame = frame.filter(pl.col(name) == value)
        return frame.with_columns(pl.col("metadata").ext.storage())

    def sql(self, query: str) -> pl.DataFrame:
        """A SELECT over the table `memories`: the rows of this scope, every state, nothing else.

        Raises:
            InvalidInputError: the query is not valid, or names something else.
        """
        import polars as pl

        check_select(query)
        try:
            return pl.SQLContext(memories=self.to_polars()).execute(query, eager=True)
        except (pl.exceptions.PolarsError, TypeError) as error:
            told, *_ = _VALUES.sub("", str(error)).split("\n\n")  # what follows is of the engine
            table = "; the table is `memories`" if _NO_TABLE.fullmatch(told) else ""
            # and no cause: it has what memories say
            raise InvalidInputError(f"the query failed: {told}{table}") from None

    def lancedb_table(self) -> Any:
        """The same table as a `lancedb.table.LanceTable`: query builder, hybrid search, rerankers.

        Of a store it follows the newest version, of a view it stays at that version. Read it as
        you like; write through the store, which alone keeps the rules and the record of writes.
        (LanceDB's lazy `to_polars()` cannot read the JSON column `metadata`: the store's can.)

        Raises:
            ScopeError: the handle is scoped, and the table holds every scope.
        """
        if self._scope:
            raise ScopeError(
                f"a LanceDB table holds every scope, and this handle is scoped to {self._scope}; "
                "use the store's own handle"
            )
        return self._table.lancedb(version=self._pinned.version if self._pinned else None)

    def export(
        self,
        path: str | os.PathLike[str],
        options: ExportOptions | None = None,
        *,
        transform: Transform | None = None,
        execution: Execution | None = None,
        dry_run: bool = False,
        **where: Unpack[Where],
    ) -> ExportManifest:
        """Write training data: examples made of the memories that pass, and a manifest of them.

        Of a version or tag (`at`) it is the same bytes whenever and wherever it is made, given the
        same parameters, a transform that is a function of its cluster, and, for Parquet, the same
        release of pyarrow. The live store decides what has expired now; the manifest's `at` names
        that moment, and `at(that moment)` makes the same export again.

        Args:
            path: a directory, which gets train.jsonl, with a split validation.jsonl, and
                manifest.json; or a file, x.jsonl or x.parquet, which gets its manifest beside it
                (x.jsonl.manifest.json).
            options: how memories become examples; see `ExportOptions`.
            transform: makes one text of each set of near-duplicates, for format "plain"; by
                default, and where it fails, the best of them stays as it is.
            execution: how the transform is called.
            dry_run: write nothing; the manifest is the same.
            where: see `Where`. `min_quality` is asked of the examples: of a conversation's lowest
                rated turn, of a pair's chosen answer.

        Raises:
            InvalidInputError: an option makes no sense, or something is at `path` already.
            EmbeddingError: an evaluation text could not be embedded.
            StorageError: the files cannot be written. Nothing is left of them.
        """
        snapshot = self._snapshot()
        source = Source(
            snapshot=snapshot,
            filter=Filter.of(where, within=self._scope),
            moment=self._moment(),
            branch=self.branch_name,
            embedding_model=snapshot.format.embedding_model,
            embed=self._embed,
        )
        with naming.holding(self._table, snapshot.version):
            return export(
                source,
                path,
                ExportOptions() if options is None else options,
                transform=transform,
                execution=Execution() if execution is None else execution,
                dry_run=dry_run,
            )

    def export_store(
        self, path: str | os.PathLike[str], *, dry_run: bool = False, **where: Unpack[Where]
    ) -> ArchiveManifest:
        """Write an archive: every column of every memory, for `MemoryStore.import_store`.

        Of a version or tag (`at`) it is the same bytes again, where `where` asks nothing about the
        present moment. The version is kept from clean-up while it is read.

        Args:
            path: a new directory, which gets Parquet files and manifest.json; or a file x.zip, the
                same as one file. For its owner alone (0700, 0600).
            dry_run: write nothing; the manifest has the counts and no files.
            where: see `Where`; every state unless asked. Related memories that do not pass are not
                in the archive, and relationships to them stay.

        Raises:
            InvalidInputError: something is at `path` already, that ends like a file of another
                kind, or a filter makes no sense.
            StorageError: the archive cannot be written. Nothing is left of it.
        """
        where.setdefault("states", "any")
        source = self._archive_source(Filter.of(where, within=self._scope))
        return export_archive(source, path, dry_run=dry_run)

    def _archive_source(self, chosen: Filter) -> ArchiveSource:
        return ArchiveSource(
            table=self._table,
            snapshot=self._snapshot(),
            filter=chosen,
            moment=self._moment(),
        )


def _columns(named: object, there: Sequence[str]) -> Sequence[str]:
    """The columns that are asked for, each once.

    Raises:
        InvalidInputError: they are no names, or not of columns that are there.
    """
    found = list(dict.fromkeys(several("columns", named)))
    if unknown := [name for name in found if name not in there]:
        raise InvalidInputError(f"no column {', '.join(unknown)}; there are: {', '.join(there)}")
    return found
