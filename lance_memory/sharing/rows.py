"""Grants as rows of the giver's workspace, and the predicates that find them.

The row's own scope is the giver, whatever the row says: so nobody can write a grant that gives
anything but what he has himself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from lance_memory.errors import InvalidInputError
from lance_memory.record.filters import (
    all_of,
    any_of,
    equals,
    metadata_equals,
    prefixed,
    visible,
)
from lance_memory.record.keys import GRANT
from lance_memory.record.memory import Kind, Memory, Relationship, Scope, State
from lance_memory.record.rows import to_memories
from lance_memory.sharing.grant import Grant, GrantState, Rights
from lance_memory.sharing.terms import Terms

__all__ = ["check_changes", "grants", "grants_in", "grants_to", "received_by", "row_of"]

_SHARES = "shares"
"""Relation of a grant to a memory that it names."""

_CHANGEABLE = frozenset(
    [
        *("content", "metadata", "tags", "importance", "confidence", "quality"),
        *("event_at", "valid_from", "valid_to"),
    ]
)
"""What the right to write lets change: what a memory says, and not what it is, nor whose, nor how
long: else a memory could be made a grant."""


def row_of(
    terms: Terms, ids: Sequence[str] | None, *, id: str, by: str, reason: str
) -> dict[str, Any]:
    """The row of a grant, as `take_in` takes it.

    Args:
        terms: of the grant.
        ids: of the memories that are named; None: the terms have a filter.
        id: of the row.
        by: the author of the handle.
        reason: why.
    """
    to = terms.receiver
    edges = [Relationship(relation=_SHARES, target=target) for target in ids or ()]
    return {
        "id": id,
        "key": f"{GRANT}{id}",
        "kind": str(Kind.WORKSPACE),
        "content": f"grant {id}: {terms.giver} shares with {to}, to {terms.rights}",
        "relationships": edges,
        "expires_at": terms.expires_at,
        "source": "user",
        "metadata": {
            "with_user": to.user,
            "with_agent": to.agent,
            "rights": str(terms.rights),
            "where": None if ids is not None else terms.where,
            "reason": reason,
            "granted_by": by,
        },
    }


def _grant_in(memory: Memory, *, moment: datetime) -> Grant | None:
    """The grant that a row of a workspace keeps; None: it keeps none that can be read."""
    told, key = memory.metadata, memory.key or ""
    if memory.kind is not Kind.WORKSPACE or key != f"{GRANT}{memory.id}":
        return None
    where = told.get("where")
    texts = [told.get(name) for name in ("with_user", "with_agent", "reason", "granted_by")]
    known = all(isinstance(text, str) for text in texts) and isinstance(where, dict | None)
    if not known or told.get("rights") not in list(Rights):
        return None
    user, agent, reason, by = map(str, texts)
    named = tuple(e.target for e in memory.relationships if e.relation == _SHARES)
    return Grant(
        id=memory.id,
        giver=memory.scope,
        receiver=Scope(tenant=memory.tenant, user=user, agent=agent),
        rights=Rights(told["rights"]),
        ids=named if where is None else None,
        where=where or {},
        expires_at=memory.expires_at,
        reason=reason,
        granted_by=by,
        created_at=memory.created_at,
        state=_state(memory, moment),
    )


def _state(memory: Memory, moment: datetime) -> GrantState:
    if memory.state is not State.ACTIVE:
        return GrantState.REVOKED
    return GrantState.ACTIVE if memory.visible_at(moment) else GrantState.EXPIRED


def grants_in(rows: pa.Table, *, moment: datetime) -> list[Grant]:
    """The grants that rows keep, oldest first."""
    found = (_grant_in(memory, moment=moment) for memory in to_memories(rows))
    return sorted((g for g in found if g), key=lambda grant: (grant.created_at, grant.id))


def check_changes(values: Mapping[str, Any]) -> None:
    """Refuse what the right to write does not let change.

    Raises:
        InvalidInputError: names it, or says that nothing is to be changed.
    """
    fixed = sorted(values.keys() - _CHANGEABLE)
    if fixed:
        raise InvalidInputError(
            f"what is shared lets {', '.join(sorted(_CHANGEABLE))} be changed, not "
            f"{', '.join(fixed)}; ask who shares it"
        )
    if not values:
        raise InvalidInputError("update changes nothing; give at least one column")


def received_by(scope: Scope, *, moment: datetime) -> str | None:
    """The rows of the grants to whoever is kept to a scope, that hold at a moment.

    Of the scope's tenant alone, also where it names none: then those of no tenant.
    """
    to_user = any_of(*(metadata_equals("with_user", name) for name in {"", scope.user}))
    to_agent = any_of(*(metadata_equals("with_agent", name) for name in {"", scope.agent}))
    return all_of(
        equals("tenant", scope.tenant), grants(), visible(moment), f"({to_user})", to_agent
    )


def grants() -> str:
    """The rows of grants."""
    return f"{equals('kind', Kind.WORKSPACE)} AND {prefixed('key', GRANT)}"


def grants_to(scope: Scope) -> str | None:
    """The rows of the grants whose receiver lies inside a scope; None: nobody's does.

    For forgetting: in whatever state.
    """
    given = scope.given()
    if given.keys() - {"tenant", "user", "agent"} or not given.keys() - {"tenant"}:
        return None
    tenant = equals("tenant", scope.tenant) if scope.tenant else None
    named = (level for level in ("user", "agent") if level in given)
    people = [metadata_equals(f"with_{level}", given[level]) for level in named]
    return all_of(tenant, grants(), *people)
