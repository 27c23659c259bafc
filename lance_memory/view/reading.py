"""Finding memories: by name, by filter, and by what they are related to."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterator
from typing import Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.errors import (
    InvalidInputError,
    NotFoundError,
    StorageError,
)
from lance_memory.record import lineage
from lance_memory.record.arguments import several, whole
from lance_memory.record.filters import Where
from lance_memory.record.memory import SCOPE_LEVELS, Memory, Scope
from lance_memory.record.results import (
    Lineage,
    Neighbour,
    Related,
)
from lance_memory.record.rows import EMBEDDING, embeddings, to_memories, valid_vectors
from lance_memory.record.values import text_value
from lance_memory.search import around
from lance_memory.storage import (
    Snapshot,
    naming,
)
from lance_memory.view.handle import Handle

__all__ = ["Reading"]


class Reading(Handle):
    """A handle that reads memories."""

    def get(self, ref: str) -> Memory:
        """The memory with this id, this key, or this unambiguous beginning of an id.

        An id finds a memory in whatever state; a key finds the live one. The embedding comes
        with it.

        Raises:
            NotFoundError: there is none in this scope.
            AmbiguousError: there are several; `candidates` has the full ids.
        """
        return to_memories(self._row(ref, self._snapshot()))[0]

    def find(self, ref: str) -> Memory | None:
        """Like `get`, but None where there is none."""
        try:
            return self.get(ref)
        except NotFoundError:
            return None

    def list(
        self,
        *,
        limit: int | None = None,
        offset: int = 0,
        newest_first: bool = False,
        **where: Unpack[Where],
    ) -> builtins.list[Memory]:
        """The memories that pass, oldest event first, or newest first.

        Raises:
            InvalidInputError: limit or offset is negative, or a filter makes no sense.
        """
        if offset < 0 or (limit is not None and limit < 0):
            raise InvalidInputError(f"limit={limit}, offset={offset}; neither can be negative")
        snapshot = self._snapshot()
        order = self._ordered_ids(snapshot, self._predicate(where))
        if newest_first:
            order.reverse()
        end = None if limit is None else offset + limit
        page = order[offset:end]
        found = {memory.id: memory for memory in to_memories(snapshot.by_ids(page))}
        if len(found) < len(page):
            raise StorageError(
                f"could not read version {snapshot.version}: damaged: the index of the ids misses "
                f"{len(page) - len(found)} of {len(page)} memories; `lmem doctor --deep` says more"
            )
        return [found[identifier] for identifier in page]

    def iter(self, *, batch_size: int = 1_000, **where: Unpack[Where]) -> Iterator[Memory]:
        """The memories that pass now, in storage order, a batch in memory at a time.

        The version is kept from clean-up from the first memory to the last.

        Raises:
            InvalidInputError: `batch_size` is below 1, or a filter makes no sense.
        """
        if batch_size < 1:
            raise InvalidInputError(f"batch_size={batch_size}; a batch has one memory or more")
        return self._walked(self._snapshot(), self._predicate(where), batch_size)

    def _walked(
        self, snapshot: Snapshot, predicate: str | None, batch_size: int
    ) -> Iterator[Memory]:
        with naming.holding(self._table, snapshot.version):
            batches = snapshot.batches(predicate, columns=snapshot.columns, batch_size=batch_size)
            for batch in batches:
                yield from to_memories(pa.Table.from_batches([batch]))

    def count(self, **where: Unpack[Where]) -> int:
        """How many memories pass."""
        return self._snapshot().count(self._predicate(where))

    def related(
        self, ref: str, *, relation: str | None = None, depth: int = 1
    ) -> builtins.list[Related]:
        """What a memory came from and what replaced it, and whatever else it is related to.

        Args:
            ref: as for `get`.
            relation: only edges of this name, such as "consolidates", "updates",
                "superseded_by"; by default all.
            depth: how many edges to walk at most; generations stack.

        Returns:
            Nearest first, in whatever state; each memory once, never the start.
        """
        if depth < 1:
            raise InvalidInputError(f"depth={depth}; a walk has one step or more")
        snapshot = self._snapshot()
        start = self._row(ref, snapshot)["id"][0].as_py()
        columns = ["id", lineage.SUPERSEDED_BY, "relationships"]
        rows = snapshot.scan(self._boundary(), columns=columns)
        graph = lineage.edges_near(rows, start, depth=depth)
        steps = lineage.walk(graph, start, relation=relation, depth=depth)
        rows = snapshot.by_ids([step.id for step in steps])
        found = {m.id: m for m in to_memories(rows) if self._scope.holds(m.scope)}
        return [
            Related(
                memory=found[step.id],
                relation=step.relation,
                direction=step.direction,
                depth=step.depth,
            )
            for step in steps
            if step.id in found
        ]

    def lineage(self, ref: str, *, depth: int = 10) -> Lineage:
        """What took a memory's place and what it was made from, as trees over the generations.

        Follows "consolidates", "updates" and "superseded_by"; `related` follows the others too.

        Args:
            ref: as for `get`.
            depth: generations at most in each direction, 1..100.

        Returns:
            Memories in whatever state, of this scope alone, without their embeddings.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            InvalidInputError: `depth` is not within 1..100.
        """
        if not 1 <= depth <= lineage.DEEPEST:
            raise InvalidInputError(
                f"depth={depth}; a lineage shows 1 to {lineage.DEEPEST} generations each way"
            )
        snapshot = self._snapshot()
        start = self._row(ref, snapshot)["id"][0].as_py()
        columns = ["id", lineage.SUPERSEDED_BY, "relationships"]
        rows = snapshot.scan(self._boundary(), columns=columns)
        graph = lineage.edges_near(rows, start, depth=depth + 1)
        ids = {start}.union(*((edge.start, edge.target) for edge in graph))
        found = to_memories(snapshot.by_ids(sorted(ids)))
        within = {m.id: m for m in found if self._scope.holds(m.scope)}
        return lineage.lineage(graph, within, start, depth=depth)

    def around(
        self, ids: Collection[str], *, before: int = 1, after: int = 1, **where: Unpack[Where]
    ) -> builtins.list[Neighbour]:
        """What was said, or happened, right before and after memories, in the same session.

        Args:
            ids: full ids. Those of no memory of this scope, or of one of no session, are left out.
            before: as many on the near side of the past, at most.
            after: as many on the side of the future, at most.
            where: see `Where`; visible memories by default. Up to eight that do not pass are
                stepped over.

        Returns:
            For each of the ids in turn the earlier ones, nearest first, then the later ones.

        Raises:
            InvalidInputError: `before` or `after` is negative, or a filter makes no sense.
        """
        return around(
            self._snapshot(),
            _checked_ids(ids),
            before=whole("before", before, least=0),
            after=whole("after", after, least=0),
            predicate=self._predicate(where),
        )

    def embeddings(self, ids: Collection[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of memories in whatever state: id → float32 [d].

        Args:
            ids: full ids. Those of no memory of this scope, or of one without a vector, are left
                out.
        """
        asked, snapshot = _checked_ids(ids), self._snapshot()
        rows = snapshot.by_ids(asked, columns=["id", *SCOPE_LEVELS, EMBEDDING])
        scopes = [Scope(**levels) for levels in rows.select(SCOPE_LEVELS).to_pylist()]
        return {
            identifier: vector
            for identifier, vector, there, scope in zip(
                rows["id"].to_pylist(), embeddings(rows), valid_vectors(rows), scopes, strict=True
            )
            if there and self._scope.holds(scope)
        }

    def _ordered_ids(self, snapshot: Snapshot, predicate: str | None) -> builtins.list[str]:
        rows = snapshot.scan(predicate, columns=["id", "event_at", "created_at"])
        happened = pc.coalesce(rows["event_at"], rows["created_at"])
        keyed = rows.append_column("at", happened)
        ordered = keyed.sort_by(
            [("at", "ascending"), ("created_at", "ascending"), ("id", "ascending")]
        )
        return [str(identifier) for identifier in ordered["id"].to_pylist()]


def _checked_ids(ids: Collection[str]) -> builtins.list[str]:
    return [text_value("ids", one) for one in several("ids", ids)]
