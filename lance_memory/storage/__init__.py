"""The engine room: the only one that imports lance."""

from lance_memory.storage import history, indices, undo, upkeep
from lance_memory.storage.change import Audit, ChangeSet, Plan
from lance_memory.storage.columns import RankingColumns
from lance_memory.storage.history import Branch, Comparison, LogEntry
from lance_memory.storage.keys import refuse_taken
from lance_memory.storage.refs import row_named, rows_named
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.table import Table, absolute
from lance_memory.storage.upkeep import UpkeepResult

__all__ = [
    "Audit",
    "Branch",
    "ChangeSet",
    "Comparison",
    "LogEntry",
    "Plan",
    "RankingColumns",
    "Snapshot",
    "Table",
    "UpkeepResult",
    "absolute",
    "history",
    "indices",
    "refuse_taken",
    "row_named",
    "rows_named",
    "undo",
    "upkeep",
]
