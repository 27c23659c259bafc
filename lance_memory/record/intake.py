"""What a caller gives becomes checked rows, all of a batch or none of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import InvalidInputError, RejectedError
from lance_memory.record.identity import content_hashes, new_ids
from lance_memory.record.memory import SCOPE_LEVELS, Kind, Relationship, Scope, State
from lance_memory.record.rows import EMBEDDING, relationship_values
from lance_memory.record.times import parse_instant, utc

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike

__all__ = ["Batch", "Details", "Fields", "take_in"]

Batch: TypeAlias = (
    "Iterable[str | Mapping[str, Any]] | pa.Table | pa.RecordBatch | pl.DataFrame | pl.LazyFrame"
)


class Details(TypedDict, total=False):
    """What a caller may say of a memory beside its content; see `Memory` for the meanings.

    `embedding`: d finite numbers, not all zero; left out, the store's embedder makes it.
    """

    id: str
    tenant: str
    user: str
    agent: str
    session: str
    run: str
    kind: Kind | str
    role: str
    actor: str
    metadata: Mapping[str, Any]
    tags: Sequence[str]
    importance: float
    confidence: float
    quality: float | None
    event_at: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    expires_at: datetime | None
    seq: int | None
    state: State | str
    relationships: Sequence[Relationship]
    source: str
    source_ref: str
    embedding: ArrayLike | None


class Fields(Details, total=False):
    """`Details`, and the caller's own `key`."""

    key: str | None


def take_in(batch: Batch, *, schema: pa.Schema, scope: Scope, now: datetime) -> pa.Table:
    """The batch as rows of `schema`, with defaults filled in; embeddings only where given.

    Args:
        batch: contents, mappings of column names to values, or a table of such columns.
            Times are aware datetimes or ISO 8601 texts with a zone.
        schema: the table's.
        scope: the handle's; rows that name none get it, rows that name another are refused.
        now: becomes `created_at`, `updated_at` and `state_at` where not given.

    Raises:
        RejectedError: says which rows, what was found, and what is expected.
    """
    columns = _columns(batch, schema)
    taken = _Intake(schema=schema, columns=columns, size=_size(columns))
    arrays = {field.name: taken.column(field, scope, now) for field in schema}
    rows = pa.table(arrays, schema=schema)
    for check in _CHECKS:
        check(rows)
    return rows


def _arrow(batch: Batch) -> Iterable[str | Mapping[str, Any]] | pa.Table | pa.RecordBatch:
    """Polars frames as Arrow, without importing polars; anything else as it is."""
    frame: Any = batch
    if hasattr(frame, "collect") and hasattr(frame, "lazy"):
        frame = frame.collect()
    return frame.to_arrow() if hasattr(frame, "to_arrow") else frame


def _columns(batch: Batch, schema: pa.Schema) -> dict[str, Any]:
    """Column name → list, Arrow array, for the columns that are given."""
    batch = _arrow(batch)
    if isinstance(batch, pa.RecordBatch):
        batch = pa.Table.from_batches([batch])
    if isinstance(batch, pa.Table):
        columns: dict[str, Any] = {
            name: batch[name].combine_chunks() for name in batch.column_names
        }
    elif isinstance(batch, str | bytes | Mapping) or not isinstance(batch, Iterable):
        raise InvalidInputError(
            f"a batch is an iterable of memories or a table, and this is one "
            f"{type(batch).__name__}; for a single memory call add()"
        )
    else:
        columns = _from_items([*batch])
    unknown = sorted(columns.keys() - set(schema.names))
    if unknown:
        raise RejectedError(
            f"no column {', '.join(map(repr, unknown))}; a memory has: {', '.join(schema.names)} "
            "(anything else goes into metadata)",
            rows=_rows_naming(columns, unknown[0]),
        )
    return columns


class _Absent:
    """Stands for a value that an item does not give."""


_ABSENT = _Absent()


def _from_items(items: list[str | Mapping[str, Any]]) -> dict[str, Any]:
    mappings: list[Mapping[str, Any]] = []
    for i, item in enumerate(items):
        if isinstance(item, str):
            mappings.append({"content": item})
        elif isinstance(item, Mapping):
            mappings.append(item)
        else:
            raise RejectedError(
                f"row {i} is a {type(item).__name__}; a memory is a text or a mapping", rows=[i]
            )
    names = dict.fromkeys(name for mapping in mappings for name in mapping)
    columns = {str(name): [m.get(name, _ABSENT) for m in mappings] for name in names}
    return columns or {"content": []}


