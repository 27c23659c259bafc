"""Migrating: a store from an earlier schema or another embedding model to the present one."""

from lance_memory.migrate.migrations import (
    Applied,
    Migration,
    MigrationResult,
    MigrationStep,
    applied,
    migrate_store,
)
from lance_memory.migrate.reembed import (
    Model,
    ReembedPlan,
    ReembedProgress,
    ReembedResult,
    plan_reembedding,
    reembed,
)

__all__ = [
    "Applied",
    "Migration",
    "MigrationResult",
    "MigrationStep",
    "Model",
    "ReembedPlan",
    "ReembedProgress",
    "ReembedResult",
    "applied",
    "migrate_store",
    "plan_reembedding",
    "reembed",
]
