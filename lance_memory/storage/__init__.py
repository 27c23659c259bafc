"""The engine room: the only one that imports lance."""

from lance_memory.storage import history, indices, merging, naming, undo
from lance_memory.storage.change import Audit, ChangeSet, Plan
from lance_memory.storage.changes import changes_of
from lance_memory.storage.deltas import Delta, deltas
from lance_memory.storage.disk.durable import Durability
from lance_memory.storage.disk.whole import Damage
from lance_memory.storage.history import Comparison, LogEntry
from lance_memory.storage.keys import refuse_taken
from lance_memory.storage.lock import FORGET
from lance_memory.storage.merging import Prefer
from lance_memory.storage.naming import Branch
from lance_memory.storage.opening import absolute
from lance_memory.storage.place import Place
from lance_memory.storage.ranking.columns import RankingColumns
from lance_memory.storage.refs import row_named, rows_named
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.table import Table
from lance_memory.storage.upkeep.options import Upkeep, UpkeepMode
from lance_memory.storage.upkeep.retain import Retain
from lance_memory.storage.upkeep.state import UpkeepFailure, UpkeepStatus
from lance_memory.storage.upkeep.steps import UpkeepPlan, UpkeepResult
from lance_memory.storage.upkeep.tender import Tender
from lance_memory.storage.vector.staged import StagedVectors
from lance_memory.storage.vector.switch import say, switch_vectors

__all__ = [
    "FORGET",
    "Audit",
    "Branch",
    "ChangeSet",
    "Comparison",
    "Damage",
    "Delta",
    "Durability",
    "LogEntry",
    "Place",
    "Plan",
    "Prefer",
    "RankingColumns",
    "Retain",
    "Snapshot",
    "StagedVectors",
    "Table",
    "Tender",
    "Upkeep",
    "UpkeepFailure",
    "UpkeepMode",
    "UpkeepPlan",
    "UpkeepResult",
    "UpkeepStatus",
    "absolute",
    "changes_of",
    "deltas",
    "history",
    "indices",
    "merging",
    "naming",
    "refuse_taken",
    "row_named",
    "rows_named",
    "say",
    "switch_vectors",
    "undo",
]