def _size(columns: Mapping[str, Any]) -> int:
    return len(next(iter(columns.values())))


def _rows_naming(columns: Mapping[str, Any], name: str) -> list[int]:
    column = columns[name]
    return [i for i, v in enumerate(column) if v is not _ABSENT] if isinstance(column, list) else []


@dataclass(frozen=True, slots=True)
class _Intake:
    """A batch on its way in."""

    schema: pa.Schema
    columns: Mapping[str, Any]
    size: int

    def column(self, field: pa.Field, scope: Scope, now: datetime) -> pa.Array:
        name = field.name
        if name == "content_hash":
            return pa.array(content_hashes(self._content()), field.type)
        if name == "id":
            return self._ids(now)
        default = scope.names()[name] if name in SCOPE_LEVELS else _DEFAULTS.get(name)
        if name in _STAMPS:
            default = now
        given = self.columns.get(name)
        if given is None:
            return self._constant(default, field)
        array = self._given(given, default, field)
        if name in SCOPE_LEVELS and scope.names()[name]:
            _inside(array, name, scope)
        return array

    def _content(self) -> list[str]:
        texts = self.columns.get("content")
        values = texts.to_pylist() if isinstance(texts, pa.Array) else list(texts or ())
        bad = [i for i, t in enumerate(values) if not isinstance(t, str) or not t.strip()]
        if texts is None or bad:
            found = (
                "nothing" if texts is None or values[bad[0]] is _ABSENT else repr(values[bad[0]])
            )
            raise RejectedError(
                f"{_rows(bad or range(self.size))}: content is {found}; a memory needs a text "
                "that is not blank",
                rows=bad or range(self.size),
            )
        _encodable("content", values)
        return values

    def _ids(self, now: datetime) -> pa.Array:
        given = self.columns.get("id")
        fresh = new_ids(self.size, now)
        if given is None:
            return pa.array(fresh, pa.string())
        values = given.to_pylist() if isinstance(given, pa.Array) else given
        ids = [fresh[i] if v is _ABSENT or v is None else v for i, v in enumerate(values)]
        _texts("id", ids, blank=False)
        return pa.array(ids, pa.string())

    def _constant(self, value: Any, field: pa.Field) -> pa.Array:
        if value is None:
            return pa.nulls(self.size, field.type)
        if pa.types.is_nested(field.type) or isinstance(field.type, pa.BaseExtensionType):
            return _build(field, [value] * self.size)
        return pa.repeat(pa.scalar(value, field.type), self.size)

    def _given(self, given: Any, default: Any, field: pa.Field) -> pa.Array:
        if isinstance(given, pa.Array):
            ready = _cast(given, field)
            if ready is not None:
                return ready.fill_null(default) if _fills(ready, default) else ready
            given = given.to_pylist()
        values = [default if v is _ABSENT or v is None else v for v in given]
        return _build(field, _PREPARE.get(field.name, _PLAIN)(field.name, values))


def _fills(array: pa.Array, default: Any) -> bool:
    return default is not None and array.null_count > 0 and not pa.types.is_nested(array.type)


def _cast(given: pa.Array, field: pa.Field) -> pa.Array | None:
    """`given` as the column's type where that loses nothing; None: go value by value."""
    if pa.types.is_timestamp(field.type):
        if pa.types.is_timestamp(given.type) and given.type.tz is None:
            raise RejectedError(
                f"column {field.name} holds {given.type}, times without a zone; "
                f"make them {field.type}",
                rows=range(len(given)),
            )
        return given.cast(field.type) if pa.types.is_timestamp(given.type) else None
    if field.name == EMBEDDING:
        return _cast_vectors(given, field)
    if given.type == field.type:
        return given
    simple = pa.types.is_string(field.type) or pa.types.is_floating(field.type)
    textual = pa.types.is_large_string(given.type) or pa.types.is_string_view(given.type)
    numeric = pa.types.is_integer(given.type) or pa.types.is_floating(given.type)
    if simple and (textual if pa.types.is_string(field.type) else numeric):
        return given.cast(field.type, safe=False)
    return None


def _cast_vectors(given: pa.Array, field: pa.Field) -> pa.Array | None:
    width = field.type.list_size
    if pa.types.is_fixed_size_list(given.type) and given.type.list_size == width:
        if given.type.value_type == pa.float32():
            return given.cast(field.type)
        return given.cast(pa.list_(pa.float32(), width), safe=False)
    return None


