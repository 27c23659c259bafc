"""Up to which event the tenants of a handle are complete, and up to which all went in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lance_memory.agent.distill.group import Row
from lance_memory.ingest import Order
from lance_memory.store import MemoryStore

__all__ = ["Marks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The numbered events as they are before memories are read.

    What is complete then is in every later version.

    Attributes:
        order: of the store; None: nothing was ever kept beside it.
        contiguous: tenant → up to here all of its events are worked off or were skipped.
        ceilings: the same, of the tenants that have events beyond that.
    """

    order: Order | None = None
    contiguous: Mapping[str, int] = field(default_factory=dict)
    ceilings: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, store: MemoryStore) -> Marks:
        """Of the tenants that the handle may see.

        Raises:
            InvalidInputError: the store's ledger is elsewhere, and the handle does not know where.
        """
        store._whole_ledger()  # refuses one that is elsewhere
        if not store._beside.used:
            return cls()
        order = store._order()
        mine = store.scope.tenant
        known = {t: order.status(t) for t in order.tenants() if not mine or t == mine}
        return cls(
            order=order,
            contiguous={tenant: marks.contiguous for tenant, marks in known.items()},
            ceilings={t: m.contiguous for t, m in known.items() if m.contiguous < m.ingested},
        )

    def advance(self, waiting: Iterable[Row]) -> dict[str, int]:
        """Note how far all events went into snapshots; tenant → up to where, where it is further.

        Args:
            waiting: the memories that are in no snapshot yet.
        """
        if self.order is None:
            return {}
        first: dict[str, int] = {}
        for row in waiting:
            if row.seq is not None:
                tenant = row.owner.tenant
                first[tenant] = min(row.seq, first.get(tenant, row.seq))
        noted = {}
        for tenant, contiguous in self.contiguous.items():
            up_to = min(contiguous, first.get(tenant, contiguous + 1) - 1)
            if up_to > self.order.status(tenant).distilled:
                noted[tenant] = self.order.distilled(tenant, up_to).distilled
        return noted
