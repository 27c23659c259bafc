"""What a caller gives becomes checked rows, all of a batch or none of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np
import pyarrow as pa

from lance_memory.errors import InvalidInputError, RejectedError
from lance_memory.record.checks import check, check_scope, check_vectors
from lance_memory.record.identity import ID_WIDTH, digests, hash_words, joined_ids, new_ids
from lance_memory.record.memory import SCOPE_LEVELS, Kind, Relationship, Scope, State
from lance_memory.record.rows import EMBEDDING, fixed_texts, one_array, repeated, vector_array
from lance_memory.record.values import converted, named

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Batch", "Details", "Fields", "Taken", "take_in"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Checked rows.

    Attributes:
        rows: all of them.
        given: the names of the columns that the caller gave.
        words: of all content hashes, see `hash_words`.
    """

    rows: pa.Table
    given: frozenset[str]
    words: NDArray[np.uint64]


def take_in(batch: Batch, *, schema: pa.Schema, scope: Scope, now: datetime) -> Taken:
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
    taken = _Intake(columns=columns, size=_size(columns), scope=scope, now=now)
    content = taken.column(schema.field("content"))
    hashes = digests(content.to_pylist())
    made = {"content": content, "content_hash": fixed_texts(hashes.hex().encode(), 32)}
    if taken.size == 1:
        arrays = taken.row(schema, made)
    else:
        arrays = [made[f.name] if f.name in made else taken.column(f) for f in schema]
    rows = pa.table(arrays, schema=schema)
    unseen = {name for name, given in columns.items() if isinstance(given, pa.Array)}
    check(rows, columns.keys() - taken.checked, unseen=unseen)
    check_scope(rows, scope)
    return Taken(rows=rows, given=frozenset(columns), words=hash_words(hashes))


def _arrow(batch: Batch) -> Iterable[str | Mapping[str, Any]] | pa.Table | pa.RecordBatch:
    """Polars frames as Arrow, without importing polars; anything else as it is."""
    frame: Any = batch
    if hasattr(frame, "collect") and hasattr(frame, "lazy"):
        frame = frame.collect()
    return frame.to_arrow() if hasattr(frame, "to_arrow") else frame


def _columns(batch: Batch, schema: pa.Schema) -> dict[str, Any]:
    """Column name → list, Arrow array, for the columns that are given."""
    columns = _from_items(batch) if isinstance(batch, list) else _from_others(batch)
    unknown = sorted(columns.keys() - _blank(schema).places.keys())
    if unknown:
        raise RejectedError(
            f"no column {', '.join(map(repr, unknown))}; a memory has: {', '.join(schema.names)} "
            "(anything else goes into metadata)",
            rows=_rows_naming(columns, unknown[0]),
        )
    return columns


def _from_others(batch: Batch) -> dict[str, Any]:
    batch = _arrow(batch)
    if isinstance(batch, pa.RecordBatch):
        batch = pa.Table.from_batches([batch])
    if isinstance(batch, pa.Table):
        if len(set(batch.column_names)) != len(batch.column_names):
            raise InvalidInputError("the table has two columns of one name")
        return {name: one_array(batch[name]) for name in batch.column_names}
    if isinstance(batch, str | bytes | Mapping) or not isinstance(batch, Iterable):
        raise InvalidInputError(
            f"a batch is an iterable of memories or a table, and this is one "
            f"{type(batch).__name__}; for a single memory call add()"
        )
    return _from_items([*batch])


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
    return columns or {"content": [_ABSENT] * len(items)}


def _size(columns: Mapping[str, Any]) -> int:
    return len(next(iter(columns.values()), ()))


def _rows_naming(columns: Mapping[str, Any], name: str) -> list[int]:
    column = columns[name]
    return [i for i, v in enumerate(column) if v is not _ABSENT] if isinstance(column, list) else []


