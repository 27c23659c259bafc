"""Which memories answered which queries: recorded, counted, and what fades for want of use."""

from lance_memory.usage.fading import Faded, RetirePlan, check, faded_away, fading
from lance_memory.usage.log import QueryLog
from lance_memory.usage.options import QueryRecording
from lance_memory.usage.recorded import Asked, Chosen, RecordedQuery
from lance_memory.usage.recorder import RecordingStatus
from lance_memory.usage.report import Usage, measured

__all__ = [
    "Asked",
    "Chosen",
    "Faded",
    "QueryLog",
    "QueryRecording",
    "RecordedQuery",
    "RecordingStatus",
    "RetirePlan",
    "Usage",
    "check",
    "faded_away",
    "fading",
    "measured",
]
