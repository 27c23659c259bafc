"""What an agent is given to know for one turn, within a budget of tokens."""

from lance_memory.agent.context.candidate import Candidate, ContextSource
from lance_memory.agent.context.options import SHARES, ContextOptions, ContextShare
from lance_memory.agent.context.result import ContextItem, ContextPack, DroppedItem, DropReason

__all__ = [
    "SHARES",
    "Candidate",
    "ContextItem",
    "ContextOptions",
    "ContextPack",
    "ContextShare",
    "ContextSource",
    "DropReason",
    "DroppedItem",
]
