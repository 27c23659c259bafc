"""Consolidation: select → cluster → transform → sink."""

from lance_memory.curate.consolidate import change_set, plan_consolidation
from lance_memory.curate.lifecycle import retirement, reversal, supersession
from lance_memory.curate.options import ClusterBy, ConsolidateOptions
from lance_memory.curate.plan import ClusterPlan, ConsolidationPlan, ConsolidationResult
from lance_memory.curate.transform import Derived, Transform, keep_distinct

__all__ = [
    "ClusterBy",
    "ClusterPlan",
    "ConsolidateOptions",
    "ConsolidationPlan",
    "ConsolidationResult",
    "Derived",
    "Transform",
    "change_set",
    "keep_distinct",
    "plan_consolidation",
    "retirement",
    "reversal",
    "supersession",
]
