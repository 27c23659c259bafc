"""The schedule: passes in the background, bounded, one at a time."""

from lance_memory.dream.dreamer import Dreamer
from lance_memory.dream.results import DreamOutcome, DreamResult, DreamStatus, Running
from lance_memory.dream.triggers import Triggers

__all__ = [
    "DreamOutcome",
    "DreamResult",
    "DreamStatus",
    "Dreamer",
    "Running",
    "Triggers",
]
