"""The schedule: passes in the background, bounded, one at a time."""

from lance_memory.dream.dreamer import BOUNDS, EXECUTION, TRIGGERS, Dreamer
from lance_memory.dream.results import DreamOutcome, DreamResult, DreamStatus, Running
from lance_memory.dream.triggers import Triggers

__all__ = [
    "BOUNDS",
    "EXECUTION",
    "TRIGGERS",
    "DreamOutcome",
    "DreamResult",
    "DreamStatus",
    "Dreamer",
    "Running",
    "Triggers",
]