def _build(field: pa.Field, values: list[Any]) -> pa.Array:
    try:
        if isinstance(field.type, pa.BaseExtensionType):
            storage = pa.array(values, field.type.storage_type)
            return pa.ExtensionArray.from_storage(field.type, storage)
        return pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, UnicodeError) as error:
        bad = [i for i, value in enumerate(values) if not _fits(value, field)]
        found = repr(values[bad[0]])[:120] if bad else str(error)
        raise RejectedError(
            f"{_rows(bad)}: {field.name} is {found}; it takes {field.type}", rows=bad
        ) from error


def _fits(value: Any, field: pa.Field) -> bool:
    try:
        pa.array([value], getattr(field.type, "storage_type", field.type))
    except (pa.ArrowException, TypeError, ValueError, OverflowError, UnicodeError):
        return False
    return True


def _plain(_name: str, values: list[Any]) -> list[Any]:
    return values


_PLAIN: Callable[[str, list[Any]], list[Any]] = _plain


def _text_values(name: str, values: list[Any]) -> list[Any]:
    _texts(name, [v for v in values if v is not None])
    return values


def _texts(name: str, values: list[Any], *, blank: bool = True) -> None:
    bad = [i for i, v in enumerate(values) if not isinstance(v, str) or not (blank or v.strip())]
    if bad:
        raise RejectedError(
            f"{_rows(bad)}: {name} is {values[bad[0]]!r}; it takes a text", rows=bad
        )
    _encodable(name, values)


def _encodable(name: str, values: Sequence[str]) -> None:
    for i, value in enumerate(values):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise RejectedError(
                f"{_rows([i])}: {name} holds a lone surrogate ({error.reason} at position "
                f"{error.start}), which is no Unicode text; decode it with errors='replace'",
                rows=[i],
            ) from error


def _time_values(name: str, values: list[Any]) -> list[Any]:
    return [_at_row(i, _instant, name, v) for i, v in enumerate(values)]


def _instant(name: str, value: Any) -> datetime | None:
    if value is None:
        return None
    if isinstance(value, str):
        return parse_instant(value, name)
    if isinstance(value, datetime):
        return utc(value, name)
    raise InvalidInputError(f"{name}={value!r} is no time; it takes an aware datetime")


def _json_values(name: str, values: list[Any]) -> list[Any]:
    return [_at_row(i, _json_text, name, v) for i, v in enumerate(values)]


def _json_text(name: str, value: Any) -> str:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise InvalidInputError(f"{name} is a text that is not JSON: {error}") from error
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise InvalidInputError(f"{name} is {value!r}; it takes a mapping with text keys")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, UnicodeError) as error:
        raise InvalidInputError(f"{name} cannot be written as JSON: {error}") from error
    return text


def _tag_values(name: str, values: list[Any]) -> list[Any]:
    return [_at_row(i, _tag_list, name, v) for i, v in enumerate(values)]


def _tag_list(name: str, value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInputError(f"{name} is {value!r}; it takes a list of texts")
    tags = list(dict.fromkeys(value))
    if not all(isinstance(tag, str) and tag for tag in tags):
        raise InvalidInputError(f"{name} is {value!r}; each tag is a text that is not empty")
    return tags


def _relationship_values(name: str, values: list[Any]) -> list[Any]:
    return [_at_row(i, _relationships, name, v) for i, v in enumerate(values)]


def _relationships(name: str, value: Any) -> list[dict[str, str]]:
    edges = []
    for item in value:
        edge = relationship_values([item])[0] if isinstance(item, Relationship) else item
        if not isinstance(edge, Mapping) or not edge.get("relation") or not edge.get("target"):
            raise InvalidInputError(f"{name} holds {edge!r}; it takes Relationship values")
        edges.append({"note": "", **edge})
    return edges


def _vector_values(name: str, values: list[Any]) -> list[Any]:
    return [_at_row(i, _vector, name, v) for i, v in enumerate(values)]


def _vector(name: str, value: Any) -> list[float] | None:
    if value is None:
        return None
    try:
        array = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} is not a sequence of numbers: {error}") from error
    if array.ndim != 1:
        raise InvalidInputError(f"{name} has shape {list(array.shape)}; it takes one dimension")
    return [float(number) for number in array]


