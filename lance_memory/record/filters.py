"""Which memories a read is about, as typed data and as one engine predicate.

This is the only module that writes predicate text: every value is quoted here, so a hostile
one matches only itself.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal, TypedDict, TypeVar

from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import real
from lance_memory.record.keys import PROCEDURE, PROFILE
from lance_memory.record.memory import DISTILLED, SAID, SCOPE_LEVELS, Kind, Scope, State
from lance_memory.record.times import utc
from lance_memory.record.values import text_value

__all__ = [
    "FIRST_HAND",
    "REMEMBERED",
    "Filter",
    "Where",
    "all_of",
    "any_of",
    "beyond",
    "equals",
    "expired_by",
    "is_live",
    "is_one_of",
    "kept_by_name",
    "learned_at",
    "learned_before",
    "less_important",
    "live",
    "metadata_equals",
    "missing",
    "none_of",
    "prefixed",
    "present",
    "still_said",
    "unchanged_since",
    "visible",
]

Scalar = str | int | float | bool | None
_E = TypeVar("_E", Kind, State)
_EQUAL = ("actor", "role", "source", "key")
_NO_ROW = "id IS NULL"

REMEMBERED = f"`kind` != '{Kind.WORKSPACE}'"
"""What is a memory, and not what the agent is told."""

FIRST_HAND = f"{REMEMBERED} AND `source` != '{DISTILLED}'"
"""What is a memory, and no snapshot of others that are there too."""


class Where(TypedDict, total=False):
    """The filter keywords that every read verb takes; all given ones must hold.

    Scope levels match exactly. `kinds`: absent means all but "workspace". `states`: absent means
    *visible* (active and not expired), "any" means every state and every kind. `tags`: all of
    them. `metadata`: top-level members equal to these scalars, of the same JSON type (1 and 1.0
    are one number; true is not 1). `since` (inclusive) and `until` (exclusive) compare with
    `event_at`, or `created_at` where there is none. `valid_at` keeps rows whose
    `valid_from`..`valid_to` covers the moment; an open end covers everything. `min_importance`
    (0..1) leaves out what matters less; `min_quality` (0..1) what was rated lower or not at all.
    """

    tenant: str
    user: str
    agent: str
    session: str
    run: str
    kinds: Kind | str | Collection[Kind | str]
    states: State | str | Collection[State | str]
    tags: str | Collection[str]
    metadata: Mapping[str, Scalar]
    actor: str
    role: str
    source: str
    key: str
    since: datetime
    until: datetime
    valid_at: datetime
    min_importance: float
    min_quality: float


_SIZES = frozenset(["limit", "top_k", "n", "size"])
"""What other libraries call `k` of a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A checked `Where`. `kinds` None: see `Where`; `live` is `visible` and pending.

    `also`: a predicate of this module that has to hold too.
    """

    scope: Scope = field(default_factory=Scope)
    kinds: tuple[Kind, ...] | None = None
    states: tuple[State, ...] | Literal["visible", "live", "any"] = "visible"
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    equal: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None
    valid_at: datetime | None = None
    min_importance: float | None = None
    min_quality: float | None = None
    also: str | None = None

    @classmethod
    def of(cls, where: Where, *, within: Scope) -> Filter:
        """Check `where` and keep it inside the scope `within`.

        Raises:
            InvalidInputError: a keyword that does not exist, an unknown kind or state, an empty
                name of a scope, a naive time, an importance or quality outside 0..1, a metadata
                value that is not a JSON scalar.
            ScopeError: `where` names another scope than `within`.
        """
        given: dict[str, Any] = dict(where)
        unknown = sorted(given.keys() - Where.__annotations__.keys())
        if unknown:
            hint = " (how many is k=)" if _SIZES.intersection(unknown) else ""
            known = ", ".join(Where.__annotations__)
            raise InvalidInputError(f"no filter {', '.join(unknown)}{hint}; there are: {known}")
        levels = {name: _name(name, given[name]) for name in SCOPE_LEVELS if name in given}
        return cls(
            scope=within.narrowed(**levels),
            kinds=_members(Kind, given["kinds"]) if "kinds" in given else None,
            states=_states(given.get("states")),
            tags=tuple(text_value("tags", tag) for tag in _several("tags", given.get("tags", ()))),
            metadata=_scalars(given.get("metadata", {})),
            equal={name: text_value(name, given[name]) for name in _EQUAL if name in given},
            since=_moment(given.get("since"), "since"),
            until=_moment(given.get("until"), "until"),
            valid_at=_moment(given.get("valid_at"), "valid_at"),
            min_importance=_share("min_importance", given.get("min_importance")),
            min_quality=_share("min_quality", given.get("min_quality")),
        )

    def predicate(self, moment: datetime | None) -> str | None:
        """The engine predicate; None when every row passes.

        `moment` decides expiry; None: nothing has expired, and no row is asked.
        """
        parts: list[str | None] = [equals(*level) for level in self.scope.given().items()]
        parts += [equals(name, value) for name, value in self.equal.items()]
        parts += [self._of_kinds(), self._in_states(moment)]
        if self.tags:
            parts.append(f"array_has_all(tags, [{_list(self.tags)}])")
        parts += [metadata_equals(name, value) for name, value in self.metadata.items()]
        if self.since is not None:
            parts.append(f"coalesce(event_at, created_at) >= {_instant(self.since)}")
        if self.until is not None:
            parts.append(f"coalesce(event_at, created_at) < {_instant(self.until)}")
        if self.valid_at is not None:
            at = _instant(self.valid_at)
            parts.append(any_of(missing("valid_from"), f"valid_from <= {at}"))
            parts.append(any_of(missing("valid_to"), f"valid_to > {at}"))
        parts += [_at_least("importance", self.min_importance)]
        parts += [_at_least("quality", self.min_quality), self.also]
        return all_of(*parts)

    def _of_kinds(self) -> str | None:
        if self.kinds is not None:
            return is_one_of("kind", self.kinds)
        return None if self.states == "any" else REMEMBERED

    def _in_states(self, moment: datetime | None) -> str | None:
        if self.states == "visible":
            return visible(moment)
        if self.states == "live":
            return live(moment)
        return None if self.states == "any" else is_one_of("state", self.states)


def all_of(*predicates: str | None) -> str | None:
    """All of them hold; None, which every row passes, adds nothing."""
    return " AND ".join(p for p in predicates if p) or None


def any_of(*predicates: str) -> str:
    """One of them holds."""
    return f"({' OR '.join(predicates)})" if predicates else _NO_ROW


def none_of(predicate: str) -> str:
    """It does not hold, or cannot be told, as of a row without tags."""
    return f"({predicate}) IS NOT TRUE"


def missing(column: str) -> str:
    """`column` has no value."""
    return f"`{column}` IS NULL"


def present(column: str) -> str:
    """`column` has a value."""
    return f"`{column}` IS NOT NULL"


def visible(moment: datetime | None) -> str:
    """Active, and not expired at `moment`; None: nothing has expired."""
    return _unexpired(equals("state", State.ACTIVE), moment)


def live(moment: datetime | None) -> str:
    """Active or pending, and not expired at `moment`: what a key is unique among."""
    return _unexpired(is_one_of("state", (State.ACTIVE, State.PENDING)), moment)


def is_live(row: Mapping[str, Any], moment: datetime) -> bool:
    """The same of a row at hand, with its `state` and `expires_at`."""
    end = row["expires_at"]
    return row["state"] in (State.ACTIVE, State.PENDING) and (end is None or end > moment)


def _unexpired(state: str, moment: datetime | None) -> str:
    if moment is None:
        return state
    return f"{state} AND {any_of(missing('expires_at'), f'expires_at > {_instant(moment)}')}"


def equals(column: str, value: str) -> str:
    """`column` is exactly `value`."""
    return f"`{column}` = {_quoted(value)}"


def is_one_of(column: str, values: Iterable[str]) -> str:
    """`column` is one of `values`; of no values, no row passes."""
    listed = _list(values)
    return f"`{column}` IN ({listed})" if listed else _NO_ROW


def prefixed(column: str, prefix: str) -> str:
    """`column` starts with `prefix`; `%` and `_` are ordinary characters."""
    return f"starts_with(`{column}`, {_quoted(prefix)})"


def kept_by_name() -> str:
    """It is an agent's procedure or profile fact, found by its key and never merged into others."""
    return any_of(*(prefixed("key", prefix) for prefix in (PROCEDURE, PROFILE)))


