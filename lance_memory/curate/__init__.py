"""One engine: select → cluster → transform → sink. A sink writes back, or exports."""

from lance_memory.curate.consolidate import Needs, Pass, change_set, plan_consolidation
from lance_memory.curate.guard import Guard, ProbeHit, Search
from lance_memory.curate.lifecycle import retirement, reversal, supersession
from lance_memory.curate.options import (
    Bounds,
    ClusterBy,
    ClusterMethod,
    ConsolidateOptions,
    OnFailure,
)
from lance_memory.curate.plan import (
    ClusterPlan,
    ConsolidationPlan,
    ConsolidationResult,
    Recalled,
)
from lance_memory.curate.transform import (
    BatchTransform,
    CommandTransform,
    Derived,
    Execution,
    LLMTransform,
    Transform,
    extractive,
    latest,
    merge_lines,
    transform_named,
)

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
    "Needs",
    "OnFailure",
    "Pass",
    "ProbeHit",
    "Recalled",
    "Search",
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
