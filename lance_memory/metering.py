"""Metering: how much of the store each tenant uses, and how much it may."""

from __future__ import annotations

from lance_memory.consolidating import Consolidating
from lance_memory.errors import ScopeError
from lance_memory.govern.quota import QuotaStatus, tenants_in

__all__ = ["Metering"]


class Metering(Consolidating):
    """The verbs of whoever looks at quotas; every commit keeps to them (`Writing`)."""

    def quota(self, tenant: str | None = None) -> QuotaStatus:
        """What a tenant uses of its quota; see `Resource` for what counts.

        Args:
            tenant: by default the handle's; of the store's own handle, memories without a tenant.

        Raises:
            ScopeError: this handle is kept to another tenant, or to a scope without one.
        """
        asked = {} if tenant is None else {"tenant": tenant}
        name = self._scope.narrowed(**asked).tenant
        if self._scope and not self._scope.tenant:
            raise ScopeError(
                f"a quota is a tenant's, and this handle is scoped to {self._scope}, of whatever "
                "tenant; use the store's own handle"
            )
        return self._meter.status(self._snapshot(), name, at=self._moment())

    def quotas(self) -> list[QuotaStatus]:
        """The same of every tenant that has memories or a quota of its own, by name.

        Raises:
            ScopeError: this handle is kept to a scope.
        """
        self._whole_store("the quotas of all tenants")
        snapshot, now = self._snapshot(), self._moment()
        names = {*tenants_in(snapshot), *self._meter.quotas.tenants}
        return [self._meter.status(snapshot, name, at=now) for name in sorted(names)]