def still_said() -> str:
    """It is a message of a session that hibernates: read in its turn, and no memory yet."""
    return f"({equals('kind', Kind.WORKING)} AND {equals('source', SAID)})"


def beyond(tenant: str, seq: int) -> str:
    """Of that tenant, with a greater `seq`; a memory without one is not."""
    return f"({equals('tenant', tenant)} AND `seq` > {int(seq)})"


def learned_before(created_at: datetime, identifier: str) -> str:
    """Learned before that memory; of what was learned at the same moment, greater ids."""
    moment = _instant(created_at)
    same = f"(`created_at` = {moment} AND `id` > {_quoted(identifier)})"
    return any_of(f"`created_at` < {moment}", same)


def learned_at(moments: Iterable[datetime]) -> str:
    """Learned at one of these very moments; of none, no row passes."""
    return any_of(*(f"`created_at` = {_instant(moment)}" for moment in moments))


def unchanged_since(moment: datetime) -> str:
    """It had happened, was learned, and had the state that it has, at that moment or before."""
    then = _instant(moment)
    happened = any_of(missing("event_at"), f"`event_at` <= {then}")
    return f"`created_at` <= {then} AND `state_at` <= {then} AND {happened}"


def expired_by(moment: datetime) -> str:
    """It has an end, which had come at that moment."""
    return f"`expires_at` <= {_instant(moment)}"


