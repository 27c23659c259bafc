"""Maintenance: what keeps a store healthy for years. No verb here changes what a memory says."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Literal, Unpack, overload

from lance_memory.embed import Embedder, as_embedder
from lance_memory.embed.missing import MissingEmbedder
from lance_memory.errors import ConflictError, InvalidInputError, StorageError
from lance_memory.govern.doctor import Health, examine, treat
from lance_memory.govern.forget import run as forgetting
from lance_memory.govern.forget.results import ForgetPlan, ForgetResult, Unfinished
from lance_memory.index.build import (
    IndexKind,
    IndexProgress,
    IndexReport,
    build_index,
    known_kind,
)
from lance_memory.index.ensure import FROM_ROWS, ensure_index, wanted_index
from lance_memory.migrate import (
    Model,
    ReembedPlan,
    ReembedProgress,
    ReembedResult,
    plan_reembedding,
    reembed,
)
from lance_memory.move import BackupResult, back_up
from lance_memory.record.filters import Filter, Where
from lance_memory.record.values import text_value
from lance_memory.sharing import grants_to
from lance_memory.storage import Retain, UpkeepPlan, UpkeepResult, UpkeepStatus
from lance_memory.storage.upkeep import steps as upkeep
from lance_memory.storage.vector.facts import has_vector_index
from lance_memory.view import embedded_by
from lance_memory.writing import Refs, Writing

__all__ = ["Maintenance"]


class Maintenance(Writing):
    """The verbs of whoever operates a store. They concern the whole store, not one scope."""

    @overload
    def optimize(
        self,
        *,
        clean_older_than: timedelta | None = ...,
        index: IndexKind | str | None = ...,
        vector_index_from: int = ...,
        dry_run: Literal[False] = ...,
    ) -> UpkeepResult: ...

    @overload
    def optimize(
        self,
        *,
        clean_older_than: timedelta | None = ...,
        index: IndexKind | str | None = ...,
        vector_index_from: int = ...,
        dry_run: Literal[True],
    ) -> UpkeepPlan: ...

    def optimize(
        self,
        *,
        clean_older_than: timedelta | None = None,
        index: IndexKind | str | None = IndexKind.AUTO,
        vector_index_from: int = FROM_ROWS,
        dry_run: bool = False,
    ) -> UpkeepResult | UpkeepPlan:
        """Compact, build and fold the indices, and remove the versions that are not kept.

        Writes do the same by and by, in bounded steps (see `Upkeep`); this does all that there is
        to do, and builds the vector index. The versions that go are those that the handle's
        `Upkeep.retain` does not keep: none of a handle with `upkeep=None`.

        No memory changes, and tagged versions stay. What a vector search finds is exact below
        `vector_index_from` vectors; with the index (see `build_index`) it is approximate, and
        BM25 weighs words by the rows that are folded. A vector index that fails its check is not
        installed: the rest is done all the same, and `UpkeepResult.index_refused` says why.

        Args:
            clean_older_than: remove the versions older than this too, whatever the budget keeps.
            index: the kind of vector index to build where there is none, as for `build_index`.
                "auto" trains on a GPU where one works, in this process; name a kind such as
                "ivf_rq" for one that the engine makes on the CPU, or None to build none.
            vector_index_from: how many vectors it takes to build the vector index.
            dry_run: only say what would be done.

        Raises:
            InvalidInputError: a negative age, or an unknown kind of index.
            ConflictError: writers were faster several times, or another process is at it for a
                minute; nothing is lost, run it again.
            StorageError: the disk is full, or a file is damaged.

        Danger: versions older than `clean_older_than` can no longer be read or rolled back to.
        """
        self._whole_store("upkeep")
        if clean_older_than is not None and clean_older_than < timedelta(0):
            raise InvalidInputError(f"clean_older_than={clean_older_than}; it cannot be negative")
        kind = None if index is None else known_kind(index, argument="index")
        options = self._tender.options
        retain = options.retain if options else None
        if dry_run:
            return upkeep.plan(
                self._table,
                clean_older_than=clean_older_than,
                retain=retain,
                wants_index=partial(wanted_index, kind=kind, from_rows=vector_index_from),
            )
        result = upkeep.optimize(
            self._table,
            clean_older_than=clean_older_than,
            retain=retain,
            ensure_index=partial(ensure_index, kind=kind, from_rows=vector_index_from),
        )
        self._tender.done()
        return result

    def upkeep_status(self) -> UpkeepStatus:
        """When the upkeep that follows writes was last done, and which of its steps fail.

        Raises:
            ScopeError: the handle is scoped; it is about the whole store.
        """
        self._whole_store("upkeep")
        return self._tender.status

    def wait_for_upkeep(self, timeout: float | None = None) -> UpkeepStatus:
        """Wait for the upkeep that writes through this handle have started, and say how it went.

        A program that ends waits for one step of it by itself.

        Args:
            timeout: seconds at most; by default as long as it takes.

        Raises:
            ScopeError: the handle is scoped; it is about the whole store.
        """
        self._whole_store("upkeep")
        self._tender.wait(timeout)
        return self._tender.status

    def backup(
        self,
        target: str | os.PathLike[str],
        *,
        keep: Retain | None = None,
        verify: bool = False,
    ) -> BackupResult:
        """Add a backup of the whole store to a directory: versions, tags, branches, side tables.

        Files that the directory has from an earlier backup are not copied again. Writers go on
        meanwhile; what is backed up is the store at one moment. An interrupted backup is none, and
        the next one goes on from what it had copied. `BackupSet` lists, checks and restores.
        What is forgotten stays in earlier backups, until `keep` lets those go. Jobs, the order of
        events, what the gate remembers and the messages of working memory that are no rows yet are
        beside the table, and not part of it.

        Args:
            target: a directory of a local disk, for this store's backups alone; made for its owner
                alone (0700, 0600) where it is not there.
            keep: which backups stay; the others go, and the files that only they have. None: all
                stay. While the manifest of a backup is damaged, `damaged` names it, and all stay.
            verify: read everything in the directory again, and mend what is damaged from the store.

        Raises:
            InvalidInputError: the target is inside a store, or in an object store; or the store
                reads another's files, as a checkout does.
            ConflictError: the target has another store's backups, or one is being made.
            StoreFormatError: the target holds something else.
            StorageError: a file cannot be copied.

        Danger: what `keep` lets go cannot be restored any more.
        """
        self._whole_store("a backup")
        self._queries.flush()
        return back_up(self._table, target, now=self._moment(), keep=keep, verify=verify)

    def doctor(self, *, fix: bool = False, deep: bool = False) -> Health:
        """Look the store over: files, indices, rows, clocks, and work that was interrupted.

        The rows and indices are those of this handle's branch, the files those of the whole store.
        It reads narrow columns and the vectors; a store of 100,000 memories takes seconds.

        Args:
            fix: do what is safe about what is worse than a note: fold and build indices, merge
                small files, remove files that were nobody's for a week, let go of versions that a
                killed reader held for a day, set aside versions that a power cut has torn, finish
                a forgetting that was interrupted.
                No memory changes otherwise. The findings are then those that are left.
            deep: read every file of every version, each in a process that may die of it, and
                compare contents with their hashes, and indices with a scan.

        Returns:
            What was found, worst first. `sound` is false where there is an error or a warning.

        Raises:
            ScopeError: the handle is scoped.
            ConflictError: of `fix`: writers were faster several times; run it again.
            StorageError: of `fix`: the disk is full, or the store is read-only.
        """
        self._whole_store("looking the store over")
        lost = isinstance(self._embedder, MissingEmbedder)
        look = partial(treat, finish=self.finish_forgetting) if fix else examine
        return look(
            self._table,
            moment=self._moment(),
            model=None if lost else self._embedder.name,
            deep=deep,
            dead_jobs=self._dead_jobs,
        )

    def _dead_jobs(self) -> Sequence[str]:
        """The ids of jobs that have died; none, without a write path."""
        return ()

    def build_index(
        self,
        *,
        kind: IndexKind | str = IndexKind.AUTO,
        trainer: str | None = None,
        partitions: int | None = None,
        sub_vectors: int | None = None,
        seed: int = 0,
        progress: IndexProgress | None = None,
    ) -> IndexReport:
        """Build the vector index anew, over all vectors; `optimize` does so by itself when it pays.

        No memory changes. The index takes the place of the old one only after every vector was
        found in it once, and a sample of queries found their neighbours; until then, and when
        anything fails, searches go on as before. Vectors written meanwhile are found by a scan.

        Args:
            kind: "ivf_pq", "ivf_rq", "ivf_flat", "ivf_sq" or "ivf_hnsw_sq"; "auto" takes IVF_PQ
                where a GPU trains it or a trainer is named, and IVF_RQ on a CPU.
            trainer: of IVF_PQ: "lance", "torch", "torch:cpu", "torch:cuda" or "cuvs"; by default
                the first GPU trainer that works here, else "lance".
            partitions: cells that the vectors are sorted into; by default one for 4,096 vectors.
            sub_vectors: of IVF_PQ: bytes that a vector is coded in, which divide its dimension;
                by default one for 8 dimensions.
            seed: of the sample and of the training.
            progress: called with (step, done, in all), 0 where that is not known.

        Raises:
            InvalidInputError: an unknown kind or trainer, one that does not work here, sizes that
                do not fit, or too few vectors.
            MissingExtraError: the trainer is not installed.
            ConflictError: compactions, or other builds, came between several times, or upkeep was
                at it for a minute.
            StorageError: the index failed its check, or the disk is full; nothing was changed.
        """
        self._whole_store("building the index")
        with upkeep.alone(self._table):
            return build_index(
                self._table,
                kind=kind,
                trainer=trainer,
                partitions=partitions,
                sub_vectors=sub_vectors,
                seed=seed,
                progress=progress,
            )

    # -- forget ---------------------------------------------------------------------------

    @overload
    def forget(
        self,
        refs: Refs | None = ...,
        *,
        successors: bool = ...,
        dry_run: Literal[True],
        **where: Unpack[Where],
    ) -> ForgetPlan: ...

    @overload
    def forget(
        self,
        refs: Refs | None = ...,
        *,
        successors: bool = ...,
        reason: str = ...,
        dry_run: Literal[False] = ...,
        **where: Unpack[Where],
    ) -> ForgetResult: ...

    def forget(
        self,
        refs: Refs | None = None,
        *,
        successors: bool = False,
        reason: str = "",
        dry_run: bool = False,
        **where: Unpack[Where],
    ) -> ForgetPlan | ForgetResult:
        """Remove memories from every version, tag, branch and index, and prove it.

        Also those that were deleted long ago and are in earlier versions alone. Versions that
        hold them are cleaned away, and the log keeps who made them and when; a tagged one is
        rewritten without them, under the same number, and a branch goes on without them. Recorded
        queries about them go, saved plans in the store's directory, and what an interrupted
        `reembed` has made. What is left is a tombstone in the log: the SHA-256 of each id, when,
        who and why.

        With a whole scope go the grants that others gave to it (see `sharing`); its own are of it.
        What points to them points there no more. What one of them had superseded is retired:
        `unretire` brings it back. Ids and scopes can be used again.

        Args:
            refs: ids, keys or unambiguous beginnings of ids, of memories in whatever state and in
                whatever version; or give a filter with a scope.
            successors: also the memories of this handle's scope that were made of them, which may
                carry their text. The plan lists them in any case.
            reason: kept in the tombstone; it must not quote.
            dry_run: only tell what would go.
            where: see `Where`; every state by default. A memory is meant if it passed once.

        Raises:
            NotFoundError, AmbiguousError: no memory has or had that name, or several; or no memory,
                job or remembered input is of the scope.
            InvalidInputError: both names and a filter, or a filter that makes no sense; or a
                reason that quotes one of them.
            ScopeError: neither names nor a scope.
            ConflictError: a store made by `checkout` shares their files; or another process
                forgets, re-embeds or optimizes just now, for a minute.
            StorageError: something could not be removed, or is still there; `finish_forgetting`
                goes on. So does the next call of this. A file in the store's directory that is not
                its own, and has something of theirs, is named: remove it. Other memories can be
                forgotten meanwhile.

        Danger: they cannot be brought back, and neither can the versions that held them.
        """
        asked = self._asked_to_forget(refs, where, successors=successors)
        if dry_run:
            return forgetting.plan(self._table, asked, self._query_rows())
        self._forget_beside(None if asked.refs else asked.chosen)
        return forgetting.forget(
            self._table,
            asked,
            self._query_rows(),
            actor=self._author,
            reason=text_value("reason", reason),
        )

    def finish_forgetting(self) -> ForgetResult | None:
        """Finish a `forget` that was killed or failed; None where there is none.

        Raises:
            ConflictError, StorageError: as for `forget`.

        Danger: as for `forget`.
        """
        self._whole_store("finishing what was begun")
        self._forget_beside(None)
        return forgetting.finish(self._table, self._query_rows())

    def unfinished_forgetting(self) -> Unfinished | None:
        """The `forget` that was interrupted, or that another process is at; None: there is none.

        Raises:
            StorageError: its mark, `forget.json`, cannot be read.
        """
        self._whole_store("what was begun")
        return forgetting.unfinished(self._table)

    def _asked_to_forget(
        self, refs: Refs | None, where: Where, *, successors: bool
    ) -> forgetting.Asked:
        if refs is not None and where:
            raise InvalidInputError("give either memories by name or a filter, not both")
        names = [refs] if isinstance(refs, str) else refs
        kept = None if names is None else tuple(dict.fromkeys(names))
        if kept is not None and not (kept and all(isinstance(n, str) and n for n in kept)):
            raise InvalidInputError("name at least one memory, each by its id or key")
        every: Where = {"states": "any", **where}
        chosen = Filter.of(every, within=self._scope) if kept else self._of_a_scope(every)
        return forgetting.Asked(
            refs=kept,
            chosen=chosen,
            successors=successors,
            moment=self._moment(),
            beside={} if kept else self._counted_beside(chosen),
            also=grants_to(chosen.scope) if not kept and _is_scope(chosen) else None,
        )

    def _counted_beside(self, chosen: Filter) -> Mapping[str, int]:  # noqa: ARG002 - for others
        """How much of it stands beside the table; without jobs, nothing does."""
        return {}

    def _forget_beside(self, chosen: Filter | None) -> None:
        """Forget what could bring memories back, first; without jobs, nothing could."""

    def _query_rows(self) -> forgetting.Queries:
        log = self._queries
        return forgetting.Queries(
            count=log.count_about,
            remove=lambda ids, texts, emptied, _: log.forget_about(ids, texts, emptied),
        )

    @overload
    def reembed(
        self,
        embedder: Embedder | Callable[[Sequence[str]], Any],
        *,
        batch_size: int = ...,
        dry_run: Literal[True],
    ) -> ReembedPlan: ...

    @overload
    def reembed(
        self,
        embedder: Embedder | Callable[[Sequence[str]], Any],
        *,
        batch_size: int = ...,
        keep: bool = ...,
        index: IndexKind | str | None = ...,
        progress: ReembedProgress | None = ...,
        dry_run: Literal[False] = ...,
        reason: str = ...,
    ) -> ReembedResult: ...

    def reembed(
        self,
        embedder: Embedder | Callable[[Sequence[str]], Any],
        *,
        batch_size: int = 256,
        keep: bool = True,
        index: IndexKind | str | None = IndexKind.AUTO,
        progress: ReembedProgress | None = None,
        dry_run: bool = False,
        reason: str = "",
    ) -> ReembedPlan | ReembedResult:
        """Change the embedding model: embed every memory, in whatever state, and switch at once.

        The new vectors are made beside the old ones, a batch at a time; what is made stays, so a
        run that was interrupted goes on where it was. Then one version has the new vectors, their
        dimension and the name of the model. No memory changes: ids, revisions and counts stay.
        What others write meanwhile is embedded too. The vector index is built anew right after;
        until then searches are exact. It concerns this handle's branch alone.

        From then on this handle, like every other that is open, finds by words and writes nothing:
        open the store again with the new embedder. To go back, `reembed` with the former one,
        which takes over the vectors of the version that was kept.

        Args:
            embedder: the new one, or any callable of texts.
            batch_size: texts that it is given at once.
            keep: tag the last version with the former vectors (`before-reembed-v<number>`), so
                that clean-up leaves it; `untag` lets it go.
            index: as for `optimize`, where there was an index, or enough vectors are there.
            progress: called with (memories that have their new vector, memories in all).
            dry_run: only say what it would take; nothing is embedded.
            reason: shown by `log`.

        Raises:
            InvalidInputError: a batch size below 1, an unknown kind of index, or no embedder.
            StoreFormatError: the store is of an earlier schema.
            ConflictError: another process re-embeds the store, or writers were faster too often.
            EmbeddingError: the embedder failed; what it made until then is kept for the next run.
            StorageError: the disk is full, or a file is damaged.
        """
        self._whole_store("re-embedding")
        chosen = as_embedder(embedder)
        model = Model(
            name=chosen.name,
            dimension=chosen.dimension,
            embed=partial(embedded_by, chosen),
            batch_size=batch_size,
        )
        if dry_run:
            return plan_reembedding(self._table, model)
        kind = None if index is None else known_kind(index, argument="index")
        indexed = has_vector_index(self._table.latest())
        done = reembed(
            self._table,
            model,
            audit=lambda manifest: self._audit("reembed", reason, manifest=manifest),
            keep=keep,
            progress=progress,
        )
        return self._indexed(done, kind, from_rows=1 if indexed else FROM_ROWS)

    def _indexed(
        self, done: ReembedResult, kind: IndexKind | None, *, from_rows: int
    ) -> ReembedResult:
        """With the vector index over the new vectors, or with why there is none."""
        try:
            with upkeep.alone(self._table):
                built = ensure_index(self._table, kind=kind, from_rows=from_rows)
        except (StorageError, ConflictError) as error:
            return replace(done, index_refused=str(error))
        return replace(done, indices=tuple(built))


def _is_scope(chosen: Filter) -> bool:
    """Whether all of a scope is meant."""
    return chosen == Filter(scope=chosen.scope, states="any")
