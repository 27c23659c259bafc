"""From a cluster to the one memory that takes its place: what does it, and how it is called."""

from lance_memory.curate.transform.builtin import extractive, latest, merge_lines
from lance_memory.curate.transform.command import CommandTransform
from lance_memory.curate.transform.execute import Execution
from lance_memory.curate.transform.llm import LLMTransform
from lance_memory.curate.transform.named import transform_named
from lance_memory.curate.transform.protocol import BatchTransform, Derived, Transform

__all__ = [
    "BatchTransform",
    "CommandTransform",
    "Derived",
    "Execution",
    "LLMTransform",
    "Transform",
    "extractive",
    "latest",
    "merge_lines",
    "transform_named",
]
