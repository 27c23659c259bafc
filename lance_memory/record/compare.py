"""What differs between two memories, exactly: as JSON compares, false is not 0."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np

from lance_memory.record.memory import Memory
from lance_memory.record.rows import EMBEDDING

__all__ = ["COLUMNS", "differing", "same_json"]

COLUMNS = tuple(field.name for field in fields(Memory))


def differing(one: Memory, other: Memory, columns: Iterable[str] = COLUMNS) -> tuple[str, ...]:
    """The columns in which the two differ, in the order given; both carry their embeddings."""
    return tuple(name for name in columns if not _same(one, other, name))


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same value; the order of members does not count."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _same(one: Memory, other: Memory, name: str) -> bool:
    before, after = getattr(one, name), getattr(other, name)
    if name == "metadata":
        return same_json(before, after)
    if name == EMBEDDING:
        both = before is not None and after is not None
        return bool(np.array_equal(before, after)) if both else before is after
    return bool(before == after)
