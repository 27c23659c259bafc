"""MemoryStore: every write. Each one plans a change set and commits it as one version."""

from __future__ import annotations

import os
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, Self, Unpack, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory import curate
from lance_memory.admission import (
    Addition,
    KnownContents,
    Progress,
    Replacement,
    check_changes,
    edited,
    embedded,
    replacement,
)
from lance_memory.beside import Beside
from lance_memory.curate import (
    Answer,
    Bounds,
    ConsolidateOptions,
    ConsolidationPlan,
    ConsolidationResult,
    Derived,
    Execution,
    Guard,
    Pass,
    Search,
    Surroundings,
    Transform,
    extractive,
    retirement,
    reversal,
    supersession,
)
from lance_memory.embed import Embedder, as_embedder, fitting, fitting_or_missing, format_for
from lance_memory.errors import ConflictError, DamagedStoreWarning, RejectedError
from lance_memory.ingest import WritePath
from lance_memory.move import (
    ArchiveManifest,
    ArchiveResult,
    ImportPlan,
    ImportResult,
    OnConflict,
    archive_format,
    import_archive,
    local_place,
    place_to_put_away,
    put_away,
    retiring,
)
from lance_memory.record.arguments import instance, one_of
from lance_memory.record.decay import Decay
from lance_memory.record.filters import Filter, Where, all_of, live
from lance_memory.record.intake import Batch, Details, Fields
from lance_memory.record.memory import Scope
from lance_memory.record.results import (
    AddManyResult,
    AddResult,
    Outcome,
    RollbackPlan,
    WriteResult,
)
from lance_memory.record.rows import valid_vectors, with_vectors
from lance_memory.record.schema import STORE_ID
from lance_memory.record.times import Clock, utc_now
from lance_memory.record.values import text_value
from lance_memory.search import Mode, Page, Query
from lance_memory.storage import (
    Audit,
    ChangeSet,
    Comparison,
    Durability,
    Snapshot,
    Table,
    Upkeep,
    absolute,
    naming,
    refuse_taken,
    say,
    undo,
)
from lance_memory.usage import (
    Chosen,
    QueryLog,
    QueryRecording,
    QueryWhere,
    Recording,
    RetirePlan,
    faded_away,
    fading,
)
from lance_memory.waiting import Pending
from lance_memory.writing import Refs, kept

__all__ = ["MemoryStore"]

_GUARD = Guard()
_UPKEEP = Upkeep()