@dataclass(frozen=True, slots=True)
class _Blank:
    """One row of a schema of which nothing is given yet.

    Attributes:
        schema: kept, so that no other one has its identity.
        places: column name → its number, and its field.
        usual: a default for each column; None: there is none that is always the same.
    """

    schema: pa.Schema
    places: Mapping[str, tuple[int, pa.Field]]
    usual: tuple[pa.Array | None, ...]


_MOST_BLANKS = 16
_BLANKS: dict[int, _Blank] = {}
"""By the identity of the schema: to compare two takes longer than to fill a row."""


def _blank(schema: pa.Schema) -> _Blank:
    known = _BLANKS.get(id(schema))
    if known is None:
        places = {field.name: (place, field) for place, field in enumerate(schema)}
        known = _Blank(schema, places, tuple(map(_usual, schema)))
        if len(_BLANKS) >= _MOST_BLANKS:
            _BLANKS.clear()
        _BLANKS[id(schema)] = known
    return known


def _usual(field: pa.Field) -> pa.Array | None:
    if field.name in {"id", "content", "content_hash", *_STAMPS, *SCOPE_LEVELS}:
        return None
    return repeated(_DEFAULTS.get(field.name), field.type, 1)


@lru_cache(maxsize=1_024)
def _of_scope(scope: Scope) -> Mapping[str, pa.Array]:
    """The columns of one row in the scope."""
    return {level: pa.array([name], pa.string()) for level, name in scope.names().items()}


@dataclass(frozen=True, slots=True)
class _Intake:
    """A batch on its way in.

    Attributes:
        columns: what is given.
        size: how many rows.
        scope: the handle's.
        now: the time of those that give none.
        checked: the columns that were looked at on the way.
        alike: the columns of defaults so far.
    """

    columns: Mapping[str, Any]
    size: int
    scope: Scope
    now: datetime
    checked: set[str] = field(default_factory=set)
    alike: dict[tuple[Any, pa.DataType], pa.Array] = field(default_factory=dict)

    def row(self, schema: pa.Schema, made: Mapping[str, pa.Array]) -> list[pa.Array]:
        """The columns of one row. Most adds are of one, and most of its columns are defaults."""
        blank = _blank(schema)
        arrays = list(blank.usual)
        now = repeated(self.now, blank.places["created_at"][1].type, 1)
        ready = {**_of_scope(self.scope), **dict.fromkeys(_STAMPS, now), **made}
        for name in {"id", *self.columns} - made.keys():
            ready[name] = self.column(blank.places[name][1])
        for name, array in ready.items():
            arrays[blank.places[name][0]] = array
        return arrays

    def column(self, field: pa.Field) -> pa.Array:
        """One column of the rows: as given, with the default where nothing is."""
        name = field.name
        if name == "id":
            return self._ids()
        given = self.columns.get(name)
        if name == "content" and given is None and self.size:
            self._refuse_no_content(range(self.size))
        if given is None:
            return self._repeated(self._default(name), field.type)
        if name == EMBEDDING and isinstance(given, list):
            vectors = _matrix(given, field.type.list_size)
            if vectors is not None:
                check_vectors(vectors, name)
                self.checked.add(name)
                return vector_array(vectors)
        if isinstance(given, pa.Array):
            ready = _cast(given, field)
            if ready is not None:
                return self._filled(ready, field)
            given = given.to_pylist()
        default = self._default(name)
        values = [default if v is _ABSENT or v is None else v for v in given]
        if name == "content":
            self._refuse_no_content([i for i, value in enumerate(values) if value is None])
        return _build(field, converted(name, values))

    def _repeated(self, value: Any, kind: pa.DataType) -> pa.Array:
        """The value for every row; columns that are alike are one array."""
        if isinstance(value, list):
            return repeated(value, kind, self.size)
        known = self.alike.get((value, kind))
        if known is None:
            known = self.alike[value, kind] = repeated(value, kind, self.size)
        return known

    def _default(self, name: str) -> Any:
        if name in SCOPE_LEVELS:
            return self.scope.names()[name]
        return self.now if name in _STAMPS else _DEFAULTS.get(name)

    def _ids(self) -> pa.Array:
        given = self.columns.get("id")
        if given is None:
            return fixed_texts(joined_ids(self.size, self.now), ID_WIDTH)
        fresh = new_ids(self.size, self.now)
        values = given.to_pylist() if isinstance(given, pa.Array) else given
        ids = [fresh[i] if v is _ABSENT or v is None else v for i, v in enumerate(values)]
        return pa.array(converted("id", ids), pa.string())

    def _filled(self, array: pa.Array, field: pa.Field) -> pa.Array:
        """The array with the default in the place of nulls."""
        default = self._default(field.name)
        if field.name == "content" and array.null_count:
            self._refuse_no_content([i for i, valid in enumerate(array.is_valid()) if not valid])
        if default is None or not array.null_count or pa.types.is_nested(array.type):
            return array
        return array.fill_null(default)

    @staticmethod
    def _refuse_no_content(rows: Sequence[int]) -> None:
        if rows:
            raise RejectedError(
                f"{named(rows)}: there is no content; a memory needs a text", rows=rows
            )


