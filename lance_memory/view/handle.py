"""What every handle has: a table, a scope, and the version and moment that it is about."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.embed import Embedder
from lance_memory.errors import (
    InvalidInputError,
    NotFoundError,
    ScopeError,
)
from lance_memory.record.filters import Filter, Where
from lance_memory.record.memory import Scope
from lance_memory.record.times import Clock, utc
from lance_memory.record.values import text_value
from lance_memory.search import KnownActors
from lance_memory.storage import (
    Damage,
    Snapshot,
    Table,
    history,
    naming,
    row_named,
)
from lance_memory.usage import QueryLog
from lance_memory.view.embedded import embedded_by

__all__ = ["Handle"]

_LONGEST_NUMBER = 20  # digits of a version; the engine's numbers have 64 bits


class Handle:
    """A table seen within one scope, at its newest version or a pinned one."""

    def __init__(
        self,
        table: Table,
        *,
        embedder: Embedder,
        clock: Clock,
        scope: Scope | None = None,
        pinned: Snapshot | None = None,
        moment: datetime | None = None,
        actors: KnownActors | None = None,
        queries: QueryLog | None = None,
    ) -> None:
        self._table = table
        self._embedder = embedder
        self._clock = clock
        self._scope = scope or Scope()
        self._pinned = pinned
        self._fixed_moment = moment
        self._actors = actors or KnownActors()
        self._queries = queries or QueryLog.of(table)

    @property
    def uri(self) -> str:
        """Where the store is, absolute."""
        return self._table.uri

    @property
    def version(self) -> int:
        """The table version that reads see."""
        return self._snapshot().version

    @property
    def store_id(self) -> str:
        """A UUID that no other store has, and the branches of this one share; "" of old stores."""
        return self._table.format.store_id

    @property
    def branch_name(self) -> str:
        """The line of versions this is on; "main" unless another was opened."""
        return self._table.branch

    @property
    def damage(self) -> Damage | None:
        """What is torn of the newest versions, which are then not read; None: nothing."""
        return self._table.damage

    @property
    def scope(self) -> Scope:
        """The scope that no read of this handle leaves."""
        return self._scope

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.uri} version {self.version} scope {self._scope}>"

    def scoped(self, **levels: str) -> Self:
        """The same, kept to a scope: nothing outside is read, found, related to, or changed.

        Args:
            levels: any of tenant, user, agent, session, run.

        Raises:
            ScopeError: a level is fixed already, to another name.
            InvalidInputError: a level that does not exist, or an empty name.
        """
        known = {field.name for field in fields(Scope)}
        bad = [name for name, value in levels.items() if name not in known or not value]
        if bad or not levels:
            raise InvalidInputError(
                f"scoped({', '.join(bad)}) needs names for some of: {', '.join(sorted(known))}"
            )
        for name, value in levels.items():
            text_value(name, value)
        other = copy.copy(self)
        other._scope = self._scope.narrowed(**levels)
        return other

    @property
    def embedder(self) -> Embedder:
        """What makes this store's vectors, with its cache."""
        return self._embedder

    @property
    def clock(self) -> Clock:
        """What tells this store the present moment."""
        return self._clock

    # -- inside ---------------------------------------------------------------------------

    def _snapshot(self, when: int | str | datetime | None = None) -> Snapshot:
        """The version that this is about, or the one that `when` names."""
        if when is None:
            return self._pinned or self._table.latest()
        if isinstance(when, datetime):
            return self._table.at(history.version_at(self._table, utc(when, "at")))
        return self._table.at(self._resolve(when))

    def _moment(self) -> datetime:
        return self._fixed_moment or utc(self._clock(), "clock()")

    def _predicate(self, where: Where) -> str | None:
        return Filter.of(where, within=self._scope).predicate(self._moment())

    def _boundary(self) -> str | None:
        """The predicate of the scope alone: every state."""
        return Filter(scope=self._scope, states="any").predicate(self._moment())

    def _embed(self, texts: Sequence[str], *, queries: bool = False) -> NDArray[np.float32]:
        return embedded_by(self._embedder, texts, queries=queries)

    def _row(self, ref: str, snapshot: Snapshot) -> pa.Table:
        return row_named(snapshot, ref, scope=self._scope, moment=self._moment())

    def _resolved(self, when: int | str | datetime) -> int | datetime:
        """What names a version, checked: never None, which would be the present."""
        return utc(when, "at") if isinstance(when, datetime) else self._resolve(when)

    def _resolve(self, when: int | str) -> int:
        """The version that a number or a tag names."""
        if isinstance(when, int) and not isinstance(when, bool):
            return when
        if not isinstance(when, str):
            raise InvalidInputError(f"{when!r} names no version; give a number, a tag or a time")
        found = naming.tags(self._table)
        if when in found:
            return found[when]
        if when.isdecimal() and len(when) < _LONGEST_NUMBER:
            return int(when)
        known = "" if self._scope else f"; there are: {', '.join(found) or 'none'}"
        raise NotFoundError(
            f"there is no tag {when!r}{known} "
            "(a time is an aware datetime; on the command line 2025-01-31T12:00:00+00:00)"
        )

    def _whole_store(self, action: str) -> None:
        """Refuse what concerns the whole store on a scoped handle."""
        if self._scope:
            raise ScopeError(
                f"{action} concerns the whole store, and this handle is scoped to {self._scope}; "
                "use the store's own handle"
            )
