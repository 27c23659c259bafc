"""Which memories answered which queries: recorded, counted, and what fades for want of use."""

from lance_memory.usage.fading import Faded, RetirePlan, faded_away, fading
from lance_memory.usage.log import QueryLog, Recording
from lance_memory.usage.options import QueryRecording
from lance_memory.usage.recorded import Chosen, QueryWhere, RecordedQuery
from lance_memory.usage.recorder import RecordingStatus
from lance_memory.usage.report import Usage, measured

__all__ = [
    "Chosen",
    "Faded",
    "QueryLog",
    "QueryRecording",
    "QueryWhere",
    "RecordedQuery",
    "Recording",
    "RecordingStatus",
    "RetirePlan",
    "Usage",
    "faded_away",
    "fading",
    "measured",
]
