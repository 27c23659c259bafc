"""The kind that a layer adds to what it is asked."""

from __future__ import annotations

from typing import Any

from lance_memory.errors import InvalidInputError
from lance_memory.record.compare import same_json
from lance_memory.record.filters import Where
from lance_memory.record.memory import Kind

__all__ = ["of_kind"]


def of_kind(kind: Kind, where: Where, **members: Any) -> Where:
    """`where` about memories of that kind alone, whose metadata has these members too.

    Raises:
        InvalidInputError: it names kinds itself, or another value of a member.
    """
    if "kinds" in where:
        raise InvalidInputError(
            f"kinds={where['kinds']!r}; this layer is about {kind} memories: ask the store for "
            "others"
        )
    asked = where.get("metadata", {})
    for name, value in members.items():
        if name in asked and not same_json(asked[name], value):
            raise InvalidInputError(
                f"{name}={value!r}, and metadata asks for {name}={asked[name]!r}; give one"
            )
    chosen: Where = {**where, "kinds": kind}
    if members:
        chosen["metadata"] = {**asked, **members}
    return chosen
