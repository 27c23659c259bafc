"""The narrow columns of what may be exported, in the order of the files, group by group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.record.memory import SCOPE_LEVELS, State
from lance_memory.storage import Snapshot

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Frame", "Turn", "read"]

_COLUMNS = (
    *("id", "content_hash", "key", *SCOPE_LEVELS, "role", "actor", "quality", "seq", "state"),
    *("event_at", "created_at", "expires_at"),
)
_ADDRESS = "_rowaddr"
_BLOCK = 8_192
_DIGITS = 6  # of a float32, after the point


@dataclass(frozen=True, slots=True)
class Turn:
    """One memory without its text. `place` is its row in the frame, `group` its group's number."""

    place: int
    group: int
    alone: str
    id: str
    content_hash: str
    key: str | None
    tenant: str
    user: str
    agent: str
    session: str
    run: str
    role: str
    actor: str
    quality: float | None
    state: str
    at: datetime

    @property
    def hidden(self) -> bool:
        """Whether something else took its place."""
        return self.state in (State.SUPERSEDED, State.CONTRADICTED)


_FIELDS = [name for name in Turn.__slots__ if name != "place"]


class Frame:
    """Rows sorted by their group's first time, then group, time, `seq` and id."""

    def __init__(self, rows: pl.DataFrame, levels: Sequence[str]) -> None:
        self._rows = rows
        self._addresses = rows[_ADDRESS].to_numpy()
        self._levels = levels

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def group_count(self) -> int:
        """How many groups there are."""
        return int(self._rows["group"].n_unique())

    def places(self, ids: Sequence[str]) -> NDArray[np.intp]:
        """Where each of these ids stands; -1 for one that does not."""
        import polars as pl

        numbered = self._rows.select("id").with_row_index("place")
        found = pl.DataFrame({"id": ids}, schema={"id": pl.String})
        joined = found.join(numbered, on="id", how="left", maintain_order="left")
        return _whole(joined["place"].cast(pl.Int64).fill_null(-1))

    def codes(self, *names: str) -> NDArray[np.intp]:
        """A number for each row, equal where these columns are."""
        import polars as pl

        ranked = self._rows.select(pl.struct(*names).rank("dense").alias("code"))
        return _whole(ranked["code"]) - 1

    def turns(self) -> Iterator[Turn]:
        """Every memory, in order."""
        place = 0
        for block in self._rows.select(_FIELDS).iter_slices(_BLOCK):
            for values in block.iter_rows():
                yield Turn(place, *values)
                place += 1

    def groups(self) -> Iterator[list[Turn]]:
        """The memories of one group after the other."""
        return (list(members) for _, members in groupby(self.turns(), key=attrgetter("group")))

    def identities(self) -> Iterator[tuple[str, ...]]:
        """What names each group, in order: its scope levels, and the id of a memory by itself."""
        firsts = self._rows.unique("group", keep="first", maintain_order=True)
        return firsts.select(*self._levels, "alone").iter_rows()

    def take(self, snapshot: Snapshot, places: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """The rows at these places, in this order."""
        return snapshot.take(self._addresses[np.asarray(places, dtype=np.intp)], columns)


def read(
    snapshot: Snapshot,
    predicate: str | None,
    *,
    levels: Sequence[str],
    alive_at: datetime | None = None,
) -> Frame:
    """The rows that pass, sorted; a few hundred bytes a memory, however long its text is.

    Args:
        snapshot: the version to read.
        predicate: which rows.
        levels: scope levels that name a group; where the last of them is empty, a row is a
            group by itself.
        alive_at: leave out what has expired by then.
    """
    import polars as pl

    found = pl.DataFrame(pl.from_arrow(snapshot.scan(predicate, columns=[*_COLUMNS, _ADDRESS])))
    if alive_at is not None:
        found = found.filter(pl.col("expires_at").is_null() | (pl.col("expires_at") > alive_at))
    group = [*levels, "alone"]
    by_itself = pl.col(levels[-1]) == ""
    rows = (
        found.with_columns(
            pl.coalesce("event_at", "created_at").alias("at"),
            pl.when(by_itself).then("id").otherwise(pl.lit("")).alias("alone"),
            pl.col("quality").cast(pl.Float64).round(_DIGITS),
        )
        .with_columns(pl.col("at").min().over(group).alias("first"))
        .sort("first", *group, "at", "seq", "id", nulls_last=True)
        .with_columns(pl.struct(group).rle_id().alias("group"))
    )
    return Frame(rows, levels)


def _whole(column: pl.Series) -> NDArray[np.intp]:
    return column.to_numpy().astype(np.intp)
