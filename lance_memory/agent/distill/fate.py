"""What became of the memories that a snapshot was made from. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa

from lance_memory.record.filters import is_live
from lance_memory.record.memory import State

__all__ = ["FATE", "Fate", "fates"]

FATE: Final = ("id", "tenant", "kind", "seq", "state", "state_reason", "expires_at")
"""The columns that tell it."""

_IN_TIME: Final = ("retention: ", "strength ")
"""How the reasons begin of what a policy retired, because its time was over."""


class Fate(StrEnum):
    """Whether a source stands still, or why not.

    One that a pass does not look at, as it is of another kind or something is missing before it,
    is put away as far as that pass is concerned.
    """

    STANDING = "standing"
    PUT_AWAY = "put away"
    REPLACED = "replaced"
    WRONG = "wrong"


def fates(
    table: pa.Table, *, kinds: Collection[str], ceilings: Mapping[str, int], now: datetime
) -> dict[str, Fate]:
    """By id.

    Args:
        table: rows of whatever state, with the columns `FATE` at least.
        kinds: those that the pass means.
        ceilings: as of `Marks`.
        now: decides what has expired.
    """

    def fate(row: Mapping[str, Any]) -> Fate:
        if row["state"] in (State.ACTIVE, State.PENDING):
            held = row["seq"] is not None and row["seq"] > ceilings.get(row["tenant"], row["seq"])
            stands = row["kind"] in kinds and is_live(row, now) and not held
            return Fate.STANDING if stands else Fate.PUT_AWAY
        if row["state"] == State.SUPERSEDED:
            return Fate.REPLACED
        in_time = row["state"] == State.RETIRED and row["state_reason"].startswith(_IN_TIME)
        return Fate.PUT_AWAY if in_time else Fate.WRONG

    return {row["id"]: fate(row) for row in table.select(FATE).to_pylist()}
