"""Which memories a read is about, as typed data and as one engine predicate.

This is the only module that writes predicate text: every value is quoted here, so a hostile
one matches only itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypedDict, TypeVar

from lance_memory.errors import InvalidInputError
from lance_memory.record.memory import SCOPE_LEVELS, Kind, Scope, State
from lance_memory.record.times import utc

__all__ = ["Filter", "Where", "equals", "is_one_of", "no_row", "prefixed"]

Scalar = str | int | float | bool | None
_E = TypeVar("_E", Kind, State)


class Where(TypedDict, total=False):
    """The filter keywords that every read verb takes; all given ones must hold.

    Scope levels match exactly. `states`: absent means *visible* (active and not expired),
    "any" means every state. `tags`: all of them. `metadata`: top-level members equal to these
    scalars, of the same JSON type (1 and 1.0 are one number; true is not 1). `since`
    (inclusive) and `until` (exclusive) compare with `event_at`, or `created_at` where there
    is none. `valid_at` keeps rows whose `valid_from`..`valid_to` covers the moment; an open
    end covers everything.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A checked `Where`."""

    scope: Scope = field(default_factory=Scope)
    kinds: tuple[Kind, ...] = ()
    states: tuple[State, ...] | Literal["visible", "any"] = "visible"
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    equal: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None
    valid_at: datetime | None = None

    @classmethod
    def of(cls, where: Where, *, within: Scope) -> Filter:
        """Check `where` and keep it inside the scope `within`.

        Raises:
            InvalidInputError: an unknown kind or state, a naive time, a metadata value that
                is not a JSON scalar.
            ScopeError: `where` names another scope than `within`.
        """
        levels = {name: where[name] for name in SCOPE_LEVELS if name in where}  # type: ignore[literal-required]
        scope = within.narrowed(**levels)
        return cls(
            scope=scope,
            kinds=tuple(_member(Kind, kind) for kind in _several(where.get("kinds", ()))),
            states=_states(where.get("states")),
            tags=tuple(_several(where.get("tags", ()))),
            metadata=_scalars(where.get("metadata", {})),
            equal={
                name: where[name] for name in ("actor", "role", "source", "key") if name in where
            },
            since=_moment(where.get("since"), "since"),
            until=_moment(where.get("until"), "until"),
            valid_at=_moment(where.get("valid_at"), "valid_at"),
        )

    def predicate(self, moment: datetime) -> str | None:
        """The engine predicate; None when every row passes. `moment` decides expiry."""
        parts = [equals(name, value) for name, value in self.scope.given().items()]
        parts += [equals(name, value) for name, value in self.equal.items()]
        if self.kinds:
            parts.append(is_one_of("kind", self.kinds))
        if self.states == "visible":
            parts.append(visible(moment))
        elif self.states != "any":
            parts.append(is_one_of("state", self.states))
        if self.tags:
            parts.append(f"array_has_all(tags, [{_list(self.tags)}])")
        parts += [_metadata_equals(name, value) for name, value in self.metadata.items()]
        if self.since is not None:
            parts.append(f"coalesce(event_at, created_at) >= {_instant(self.since)}")
        if self.until is not None:
            parts.append(f"coalesce(event_at, created_at) < {_instant(self.until)}")
        if self.valid_at is not None:
            at = _instant(self.valid_at)
            parts.append(f"(valid_from IS NULL OR valid_from <= {at})")
            parts.append(f"(valid_to IS NULL OR valid_to > {at})")
        return " AND ".join(parts) if parts else None


def visible(moment: datetime) -> str:
    """Active, and not expired at `moment`."""
    live = equals("state", State.ACTIVE)
    return f"{live} AND (expires_at IS NULL OR expires_at > {_instant(moment)})"


def equals(column: str, value: str) -> str:
    """`column` is exactly `value`."""
    return f"`{column}` = {_quoted(value)}"


def is_one_of(column: str, values: Iterable[str]) -> str:
    """`column` is one of `values`; of no values, no row passes."""
    listed = _list(values)
    return f"`{column}` IN ({listed})" if listed else no_row()


def prefixed(column: str, prefix: str) -> str:
    """`column` starts with `prefix`; `%` and `_` are ordinary characters."""
    return f"starts_with(`{column}`, {_quoted(prefix)})"


def no_row() -> str:
    """A predicate that nothing passes."""
    return "id IS NULL"


def _quoted(value: str) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _list(values: Iterable[str]) -> str:
    return ", ".join(_quoted(value) for value in values)


def _instant(value: datetime) -> str:
    return f"timestamp '{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}+00:00'"


def _metadata_equals(name: str, value: Scalar) -> str:
    # The member is fetched by key and compared as JSON text: no path syntax to escape from,
    # and no cast that fails on the rows where the member has another type.
    member = f"json_extract(json_get(metadata, {_quoted(name)}), '$')"
    return f"{member} IN ({_list(_json_texts(value))})"


def _json_texts(value: Scalar) -> list[str]:
    texts = {json.dumps(value, ensure_ascii=False)}
    if isinstance(value, int | float) and not isinstance(value, bool):
        if float(value).is_integer():
            texts.add(json.dumps(int(value)))
        texts.add(json.dumps(float(value)))
    return sorted(texts)


def _several(value: str | Collection[str]) -> Collection[str]:
    return (value,) if isinstance(value, str) else value


def _member(enum: type[_E], value: str) -> _E:
    try:
        return enum(value)
    except ValueError:
        known = ", ".join(enum)
        raise InvalidInputError(
            f"no {enum.__name__.lower()} {value!r}; there are: {known}"
        ) from None


def _states(
    value: State | str | Collection[State | str] | None,
) -> tuple[State, ...] | Literal["visible", "any"]:
    if value is None or value == "visible":
        return "visible"
    if value == "any":
        return "any"
    return tuple(_member(State, state) for state in _several(value))


def _scalars(members: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
    for name, value in members.items():
        finite = not isinstance(value, float) or math.isfinite(value)
        if not (value is None or isinstance(value, str | int | float)) or not finite:
            raise InvalidInputError(
                f"metadata filter {name!r} has the value {value!r}; "
                "it compares with a text, a finite number, true, false or null"
            )
    return dict(members)


def _moment(value: datetime | None, name: str) -> datetime | None:
    return None if value is None else utc(value, name)
