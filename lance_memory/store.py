"""MemoryStore: every write. Each one plans a change set and commits it as one version."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal, Unpack, overload

import numpy as np
import pyarrow as pa

from lance_memory import curate
from lance_memory.curate import (
    ConsolidateOptions,
    ConsolidationPlan,
    ConsolidationResult,
    Derived,
    Transform,
    keep_distinct,
)
from lance_memory.embed import CachedEmbedder, Embedder, MiniLM, MissingEmbedder, as_embedder
from lance_memory.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    ScopeError,
    StoreFormatError,
)
from lance_memory.ingest import KnownContents, admit, refuse_taken, replacement
from lance_memory.record.compare import differing
from lance_memory.record.filters import Filter, Where
from lance_memory.record.identity import new_id
from lance_memory.record.intake import Batch, Details, Fields, Taken, take_in
from lance_memory.record.memory import SCOPE_LEVELS, State
from lance_memory.record.results import (
    AddManyResult,
    AddResult,
    Outcome,
    RollbackPlan,
    WriteResult,
)
from lance_memory.record.rows import (
    EMBEDDING,
    changed,
    embeddings,
    patched,
    restored,
    retired,
    superseded,
    to_memories,
    valid_vectors,
    vector_array,
)
from lance_memory.record.schema import StoreFormat
from lance_memory.record.times import Clock, utc_now
from lance_memory.record.values import text_value
from lance_memory.storage import (
    Audit,
    ChangeSet,
    Comparison,
    Plan,
    Snapshot,
    Table,
    UpkeepResult,
    absolute,
    history,
    undo,
    upkeep,
)
from lance_memory.view import MemoryView

__all__ = ["MemoryStore"]

Refs = str | Sequence[str]
Progress = Callable[[int, int], None]
_EMBED_CHUNK = 256
_CHANGEABLE = (Fields.__annotations__.keys() | {"content"}) - {"id", "state", *SCOPE_LEVELS}


class MemoryStore(MemoryView):
    """A store: reads see the newest version, and every write makes one.

    Safe to share between threads. Other handles and processes may write at the same time: a
    write that lost a race is planned again from the newer version, and one whose memories were
    changed meanwhile raises `ConflictError` and writes nothing.
    """

    _author: str = ""
    _known_contents: KnownContents

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        embedder: Embedder | Callable[[Sequence[str]], Any] | None = None,
        clock: Clock = utc_now,
        branch: str = "main",
        author: str = "",
        storage_options: Mapping[str, str] | None = None,
    ) -> MemoryStore:
        """Open the store in the directory `path`, or make one.

        Args:
            path: a directory, or a URI that Lance can open.
            create: make the store where there is none.
            embedder: texts → float32 [n, d]; by default MiniLM-L6-v2 on the CPU, offline.
            clock: gives the present moment, timezone-aware.
            branch: the line of versions to work on.
            author: who writes through this handle; `log` shows it.
            storage_options: the object store's, as Lance takes them.

        Raises:
            NotFoundError: there is no store, and `create` is off; or no such branch.
            StoreFormatError: something else is there, the store is from a later release, or its
                vectors are from another model than `embedder`.
            StorageError: the directory cannot be written to.
        """
        uri = absolute(path)
        text_value("author", author)
        chosen = None if embedder is None else as_embedder(embedder)
        table = _table(uri, create=create, embedder=chosen, storage_options=storage_options)
        store = cls(
            table if branch == "main" else table.on_branch(branch),
            embedder=CachedEmbedder(_fitting(table, chosen)),
            clock=clock,
        )
        store._author = author
        store._known_contents = KnownContents()
        return store

    # -- add ------------------------------------------------------------------------------

    def add(self, content: str, **fields: Unpack[Fields]) -> AddResult:
        """Store one memory.

        Returns:
            What became of it. The same content in the same scope, or a live memory with the same
            key, is one memory: the answer then names the one that is there.

        Raises:
            RejectedError: the memory is malformed; says what was expected.
            ConflictError: the id is taken by another content.
        """
        result = self.add_many([{**fields, "content": content}])
        reason = result.already_there.get(0, "")
        stored = Outcome.PENDING if fields.get("state") == State.PENDING else Outcome.STORED
        return AddResult(
            uri=self.uri,
            version=result.version,
            id=result.ids[0],
            outcome=Outcome.ALREADY_THERE if reason else stored,
            reason=reason,
        )

    def add_many(self, memories: Batch, *, progress: Progress | None = None) -> AddManyResult:
        """Store a batch as one version: all of it, or none.

        Args:
            memories: texts, mappings of column names to values, or an Arrow or Polars table of
                such columns. Embeddings are made where they are not given.
            progress: called with (embedded, to embed) as embedding goes on.

        Raises:
            RejectedError: `rows` has the positions of the malformed ones.
            ConflictError: an id is taken by another content.
        """
        now = self._moment()
        taken = self._take_in(memories, now)
        contents = self._known_contents
        if not valid_vectors(taken.rows).all():
            fresh = admit(self._snapshot(), taken, known_contents=contents, now=now).rows
            taken = self._embedded(taken, only=set(fresh["id"].to_pylist()), progress=progress)
        known: Mapping[int, tuple[str, str]] = {}
        read = self._snapshot()

        def plan(snapshot: Snapshot) -> ChangeSet:
            nonlocal known, read, taken
            admitted = admit(snapshot, taken, known_contents=contents, now=now)
            if not valid_vectors(admitted.rows).all():  # a twin that was there has gone since
                taken = self._embedded(taken, only=set(admitted.rows["id"].to_pylist()))
                admitted = admit(snapshot, taken, known_contents=contents, now=now)
            known, read = admitted.known, snapshot
            return ChangeSet(audit=self._audit("add"), inserts=admitted.rows)

        _, written = self._table.commit(plan)
        contents.learn(taken.rows, read=read, written=written)
        ids = taken.rows["id"].to_pylist()
        return AddManyResult(
            uri=self.uri,
            version=written.version,
            ids=tuple(known[i][0] if i in known else ids[i] for i in range(len(ids))),
            stored=len(ids) - len(known),
            already_there={i: reason for i, (_, reason) in known.items()},
        )

    def upsert(self, content: str, *, key: str, **fields: Unpack[Details]) -> AddResult:
        """Store a memory under the caller's key, in the place of the one that has it.

        The old one is superseded and linked ("updates"), and never resurfaces: also not when
        the new one is deleted, retired or expires.

        Raises:
            RejectedError: the memory is malformed, or the key is empty.
        """
        now = self._moment()
        taken = self._embedded(self._take_in([{**fields, "content": content, "key": key}], now))
        identifier = taken.rows["id"][0].as_py()
        if not key:
            raise InvalidInputError(f"key is {key!r}; an upsert needs one")
        outcome = Outcome.PENDING if fields.get("state") == State.PENDING else Outcome.STORED
        known = ""

        def plan(snapshot: Snapshot) -> ChangeSet:
            nonlocal known
            found = replacement(snapshot, taken.rows, given=taken.given, now=now)
            known = found.known
            return ChangeSet(
                audit=self._audit("upsert"),
                inserts=found.row,
                updates=superseded(found.old, by=identifier, reason="updated", now=now),
            )

        _, written = self._table.commit(plan)
        return AddResult(
            uri=self.uri,
            version=written.version,
            id=known or identifier,
            outcome=Outcome.ALREADY_THERE if known else outcome,
            reason="the live memory with this key says so already" if known else "",
        )

    # -- change ---------------------------------------------------------------------------

    def update(
        self, ref: str, *, content: str | None = None, reason: str = "", **fields: Unpack[Fields]
    ) -> WriteResult:
        """Change a memory in place: same id, next revision; the old text stays in the history.

        Args:
            ref: as for `get`.
            content: the new text; it is embedded anew unless `embedding` is given.
            reason: shown by `log`.
            fields: the columns to change. The scope and the id never change, and the state
                changes through `retire`, `unretire` and `supersede`.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            RejectedError: a value is malformed.
            ConflictError: the new key is taken.
        """
        values: dict[str, Any] = {**fields, **({} if content is None else {"content": content})}
        fixed = sorted(values.keys() - _CHANGEABLE)
        if fixed or not values:
            raise InvalidInputError(
                f"update cannot change {', '.join(fixed)}" if fixed else "update changes nothing"
            )
        if content is not None and fields.get("embedding") is None:
            _require_text(content)
            values["embedding"] = self._embed([content])[0]
        now = self._moment()

        def plan(snapshot: Snapshot) -> ChangeSet:
            old = self._row(ref, snapshot)
            merged = {**old.drop_columns(["content_hash"]).to_pylist()[0], **values}
            new = self._take_in([merged], now).rows
            if not differing(to_memories(old)[0], to_memories(new)[0]):
                return ChangeSet(audit=self._audit("update", reason))
            refuse_taken(snapshot, new, now)
            updates = changed(new, {}, now=now)
            return ChangeSet(audit=self._audit("update", reason), updates=updates)

        return self._write(plan, "update")

    def supersede(
        self,
        sources: Refs,
        successor: Derived | str,
        *,
        relation: str = "consolidates",
        reason: str = "",
    ) -> WriteResult:
        """Put one new memory in the place of N: the sources are hidden, linked and kept.

        What the successor does not say itself comes from the sources (see `successor_row`).

        Returns:
            `ids` has the successor's id first, then the sources'.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            ConflictError: a source is superseded or retired already.
        """
        derived = Derived(content=successor) if isinstance(successor, str) else successor
        _require_text(derived.content)
        vector = self._embed([derived.content])[0]
        now = self._moment()
        identifier = new_id(now)

        def plan(snapshot: Snapshot) -> ChangeSet:
            old = self._rows(sources, snapshot)
            _refuse_states(old, {State.SUPERSEDED, State.RETIRED}, "supersede")
            members = sorted(
                to_memories(old.drop_columns([EMBEDDING])), key=lambda m: (m.happened_at, m.id)
            )
            row = curate.successor_row(
                members, derived, identifier=identifier, now=now, relation=relation
            )
            row[EMBEDDING] = vector
            return ChangeSet(
                audit=self._audit("supersede", reason),
                inserts=self._take_in([row], now).rows,
                updates=superseded(old, by=identifier, reason=reason or "superseded", now=now),
            )

        return self._write(plan, "supersede")

    def retire(
        self, refs: Refs | None = None, *, reason: str = "", **where: Unpack[Where]
    ) -> WriteResult:
        """Hide memories without a successor. `unretire` brings them back.

        Args:
            refs: ids, keys or unambiguous beginnings of ids; or give a filter with a scope.
            reason: kept with each memory, and shown by `log`.
            where: see `Where`; visible memories by default.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            ScopeError: a filter without any scope.
            ConflictError: one of the `refs` is superseded.
        """
        now = self._moment()

        def plan(snapshot: Snapshot) -> ChangeSet:
            rows = self._chosen(refs, where, snapshot)
            _refuse_states(rows, {State.SUPERSEDED}, "retire")
            rows = rows.filter(_is_not(rows, State.RETIRED))
            audit = self._audit("retire", reason)
            return ChangeSet(audit=audit, updates=retired(rows, reason=reason, now=now))

        return self._write(plan, "retire")

    def unretire(self, refs: Refs, *, reason: str = "") -> WriteResult:
        """Make retired memories active again.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            ConflictError: a memory is not retired, or its key was given to another since.
        """
        now = self._moment()

        def plan(snapshot: Snapshot) -> ChangeSet:
            audit = self._audit("unretire", reason)
            rows = self._rows(refs, snapshot)
            _refuse_states(rows, set(State) - {State.RETIRED}, "unretire")
            active = restored(rows, reason=reason, now=now)
            refuse_taken(snapshot, active, now)
            return ChangeSet(audit=audit, updates=active)

        return self._write(plan, "unretire")

    def delete(
        self, refs: Refs | None = None, *, reason: str = "", **where: Unpack[Where]
    ) -> WriteResult:
        """Remove rows from the current version. Earlier versions still have them.

        Takes the same arguments as `retire`; memories in any state, when named by `refs`.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            ScopeError: a filter without any scope.
        """

        def plan(snapshot: Snapshot) -> ChangeSet:
            rows = self._chosen(refs, where, snapshot)
            return ChangeSet(audit=self._audit("delete", reason), deletes=rows)

        return self._write(plan, "delete")

    # -- consolidate ----------------------------------------------------------------------

    @overload
    def consolidate(
        self,
        options: ConsolidateOptions | None = ...,
        transform: Transform = ...,
        *,
        dry_run: Literal[True],
        **where: Unpack[Where],
    ) -> ConsolidationPlan: ...

    @overload
    def consolidate(
        self,
        options: ConsolidateOptions | None = ...,
        transform: Transform = ...,
        *,
        dry_run: Literal[False] = ...,
        reason: str = ...,
        **where: Unpack[Where],
    ) -> ConsolidationResult: ...

    def consolidate(
        self,
        options: ConsolidateOptions | None = None,
        transform: Transform = keep_distinct,
        *,
        dry_run: bool = False,
        reason: str = "",
        **where: Unpack[Where],
    ) -> ConsolidationPlan | ConsolidationResult:
        """Turn clusters of memories into one better memory each, as one version for the pass.

        Args:
            options: how to cluster, and what to refuse.
            transform: makes one memory of a cluster; by default `keep_distinct`. It may take
                its time: rows that are added meanwhile are not touched.
            dry_run: only plan. `apply` commits exactly the plan that this returns.
            reason: shown by `log`.
            where: which memories to consider, see `Where`; visible ones by default.

        Raises:
            ConflictError: a source was changed while the transform ran; nothing was written.
        """
        if options is not None and not isinstance(options, ConsolidateOptions):
            raise InvalidInputError(
                f"options is {options!r}; it takes ConsolidateOptions (a transform goes into "
                "transform=)"
            )
        snapshot = self._snapshot()
        plan = curate.plan_consolidation(
            snapshot,
            self._predicate(where),
            options=options or ConsolidateOptions(),
            transform=transform,
            embed=self._embed,
            now=self._moment(),
        )
        if dry_run:
            return plan
        return ConsolidationResult(plan=plan, write=self.apply(plan, reason=reason))

    def apply(self, plan: ConsolidationPlan, *, reason: str = "") -> WriteResult:
        """Commit a plan that `consolidate(dry_run=True)` made, also one that was saved to a file.

        Raises:
            ConflictError: a source has been changed or deleted since; nothing was written.
            ScopeError: the plan reaches outside this handle's scope.
        """

        def planned(snapshot: Snapshot) -> ChangeSet:
            manifest = plan.manifest()
            audit = self._audit("consolidate", reason, manifest=manifest, op_id=plan.op_id)
            change = curate.change_set(snapshot, plan, audit=audit)
            self._refuse_outside(change)
            return change

        return self._write(planned, "consolidate")

    # -- versions -------------------------------------------------------------------------

    @overload
    def rollback(
        self, version: int | str | datetime, *, dry_run: Literal[True]
    ) -> RollbackPlan: ...

    @overload
    def rollback(
        self, version: int | str | datetime, *, dry_run: Literal[False] = ..., reason: str = ...
    ) -> WriteResult: ...

    def rollback(
        self, version: int | str | datetime, *, dry_run: bool = False, reason: str = ""
    ) -> RollbackPlan | WriteResult:
        """Make the store what it was at a version, tag or moment. Nothing of the history goes.

        Through a scoped handle only that scope goes back.

        Raises:
            NotFoundError: there is no such version, or it was cleaned up.
        """
        target = self.at(version)._snapshot()

        def back(present: Snapshot, audit: Audit) -> tuple[ChangeSet, Comparison]:
            return undo.rollback(present, target, audit=audit, predicate=self._boundary())

        return self._undone("rollback", target.version, back, dry_run=dry_run, reason=reason)

    @overload
    def revert(self, version: int | str, *, dry_run: Literal[True]) -> RollbackPlan: ...

    @overload
    def revert(
        self, version: int | str, *, dry_run: Literal[False] = ..., reason: str = ...
    ) -> WriteResult: ...

    def revert(
        self, version: int | str, *, dry_run: bool = False, reason: str = ""
    ) -> RollbackPlan | WriteResult:
        """Undo what one version changed, and keep everything that came after it.

        Raises:
            NotFoundError: the version, or the one before it, is not there.
            ConflictError: memories it changed were changed again since; `ids` lists them.
            InvalidInputError: the version changed no memories.
        """
        after = self.at(version)._snapshot()
        before = self._table.at(after.version - 1)

        def back(present: Snapshot, audit: Audit) -> tuple[ChangeSet, Comparison]:
            found = undo.revert(present, before, after, audit=audit, predicate=self._boundary())
            written = found[0].written()
            if written is not None:
                refuse_taken(present, written, audit.at, leaving=found[0].replaced())
            return found

        return self._undone("revert", after.version, back, dry_run=dry_run, reason=reason)

    def tag(
        self, name: str, version: int | str | datetime | None = None, *, move: bool = False
    ) -> int:
        """Name a version (the newest by default), and return it; clean-up never removes it.

        Raises:
            ConflictError: the tag is on another version, and `move` is off.
        """
        self._whole_store("tagging")
        number = self.version if version is None else self.at(version).version
        history.create_tag(self._table, name, number, move=move)
        return number

    def untag(self, name: str) -> int:
        """Remove a tag, and return the version it was on.

        Raises:
            NotFoundError: no such tag.
        """
        self._whole_store("untagging")
        return history.delete_tag(self._table, name)

    def branch(self, name: str, version: int | str | datetime | None = None) -> MemoryStore:
        """A new line of versions that starts here or at `version`; writes on it stay on it.

        Raises:
            ConflictError: there is a branch of that name.
        """
        self._whole_store("branching")
        number = self.version if version is None else self.at(version).version
        return self._on(history.create_branch(self._table, name, number))

    def delete_branch(self, name: str) -> None:
        """Remove a branch and the versions that only it has.

        Danger: the branch's own versions cannot be brought back.

        Raises:
            NotFoundError: no such branch.
            ConflictError: a tag holds one of its versions.
        """
        self._whole_store("deleting a branch")
        history.delete_branch(self._table, name)

    def checkout(self, version: int | str | datetime, path: str | os.PathLike[str]) -> MemoryStore:
        """A store of its own at `path` that starts as this one was at a version, copying no data.

        It reads this store's files, so the version is tagged here (`checkout-v<number>`, on a
        branch `checkout-<branch>-v<number>`), which keeps clean-up from removing them.

        Raises:
            NotFoundError: no such version.
            ConflictError: `path` holds a store already.
            StoreFormatError: `path` holds something else.
        """
        self._whole_store("checkout")
        number = self.at(version).version
        uri = absolute(path)
        history.clone(self._table, number, uri)
        options = self._table.storage_options
        return self._on(Table.open(uri, storage_options=options))

    def optimize(
        self, *, clean_older_than: timedelta | None = None, vector_index_from: int | None = None
    ) -> UpkeepResult:
        """Compact, build and fold the indices, and remove old versions if asked.

        Never changes an answer. Tagged versions stay.

        Danger: versions older than `clean_older_than` can no longer be read or rolled back to.
        """
        self._whole_store("upkeep")
        if clean_older_than is not None and clean_older_than < timedelta(0):
            raise InvalidInputError(f"clean_older_than={clean_older_than}; it cannot be negative")
        extra = {} if vector_index_from is None else {"vector_index_from": vector_index_from}
        return upkeep.optimize(self._table, clean_older_than=clean_older_than, **extra)

    # -- inside ---------------------------------------------------------------------------

    def _take_in(self, batch: Batch, now: datetime) -> Taken:
        return take_in(batch, schema=self._table.schema, scope=self._scope, now=now)

    def _on(self, table: Table) -> MemoryStore:
        other = MemoryStore(table, embedder=self._embedder, clock=self._clock)
        other._author = self._author
        other._known_contents = KnownContents()
        return other

    def _audit(
        self,
        operation: str,
        reason: str = "",
        *,
        manifest: Mapping[str, Any] | None = None,
        op_id: str = "",
    ) -> Audit:
        """The audit record of a commit that is about to happen; plans call this, at that moment."""
        now = self._moment()
        return Audit(
            operation=operation,
            at=now,
            actor=self._author,
            reason=text_value("reason", reason),
            manifest=manifest or {},
            op_id=op_id or new_id(now),
        )

    def _write(self, plan: Plan, operation: str) -> WriteResult:
        change, made = self._table.commit(plan)
        written = [r for r in (change.inserts, change.updates, change.deletes) if r]
        return WriteResult(
            uri=self.uri,
            version=made.version,
            operation=operation,
            ids=tuple(identifier for rows in written for identifier in rows["id"].to_pylist()),
            **change.counts(),
        )

    def _undone(
        self,
        operation: str,
        target: int,
        back: Callable[[Snapshot, Audit], tuple[ChangeSet, Comparison]],
        *,
        dry_run: bool,
        reason: str,
    ) -> RollbackPlan | WriteResult:

        def audit() -> Audit:
            return self._audit(operation, reason, manifest={"target": target})

        if not dry_run:
            return self._write(lambda present: back(present, audit())[0], operation)
        present = self._snapshot()
        _, found = back(present, audit())
        return RollbackPlan(
            operation=operation,
            version=present.version,
            target=target,
            reappear=found.removed,
            change=found.updated,
            disappear=found.inserted,
        )

    def _rows(self, refs: Refs, snapshot: Snapshot) -> pa.Table:
        """The rows that `refs` name, embeddings included, each once."""
        names = [refs] if isinstance(refs, str) else list(dict.fromkeys(refs))
        if not names:
            raise InvalidInputError("name at least one memory")
        direct = snapshot.by_ids(names, columns=snapshot.schema.names)
        for level, value in self._scope.given().items():
            direct = direct.filter(pa.compute.equal(direct[level], value))
        found = set(direct["id"].to_pylist())
        others = [self._row(name, snapshot) for name in names if name not in found]
        extra = {rows["id"][0].as_py(): rows for rows in others}
        return pa.concat_tables([direct, *(r for i, r in extra.items() if i not in found)])

    def _chosen(self, refs: Refs | None, where: Where, snapshot: Snapshot) -> pa.Table:
        if refs is not None:
            if where:
                raise InvalidInputError("give either memories by name or a filter, not both")
            return self._rows(refs, snapshot)
        chosen = Filter.of(where, within=self._scope)
        if not chosen.scope:
            raise ScopeError(
                "a filter without a scope would reach every tenant and user; "
                "name at least one of: " + ", ".join(SCOPE_LEVELS)
            )
        return snapshot.scan(chosen.predicate(self._moment()), columns=snapshot.schema.names)

    def _refuse_outside(self, change: ChangeSet) -> None:
        outside = [scope for scope in change.scopes() if not self._scope.holds(scope)]
        if outside:
            raise ScopeError(
                f"the plan reaches {outside[0]}, outside this handle's {self._scope}; "
                "apply it through the handle that made it"
            )

    def _embedded(
        self, taken: Taken, *, only: set[str] | None = None, progress: Progress | None = None
    ) -> Taken:
        """The rows, embedded where they lack a vector (and, with `only`, have one of these ids)."""
        rows = taken.rows
        present = valid_vectors(rows)
        ids, texts = rows["id"].to_pylist(), rows["content"].to_pylist()
        lacking = [i for i in np.flatnonzero(~present).tolist() if only is None or ids[i] in only]
        if not lacking:
            return taken
        vectors = embeddings(rows)
        for start in range(0, len(lacking), _EMBED_CHUNK):
            chunk = lacking[start : start + _EMBED_CHUNK]
            vectors[chunk] = self._embed([texts[i] for i in chunk])
            if progress is not None:
                progress(start + len(chunk), len(lacking))
        present[lacking] = True
        rows = patched(rows, {EMBEDDING: vector_array(vectors, valid=present)})
        return replace(taken, rows=rows)


def _table(
    uri: str,
    *,
    create: bool,
    embedder: Embedder | None,
    storage_options: Mapping[str, str] | None,
) -> Table:
    try:
        table = Table.open(uri, storage_options=storage_options)
    except NotFoundError:
        if not create:
            raise
        chosen = embedder or MiniLM()
        fmt = StoreFormat(embedding_model=chosen.name, dimension=chosen.dimension)
        table = Table.create(uri, fmt, storage_options=storage_options)
    table.ensure_text_index()
    return table


def _fitting(table: Table, chosen: Embedder | None) -> Embedder:
    """The embedder to use on the table, whose vectors are all from one model."""
    fmt = table.format
    fits = (fmt.embedding_model, fmt.dimension)
    embedder = chosen or MiniLM()
    if (embedder.name, embedder.dimension) == fits:
        return embedder
    if chosen is None:
        return MissingEmbedder(name=fmt.embedding_model, dimension=fmt.dimension)
    raise StoreFormatError(
        f"{table.uri} has vectors of the model {fmt.embedding_model!r} ({fmt.dimension} numbers), "
        f"and the embedder given is {chosen.name!r} ({chosen.dimension}); vectors of two models "
        "cannot be compared: pass that model's embedder"
    )


def _require_text(content: str) -> None:
    if not isinstance(content, str) or not content.strip():
        raise InvalidInputError(f"content is {content!r}; a memory needs a text that is not blank")


def _is_not(rows: pa.Table, state: State) -> pa.Array:
    return pa.compute.not_equal(rows["state"], str(state))


def _refuse_states(rows: pa.Table, states: set[State], action: str) -> None:
    columns = rows["id"].to_pylist(), rows["state"].to_pylist()
    bad = [(i, state) for i, state in zip(*columns, strict=True) if state in states]
    if bad:
        raise ConflictError(
            f"cannot {action} {bad[0][0]}: it is {bad[0][1]}"
            f"{f' (and {len(bad) - 1} more)' if len(bad) > 1 else ''}; nothing was written",
            ids=[i for i, _ in bad],
        )