def _at_row(i: int, convert: Callable[[str, Any], Any], name: str, value: Any) -> Any:
    try:
        return convert(name, value)
    except InvalidInputError as error:
        raise RejectedError(f"{_rows([i])}: {error}", rows=[i]) from error


def _rows(positions: Sequence[int]) -> str:
    shown = ", ".join(str(i) for i in positions[:5])
    more = f" and {len(positions) - 5} more" if len(positions) > 5 else ""
    return f"row{'s' if len(positions) != 1 else ''} {shown}{more}"


def _inside(array: pa.Array, name: str, scope: Scope) -> None:
    outside = pc.not_equal(array, scope.names()[name])
    _refuse(outside, array, f"lies outside the handle's scope ({scope})", name)


def _refuse(mask: pa.Array, column: pa.Array, why: str, name: str) -> None:
    """Reject the rows where `mask` is true."""
    if not pc.any(mask).as_py():
        return
    bad = pc.indices_nonzero(mask).to_pylist()
    raise RejectedError(f"{_rows(bad)}: {name}={column[bad[0]].as_py()!r} {why}", rows=bad)


def _check_members(rows: pa.Table) -> None:
    for name, enum in (("kind", Kind), ("state", State)):
        unknown = pc.invert(pc.is_in(rows[name], pa.array(list(enum), pa.string())))
        _refuse(unknown, rows[name], f"is not known; there are: {', '.join(enum)}", name)


def _check_scores(rows: pa.Table) -> None:
    for name in ("importance", "confidence", "quality"):
        score = rows[name]
        good = pc.and_(pc.greater_equal(score, 0.0), pc.less_equal(score, 1.0))
        bad = pc.fill_null(pc.invert(good), fill_value=False)
        _refuse(bad, score, "is not within 0..1", name)


def _check_vectors(rows: pa.Table) -> None:
    column = rows[EMBEDDING].combine_chunks()
    if not len(rows) or column.null_count == len(column):
        return
    width = column.type.list_size
    valid = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    vectors = column.drop_null().flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    for mask, why in (
        (~np.isfinite(vectors).all(axis=1), "holds NaN or infinity"),
        (~vectors.any(axis=1), "is all zero, which has no direction"),
    ):
        bad = valid[mask].tolist()
        if bad:
            raise RejectedError(
                f"{_rows(bad)}: embedding {why}; it takes {width} finite numbers, not all zero",
                rows=bad,
            )


def _check_unique(rows: pa.Table) -> None:
    ids = rows["id"].to_pylist()
    if len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    bad = [i for i, identifier in enumerate(ids) if first.setdefault(identifier, i) != i]
    raise RejectedError(
        f"{_rows(bad)}: id={ids[bad[0]]!r} stands twice in the batch (first in row "
        f"{first[ids[bad[0]]]}); give each memory its own, or none",
        rows=bad,
    )


def _check_intervals(rows: pa.Table) -> None:
    backwards = pc.fill_null(pc.less(rows["valid_to"], rows["valid_from"]), fill_value=False)
    _refuse(backwards, rows["valid_to"], "comes before valid_from", "valid_to")


_CHECKS = (_check_members, _check_scores, _check_vectors, _check_unique, _check_intervals)

_STAMPS = frozenset({"created_at", "updated_at", "state_at"})

_DEFAULTS: dict[str, Any] = {
    "revision": 1,
    "kind": str(Kind.EPISODIC),
    "role": "",
    "actor": "",
    "metadata": "{}",
    "tags": [],
    "importance": 0.5,
    "confidence": 1.0,
    "state": str(State.ACTIVE),
    "state_reason": "",
    "relationships": [],
    "source": "user",
    "source_ref": "",
}

_TIMES = (
    "created_at",
    "updated_at",
    "state_at",
    "event_at",
    "valid_from",
    "valid_to",
    "expires_at",
)
_TEXTS = (*SCOPE_LEVELS, "key", "kind", "role", "actor", "state", "state_reason", "superseded_by")

_PREPARE: dict[str, Callable[[str, list[Any]], list[Any]]] = {
    **dict.fromkeys(_TIMES, _time_values),
    **dict.fromkeys((*_TEXTS, "source", "source_ref"), _text_values),
    "metadata": _json_values,
    "tags": _tag_values,
    "relationships": _relationship_values,
    EMBEDDING: _vector_values,
}
