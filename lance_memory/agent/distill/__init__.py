"""Snapshots: what a session, a day or a topic comes to, in one memory each."""

from lance_memory.agent.distill.distiller import Distiller
from lance_memory.agent.distill.options import DistillOptions, SnapshotOf
from lance_memory.agent.distill.result import DistillResult
from lance_memory.agent.distill.snapshot import DistilledSnapshot, Refused

__all__ = [
    "DistillOptions",
    "DistillResult",
    "DistilledSnapshot",
    "Distiller",
    "Refused",
    "SnapshotOf",
]
