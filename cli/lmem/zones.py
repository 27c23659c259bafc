"""Times without a zone, taken as UTC."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lmem.files import Batch

__all__ = ["in_utc"]

_TIMES = (
    "created_at",
    "updated_at",
    "state_at",
    "event_at",
    "valid_from",
    "valid_to",
    "expires_at",
)


def in_utc(batch: Batch) -> Batch:
    """The batch with a zone on every time; what is no time stays as it is."""
    if isinstance(batch.rows, list):
        return replace(batch, rows=[_row(row) for row in batch.rows])
    return replace(batch, rows=_table(batch.rows))


def _row(row: Any) -> Any:
    if not isinstance(row, dict):
        return row
    return {name: _time(value) if name in _TIMES else value for name, value in row.items()}


def _time(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return value
    return value if moment.tzinfo else moment.replace(tzinfo=UTC).isoformat()


def _table(table: Any) -> Any:
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        column, kind = table[field.name], field.type
        if field.name not in _TIMES:
            continue
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            column = pa.array([_time(text) for text in column.to_pylist()], kind)
        elif pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
            column = column.cast(pa.timestamp("us"), safe=False).cast(pa.timestamp("us", "UTC"))
        table = table.set_column(place, field.name, column)
    return table
