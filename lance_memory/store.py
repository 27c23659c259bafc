"""MemoryStore: every write. Each one plans a change set and commits it as one version."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, Unpack

from lance_memory.admission import (
    Addition,
    Given,
    Progress,
    Replacements,
    check_changes,
    edited,
    embedded,
    refuse_changed,
    refuse_twins,
    replacements,
)
from lance_memory.beside import Beside
from lance_memory.curate import (
    Derived,
    retirement,
    reversal,
    supersession,
)
from lance_memory.embed import Embedder, as_embedder, fitting, format_for
from lance_memory.errors import DamagedStoreWarning, InvalidInputError
from lance_memory.govern.quota import Quota, Quotas
from lance_memory.granting import Sharing
from lance_memory.ingest import WritePath
from lance_memory.move import archive_format
from lance_memory.promoting import Promoting
from lance_memory.record.arguments import instance, mapping, one_of
from lance_memory.record.decay import Decay
from lance_memory.record.filters import Where
from lance_memory.record.intake import Batch, Details, Fields
from lance_memory.record.memory import Memory
from lance_memory.record.results import (
    AddManyResult,
    AddResult,
    Outcome,
    WriteResult,
)
from lance_memory.record.rows import Fingerprint
from lance_memory.record.times import Clock, utc_now
from lance_memory.record.values import text_value
from lance_memory.reporting import Reporting
from lance_memory.storage import (
    ChangeSet,
    Durability,
    Snapshot,
    Table,
    Upkeep,
    absolute,
)
from lance_memory.usage import (
    Chosen,
    QueryLog,
    QueryRecording,
    QueryWhere,
    Recording,
    RetirePlan,
    fading,
)
from lance_memory.wording import counted
from lance_memory.writing import Refs, kept

__all__ = ["MemoryStore"]

_UPKEEP = Upkeep()


class MemoryStore(Promoting, Reporting):
    """A store: reads see the newest version, and every write makes one.

    Safe to share between threads. Other handles and processes may write at the same time: a
    write that lost a race is planned again from the newer version, and one whose memories were
    changed meanwhile raises `ConflictError` and writes nothing.
    """

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
        quotas: Quota | Quotas | None = None,
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
            ledger: where the messages of working memory, and jobs, counters and watermarks of
                `ingest` are: a directory, or the URL of a Redis server; by default in the store's
                directory. A store in an object store has none: without one, messages and counters
                end with this handle, and there are no jobs.
            write_path: the steps of `ingest`; by default `WritePath()`.
            quotas: how much every tenant may have, or each of them, by way of this handle; `quota`
                says what they use. A write above a hard limit raises `QuotaExceededError`, one
                above a soft limit says so and is slowed down; what cleans up never is.

        A store whose newest version is torn, as a power cut can leave it, is opened at the last
        whole one: with a `DamagedStoreWarning`, and `damage` says what is torn. It can be read;
        writes are refused until `lmem doctor --fix`.

        Raises:
            InvalidInputError: an unknown durability, or no quotas.
            NotFoundError: there is no store, and `create` is off; or no such branch.
            StoreFormatError: something else is there, the store is from a later release, or its
                vectors are from another model than `embedder`.
            StorageError: the directory cannot be written to, or no version is whole.
        """
        uri = absolute(path)
        keeping = Durability(one_of("durability", durability, Durability))
        limits = Quotas.given(quotas)
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
            quotas=limits,
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
            warnings=result.warnings,
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

        change, written, failed = self._commit(plan)
        return addition.result(self.uri, written, upkeep=failed, warnings=change.warnings)

    def upsert(
        self, content: str, *, key: str, expected: str | None = None, **fields: Unpack[Details]
    ) -> AddResult:
        """Store a memory under the caller's key, in the place of the one that has it.

        The old one is superseded and linked ("updates"), and never resurfaces: also not when
        the new one is deleted, retired or expires.

        Args:
            content: the new text.
            key: the caller's own name for it.
            expected: the id of the memory that was read under the key, "" for none; where another
                has the key by now, nothing is written. None: whichever has it.
            fields: what else to say of it.

        Raises:
            RejectedError: the memory is malformed, or the key is empty.
            ConflictError: an `id` was given, and it is taken; or the key is not where `expected`
                says.
            EmbeddingError: the embedder failed.
        """
        given = {**fields, "content": content, "key": "" if key is None else key}
        told = [Given(columns=given.keys(), expected=expected)]
        result = self._upserted([given], told)
        known = bool(result.already_there)
        return AddResult(
            uri=self.uri,
            version=result.version,
            id=result.ids[0],
            outcome=Outcome.ALREADY_THERE if known else Outcome.of(fields.get("state")),
            reason=result.already_there.get(0, ""),
            upkeep=result.upkeep,
            warnings=result.warnings,
        )

    def upsert_many(
        self,
        memories: Iterable[Mapping[str, Any]],
        *,
        expected: Sequence[str | None] | None = None,
        retire: Refs = (),
        made_from: Iterable[Memory] = (),
        reason: str = "",
    ) -> AddManyResult:
        """Store memories under the caller's keys, and retire others, as one version or not at all.

        Args:
            memories: mappings of column names to values, each with a `key`; see `upsert`.
            expected: for each of them, as for `upsert`; None: whichever has the keys.
            retire: memories that go in the same version, as for `retire`.
            made_from: memories as they were read; where one was changed since, or is gone, nothing
                is written.
            reason: shown by `log`, and kept with what is retired.

        Returns:
            One id for each, in order; what is there already, and says the same, is not stored.

        Raises:
            RejectedError: one is malformed, has no key, or the key of another one of the batch.
            InvalidInputError: `expected` is not one for each; or a memory is no mapping.
            NotFoundError, AmbiguousError: as for `retire`.
            ConflictError: as for `upsert` and `retire`; or a memory that they were made from was
                changed; or one of those to retire is also replaced.
            EmbeddingError: the embedder failed.
        """
        batch = [
            {**one, "key": one.get("key") or ""}
            for one in (
                mapping("a memory", memory, "a mapping with its key and content")
                for memory in memories
            )
        ]
        wanted = [None] * len(batch) if expected is None else list(expected)
        if len(wanted) != len(batch):
            raise InvalidInputError(
                f"expected has {len(wanted)} ids for {counted(len(batch), 'memory', 'memories')}; "
                "it takes one for each"
            )
        told = [
            Given(columns=one.keys(), expected=id) for one, id in zip(batch, wanted, strict=True)
        ]
        seen = {m.id: (m.revision, m.updated_at, m.content_hash) for m in made_from}
        return self._upserted(batch, told, retire=kept(retire) or (), seen=seen, reason=reason)

    # -- change ---------------------------------------------------------------------------

    def update(
        self,
        ref: str,
        *,
        content: str | None = None,
        revision: int | None = None,
        reason: str = "",
        **fields: Unpack[Fields],
    ) -> WriteResult:
        """Change a memory in place: same id, next revision; the old text stays in the history.

        Args:
            ref: as for `get`.
            content: the new text; it is embedded anew unless `embedding` is given.
            revision: the one that was read; where the memory has another by now, nothing is
                written. None: whatever it has.
            reason: shown by `log`.
            fields: the columns to change. The scope and the id never change, and the state
                changes through `retire`, `unretire` and `supersede`.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            InvalidInputError: a column that does not change by update, or nothing to change.
            RejectedError: a value is malformed.
            ConflictError: another live memory of the scope has the key; or the memory was changed
                since that revision.
            EmbeddingError: the embedder failed.
        """
        values: dict[str, Any] = {**fields, **({} if content is None else {"content": content})}
        check_changes(values)
        if content is not None and fields.get("embedding") is None:
            values["embedding"] = self._embedding_of(content)
        now = self._moment()

        def plan(snapshot: Snapshot) -> ChangeSet:
            old = self._row(ref, snapshot)
            refuse_changed(old, revision)
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

    # -- sharing --------------------------------------------------------------------------

    @property
    def sharing(self) -> Sharing:
        """What this scope lets others see, and what others let it see; see `Sharing`."""
        return Sharing(self)

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

    # -- inside ---------------------------------------------------------------------------

    def _upserted(
        self,
        batch: Sequence[Mapping[str, Any]],
        given: Sequence[Given],
        *,
        retire: Refs = (),
        seen: Mapping[str, Fingerprint] | None = None,
        reason: str = "",
    ) -> AddManyResult:
        now = self._moment()
        taken = embedded(self._take_in(list(batch), now), self._embed)
        refuse_twins(taken.rows)
        found: Replacements | None = None

        def plan(snapshot: Snapshot) -> ChangeSet:
            nonlocal found
            audit = self._audit("upsert", reason)
            found = replacements(snapshot, taken.rows, given=given, now=now)
            gone = retirement(self._rows(retire, snapshot), audit=audit).updates if retire else None
            return replace(found.change(audit, gone), seen=seen or {})

        change, written, failed = self._commit(plan)
        known = found.known if found else {}
        ids = taken.rows["id"].to_pylist()
        there = "the live memory with this key says so already"
        return AddManyResult(
            uri=self.uri,
            version=written.version,
            ids=tuple(known.get(place, own) for place, own in enumerate(ids)),
            stored=len(ids) - len(known),
            already_there=dict.fromkeys(known, there),
            upkeep=failed,
            warnings=change.warnings,
        )
