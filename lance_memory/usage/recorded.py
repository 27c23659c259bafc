"""A recorded query, and the rows of the journal that hold such."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.errors import InvalidInputError
from lance_memory.record.filters import all_of, equals
from lance_memory.record.identity import new_ids
from lance_memory.record.memory import SCOPE_LEVELS, Scope
from lance_memory.record.rows import one_array
from lance_memory.record.times import utc
from lance_memory.record.values import text_value
from lance_memory.storage.erase.needles import Needles

__all__ = [
    "ABOUT",
    "SCHEMA",
    "Chosen",
    "Entry",
    "QueryWhere",
    "RecordedQuery",
    "about",
    "holding",
    "to_rows",
    "to_values",
]

_TIME = pa.timestamp("us", "UTC")
_at = attrgetter("at")

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("at", _TIME, nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("mode", pa.string(), nullable=False),
        *(pa.field(level, pa.string(), nullable=False) for level in SCOPE_LEVELS),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("k", pa.int64(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("memory_ids", pa.list_(pa.string()), nullable=False),
        pa.field("scores", pa.list_(pa.float32()), nullable=False),
    ]
)
"""The journal's columns. `id` is a UUIDv7, so it sorts by `at`; `offset` is what the page skipped,
so the rank of `memory_ids[i]` is offset + i + 1."""

ABOUT = ("query", "memory_ids", *SCOPE_LEVELS)
"""What `about` looks at."""

_LOOKED_AT = ("at", "memory_ids")


class QueryWhere(TypedDict, total=False):
    """Which recorded queries; all that are given must hold.

    Scope levels match exactly what a query was kept to. `since` (inclusive) and `until` (exclusive)
    say when it was asked. `memory`: the id of a memory that was among its hits.
    """

    tenant: str
    user: str
    agent: str
    session: str
    run: str
    since: datetime
    until: datetime
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedQuery:
    """One query, and what answered it: `memory_ids[i]` had the rank offset + i + 1 and `scores[i]`.

    Attributes:
        at: when it was asked.
        query: the text, redacted; empty where only a vector was given.
        mode: "hybrid", "vector" or "text".
        scope: what it was kept to.
        branch, version: what it was asked of.
        k, offset: the page that was asked for.
    """

    id: str
    at: datetime
    query: str
    mode: str
    scope: Scope
    branch: str
    version: int
    k: int
    offset: int
    memory_ids: tuple[str, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A query that was answered just now, before it is redacted."""

    at: datetime
    query: str
    mode: str
    scope: Scope
    branch: str
    version: int
    k: int
    offset: int
    memory_ids: list[str]
    scores: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A checked `QueryWhere`."""

    scope: Scope
    since: datetime | None = None
    until: datetime | None = None
    memory: str | None = None

    @classmethod
    def of(cls, where: QueryWhere, *, within: Scope, until: datetime | None = None) -> Chosen:
        """Check `where` and keep it inside the scope `within`, and before `until`.

        Raises:
            InvalidInputError: a keyword that does not exist, an empty name, a time without a zone.
            ScopeError: it names another scope than `within`.
        """
        given: dict[str, Any] = dict(where)
        unknown = sorted(given.keys() - QueryWhere.__annotations__.keys())
        if unknown:
            known = ", ".join(QueryWhere.__annotations__)
            raise InvalidInputError(
                f"no filter {', '.join(unknown)} of queries; there are: {known}"
            )
        last = _moment("until", given.get("until"))
        texts = {name: _text(name, given[name]) for name in given.keys() - {"since", "until"}}
        return cls(
            scope=within.narrowed(**{n: texts[n] for n in SCOPE_LEVELS if n in texts}),
            since=_moment("since", given.get("since")),
            until=min(ends) if (ends := [end for end in (last, until) if end]) else None,
            memory=texts.get("memory"),
        )

    @property
    def predicate(self) -> str | None:
        """What the engine can check: the scope."""
        return all_of(*(equals(name, value) for name, value in self.scope.given().items()))

    @property
    def columns(self) -> tuple[str, ...]:
        """What `mask` looks at."""
        return _LOOKED_AT

    def mask(self, rows: pa.Table) -> NDArray[np.bool_]:
        """Which of the rows, that pass the predicate, are meant; bool [n]."""
        chosen = np.ones(len(rows), np.bool_)
        if self.since is not None:
            chosen &= pc.greater_equal(rows["at"], pa.scalar(self.since, _TIME)).to_numpy()
        if self.until is not None:
            chosen &= pc.less(rows["at"], pa.scalar(self.until, _TIME)).to_numpy()
        if self.memory is not None:
            chosen &= holding(rows, [self.memory])
        return chosen


def holding(rows: pa.Table, ids: Collection[str]) -> NDArray[np.bool_]:
    """Which of the rows have one of these memories among their hits; bool [n]."""
    hits = one_array(rows["memory_ids"])
    held = pc.is_in(pc.list_flatten(hits), pa.array(list(ids), pa.string()))
    mask = np.zeros(len(rows), np.bool_)
    mask[pc.list_parent_indices(hits).filter(held).to_numpy()] = True
    return mask


def about(
    rows: pa.Table, ids: Collection[str], texts: Collection[str], scopes: Collection[Scope]
) -> NDArray[np.bool_]:
    """Which of the rows name one of these memories, say one of the texts, or are of a scope.

    Args:
        rows: with `ABOUT` as columns.
        ids: of memories; among the hits, or in the question, see `Needles.quoted`.
        texts: whose beginning is in the question.
        scopes: the very scope that a query was kept to.
    """
    mask = holding(rows, ids)
    needles = Needles(ids, texts)
    names = [scope.names() for scope in scopes]
    for i, row in enumerate(rows.select(["query", *SCOPE_LEVELS]).to_pylist()):
        query = row.pop("query")
        mask[i] = mask[i] or row in names or needles.quoted(query)
    return mask


def to_rows(entries: Sequence[Entry], texts: Iterable[str]) -> pa.Table:
    """Entries with their redacted texts, as rows of the journal."""
    ids = [i for at, same in groupby(entries, _at) for i in new_ids(len(list(same)), at)]
    rows = [
        {
            "id": identifier,
            "at": entry.at,
            "query": text,
            "mode": entry.mode,
            **entry.scope.names(),
            "branch": entry.branch,
            "version": entry.version,
            "k": entry.k,
            "offset": entry.offset,
            "memory_ids": entry.memory_ids,
            "scores": entry.scores,
        }
        for identifier, entry, text in zip(ids, entries, texts, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def to_values(rows: pa.Table) -> list[RecordedQuery]:
    """Rows of the journal as values, in order."""
    values = []
    for row in rows.to_pylist():
        scope = Scope(**{level: row.pop(level) for level in SCOPE_LEVELS})
        row["memory_ids"], row["scores"] = tuple(row["memory_ids"]), tuple(row["scores"])
        values.append(RecordedQuery(scope=scope, **row))
    return values


def _text(name: str, value: Any) -> str:
    if not text_value(name, value):
        raise InvalidInputError(f"{name} is an empty name; leave it out to ask for every {name}")
    return str(value)


def _moment(name: str, value: Any) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return None if value is None else utc(value, name)
    raise InvalidInputError(f"{name} is {value!r}; it takes an aware datetime")
