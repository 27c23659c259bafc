"""The write path: from conversations to memories worth keeping; `path.py` has its steps."""

from __future__ import annotations

from lance_memory.ingest.call import call_digest
from lance_memory.ingest.candidate import Candidate, Category, Claim, Decision, Resolution
from lance_memory.ingest.embedding import Vectors, vectors_of
from lance_memory.ingest.extract import (
    Extract,
    Extractor,
    Reading,
    Rules,
)
from lance_memory.ingest.formats import (
    Format,
    Normalise,
    conversation,
    conversations_of,
    read_conversations,
)
from lance_memory.ingest.gate import Budget, Gate, GatePolicy, count_inputs, forget_inputs
from lance_memory.ingest.keep import Keep, KeepPolicy, Objection
from lance_memory.ingest.message import Conversation, Message, Role
from lance_memory.ingest.order import Arrived, Order, OrderOptions, Watermarks, boundary
from lance_memory.ingest.overlay import OVERLAYS, Additions, Education, Overlay, Support
from lance_memory.ingest.path import WritePath
from lance_memory.ingest.redaction import Redact, RedactionPolicy, removed
from lance_memory.ingest.resolve import Classifier, Resolve, Resolved, Routing
from lance_memory.ingest.result import IngestResult, IngestStatus
from lance_memory.ingest.sessions import event_of
from lance_memory.ingest.steps import (
    IngestProgress,
    Passed,
    Step,
    Surroundings,
    Travelled,
    tell,
    travelled,
)
from lance_memory.ingest.users import seen_user, store_secret
from lance_memory.ingest.waiting import Answer, Waiting

__all__ = [
    "OVERLAYS",
    "Additions",
    "Answer",
    "Arrived",
    "Budget",
    "Candidate",
    "Category",
    "Claim",
    "Classifier",
    "Conversation",
    "Decision",
    "Education",
    "Extract",
    "Extractor",
    "Format",
    "Gate",
    "GatePolicy",
    "IngestProgress",
    "IngestResult",
    "IngestStatus",
    "Keep",
    "KeepPolicy",
    "Message",
    "Normalise",
    "Objection",
    "Order",
    "OrderOptions",
    "Overlay",
    "Passed",
    "Reading",
    "Redact",
    "RedactionPolicy",
    "Resolution",
    "Resolve",
    "Resolved",
    "Role",
    "Routing",
    "Rules",
    "Step",
    "Support",
    "Surroundings",
    "Travelled",
    "Vectors",
    "Waiting",
    "Watermarks",
    "WritePath",
    "boundary",
    "call_digest",
    "conversation",
    "conversations_of",
    "count_inputs",
    "event_of",
    "forget_inputs",
    "read_conversations",
    "removed",
    "seen_user",
    "store_secret",
    "tell",
    "travelled",
    "vectors_of",
]
