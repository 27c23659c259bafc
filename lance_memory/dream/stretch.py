"""Which memories a bounded pass considered, in the order of learning: the newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Mark", "Stretch", "is_newer", "newest_of"]

Mark: TypeAlias = tuple[datetime, str]
"""The `created_at` and id of a memory: its place in that order, where greater ids come later."""

_ORDER = [("created_at", "descending"), ("id", "ascending")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What one pass considered.

    Attributes:
        top: the newest memory of it; None: it considered none.
        rest: the oldest one, where older ones are left; None: none are.
    """

    top: Mark | None
    rest: Mark | None

    @classmethod
    def of(cls, rows: pa.Table, *, begun: Mark | None, max_rows: int | None) -> Stretch:
        """What a pass over these rows [`created_at`, `id`] takes that begins there."""
        if begun is not None:
            rows = rows.filter(_before(rows, begun))
        rows = rows.sort_by(_ORDER)
        more = max_rows is not None and len(rows) > max_rows
        return cls(
            top=_mark(rows, 0) if len(rows) else None,
            rest=_mark(rows, max_rows - 1) if max_rows is not None and more else None,
        )


def is_newer(one: Mark, other: Mark) -> bool:
    """Whether it comes first."""
    return one[0] > other[0] or (one[0] == other[0] and one[1] < other[1])


def newest_of(mark: Mark) -> Mark:
    """What comes before every memory of that moment, and after all newer ones."""
    return mark[0], ""


def _before(rows: pa.Table, mark: Mark) -> pa.ChunkedArray:
    moment = pa.scalar(mark[0], rows["created_at"].type)
    same = pc.and_(pc.equal(rows["created_at"], moment), pc.greater(rows["id"], mark[1]))
    return pc.or_(pc.less(rows["created_at"], moment), same)


def _mark(rows: pa.Table, place: int) -> Mark:
    return rows["created_at"][place].as_py(), str(rows["id"][place].as_py())
