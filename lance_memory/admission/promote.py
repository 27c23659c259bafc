"""Working memories that become rows, or rows of another kind: found again by their ids."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.admission.addition import Embed, embedded
from lance_memory.errors import ConflictError, InvalidInputError
from lance_memory.record.intake import Taken
from lance_memory.record.memory import SCOPE_LEVELS, Kind, State
from lance_memory.record.rows import changed, valid_vectors
from lance_memory.storage import Audit, ChangeSet, Snapshot, refuse_taken

__all__ = ["Promotion"]

_BECOMES = ("kind", "importance", "expires_at")
"""What a working row takes over of the memory that it becomes."""


class Promotion:
    """One batch. `change` decides against the version that the commit is about to build on."""

    def __init__(self, taken: Taken, *, embed: Embed, now: datetime) -> None:
        if "id" not in taken.given and len(taken.rows):
            raise InvalidInputError(
                "a memory that is promoted needs an id of the caller's own, by which it is known "
                "when it comes again"
            )
        self._taken = taken
        self._embed = embed
        self._now = now

    @property
    def operation(self) -> str:
        """What the log calls it."""
        kinds = set(self._taken.rows["kind"].to_pylist())
        return "hibernate" if kinds == {Kind.WORKING} else "promote"

    def prepare(self, latest: Callable[[], Snapshot]) -> None:
        """Embed what seems to be new, before the commit, because it takes long."""
        fresh = self._missing(_held(latest(), self._taken.rows))
        self._taken = embedded(self._taken, self._embed, only=fresh)

    def change(
        self, snapshot: Snapshot, *, fresh: Collection[str] | None, audit: Audit
    ) -> ChangeSet:
        """What is stored, and what changes its kind.

        Args:
            snapshot: the version to build on.
            fresh: the ids that may be stored; None: all.
            audit: of the change.

        Raises:
            ConflictError: an id is another scope's; or a key is another live memory's.
        """
        held = _held(snapshot, self._taken.rows)
        _refuse_elsewhere(held, self._taken.rows)
        new = self._missing(held)
        if fresh is not None:
            new = new.filter(pc.is_in(new["id"], pa.array(sorted(fresh), pa.string())))
        if not valid_vectors(new).all():  # what was there has gone since
            self._taken = embedded(self._taken, self._embed, only=new)
            new = self._taken.rows.filter(pc.is_in(self._taken.rows["id"], new["id"]))
        refuse_taken(snapshot, new, audit.at)
        return ChangeSet(
            audit=audit, inserts=new, updates=self._changed(held, audit.at), looked=True
        )

    def _missing(self, held: pa.Table) -> pa.Table:
        rows = self._taken.rows
        return rows.filter(pc.invert(pc.is_in(rows["id"], held["id"])))

    def _changed(self, held: pa.Table, now: datetime) -> pa.Table | None:
        """The working rows that become something else."""
        rows = self._taken.rows
        visible = pc.and_(
            pc.equal(held["state"], str(State.ACTIVE)),
            pc.fill_null(pc.greater(held["expires_at"], pa.scalar(now)), fill_value=True),
        )
        working = pc.equal(held["kind"], str(Kind.WORKING))
        old = held.filter(pc.and_(visible, working))
        given = rows.take(pc.index_in(old["id"], rows["id"]))
        other = pc.not_equal(given["kind"], str(Kind.WORKING))
        old, given = old.filter(other), given.filter(other)
        if not len(old):
            return None
        return changed(old, {name: given[name] for name in _BECOMES}, now=now)


def _held(snapshot: Snapshot, rows: pa.Table) -> pa.Table:
    return snapshot.by_ids(rows["id"].to_pylist(), columns=snapshot.schema.names)


def _refuse_elsewhere(held: pa.Table, rows: pa.Table) -> None:
    given = rows.take(pc.index_in(held["id"], rows["id"]))
    for level in SCOPE_LEVELS:
        outside = held.filter(pc.not_equal(held[level], given[level]))["id"].to_pylist()
        if outside:
            raise ConflictError(
                f"id {outside[0]!r} is taken by a memory of another scope; nothing was written",
                ids=outside,
            )
