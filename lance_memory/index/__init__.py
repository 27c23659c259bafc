"""The index room: how vectors are cut into partitions and codes, and searched exactly in bulk.

What is imported here needs numpy alone. `build` and `health`, which work on a store's table, are
imported as modules, and so are the trainers, each with what it needs.
"""

from lance_memory.index.knn import Graph, near
from lance_memory.index.model import IvfPqModel, IvfPqSpec, Metric
from lance_memory.index.topk import TopK
from lance_memory.index.trainer import TRAINERS, Choice, Trainer, pick

__all__ = [
    "TRAINERS",
    "Choice",
    "Graph",
    "IvfPqModel",
    "IvfPqSpec",
    "Metric",
    "TopK",
    "Trainer",
    "near",
    "pick",
]
