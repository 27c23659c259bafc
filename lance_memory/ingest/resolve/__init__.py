"""What a candidate becomes beside the memories that are there."""

from lance_memory.ingest.resolve.classify import STANDARD, Classifier, Judgement, Standard
from lance_memory.ingest.resolve.resolve import Resolve, Resolved
from lance_memory.ingest.resolve.routing import OnClash, Routing, Whose
from lance_memory.ingest.resolve.statement import Statement, Topic

__all__ = [
    "STANDARD",
    "Classifier",
    "Judgement",
    "OnClash",
    "Resolve",
    "Resolved",
    "Routing",
    "Standard",
    "Statement",
    "Topic",
    "Whose",
]
