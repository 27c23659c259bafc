"""Recall: a query becomes ranked, explained hits."""

from lance_memory.search.actors import KnownActors
from lance_memory.search.around import around
from lance_memory.search.query import Mode, Page, Query
from lance_memory.search.ranking import Fusion, Ranking, Recency
from lance_memory.search.rerank import LanceDBReranker, Reranker
from lance_memory.search.run import run

__all__ = [
    "Fusion",
    "KnownActors",
    "LanceDBReranker",
    "Mode",
    "Page",
    "Query",
    "Ranking",
    "Recency",
    "Reranker",
    "around",
    "run",
]
