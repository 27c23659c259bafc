"""How much each tenant may have: limits, what is used of them, and the look inside each commit."""

from lance_memory.govern.quota.counting import tenants_in
from lance_memory.govern.quota.limits import Limit, Quota, Quotas, Resource
from lance_memory.govern.quota.meter import Meter
from lance_memory.govern.quota.status import QuotaStatus, QuotaUse

__all__ = [
    "Limit",
    "Meter",
    "Quota",
    "QuotaStatus",
    "QuotaUse",
    "Quotas",
    "Resource",
    "tenants_in",
]