class MemoryStore(Pending):
    """A store: reads see the newest version, and every write makes one.

    Safe to share between threads. Other handles and processes may write at the same time: a
    write that lost a race is planned again from the newer version, and one whose memories were
    changed meanwhile raises `ConflictError` and writes nothing.
    """

    def __init__(
        self,
        table: Table,
        *,
        embedder: Embedder,
        clock: Clock,
        author: str = "",
        queries: QueryLog | None = None,
        upkeep: Upkeep | None = None,
        beside: Beside | None = None,
        path: WritePath | None = None,
    ) -> None:
        super().__init__(
            table,
            embedder=embedder,
            clock=clock,
            author=author,
            queries=queries,
            upkeep=upkeep,
            beside=beside or Beside.of(table, None, clock=clock),
            path=path or WritePath(),
        )
        self._known_contents = KnownContents()

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
        record_queries: bool | QueryRecording = False,
        upkeep: Upkeep | None = _UPKEEP,
        like: str | os.PathLike[str] | None = None,
        durability: Durability | str = Durability.PROCESS,
        ledger: str | os.PathLike[str] | None = None,
        write_path: WritePath | None = None,
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
            record_queries: write down which memories answered each search, redacted, beside the
                memories (see `QueryRecording`); `queries`, `usage` and `Decay` read it. A search
                does not wait for it, and makes no version.
            upkeep: when writes are followed by upkeep, and which versions it keeps; None: never,
                and every version is kept until `optimize` is told to remove some.
            like: an archive of `export_store`, whose embedding model a new store gets where no
                embedder is given.
            durability: what a write survives once it has returned: "process" the end of any
                process, "power" a power cut too, for some milliseconds a write (see `Durability`).
            ledger: where jobs, counters and watermarks of `ingest` are: a directory, or the URL of
                a Redis server; by default in the store's directory. A store in an object store has
                none: without one, counters end with this handle, and there are no jobs.
            write_path: the steps of `ingest`; by default `WritePath()`.

        A store whose newest version is torn, as a power cut can leave it, is opened at the last
        whole one: with a `DamagedStoreWarning`, and `damage` says what is torn. It can be read;
        writes are refused until `lmem doctor --fix`.

        Raises:
            InvalidInputError: an unknown durability.
            NotFoundError: there is no store, and `create` is off; or no such branch.
            StoreFormatError: something else is there, the store is from a later release, or its
                vectors are from another model than `embedder`.
            StorageError: the directory cannot be written to, or no version is whole.
        """
        uri = absolute(path)
        keeping = Durability(one_of("durability", durability, Durability))
        if upkeep is not None:
            instance("upkeep", upkeep, Upkeep, "an Upkeep, or None")
        chosen = None if embedder is None else as_embedder(embedder)
        if create:
            fresh = archive_format(like) if like and chosen is None else format_for(chosen)
            table = Table.open_or_create(
                uri, fresh, storage_options=storage_options, durability=keeping
            )
        else:
            table = Table.open(uri, storage_options=storage_options, durability=keeping)
        table.ensure_text_index()
        line = table if branch == "main" else table.on_branch(branch)
        if line.damage is not None:
            warnings.warn(f"{uri}: {line.damage}", DamagedStoreWarning, stacklevel=2)
        beside = Beside.of(line, ledger, clock=clock)
        beside.note(line)
        return cls(
            line,
            embedder=fitting(line.format, chosen, where=uri),
            clock=clock,
            author=text_value("author", author),
            queries=QueryLog.of(table, recording=QueryRecording.of(record_queries=record_queries)),
            upkeep=upkeep,
            beside=beside,
            path=write_path,
        )

    def close(self) -> None:
        """Wait for upkeep that is under way, and write recorded queries; record none after that.

        For programs that end, or remove the store's directory. Reads and writes go on working.
        """
        self._queries.recording.close()
        self._tender.wait()
        self._beside.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- add ------------------------------------------------------------------------------

    def add(self, content: str, **fields: Unpack[Fields]) -> AddResult:
        """Store one memory.

        Returns:
            What became of it. The same content in the same scope, or a live memory with the same
            key, is one memory: the answer then names the one that is there.

        Raises:
            RejectedError: the memory is malformed; says what was expected.
            ConflictError: the id is taken by another content.
            EmbeddingError: the embedder failed; nothing was stored.
        """
        result = self.add_many([{**fields, "content": content}])
        reason = result.already_there.get(0, "")
        return AddResult(
            uri=self.uri,
            version=result.version,
            id=result.ids[0],
            outcome=Outcome.ALREADY_THERE if reason else Outcome.of(fields.get("state")),
            reason=reason,
            upkeep=result.upkeep,
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
            EmbeddingError: the embedder failed; nothing was stored.
        """
        self._table.refuse_writes()  # before anything is read or embedded
        now = self._moment()
        addition = Addition(
            self._take_in(memories, now),
            embed=self._embed,
            known_contents=self._known_contents,
            now=now,
        )
        addition.prepare(self._table.latest, progress)

        def plan(snapshot: Snapshot) -> ChangeSet:
            rows = addition.new_rows(snapshot)
            return ChangeSet(audit=self._audit("add"), inserts=rows, looked=True)

        _, written, failed = self._commit(plan)
        return addition.result(self.uri, written, upkeep=failed)

    def upsert(self, content: str, *, key: str, **fields: Unpack[Details]) -> AddResult:
        """Store a memory under the caller's key, in the place of the one that has it.

        The old one is superseded and linked ("updates"), and never resurfaces: also not when
        the new one is deleted, retired or expires.

        Raises:
            RejectedError: the memory is malformed, or the key is empty.
            ConflictError: an `id` was given, and it is taken.
            EmbeddingError: the embedder failed.
        """
        now = self._moment()
        given = {**fields, "content": content, "key": "" if key is None else key}
        taken = embedded(self._take_in([given], now), self._embed)
        found: Replacement | None = None

        def plan(snapshot: Snapshot) -> ChangeSet:
            nonlocal found
            found = replacement(snapshot, taken.rows, given=taken.given, now=now)
            return found.change(self._audit("upsert"))

        _, written, failed = self._commit(plan)
        known = found.known if found else ""
        return AddResult(
            uri=self.uri,
            version=written.version,
            id=known or taken.rows["id"][0].as_py(),
            outcome=Outcome.ALREADY_THERE if known else Outcome.of(fields.get("state")),
            reason="the live memory with this key says so already" if known else "",
            upkeep=failed,
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
            InvalidInputError: a column that does not change by update, or nothing to change.
            RejectedError: a value is malformed.
            ConflictError: another live memory of the scope has the key.
            EmbeddingError: the embedder failed.
        """
        values: dict[str, Any] = {**fields, **({} if content is None else {"content": content})}
        check_changes(values)
        if content is not None and fields.get("embedding") is None:
            values["embedding"] = self._embedding_of(content)
        now = self._moment()

        def plan(snapshot: Snapshot) -> ChangeSet:
            old = self._row(ref, snapshot)
            updates = edited(snapshot, old, values, scope=self._scope, now=now)
            return ChangeSet(audit=self._audit("update", reason), updates=updates)

        return self._write(plan)

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
            RejectedError: the successor has no text, or is malformed.
            ConflictError: a source is superseded or retired already.
            EmbeddingError: the embedder failed.
        """
        derived = Derived(content=successor) if isinstance(successor, str) else successor
        vector = self._embedding_of(derived.content)
        names = kept(sources) or ()

        def plan(snapshot: Snapshot) -> ChangeSet:
            return supersession(
                self._rows(names, snapshot),
                derived,
                vector=vector,
                relation=relation,
                scope=self._scope,
                audit=self._audit("supersede", reason),
            )

        return self._write(plan)

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
            InvalidInputError: both names and a filter, or a filter that makes no sense.
            ScopeError: a filter without any scope.
            ConflictError: one of them is superseded.
        """
        refs = kept(refs)

        def plan(snapshot: Snapshot) -> ChangeSet:
            audit = self._audit("retire", reason)
            return retirement(self._chosen(refs, where, snapshot), audit=audit)

        return self._write(plan)

    def plan_retirement(self, *, below: float, decay: Decay, **where: Unpack[Where]) -> RetirePlan:
        """What has faded, for `apply` to retire as one version, each with its strength as reason.

        Args:
            below: what is weaker than this goes, 0..1, unless it is evergreen.
            decay: how strength fades; recorded queries count as use.
            where: which visible memories to look at, see `Where`; it needs a scope.

        Raises:
            InvalidInputError: no strength, no `Decay`, states, or a filter that makes no sense.
            ScopeError: a filter without any scope.
        """
        chosen = self._of_a_scope(where)
        self._queries.flush()
        return fading(
            self._snapshot(),
            chosen,
            below=below,
            decay=decay,
            uses=self._uses,
            moment=self._moment(),
        )

    def unretire(
        self, refs: Refs | None = None, *, reason: str = "", **where: Unpack[Where]
    ) -> WriteResult:
        """Make retired memories active again.

        Args:
            refs: as for `retire`; or give a filter with a scope.
            reason: kept with each memory, and shown by `log`.
            where: see `Where`; retired memories by default.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            InvalidInputError: both names and a filter, or a filter that makes no sense.
            ScopeError: a filter without any scope.
            ConflictError: a memory is not retired, or its key was given to another since.
        """
        refs = kept(refs)
        if refs is None:
            where.setdefault("states", "retired")

        def plan(snapshot: Snapshot) -> ChangeSet:
            audit = self._audit("unretire", reason)
            return reversal(snapshot, self._chosen(refs, where, snapshot), audit=audit)

        return self._write(plan)

    def archive(
        self,
        path: str | os.PathLike[str],
        *,
        reason: str = "",
        dry_run: bool = False,
        **where: Unpack[Where],
    ) -> ArchiveResult:
        """Write memories to a file and retire them; `unretire` or `revert` brings them back.

        The file is on the disk and was read back before they are retired, as one version. A crash
        in between leaves the file alone, and the same call goes on from there.

        Args:
            path: a new file x.jsonl or x.parquet, with every column; or, as for `export_store`, a
                directory or x.zip. Other endings are refused.
            reason: kept with each memory, and shown by `log`.
            dry_run: write nothing; the result says how many there are.
            where: see `Where`; visible memories by default, and a scope is needed.

        Raises:
            InvalidInputError: something else is at `path`, or a filter makes no sense.
            ScopeError: a filter without any scope.
            ConflictError: a memory was changed meanwhile, or is superseded; none was retired.
            StorageError: the file cannot be written, or does not read back; or it is there, and
                the store cannot be written to, so that none was retired.
        """
        place = place_to_put_away(path)
        source = self._archive_source(self._of_a_scope(where))
        if dry_run:
            version, found = source.snapshot.version, source.count()
            return ArchiveResult(uri=self.uri, version=version, path=str(place), memories=found)
        seen = put_away(source, place)

        def plan(snapshot: Snapshot) -> ChangeSet:
            rows = snapshot.by_ids(seen, columns=snapshot.schema.names)
            audit = self._audit("archive", reason, manifest={"archive": place.name})
            return replace(retirement(rows, audit=audit), seen=seen)

        with retiring(place):
            written = self._write(plan)
        return ArchiveResult(
            uri=self.uri,
            version=written.version,
            path=str(place),
            memories=len(seen),
            retired=written.updated,
            upkeep=written.upkeep,
        )

    def import_store(
        self,
        path: str | os.PathLike[str],
        *,
        on_conflict: OnConflict | str = OnConflict.REFUSE,
        embed: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ImportResult:
        """Store what an archive of `export_store` has, as one version, or none of it.

        Everything is checked before anything is written. Memories that are there as they are, and
        live ones whose content is there under another id, are not stored again: importing twice
        stores nothing. A scoped handle takes what lies within its scope.

        Args:
            path: a directory or a .zip.
            on_conflict: where an id is taken by another content, or a live key by another memory:
                "refuse" everything; "skip" it and keep what is here; or store it "fresh", under a
                new id (the same at each import), without a key that is taken. Relationships and
                successors of the archive then point to what stands for it.
            embed: embed anew where the archive's vectors are of another model than the store's.
            dry_run: check and decide, and write nothing; clashes are listed, not refused.
            progress: called with (embedded, to embed).

        Raises:
            NotFoundError: nothing is at `path`.
            StoreFormatError: something else is, or the vectors are of another model.
            StorageError: the archive is damaged or cut short; names the file.
            RejectedError: it holds what no store could, one memory or several together; names
                them, or the file.
            ConflictError: memories clash; `ids` lists them.
            EmbeddingError: the embedder failed.
        """

        def audit(manifest: ArchiveManifest) -> Audit:
            told = {"archive": manifest.checksum, "memories": manifest.memories}
            return self._audit("import", manifest=told)

        plan = ImportPlan(
            scope=self._scope,
            on_conflict=OnConflict(one_of("on_conflict", on_conflict, OnConflict)),
            embed=self._embed if embed else None,
            now=self._moment(),
            audit=audit,
            commit=self._commit,
            progress=progress,
        )
        place = local_place(path, "an archive")
        return import_archive(self._table, place, plan, dry_run=dry_run)

    def delete(
        self, refs: Refs | None = None, *, reason: str = "", **where: Unpack[Where]
    ) -> WriteResult:
        """Remove rows from the current version. Earlier versions still have them.

        Takes the same arguments as `retire`; memories in any state, when named by `refs`.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            ScopeError: a filter without any scope.
        """
        refs = kept(refs)

        def plan(snapshot: Snapshot) -> ChangeSet:
            rows = self._chosen(refs, where, snapshot)
            return ChangeSet(audit=self._audit("delete", reason), deletes=rows)

        return self._write(plan)

    # -- consolidate ----------------------------------------------------------------------

    @overload
    def consolidate(
        self,
        options: ConsolidateOptions | None = ...,
        transform: Transform = ...,
        *,
        execution: Execution | None = ...,
        guard: Guard | None = ...,
        bounds: Bounds | None = ...,
        stop: threading.Event | None = ...,
        dry_run: Literal[True],
        **where: Unpack[Where],
    ) -> ConsolidationPlan: ...

    @overload
    def consolidate(
        self,
        options: ConsolidateOptions | None = ...,
        transform: Transform = ...,
        *,
        execution: Execution | None = ...,
        guard: Guard | None = ...,
        bounds: Bounds | None = ...,
        stop: threading.Event | None = ...,
        dry_run: Literal[False] = ...,
        reason: str = ...,
        **where: Unpack[Where],
    ) -> ConsolidationResult: ...

    def consolidate(
        self,
        options: ConsolidateOptions | None = None,
        transform: Transform = extractive,
        *,
        execution: Execution | None = None,
        guard: Guard | None = _GUARD,
        bounds: Bounds | None = None,
        stop: threading.Event | None = None,
        dry_run: bool = False,
        reason: str = "",
        **where: Unpack[Where],
    ) -> ConsolidationPlan | ConsolidationResult:
        """Turn clusters of memories into one better memory each, as one version for the pass.

        Args:
            options: how to cluster, and what to refuse.
            transform: makes one memory of a cluster; by default `extractive`. It may take
                its time: rows that are added meanwhile are not touched.
            execution: how the transform is called.
            guard: how much recall the pass may cost; None: it is not measured.
            bounds: where the pass ends, whatever is left to do.
            stop: set it from another thread, and the pass ends without a write.
            dry_run: only plan. `apply` commits exactly the plan that this returns.
            reason: shown by `log`.
            where: which memories to consider, see `Where`; visible ones by default. What is hidden
                or has expired is never made new again, whatever `states` says; and what events are
                missing before (`order`) waits for them.

        Raises:
            InvalidInputError: the jobs are elsewhere, and this handle does not know where.
            ConflictError: a source was changed while the transform ran; nothing was written.
            TransformError: a cluster failed, and all or nothing was asked for.
            StoppedError: `stop` was set; nothing was written.
            EmbeddingError: the embedder failed on a derived text.
            StorageError: the store cannot be written to; the guard needs that of a dry run too.
        """
        asked = Pass(
            options=ConsolidateOptions() if options is None else options,
            transform=transform,
            execution=Execution() if execution is None else execution,
            guard=guard,
            bounds=Bounds() if bounds is None else bounds,
            stop=threading.Event() if stop is None else stop,
        )
        self._beside.refuse_elsewhere(self._table)
        complete = self._beside.complete()  # before the version, so that it has what is complete
        now, snapshot = self._moment(), self._snapshot()
        with naming.holding(self._table, snapshot.version):
            plan = curate.plan_consolidation(
                snapshot,
                all_of(self._predicate(where), live(now), complete),
                asked,
                Surroundings(
                    embed=self._embed,
                    search=self._searching,
                    trial=self._table.trial,
                    answered=self._answered,
                ),
                now=now,
            )
        if dry_run:
            return plan
        return ConsolidationResult(plan=plan, write=self.apply(plan, reason=reason))

    def apply(self, plan: ConsolidationPlan | RetirePlan, *, reason: str = "") -> WriteResult:
        """Commit a plan of `consolidate(dry_run=True)`, also a saved one, or of `plan_retirement`.

        Raises:
            ConflictError: a memory has been changed or deleted since, its key given to another, or
                the store re-embedded; nothing was written.
            TransformError: a cluster failed, and all or nothing was asked for.
            ScopeError: the plan reaches outside this handle's scope.
        """
        if isinstance(plan, RetirePlan):
            return self._write(lambda present: self._fade(present, plan, reason))
        plan.refuse_failures()

        def planned(snapshot: Snapshot) -> ChangeSet:
            if plan.version < snapshot.format.vectors_since:
                raise ConflictError(
                    f"the plan is of version {plan.version}, and since version "
                    f"{snapshot.format.vectors_since} the vectors are of another model; nothing "
                    "was written: plan again"
                )
            manifest = plan.manifest()
            audit = self._audit("consolidate", reason, manifest=manifest, op_id=plan.op_id)
            change = curate.change_set(snapshot, plan, audit=audit)
            self._refuse_outside(change)
            if change.inserts:
                refuse_taken(snapshot, change.inserts, audit.at, leaving=change.replaced())
            return change

        return self._write(planned)

    # -- queries --------------------------------------------------------------------------

    @property
    def query_log(self) -> Recording:
        """How searches are recorded: `flush` and `close` it, and look at its `status`."""
        return self._queries.recording

    def forget_queries(self, **where: Unpack[QueryWhere]) -> int:
        """Remove recorded queries, of this scope, from the files too; how many.

        What another process has not written yet it may write later.

        Args:
            where: see `QueryWhere`; nothing means every query that was kept to this handle's scope.

        Raises:
            InvalidInputError: a filter makes no sense.
            ScopeError: it names another scope than the handle's.
            ConflictError: another process's upkeep of the log takes too long.

        Danger: they cannot be brought back.
        """
        chosen = Chosen.of(where, within=self._scope)
        self._queries.flush()
        return self._queries.forget(chosen)

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

        Through a scoped handle only that scope goes back. The embedding model stays what it is:
        memories that come back from before a `reembed` are embedded anew.

        Raises:
            NotFoundError: there is no such version, or it was cleaned up.
            EmbeddingError: memories are to be embedded anew, and the embedder failed or is missing.
        """
        target = self._snapshot(self._resolved(version))

        def back(present: Snapshot, audit: Audit) -> tuple[ChangeSet, Comparison]:
            return undo.rollback(
                present, target, audit=audit, predicate=self._boundary(), refit=self._refitted
            )

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
            EmbeddingError: as for `rollback`.
        """
        after = self._snapshot(self._resolved(version))
        before = self._table.at(after.version - 1)

        def back(present: Snapshot, audit: Audit) -> tuple[ChangeSet, Comparison]:
            found = undo.revert(
                present,
                before,
                after,
                audit=audit,
                predicate=self._boundary(),
                refit=self._refitted,
            )
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
        number = self._snapshot(version).version
        naming.create_tag(self._table, name, number, move=move)
        return number

    def untag(self, name: str) -> int:
        """Remove a tag, and return the version it was on.

        Raises:
            NotFoundError: no such tag.
        """
        self._whole_store("untagging")
        return naming.delete_tag(self._table, name)

    def branch(self, name: str, version: int | str | datetime | None = None) -> MemoryStore:
        """A new line of versions that starts here or at `version`; writes on it stay on it.

        Raises:
            ConflictError: there is a branch of that name.
        """
        self._whole_store("branching")
        number = self._snapshot(version).version
        line = naming.create_branch(self._table, name, number)
        beside = Beside.of(line, self._beside.where, clock=self._clock)
        return self._on(line, queries=self._queries, beside=beside)

    def delete_branch(self, name: str) -> None:
        """Remove a branch and the versions that only it has.

        Danger: the branch's own versions cannot be brought back.

        Raises:
            NotFoundError: no such branch.
            ConflictError: a tag holds one of its versions.
        """
        self._whole_store("deleting a branch")
        naming.delete_branch(self._table, name)
        Beside.of(self._table, self._beside.where, clock=self._clock, branch=name).remove()

    def checkout(self, version: int | str | datetime, path: str | os.PathLike[str]) -> MemoryStore:
        """A store of its own at `path` that starts as this one was at a version, copying no data.

        It reads this store's files, so the version is tagged here (`checkout-v<number>`, on a
        branch `checkout-<branch>-v<number>`), which keeps clean-up from removing them.

        Raises:
            NotFoundError: no such version.
            InvalidInputError: one of both is on a local disk and the other in an object store, or
                they are in object stores of two kinds.
            ConflictError: `path` holds a store already.
            StoreFormatError: `path` holds something else.
        """
        self._whole_store("checkout")
        number = self._snapshot(self._resolved(version)).version
        uri = absolute(path)
        naming.clone(self._table, number, uri)
        options = self._table.storage_options
        durability = self._table.durability
        clone = Table.open(uri, storage_options=options, durability=durability)
        if not clone.is_of_earlier_schema:
            origin = {"version": number, "of": self._table.format.store_id}
            made = self._audit("checkout", manifest=origin)
            say(clone, lambda _: {STORE_ID: str(uuid.uuid4())}, audit=lambda: made)
        return self._on(Table.open(uri, storage_options=options, durability=durability))

    # -- inside ---------------------------------------------------------------------------

    def _on(
        self, table: Table, *, queries: QueryLog | None = None, beside: Beside | None = None
    ) -> MemoryStore:
        return MemoryStore(
            table,
            embedder=fitting_or_missing(table.format, self._embedder),
            clock=self._clock,
            author=self._author,
            queries=queries,
            upkeep=self._tender.options,
            beside=beside,
            path=self._path,
        )

    def _refitted(self, rows: pa.Table) -> pa.Table:
        """Rows of another embedding model, with the vectors that this handle's gives them."""
        valid = valid_vectors(rows)
        vectors = np.zeros((len(rows), self._table.format.dimension), np.float32)
        vectors[valid] = self._embed(rows["content"].filter(pa.array(valid)).to_pylist())
        return with_vectors(rows, vectors, valid=valid, schema=self._table.schema)

    def _embedding_of(self, content: str) -> NDArray[np.float32]:
        """The vector of one text that is going to be a memory's."""
        if not isinstance(content, str) or not content.strip():
            raise RejectedError(f"content is {content!r}; a memory needs a text that is not blank")
        vector: NDArray[np.float32] = self._embed([content])[0]
        return vector

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
            return self._write(lambda present: back(present, audit())[0])
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

    def _fade(self, snapshot: Snapshot, plan: RetirePlan, reason: str) -> ChangeSet:
        audit = self._audit("retire", reason or plan.reason, manifest=plan.manifest())
        change = faded_away(snapshot, plan, audit=audit)
        self._refuse_outside(change)
        return change

    def _searching(self, snapshot: Snapshot) -> Search:
        """Searches a version as `search_many` does, within this handle's scope."""

        def search(scope: Scope, questions: Sequence[str], k: int) -> list[list[Answer]]:
            dimension = self._table.format.dimension
            asked = Query.many(questions, vectors=None, mode=Mode.HYBRID, dimension=dimension)
            chosen = Filter(scope=self._scope.narrowed(**scope.given()))
            page = Page.of(k=k, offset=0, where=chosen, ranking=None)
            return [
                [
                    Answer(hit.memory.id, hit.similarity or 0.0, bool(hit.words))
                    for hit in answer.hits
                ]
                for answer in self._run(snapshot, asked, page)
            ]

        return search

    def _answered(self, ids: Sequence[str]) -> Iterable[tuple[str, Sequence[str]]]:
        """The recorded questions that these memories answered, newest first."""
        self._queries.flush()
        return self._queries.answered(ids, within=self._scope)
