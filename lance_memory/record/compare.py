"""What differs between two memories: metadata as JSON compares, where false is not 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    """Whether two JSON values are one: 1 is 1.0, and not true; members have no order.

    The same that a filter on metadata finds to be equal; see `Where`.
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(one[n], other[n]) for n in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def _same(one: Memory, other: Memory, name: str) -> bool:
    before, after = getattr(one, name), getattr(other, name)
    if name == "metadata":
        return same_json(before, after)
    if name == EMBEDDING:
        both = before is not None and after is not None
        return bool(np.array_equal(before, after)) if both else before is after
    return bool(before == after)
