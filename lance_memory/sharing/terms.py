"""The terms of a grant, checked: before there is a row of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lance_memory.errors import InvalidInputError, ScopeError
from lance_memory.record.arguments import one_of
from lance_memory.record.filters import Filter, Where
from lance_memory.record.memory import SCOPE_LEVELS, Kind, Scope
from lance_memory.record.times import storable, utc
from lance_memory.record.values import text_value
from lance_memory.sharing.grant import TIMES, Rights

__all__ = ["Terms"]

_PEOPLE = ("user", "agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is agreed; `where` None: memories are named.

    Attributes:
        giver: whose memories.
        receiver: who may see them.
        rights: what they may do.
        where: the filter as JSON values.
        expires_at: when it ends.
    """

    giver: Scope
    receiver: Scope
    rights: Rights
    where: dict[str, Any] | None
    expires_at: datetime | None

    @classmethod
    def of(
        cls,
        giver: Scope,
        *,
        with_: Scope | Mapping[str, str],
        rights: Rights | str,
        expires_at: datetime | None,
        where: Where | None,
        now: datetime,
    ) -> Terms:
        """Check what a giver asks for.

        Raises:
            ScopeError: the giver is no user or agent, or the receiver is of another tenant.
            InvalidInputError: the receiver is no user or agent, or holds the giver already; no such
                rights; an end that is past; a filter that makes no sense, or none.
        """
        if not any(getattr(giver, level) for level in _PEOPLE):
            raise ScopeError(
                f"only a user or an agent shares, and this handle is scoped to {giver}; share "
                "through store.scoped(user=...) or store.scoped(agent=...)"
            )
        return cls(
            giver=giver,
            receiver=_receiver(giver, with_),
            rights=Rights(one_of("rights", rights, Rights)),
            where=None if where is None else _filter(giver, where),
            expires_at=_end(expires_at, now),
        )


def _receiver(giver: Scope, given: object) -> Scope:
    levels = given.given() if isinstance(given, Scope) else given
    if not isinstance(levels, Mapping):
        raise InvalidInputError(f"with_={given!r:.120}; it takes a Scope, or {{'user': ...}}")
    unknown = sorted(str(name) for name in levels if name not in ("tenant", *_PEOPLE))
    if unknown:
        raise InvalidInputError(
            f"memories are shared with a user or an agent, not with {', '.join(unknown)}"
        )
    names = {str(name): text_value(str(name), value) for name, value in levels.items()}
    if names.get("tenant") and names["tenant"] != giver.tenant:
        raise ScopeError(
            f"nothing is shared with another tenant: with {names['tenant']!r} by {giver}"
        )
    receiver = Scope(**{**names, "tenant": giver.tenant})
    if not any(getattr(receiver, level) for level in _PEOPLE):
        raise InvalidInputError("with_ names nobody; it takes a user, an agent, or both")
    if receiver.holds(giver):
        raise InvalidInputError(f"{receiver} holds {giver}, and has its memories without a grant")
    return receiver


def _end(given: object, now: datetime) -> datetime | None:
    if given is None:
        return None
    if not isinstance(given, datetime):
        raise InvalidInputError(f"expires_at={given!r:.120}; it takes an aware datetime")
    end = utc(given, "expires_at")
    if end <= now or not storable(end):
        raise InvalidInputError(
            f"expires_at={end.isoformat()} is past, or beyond the year 9998; it is "
            f"{now.isoformat()}"
        )
    return end


def _filter(giver: Scope, where: Where) -> dict[str, Any]:
    """The filter as JSON values; what it means is checked now, and looked up at each reading."""
    given: dict[str, Any] = dict(where)
    if "states" in given:
        raise InvalidInputError("what is shared is what is visible; leave out states")
    checked = Filter.of(where, within=giver)
    if checked.kinds is not None and Kind.WORKSPACE in checked.kinds:
        raise InvalidInputError("kind 'workspace' is what an agent is told; it is not shared")
    names = {level: given[level] for level in SCOPE_LEVELS if level in given}
    least = {f"min_{name}": given.get(f"min_{name}") for name in ("importance", "quality")}
    times = {name: utc(given[name], name).isoformat() for name in TIMES if name in given}
    several: dict[str, Any] = {
        "kinds": None if checked.kinds is None else list(map(str, checked.kinds)),
        "tags": list(checked.tags) or None,
        "metadata": dict(checked.metadata) or None,
    }
    told = {n: value for n, value in (several | least).items() if value is not None}
    terms = {**names, **told, **checked.equal, **times}
    if not terms:  # no filter, or one that leaves nothing out, such as no tags
        raise InvalidInputError(
            "nothing says what is to be shared: name memories, or give a filter; the handle's own "
            "scope as a filter means everything"
        )
    return terms
