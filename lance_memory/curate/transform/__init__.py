"""From a cluster to the one memory that takes its place: what does it, and how it is called."""

from lance_memory.curate.transform.builtin import TRANSFORMS, extractive, latest, merge_lines
from lance_memory.curate.transform.command import CommandTransform
from lance_memory.curate.transform.execute import Execution, OnFailure, Outcome, outcomes
from lance_memory.curate.transform.llm import LLMTransform
from lance_memory.curate.transform.named import transform_named
from lance_memory.curate.transform.protocol import Answer, BatchTransform, Derived, Transform

__all__ = [
    "TRANSFORMS",
    "Answer",
    "BatchTransform",
    "CommandTransform",
    "Derived",
    "Execution",
    "LLMTransform",
    "OnFailure",
    "Outcome",
    "Transform",
    "extractive",
    "latest",
    "merge_lines",
    "outcomes",
    "transform_named",
]
