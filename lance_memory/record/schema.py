"""The Arrow schema of `memories`, and the metadata that a table carries about itself."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_memory.errors import StoreFormatError

__all__ = [
    "CLOSED",
    "MIGRATIONS",
    "SCHEMA_VERSION",
    "STORE_ID",
    "StoreFormat",
    "arrow_schema",
    "embedding_field",
    "read_format",
]

SCHEMA_VERSION = 2
"""Raised by one whenever a column, its meaning, or what a table says of itself changes; each step
has a migration (`migrate/migrations.py`). 2: the store has an id."""

_PREFIX = "lance_memory."
STORE_ID = f"{_PREFIX}store_id"
"""Key of the store's id in a table's metadata."""

CLOSED = f"{_PREFIX}closed_until"
"""Key of the moment, in seconds since 1970, until which writers wait for new vectors."""

MIGRATIONS = f"{_PREFIX}migrations"
"""Key of the migrations that a table went through: a JSON list of their numbers and times."""

_TIME = pa.timestamp("us", "UTC")
_RELATIONSHIP = pa.struct(
    [
        pa.field("relation", pa.string()),
        pa.field("target", pa.string()),
        pa.field("note", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFormat:
    """What a table says of itself.

    Attributes:
        embedding_model: what made the vectors.
        dimension: their length.
        metric: by which they are compared.
        schema_version: see `SCHEMA_VERSION`.
        store_id: a UUID that no other store has; the branches of a store share it. "": the store is
            of schema 1, or is only about to be made.
        vectors_since: versions below this one have vectors of another model; 0: none has.
        closed_until: writers wait until then, in seconds since 1970, for the vectors to be
            switched. It is of this version alone.
    """

    embedding_model: str
    dimension: int
    metric: str = "cosine"
    schema_version: int = SCHEMA_VERSION
    store_id: str = ""
    vectors_since: int = 0
    closed_until: float = 0.0

    def same_vectors(self, other: StoreFormat) -> bool:
        """Whether vectors of the two can be compared."""
        mine = (self.embedding_model, self.dimension)
        return mine == (other.embedding_model, other.dimension)

    def to_metadata(self) -> dict[str, str]:
        """As key-value metadata of the Arrow schema."""
        return {
            f"{_PREFIX}schema_version": str(self.schema_version),
            f"{_PREFIX}embedding_model": self.embedding_model,
            f"{_PREFIX}dimension": str(self.dimension),
            f"{_PREFIX}metric": self.metric,
            **({STORE_ID: self.store_id} if self.store_id else {}),
            **({f"{_PREFIX}vectors_since": str(self.vectors_since)} if self.vectors_since else {}),
        }


def arrow_schema(fmt: StoreFormat) -> pa.Schema:
    """The columns of design §4. `id` is Lance's unenforced primary key.

    Columns that filters compare with are non-null, because `col != 'x'` drops NULL rows in
    the engine; an absent scope level, role or actor is the empty text.
    """
    text = pa.string()
    primary_key = {"lance-schema:unenforced-primary-key": "true"}
    return pa.schema(
        [
            pa.field("id", text, nullable=False, metadata=primary_key),
            pa.field("revision", pa.int64(), nullable=False),
            pa.field("key", text),
            pa.field("content_hash", text, nullable=False),
            pa.field("tenant", text, nullable=False),
            pa.field("user", text, nullable=False),
            pa.field("agent", text, nullable=False),
            pa.field("session", text, nullable=False),
            pa.field("run", text, nullable=False),
            pa.field("kind", text, nullable=False),
            pa.field("role", text, nullable=False),
            pa.field("actor", text, nullable=False),
            pa.field("content", text, nullable=False),
            pa.field("metadata", pa.json_()),
            pa.field("tags", pa.list_(text)),
            pa.field("importance", pa.float32(), nullable=False),
            pa.field("confidence", pa.float32(), nullable=False),
            pa.field("quality", pa.float32()),
            pa.field("created_at", _TIME, nullable=False),
            pa.field("updated_at", _TIME, nullable=False),
            pa.field("event_at", _TIME),
            pa.field("valid_from", _TIME),
            pa.field("valid_to", _TIME),
            pa.field("expires_at", _TIME),
            pa.field("seq", pa.int64()),
            pa.field("state", text, nullable=False),
            pa.field("state_at", _TIME, nullable=False),
            pa.field("state_reason", text, nullable=False),
            pa.field("superseded_by", text),
            pa.field("relationships", pa.list_(_RELATIONSHIP)),
            pa.field("source", text, nullable=False),
            pa.field("source_ref", text, nullable=False),
            embedding_field(fmt),
        ],
        metadata=fmt.to_metadata(),
    )


def embedding_field(fmt: StoreFormat) -> pa.Field:
    """The column of the vectors; null where a memory has none."""
    return pa.field("embedding", pa.list_(pa.float32(), fmt.dimension))


def read_format(schema: pa.Schema, where: str) -> StoreFormat:
    """What the table at `where` says of itself.

    Raises:
        StoreFormatError: the table was not made by lance-memory, or by a later release.
    """
    raw = {k.decode(): v.decode() for k, v in (schema.metadata or {}).items()}
    try:
        found = StoreFormat(
            embedding_model=raw[f"{_PREFIX}embedding_model"],
            dimension=int(raw[f"{_PREFIX}dimension"]),
            metric=raw[f"{_PREFIX}metric"],
            schema_version=int(raw[f"{_PREFIX}schema_version"]),
            store_id=raw.get(STORE_ID, ""),
            vectors_since=int(raw.get(f"{_PREFIX}vectors_since", 0)),
            closed_until=float(raw.get(CLOSED, 0.0)),
        )
    except (KeyError, ValueError) as error:
        raise StoreFormatError(
            f"{where} is a Lance table, but not one of lance-memory's: its schema metadata "
            f"lacks {error}; open the directory that `lmem init` made"
        ) from error
    if found.schema_version > SCHEMA_VERSION:
        raise StoreFormatError(
            f"{where} has schema version {found.schema_version}; this release reads up to "
            f"{SCHEMA_VERSION}: upgrade lance-memory"
        )
    return found
