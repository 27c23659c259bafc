"""What an agent is told: prompts, skills, memory mode, policies, flags, each with its history."""

from lance_memory.agent.workspace.item import WorkspaceItem, WorkspacePart
from lance_memory.agent.workspace.result import ItemOutcome, ItemResult, WorkspaceResult
from lance_memory.agent.workspace.state import ItemChange, WorkspacePlan, WorkspaceState
from lance_memory.agent.workspace.values import MemoryMode, Skill
from lance_memory.agent.workspace.view import WorkspaceView
from lance_memory.agent.workspace.workspace import Workspace
from lance_memory.agent.workspace.writing import ItemDetails

__all__ = [
    "ItemChange",
    "ItemDetails",
    "ItemOutcome",
    "ItemResult",
    "MemoryMode",
    "Skill",
    "Workspace",
    "WorkspaceItem",
    "WorkspacePart",
    "WorkspacePlan",
    "WorkspaceResult",
    "WorkspaceState",
    "WorkspaceView",
]
