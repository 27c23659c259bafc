"""What an agent developer calls once a turn: layers of memory, context, workspace."""

from lance_memory.agent.across_users import ProcedureSummary
from lance_memory.agent.agent import Agent
from lance_memory.agent.context import (
    ContextItem,
    ContextOptions,
    ContextPack,
    ContextShare,
    ContextSource,
    DroppedItem,
    DropReason,
)
from lance_memory.agent.distill import (
    DistilledSnapshot,
    Distiller,
    DistillOptions,
    DistillResult,
    Refused,
    SnapshotOf,
)
from lance_memory.agent.episodic import Episode, EpisodicMemory
from lance_memory.agent.flush import Flushed, LeftOut
from lance_memory.agent.hot import HotFigures, HotTier
from lance_memory.agent.importance import Heuristic, ImportanceAssessor
from lance_memory.agent.interaction import Interaction, Observed, ObservedMany
from lance_memory.agent.policies import retention_policies
from lance_memory.agent.procedural import ProceduralMemory
from lance_memory.agent.procedure import BestProcedures, Procedure, RankedProcedure
from lance_memory.agent.profile import Fact, ProfileMemory
from lance_memory.agent.semantic import SemanticMemory
from lance_memory.agent.session_state import SessionState
from lance_memory.agent.working import WorkingMemory
from lance_memory.agent.workspace import (
    ItemChange,
    ItemDetails,
    ItemOutcome,
    ItemResult,
    MemoryMode,
    Skill,
    Workspace,
    WorkspaceItem,
    WorkspacePart,
    WorkspacePlan,
    WorkspaceResult,
    WorkspaceState,
    WorkspaceView,
)

__all__ = [
    "Agent",
    "BestProcedures",
    "ContextItem",
    "ContextOptions",
    "ContextPack",
    "ContextShare",
    "ContextSource",
    "DistillOptions",
    "DistillResult",
    "DistilledSnapshot",
    "Distiller",
    "DropReason",
    "DroppedItem",
    "Episode",
    "EpisodicMemory",
    "Fact",
    "Flushed",
    "Heuristic",
    "HotFigures",
    "HotTier",
    "ImportanceAssessor",
    "Interaction",
    "ItemChange",
    "ItemDetails",
    "ItemOutcome",
    "ItemResult",
    "LeftOut",
    "MemoryMode",
    "Observed",
    "ObservedMany",
    "ProceduralMemory",
    "Procedure",
    "ProcedureSummary",
    "ProfileMemory",
    "RankedProcedure",
    "Refused",
    "SemanticMemory",
    "SessionState",
    "Skill",
    "SnapshotOf",
    "WorkingMemory",
    "Workspace",
    "WorkspaceItem",
    "WorkspacePart",
    "WorkspacePlan",
    "WorkspaceResult",
    "WorkspaceState",
    "WorkspaceView",
    "retention_policies",
]
