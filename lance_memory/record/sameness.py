"""When two rows are the same memory.

They are when they have the same id; or the same key in the same scope, while the first is live; or
the same content, actor, role and event time in the same scope, while the first is live and has no
other key. With an event time the rows are one event, which stays known also after it was
consolidated away.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lance_memory.errors import ConflictError
from lance_memory.record.filters import is_live
from lance_memory.record.memory import SCOPE_LEVELS, State

__all__ = ["IDENTITY", "Register", "Row"]

IDENTITY = (
    *("id", "key", "content_hash", "actor", "role", "event_at"),
    *SCOPE_LEVELS,
    *("state", "expires_at"),
)
"""The columns that sameness is decided by."""

Row = Mapping[str, Any]


class Register:
    """The memories that are known so far, by each of their identities."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._by_id: dict[str, Row] = {}
        self._by_key: dict[tuple[Any, ...], Row] = {}
        self._by_content: dict[tuple[Any, ...], Row] = {}

    def add(self, row: Row) -> None:
        """One more memory."""
        self._by_id[row["id"]] = row
        if is_live(row, self._now):
            if row["key"] is not None:
                self._by_key.setdefault(_key(row), row)
            self._add_content(row)
        elif row["event_at"] is not None and row["state"] == State.SUPERSEDED:
            self._add_content(row)

    def _add_content(self, row: Row) -> None:
        """One without a key is the same as any; one with a key only as those with that key."""
        for key in {None, row["key"]}:
            self._by_content.setdefault((key, *_content(row)), row)

    def find(self, row: Row) -> tuple[str, str] | None:
        """The id of the memory that the row is the same as, and by what.

        Raises:
            ConflictError: its id is taken by another content or scope.
        """
        same = self._by_id.get(row["id"])
        if same is not None:
            if any(same[name] != row[name] for name in ("content_hash", *SCOPE_LEVELS)):
                raise ConflictError(
                    f"id {row['id']!r} is taken by a memory with another content or scope; "
                    "change it with update(), or add under another id",
                    ids=[row["id"]],
                )
            return same["id"], "a memory with this id and content is there"
        holder = self.holder(row)
        if holder is not None:
            return holder["id"], "a live memory with this key is there"
        same = self._by_content.get((row["key"], *_content(row)))
        return (same["id"], f"the same content is there ({same['state']})") if same else None

    def holder(self, row: Row) -> Row | None:
        """The live memory of the row's scope that has its key."""
        return None if row["key"] is None else self._by_key.get(_key(row))


def _key(row: Row) -> tuple[Any, ...]:
    return (row["key"], *(row[level] for level in SCOPE_LEVELS))


def _content(row: Row) -> tuple[Any, ...]:
    levels = (row[level] for level in SCOPE_LEVELS)
    return (row["content_hash"], row["actor"], row["role"], row["event_at"], *levels)
