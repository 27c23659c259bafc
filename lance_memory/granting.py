"""Sharing: what one scope lets another of its tenant see, grant by grant."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypedDict, Unpack

import pyarrow as pa
from numpy.typing import ArrayLike

from lance_memory.admission import edited, refuse_changed
from lance_memory.curate import retirement
from lance_memory.errors import AmbiguousError, InvalidInputError, NotFoundError, ScopeError
from lance_memory.record.filters import (
    Filter,
    Where,
    all_of,
    equals,
    is_one_of,
    prefixed,
    visible,
)
from lance_memory.record.identity import new_id
from lance_memory.record.intake import take_in
from lance_memory.record.memory import Memory, Scope
from lance_memory.record.results import SearchResult, WriteResult
from lance_memory.record.rows import EMBEDDING, to_memories
from lance_memory.record.values import text_value
from lance_memory.search import Mode, Page, Query, Ranking, run
from lance_memory.search.names import Names
from lance_memory.sharing import (
    Grant,
    Reach,
    Rights,
    SharedHit,
    SharedMemory,
    SharedResult,
    Terms,
    check_changes,
    grants,
    grants_in,
    received_by,
    row_of,
)
from lance_memory.storage import ChangeSet, Snapshot
from lance_memory.wording import some
from lance_memory.writing import Refs, Writing, kept

__all__ = ["SharedFields", "Sharing"]


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


class Sharing:
    """What the scope of a handle lets others see, and what others let it see; `store.sharing`.

    Nothing is shared unless it is granted, from a user or an agent to a user or an agent of the
    same tenant. A grant is a row of the giver's workspace: a version gives it, a version takes it
    back, and the log says who, to whom and why.

    What was received is looked up at each call, at the newest version: what the grants name that
    hold now, as far as it is visible and the giver's own. So what a giver retires or forgets is
    gone here too, and what he stores later and passes a grant's filter is shared. It is in no other
    read of the handle, and cannot be shared on.
    """

    def __init__(self, handle: Writing) -> None:
        self._handle = handle

    # -- giving ---------------------------------------------------------------------------

    def share(
        self,
        refs: Refs | None = None,
        *,
        with_: Scope | Mapping[str, str],
        rights: Rights | str = Rights.READ,
        expires_at: datetime | None = None,
        reason: str = "",
        dry_run: bool = False,
        **where: Unpack[Where],
    ) -> Grant:
        """Let a user or an agent of the same tenant see memories of this scope.

        The same terms again are the grant that there is.

        Args:
            refs: visible memories, by id, key or unambiguous beginning of an id.
            with_: `Scope(user=...)`, `{"agent": ...}`, or both for one user's agent.
            rights: "read", or "write", which also lets change in place what a memory says.
            expires_at: from when on the grant gives nothing; None: until it is revoked.
            reason: kept with the grant, and shown by `log`.
            dry_run: write nothing; the grant is what would be given.
            where: in place of `refs`: see `Where`. The filter is what is granted: what passes
                later is shared too, and what passes no longer is not. `states` cannot be given;
                the handle's own scope as a filter, such as user="ana", means everything.

        Raises:
            ScopeError: this handle is not kept to a user or an agent; or another tenant is meant.
            InvalidInputError: both names and a filter, or neither; a receiver who is nobody, or
                has it all already; an end that is past; no such rights; a filter that makes no
                sense.
            NotFoundError, AmbiguousError: as for `get`; what was received is nobody's to share.
            EmbeddingError: the embedder failed.
        """
        handle, now = self._handle, self._handle._moment()
        if refs is not None and where:
            raise InvalidInputError("give either memories by name or a filter, not both")
        names = kept(refs)
        terms = Terms.of(
            handle.scope,
            with_=with_,
            rights=rights,
            expires_at=expires_at,
            where=None if names is not None else where,
            now=now,
        )
        made = row_of(
            terms, (), id=new_id(now), by=handle.author, reason=text_value("reason", reason)
        )
        vector = handle._embedding_of(made["content"])
        found: builtins.list[Grant] = []

        def plan(snapshot: Snapshot) -> ChangeSet:
            ids = None if names is None else self._named(names, snapshot)
            row = row_of(terms, ids, id=made["id"], by=handle.author, reason=reason)
            taken = take_in(
                [{**row, EMBEDDING: vector}], schema=snapshot.schema, scope=handle.scope, now=now
            )
            asked = grants_in(taken.rows, moment=now)[0]
            held = self._given(snapshot, now, ended=False)
            known = [grant for grant in held if grant.terms == asked.terms]
            found[:] = known[:1] or [asked]
            audit = handle._audit("share", reason, manifest=asked.manifest())
            return ChangeSet(audit=audit, inserts=None if known else taken.rows, looked=True)

        if dry_run:
            plan(handle._snapshot())
        else:
            handle._write(plan)
        return found[0]

    def revoke(self, grant: Grant | str, *, reason: str = "") -> WriteResult:
        """Take back a grant of this scope; what was read through it before is known all the same.

        A write through it that was planned before may still land right after.

        Args:
            grant: or its id, or an unambiguous beginning of it.
            reason: kept with the grant, and shown by `log`.

        Raises:
            NotFoundError, AmbiguousError: no grant of this scope has that name, or several.
        """
        handle = self._handle
        ref = grant.id if isinstance(grant, Grant) else grant

        def plan(snapshot: Snapshot) -> ChangeSet:
            rows = _one(
                snapshot,
                ref,
                within=all_of(grants(), handle._boundary()),
                nothing=f"there is no grant {ref!r} of {handle.scope}; `granted` lists them",
            )
            given = grants_in(rows, moment=handle._moment())
            manifest = given[0].manifest() if given else {}
            return retirement(rows, audit=handle._audit("revoke", reason, manifest=manifest))

        return handle._write(plan)

    def granted(self, *, ended: bool = False) -> builtins.list[Grant]:
        """The grants of this scope, oldest first.

        Args:
            ended: also those that were revoked or have expired.
        """
        handle = self._handle
        return self._given(handle._snapshot(), handle._moment(), ended=ended)

    # -- receiving ------------------------------------------------------------------------

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

    def _named(self, names: Refs, snapshot: Snapshot) -> builtins.list[str]:
        """The ids of the visible memories of this scope that are named, each once."""
        handle = self._handle
        rows = handle._rows(names, snapshot)
        inside = Filter(scope=handle.scope, also=is_one_of("id", rows["id"].to_pylist()))
        seen = snapshot.scan(inside.predicate(handle._moment()), columns=["id"])
        hidden = sorted(set(rows["id"].to_pylist()) - set(seen["id"].to_pylist()))
        if hidden:
            raise NotFoundError(
                f"{some(hidden, 3)} cannot be shared: only visible memories are, and what an agent "
                "is told is none"
            )
        return [str(identifier) for identifier in rows["id"].to_pylist()]

    def _given(self, snapshot: Snapshot, moment: datetime, *, ended: bool) -> builtins.list[Grant]:
        standing = None if ended else visible(moment)
        return grants_in(
            snapshot.scan(all_of(grants(), self._handle._boundary(), standing)), moment=moment
        )

    def _reach(self, snapshot: Snapshot) -> Reach:
        """What is shared with this scope at a version, now."""
        scope, moment = self._handle.scope, self._handle._moment()
        if not scope.user and not scope.agent:
            return Reach([], moment)
        found = grants_in(snapshot.scan(received_by(scope, moment=moment)), moment=moment)
        return Reach([grant for grant in found if grant.receiver.holds(scope)], moment)

    def _chosen(self, where: Where, reach: Reach) -> Filter | None:
        """What is shared and passes; None: nothing is shared."""
        if "states" in where:
            raise InvalidInputError("what is shared is what is visible; leave out states")
        within = Scope(tenant=self._handle.scope.tenant)
        chosen = Filter.of(where, within=within)
        return replace(chosen, also=reach.predicate) if reach.predicate else None

    def _row(self, ref: str, snapshot: Snapshot, reach: Reach) -> pa.Table:
        scope = self._handle.scope
        nothing = f"nothing named {ref!r} is shared with {scope}; `list` shows what is"
        if reach.predicate is None:
            raise NotFoundError(nothing)
        return _one(snapshot, ref, within=reach.predicate, nothing=nothing)

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
            rows = snapshot.scan(reach.predicate, columns=["actor"])
            return Names.of(set(rows["actor"].to_pylist()) - {""})

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


def _one(snapshot: Snapshot, ref: str, *, within: str | None, nothing: str) -> pa.Table:
    """The one row within a predicate that has this id, this key, or this beginning of an id.

    Raises:
        NotFoundError, AmbiguousError: none, or several.
    """
    if not isinstance(ref, str) or not ref:
        raise InvalidInputError(f"a memory is named by its id or key, not by {ref!r}")
    for named in (equals("id", ref), equals("key", ref), prefixed("id", ref)):
        rows = snapshot.scan(all_of(named, within), columns=snapshot.schema.names)
        if len(rows) == 1:
            return rows
        if len(rows) > 1:
            ids = sorted(rows["id"].to_pylist())
            raise AmbiguousError(
                f"{ref!r} names {len(ids)}: {some(ids, 5)}; give a full id", candidates=ids
            )
    raise NotFoundError(nothing)
