"""Recall: a query becomes ranked, explained hits."""

from lance_memory.search.query import Mode, Query
from lance_memory.search.run import run

__all__ = ["Mode", "Query", "run"]
