"""lance-memory: git for an AI agent's memory."""

from lance_memory.curate import (
    ClusterBy,
    ClusterPlan,
    ConsolidateOptions,
    ConsolidationPlan,
    ConsolidationResult,
    Derived,
    Transform,
    keep_distinct,
)
from lance_memory.embed import CachedEmbedder, Embedder, FunctionEmbedder, MiniLM
from lance_memory.errors import (
    AmbiguousError,
    ConflictError,
    EmbeddingError,
    InvalidInputError,
    LanceMemoryError,
    MissingExtraError,
    NotFoundError,
    RejectedError,
    ScopeError,
    StorageError,
    StoreFormatError,
)
from lance_memory.record.filters import Where
from lance_memory.record.intake import Details, Fields
from lance_memory.record.memory import Kind, Memory, Relationship, Scope, State
from lance_memory.record.results import (
    AddManyResult,
    AddResult,
    Change,
    Diff,
    Hit,
    Outcome,
    Related,
    RollbackPlan,
    SearchResult,
    Stats,
    WriteResult,
)
from lance_memory.search import Mode
from lance_memory.storage import Branch, LogEntry, UpkeepResult
from lance_memory.store import MemoryStore
from lance_memory.view import MemoryView

__version__ = "0.1.0"

__all__ = [
    "AddManyResult",
    "AddResult",
    "AmbiguousError",
    "Branch",
    "CachedEmbedder",
    "Change",
    "ClusterBy",
    "ClusterPlan",
    "ConflictError",
    "ConsolidateOptions",
    "ConsolidationPlan",
    "ConsolidationResult",
    "Derived",
    "Details",
    "Diff",
    "Embedder",
    "EmbeddingError",
    "Fields",
    "FunctionEmbedder",
    "Hit",
    "InvalidInputError",
    "Kind",
    "LanceMemoryError",
    "LogEntry",
    "Memory",
    "MemoryStore",
    "MemoryView",
    "MiniLM",
    "MissingExtraError",
    "Mode",
    "NotFoundError",
    "Outcome",
    "RejectedError",
    "Related",
    "Relationship",
    "RollbackPlan",
    "Scope",
    "ScopeError",
    "SearchResult",
    "State",
    "Stats",
    "StorageError",
    "StoreFormatError",
    "Transform",
    "UpkeepResult",
    "Where",
    "WriteResult",
    "keep_distinct",
]