def _matrix(values: list[Any], width: int) -> NDArray[np.float32] | None:
    """Vectors that are all there and of the right length, as float32 [n, d]; else None."""
    if not values or any(value is None or value is _ABSENT for value in values):
        return None
    try:
        with np.errstate(over="ignore"):  # too large for float32 is infinite, and refused as that
            array = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError):
        return None
    return array if array.shape == (len(values), width) else None


def _cast(given: pa.Array, field: pa.Field) -> pa.Array | None:
    """`given` as the column's type where that loses nothing; None: go value by value."""
    if pa.types.is_timestamp(field.type) and pa.types.is_timestamp(given.type):
        if given.type.tz is None:
            raise RejectedError(
                f"column {field.name} holds {given.type}, times without a zone; "
                f"make them {field.type}",
                rows=range(len(given)),
            )
        return _cast_times(given, field)
    if field.name in ("metadata", "relationships"):
        return None  # what they hold has to be looked at
    if given.type == field.type:
        return given
    if not _castable(given.type, field.type):
        return None
    try:
        return given.cast(field.type, safe=False)
    except pa.ArrowException:
        return None


def _cast_times(given: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return given.cast(field.type, safe=given.type.unit != "ns")  # ns lose what us cannot hold
    except pa.ArrowException as error:
        raise RejectedError(
            f"column {field.name} holds times that {field.type} cannot hold: {error}",
            rows=range(len(given)),
        ) from error


def _castable(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a cast keeps the meaning: texts to text, numbers to floats, lists to vectors."""
    kinds = pa.types
    if kinds.is_string(wanted):
        return any((kinds.is_large_string(given), kinds.is_string_view(given)))
    if kinds.is_fixed_size_list(wanted):
        same_width = kinds.is_fixed_size_list(given) and given.list_size == wanted.list_size
        return any((kinds.is_list(given), kinds.is_large_list(given), same_width))
    numeric = any((kinds.is_integer(given), kinds.is_floating(given)))
    return numeric and bool(kinds.is_floating(wanted))


def _build(field: pa.Field, values: list[Any]) -> pa.Array:
    try:
        if isinstance(field.type, pa.BaseExtensionType):
            storage = pa.array(values, field.type.storage_type)
            return pa.ExtensionArray.from_storage(field.type, storage)
        return pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        bad = [i for i, value in enumerate(values) if not _fits(value, field)]
        raise RejectedError(_misfit(field, values, bad), rows=bad) from error


def _misfit(field: pa.Field, values: list[Any], bad: list[int]) -> str:
    found = values[bad[0]] if bad else None
    if field.name == EMBEDDING and isinstance(found, list):
        width = field.type.list_size
        return f"{named(bad)}: embedding has {len(found)} numbers; this store's have {width}"
    return f"{named(bad)}: {field.name} is {str(found)[:120]!r}; it takes {field.type}"


def _fits(value: Any, field: pa.Field) -> bool:
    try:
        pa.array([value], field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


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
