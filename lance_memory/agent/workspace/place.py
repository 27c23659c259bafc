"""Whose workspace a handle is about, and what of it the handle may read and change."""

from __future__ import annotations

import copy
from typing import TypeVar

from lance_memory.errors import ScopeError
from lance_memory.record.memory import Scope
from lance_memory.view import MemoryView

__all__ = ["inherited", "owner_of", "reading", "refuse_narrower"]

_V = TypeVar("_V", bound=MemoryView)


def owner_of(scope: Scope) -> Scope:
    """Whose workspace it is: a tenant's or an agent's, whoever's user, session or run it is.

    Raises:
        ScopeError: no tenant and no agent is given.
    """
    owner = Scope(tenant=scope.tenant, agent=scope.agent)
    if not owner:
        raise ScopeError(
            f"a workspace is a tenant's or an agent's, and this handle is scoped to {scope}; "
            'take store.scoped(tenant="...") or store.scoped(tenant="...", agent="...")'
        )
    return owner


def inherited(owner: Scope) -> Scope | None:
    """The workspace that an agent's own stands on: its tenant's; None: there is none."""
    return Scope(tenant=owner.tenant) if owner.tenant and owner.agent else None


def reading(view: _V, owner: Scope) -> _V:
    """A handle that sees the workspace, and the one that it stands on.

    What an agent is told is told for all of its users, so the handle of one of them reads it too:
    this is the one place where a read goes outside of its handle's scope, to what is no memory.
    """
    wide = copy.copy(view)
    wide._scope = inherited(owner) or owner
    return wide


def refuse_narrower(scope: Scope) -> None:
    """Refuse to change a workspace through the handle of one user, session or run.

    Raises:
        ScopeError: it is one.
    """
    if scope != owner_of(scope):
        raise ScopeError(
            f"a workspace is changed for all users, and this handle is scoped to {scope}; use the "
            f"handle of {owner_of(scope)}"
        )
