"""One engine: select → cluster → transform → sink. A sink writes back, or exports."""

from lance_memory.curate.consolidate import Pass, Surroundings, change_set, plan_consolidation
from lance_memory.curate.guard import Guard, Search
from lance_memory.curate.lifecycle import retirement, reversal, supersession
from lance_memory.curate.options import Bounds, ClusterBy, ClusterMethod, ConsolidateOptions
from lance_memory.curate.plan import (
    ClusterPlan,
    ConsolidationPlan,
    ConsolidationResult,
    Recalled,
)
from lance_memory.curate.transform.builtin import extractive, latest, merge_lines
from lance_memory.curate.transform.command import CommandTransform
from lance_memory.curate.transform.execute import Execution, OnFailure
from lance_memory.curate.transform.llm import LLMTransform
from lance_memory.curate.transform.named import transform_named
from lance_memory.curate.transform.protocol import BatchTransform, Derived, Transform

__all__ = [
    "BatchTransform",
    "Bounds",
    "ClusterBy",
    "ClusterMethod",
    "ClusterPlan",
    "CommandTransform",
    "ConsolidateOptions",
    "ConsolidationPlan",
    "ConsolidationResult",
    "Derived",
    "Execution",
    "Guard",
    "LLMTransform",
    "OnFailure",
    "Pass",
    "Recalled",
    "Search",
    "Surroundings",
    "Transform",
    "change_set",
    "extractive",
    "latest",
    "merge_lines",
    "plan_consolidation",
    "retirement",
    "reversal",
    "supersession",
    "transform_named",
]
