"""What others let a scope see: it is looked up at each call, at the newest version."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypedDict, Unpack

import pyarrow as pa
from numpy.typing import ArrayLike

from lance_memory.admission import edited, refuse_changed
from lance_memory.errors import InvalidInputError, NotFoundError, ScopeError
from lance_memory.granting.named import one_named
from lance_memory.record.filters import Filter, Where, all_of, is_one_of
from lance_memory.record.memory import Memory, Scope
from lance_memory.record.results import SearchResult, WriteResult
from lance_memory.record.rows import EMBEDDING, to_memories
from lance_memory.search import Mode, Page, Query, Ranking, run
from lance_memory.search.names import Names
from lance_memory.sharing import (
    Grant,
    Reach,
    Rights,
    SharedHit,
    SharedMemory,
    SharedResult,
    check_changes,
    grants_in,
    may_receive,
    received_by,
)
from lance_memory.storage import ChangeSet, Snapshot
from lance_memory.writing import Writing

__all__ = ["Receiving", "SharedFields"]


class SharedFields(TypedDict, total=False):
    """What the right to write lets change, beside the content; see `Memory` for the meanings."""

    metadata: Mapping[str, Any]
    tags: Sequence[str]
    importance: float
    confidence: float
    quality: float | None
    event_at: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None


class Receiving:
    """The half of `Sharing` that reads, and writes through a grant, what is somebody else's."""

    def __init__(self, handle: Writing) -> None:
        self._handle = handle

    def received(self) -> builtins.list[Grant]:
        """The grants to this scope that hold now, oldest first.

        A grant to a user is one to each of the user's agents, sessions and runs. A handle that is
        kept to no user and no agent receives nothing.
        """
        return list(self._reach(self._handle._snapshot()).grants)

    def get(self, ref: str) -> SharedMemory:
        """The shared memory with this id, this key, or this unambiguous beginning of an id.

        Raises:
            NotFoundError: none is shared with this scope.
            AmbiguousError: several are; `candidates` has the full ids.
        """
        snapshot = self._handle._snapshot()
        reach = self._reach(snapshot)
        memory = to_memories(self._row(ref, snapshot, reach))[0]
        return SharedMemory(memory=memory, grant=self._behind([memory], snapshot, reach)[0])

    def list(
        self, *, limit: int | None = None, offset: int = 0, **where: Unpack[Where]
    ) -> builtins.list[SharedMemory]:
        """What is shared and passes, oldest event first.

        Args:
            limit: at most as many.
            offset: to skip.
            where: see `Where`; the scope's levels say whose. `states` cannot be given.

        Raises:
            InvalidInputError: limit or offset is negative, or a filter makes no sense.
            ScopeError: another tenant is named.
        """
        if offset < 0 or (limit is not None and limit < 0):
            raise InvalidInputError(f"limit={limit}, offset={offset}; neither can be negative")
        handle, snapshot = self._handle, self._handle._snapshot()
        reach = self._reach(snapshot)
        chosen = self._chosen(where, reach)
        if chosen is None:
            return []
        order = handle._ordered_ids(snapshot, chosen.predicate(reach.moment))
        page = order[offset : None if limit is None else offset + limit]
        found = {memory.id: memory for memory in to_memories(snapshot.by_ids(page))}
        memories = [found[identifier] for identifier in page]
        behind = self._behind(memories, snapshot, reach)
        pairs = zip(memories, behind, strict=True)
        return [SharedMemory(memory=memory, grant=grant) for memory, grant in pairs]

    def search(
        self,
        query: str | None = None,
        *,
        vector: ArrayLike | None = None,
        k: int = 10,
        offset: int = 0,
        mode: Mode | str = Mode.HYBRID,
        ranking: Ranking | None = None,
        **where: Unpack[Where],
    ) -> SharedResult:
        """Recall among what is shared, as `search` does among what is one's own.

        All givers are ranked together. The query is not recorded: the log of this scope's queries
        would name others' memories.

        Args:
            query: as for `search`, and so are vector, k, offset, mode and ranking.
            vector: d numbers.
            k: at most as many hits.
            offset: hits to skip.
            mode: "hybrid", "vector" or "text".
            ranking: see `Ranking`.
            where: see `Where`; the scope's levels say whose. `states` cannot be given.

        Raises:
            InvalidInputError, EmbeddingError: as for `search`.
            ScopeError: another tenant is named.
        """
        snapshot = self._handle._snapshot()
        asked = Query.of(query, vector=vector, mode=mode, dimension=snapshot.dimension)
        reach = self._reach(snapshot)
        chosen = self._chosen(where, reach)
        page = Page.of(k=k, offset=offset, where=chosen or Filter(), ranking=ranking)
        if chosen is None:
            return SharedResult(version=snapshot.version, mode=asked.mode, hits=())
        return self._told(self._found(asked, page, snapshot, reach), snapshot, reach)

    def update(
        self,
        ref: str,
        *,
        content: str | None = None,
        revision: int | None = None,
        reason: str = "",
        **fields: Unpack[SharedFields],
    ) -> WriteResult:
        """Change in place what a memory says that is shared with the right to write.

        It stays the giver's: the log of his scope has the version, by this handle's author.

        Args:
            ref: as for `get`.
            content: the new text; it is embedded anew.
            revision: the one that was read; where the memory has another by now, nothing is
                written. None: whatever it has.
            reason: shown by `log`.
            fields: the columns to change. The others, such as key, kind and end, are the giver's.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            ScopeError: it is shared to be read only.
            InvalidInputError: a column that the right does not let change, or nothing to change.
            RejectedError: a value is malformed.
            ConflictError: the memory was changed since that revision.
            EmbeddingError: the embedder failed.
        """
        handle = self._handle
        values: dict[str, Any] = {**fields, **({} if content is None else {"content": content})}
        check_changes(values)
        if content is not None:
            values[EMBEDDING] = handle._embedding_of(content)

        def plan(snapshot: Snapshot) -> ChangeSet:
            reach = self._reach(snapshot)
            old = self._row(ref, snapshot, reach)
            memory = to_memories(old)[0]
            grant = self._behind([memory], snapshot, reach)[0]
            if grant.rights is not Rights.WRITE:
                raise ScopeError(
                    f"{memory.id} is shared by {grant.giver} to be read, and not to be changed"
                )
            refuse_changed(old, revision)
            updates = edited(snapshot, old, values, scope=grant.giver, now=reach.moment)
            audit = handle._audit("update", reason, manifest=grant.manifest())
            return ChangeSet(audit=audit, updates=updates)

        return handle._write(plan)

    # -- inside ---------------------------------------------------------------------------

    def _reach(self, snapshot: Snapshot) -> Reach:
        """What is shared with this scope at a version, now."""
        scope, moment = self._handle.scope, self._handle._moment()
        if not (scope.user or scope.agent) or not may_receive(snapshot, scope):
            return Reach([], moment)
        found = grants_in(snapshot.scan(received_by(scope, moment=moment)), moment=moment)
        return Reach([grant for grant in found if grant.receiver.holds(scope)], moment)

    def _chosen(self, where: Where, reach: Reach) -> Filter | None:
        """What is shared and passes; None: nothing is shared."""
        if "states" in where:
            raise InvalidInputError("what is shared is what is visible; leave out states")
        within = Scope(tenant=self._handle.scope.tenant)
        chosen = Filter.of(where, within=within)
        return replace(chosen, also=reach.meant) if reach.meant else None

    def _row(self, ref: str, snapshot: Snapshot, reach: Reach) -> pa.Table:
        scope = self._handle.scope
        nothing = f"nothing named {ref!r} is shared with {scope}; `list` shows what is"
        if reach.predicate is None:
            raise NotFoundError(nothing)
        return one_named(snapshot, ref, within=reach.predicate, nothing=nothing)

    def _behind(
        self, memories: Sequence[Memory], snapshot: Snapshot, reach: Reach
    ) -> builtins.list[Grant]:
        def passing(ids: Collection[str], predicate: str) -> Collection[str]:
            rows = snapshot.scan(all_of(is_one_of("id", sorted(ids)), predicate), columns=["id"])
            return set(rows["id"].to_pylist())

        return reach.behind(memories, passing)

    def _found(self, asked: Query, page: Page, snapshot: Snapshot, reach: Reach) -> SearchResult:
        """The answer; of the known actors only those of what is shared are known to it."""
        handle = self._handle

        def names(_: Scope) -> Names:
            columns = snapshot.ranking_columns
            shared = reach.visible(columns.latest_expiry(reach.moment))
            return Names.of(columns.actors_of(snapshot.addresses(shared)))

        [result] = run(
            snapshot,
            [asked],
            page,
            embed=lambda texts: handle._embed_for(snapshot, texts),
            names=names,
            moment=reach.moment,
            uses=handle._uses(page.ranking.decay),
        )
        return result

    def _told(self, found: SearchResult, snapshot: Snapshot, reach: Reach) -> SharedResult:
        behind = self._behind([hit.memory for hit in found], snapshot, reach)
        pairs = zip(found, behind, strict=True)
        return SharedResult(
            version=found.version,
            mode=found.mode,
            hits=tuple(SharedHit(hit=hit, grant=grant) for hit, grant in pairs),
            understood=found.understood,
            degraded=found.degraded,
        )
