"""What the workspaces of tenants say about how long memories stay."""

from __future__ import annotations

import pyarrow.compute as pc

from lance_memory.agent.workspace import WorkspacePart, WorkspaceView
from lance_memory.agent.workspace.item import key_of
from lance_memory.agent.workspace.place import reading
from lance_memory.errors import InvalidInputError
from lance_memory.govern.retention import RetentionPolicy
from lance_memory.record.memory import Kind, Scope, State
from lance_memory.view import MemoryView

__all__ = ["RETENTION", "retention_policies"]

RETENTION = "retention"
"""The name of the policy in a workspace; its value is that of `RetentionPolicy.from_json`."""


def retention_policies(view: MemoryView) -> dict[str, RetentionPolicy]:
    """Tenant → the policy of its workspace, where it has one, for `retain(per_tenant=...)`.

    Through a handle that is scoped to a tenant, of that tenant alone; through one that is scoped
    otherwise, of the tenants whose memories it sees. What an agent's own workspace says is not
    looked at: memories are a tenant's.

    Raises:
        InvalidInputError: a policy is none; says whose.
    """
    found = {}
    for tenant in _tenants(view):
        workspace = WorkspaceView(reading(view, Scope(tenant=tenant)))
        told = workspace.find(WorkspacePart.POLICY, RETENTION)
        if told is None:
            continue
        try:
            found[tenant] = RetentionPolicy.from_json(told.value)
        except InvalidInputError as error:
            raise InvalidInputError(
                f"the policy {RETENTION!r} in the workspace of the tenant {tenant!r}: {error}"
            ) from error
    return found


def _tenants(view: MemoryView) -> list[str]:
    """Those that may have a policy of their own."""
    if view.scope.tenant:
        return [view.scope.tenant]
    if view.scope:
        seen = view.to_arrow(columns=["tenant"], states=State.ACTIVE)
        return sorted(filter(None, pc.unique(seen["tenant"]).to_pylist()))
    key = key_of((WorkspacePart.POLICY, RETENTION))
    found = view.list(kinds=Kind.WORKSPACE, key=key)
    return sorted({memory.tenant for memory in found if memory.tenant and not memory.agent})
