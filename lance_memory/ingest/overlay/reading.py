"""Values that are written in a text in a form of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lance_memory.record.memory import Memory

__all__ = ["read", "under"]


def read(text: str, patterns: Mapping[str, re.Pattern[str]]) -> dict[str, str]:
    """What each named pattern finds: its group, or, of several, the one that took part."""
    found = {name: pattern.search(text) for name, pattern in patterns.items()}
    return {name: next(filter(None, match.groups())) for name, match in found.items() if match}


def under(
    name: str, memories: Sequence[Memory], members: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Memory id → {name: members}, for those that have any."""
    pairs = zip(memories, members, strict=True)
    return {memory.id: {name: dict(found)} for memory, found in pairs if found}
