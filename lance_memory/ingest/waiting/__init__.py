"""Memories that wait: to be heard again, for the person's answer, or for a review."""

from lance_memory.ingest.waiting.decide import answered, approved, expired, rejected
from lance_memory.ingest.waiting.waiting import Answer, Waiting, WaitsFor, waiting

__all__ = [
    "Answer",
    "Waiting",
    "WaitsFor",
    "answered",
    "approved",
    "expired",
    "rejected",
    "waiting",
]