def less_important(than: float) -> str:
    """Of an importance below `than`, both as the column has them."""
    return f"`importance` < cast({float(than)!r} as float)"


def _quoted(value: str) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _list(values: Iterable[str]) -> str:
    return ", ".join(_quoted(value) for value in values)


def _instant(value: datetime) -> str:
    text = value.astimezone(UTC).isoformat(sep=" ", timespec="microseconds")
    return f"timestamp '{text}'"


def _at_least(column: str, score: float | None) -> str | None:
    # As float32, which the column has: 0.9 is another number in float64.
    return None if score is None else f"{column} >= cast({score!r} as float)"


def metadata_equals(name: str, value: Scalar) -> str:
    """The top-level member `name` of the metadata is `value`, of the same JSON type."""
    # The member is fetched by key and compared as JSON text: no path syntax to escape from,
    # and no cast that fails on the rows where the member has another type.
    member = f"json_extract(json_get(metadata, {_quoted(name)}), '$')"
    return f"{member} IN ({_list(_json_texts(value))})"


def _json_texts(value: Scalar) -> list[str]:
    """Every way in which the engine may have written the value: 1, 1.0; 1e-7 or 0.0000001."""
    if value is None or isinstance(value, str | bool):
        return [json.dumps(value, ensure_ascii=False)]
    texts = {str(value), format(Decimal(repr(value)), "f")}
    real = repr(float(value))
    if float(value) == value:
        texts |= {real, re.sub(r"e([+-]?)0*(\d)", r"e\1\2", real).replace("e+", "e")}
        if float(value).is_integer():
            texts |= {str(int(value)), f"{int(value)}.0"}
    return sorted(texts)


def _name(level: str, value: object) -> str:
    text = text_value(level, value)
    if not text:
        raise InvalidInputError(f"{level} is an empty name; leave it out to ask for every {level}")
    return text


def _several(name: str, value: object) -> Collection[Any]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Collection):
        raise InvalidInputError(f"{name} is {value!r}; it takes one or several texts")
    return value


def _members(enum: type[_E], value: object) -> tuple[_E, ...]:
    return tuple(_member(enum, item) for item in _several(enum.__name__.lower() + "s", value))


def _member(enum: type[_E], value: Any) -> _E:
    try:
        return enum(value)
    except ValueError:
        known = ", ".join(enum)
        raise InvalidInputError(
            f"no {enum.__name__.lower()} {value!r}; there are: {known}"
        ) from None


def _states(value: object) -> tuple[State, ...] | Literal["visible", "any"]:
    if value is None or value == "visible":
        return "visible"
    return "any" if value == "any" else _members(State, value)


def _scalars(members: object) -> Mapping[str, Scalar]:
    if not isinstance(members, Mapping):
        raise InvalidInputError(f"metadata is {members!r}; it takes a mapping of names to values")
    for name, value in members.items():
        text_value("metadata name", name)
        if isinstance(value, str):
            text_value(f"metadata {name}", value)
        finite = not isinstance(value, float) or math.isfinite(value)
        if not (value is None or isinstance(value, str | int | float)) or not finite:
            raise InvalidInputError(
                f"metadata filter {name!r} has the value {value!r}; "
                "it compares with a text, a finite number, true, false or null"
            )
    return dict(members)


def _share(name: str, value: object) -> float | None:
    return None if value is None else real(name, value, least=0, most=1)


def _moment(value: object, name: str) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return None if value is None else utc(value, name)
    raise InvalidInputError(f"{name} is {value!r}; it takes an aware datetime")
