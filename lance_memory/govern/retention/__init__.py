"""How long memories stay, which are due, and what becomes of those."""

from lance_memory.govern.retention.due import plan_retention
from lance_memory.govern.retention.plan import Due, RetentionPlan, retired_parts
from lance_memory.govern.retention.policy import RetentionPolicy, RetentionRule
from lance_memory.govern.retention.result import RetentionResult

__all__ = [
    "Due",
    "RetentionPlan",
    "RetentionPolicy",
    "RetentionResult",
    "RetentionRule",
    "plan_retention",
    "retired_parts",
]
