"""The history as frames: what each version did, and what it did to each memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np
import pyarrow as pa

from lance_memory.errors import InvalidInputError
from lance_memory.extras import require
from lance_memory.record.filters import Where
from lance_memory.record.memory import SCOPE_LEVELS, State
from lance_memory.record.rows import FINGERPRINT
from lance_memory.storage import Delta, LogEntry, deltas, history
from lance_memory.view.recounting import Recounting
from lance_memory.view.tables import Tables

if TYPE_CHECKING:
    import polars as pl
    from duckdb import DuckDBPyConnection

__all__ = ["Frames"]

_READ = ("id", "kind", *SCOPE_LEVELS, "state", *FINGERPRINT)


class Frames(Recounting, Tables):
    """A handle whose history is read as frames."""

    def versions_frame(self, *, upkeep: bool = True) -> pl.DataFrame:
        """The log as a frame: a row for each version, oldest first.

        Columns: `version`, `at` (UTC), `operation`, `actor`, `reason`, how many memories it
        `inserted`, `updated` and `deleted`, `upkeep`, whether it is still `readable`, the number of
        `memories` of all states after it, as it was then, and its `tags`. Of what was forgotten
        since the number is told and no more.

        Args:
            upkeep: also the versions that changed no memory.

        Through a scoped handle as `log` shows it, without tags, and `memories` is null; so it is
        where something else than this library wrote later.
        """
        import polars as pl

        entries = self.log(upkeep=True)
        counts = _memories(entries, None if self._scope else self._snapshot().count())
        tags: dict[int, list[str]] = {}
        for name, version in {} if self._scope else self.tags().items():
            tags.setdefault(version, []).append(name)
        schema = _versions()
        told = [name for name in schema if name not in ("memories", "tags")]
        rows = [
            (*(getattr(entry, name) for name in told), after, sorted(tags.get(entry.version, [])))
            for entry, after in zip(entries, counts, strict=True)
            if upkeep or not entry.upkeep
        ]
        return pl.DataFrame(rows[::-1], schema=schema, orient="row")

    def history_frame(self) -> pl.DataFrame:
        """What happened to every memory: a row for each memory and version that changed it.

        Columns: `version`, `at` (UTC), `operation`, `actor`, the memory's `id`, what the `change`
        was, its `kind` and scope (`tenant` ... `run`), `state_before`, `state_after`, `revision`.
        Oldest version first, then by id.

        A `change` is "added", "edited", "removed", the state it went to ("superseded", "retired",
        "contradicted", "pending"), "approved" from pending to active, "restored" to active from
        another, and "kept" for what stands in the oldest version that can be read: how it came
        there was cleaned up. `operation` is null there, and where several writes lie between two
        readable versions; what they changed is told of the last of them, in sum.

        It reads the files that each version does not share with the one before, narrow columns
        alone. `history` follows one memory, with its contents.

        Raises:
            StorageError: a version is damaged.
        """
        import polars as pl

        found = deltas(self._table, until=self._snapshot().version, columns=_READ)
        before = self._within(found, [delta.before for delta in found])
        after = self._within(found, [delta.after for delta in found])
        joined = before.join(
            after, on=["version", "id"], how="full", suffix="_after", coalesce=True
        )
        same = pl.all_horizontal(pl.col(n) == pl.col(f"{n}_after") for n in FINGERPRINT)
        return (
            joined.filter(~same.fill_null(value=False))
            .join(_made(found), on="version")
            .select(
                *("version", "at", "operation", "actor", "id"),
                pl.when("first").then(pl.lit("kept")).otherwise(_change()).alias("change"),
                *(pl.coalesce(f"{n}_after", n).alias(n) for n in ("kind", *SCOPE_LEVELS)),
                pl.col("state").alias("state_before"),
                pl.col("state_after"),
                pl.coalesce("revision_after", "revision").alias("revision"),
            )
            .cast(_history())
            .sort("version", "id")
        )

    def duckdb(
        self, *, columns: Sequence[str] | None = None, **where: Unpack[Where]
    ) -> DuckDBPyConnection:
        """A new DuckDB connection, in memory, with the tables `memories` and `versions`.

        `memories` is what `to_arrow` gives for the same arguments, with `metadata` as JSON text;
        `versions` is `versions_frame`, whose column "at" needs its quotes in DuckDB's SQL. It reads
        them where they are, in UTC, and what is written to the connection stays there.

        Raises:
            MissingExtraError: DuckDB is not installed (extra `analysis`).
            InvalidInputError: as for `to_arrow`.
        """
        connection: DuckDBPyConnection = require("duckdb", "analysis").connect()
        rows = self.to_arrow(columns=columns, **where)
        if not rows.column_names:
            raise InvalidInputError("columns is empty; a table in DuckDB has one at least")
        if "metadata" in rows.column_names:
            text = rows["metadata"].cast(pa.string())
            place = rows.schema.get_field_index("metadata")
            rows = rows.set_column(place, "metadata", text)
        connection.register("memories", rows)
        connection.register("versions", self.versions_frame().to_arrow())
        connection.execute("SET TimeZone = 'UTC'")  # whatever that of the process is
        return connection

    def _within(self, found: Sequence[Delta], rows: Sequence[pa.Table]) -> pl.DataFrame:
        """The rows of all versions, each with its version; of this scope alone."""
        import polars as pl

        versions = np.repeat([delta.entry.version for delta in found], [*map(len, rows)])
        frame = pl.DataFrame(pa.concat_tables(rows)).with_columns(version=versions)
        return frame.filter(*(pl.col(n) == v for n, v in self._scope.given().items()))


def _made(found: Sequence[Delta]) -> pl.DataFrame:
    """When and by whom each of the versions was made, and as what."""
    import polars as pl

    told = [
        (entry.version, entry.at, None if delta.first else entry.operation or None, entry.actor)
        for delta, entry in ((delta, delta.entry) for delta in found)
    ]
    history = _history()
    schema = {name: history[name] for name in ("version", "at", "operation", "actor")}
    first = pl.Series("first", [delta.first for delta in found])
    return pl.DataFrame(told, schema=schema, orient="row").with_columns(first)


def _versions() -> pl.Schema:
    import polars as pl  # slow to import, and most callers never need it

    return pl.Schema(
        {
            "version": pl.Int64(),
            "at": pl.Datetime("us", "UTC"),
            **dict.fromkeys(("operation", "actor", "reason"), pl.String()),
            **dict.fromkeys(("inserted", "updated", "deleted"), pl.Int64()),
            **dict.fromkeys(("upkeep", "readable"), pl.Boolean()),
            "memories": pl.Int64(),
            "tags": pl.List(pl.String()),
        }
    )


def _history() -> pl.Schema:
    import polars as pl

    texts = ("operation", "actor", "id", "change", "kind", *SCOPE_LEVELS)
    return pl.Schema(
        {
            "version": pl.Int64(),
            "at": pl.Datetime("us", "UTC"),
            **dict.fromkeys((*texts, "state_before", "state_after"), pl.String()),
            "revision": pl.Int64(),
        }
    )


def _change() -> pl.Expr:
    """What became of a row, by its states before and after."""
    import polars as pl

    old, new = pl.col("state"), pl.col("state_after")
    back = pl.when(old == State.PENDING).then(pl.lit("approved")).otherwise(pl.lit("restored"))
    return (
        pl.when(old.is_null())
        .then(pl.lit("added"))
        .when(new.is_null())
        .then(pl.lit("removed"))
        .when(old == new)
        .then(pl.lit("edited"))
        .when(new == State.ACTIVE)
        .then(back)
        .otherwise(new)
    )


def _memories(entries: Sequence[LogEntry], newest: int | None) -> Iterator[int | None]:
    """How many memories there were after each entry, from the newest back."""
    there = newest
    for entry in entries:
        yield there
        ours = entry.op_id or (entry.upkeep and entry.operation in history.PHYSICAL)
        there = there - entry.inserted + entry.deleted if ours and there is not None else None
