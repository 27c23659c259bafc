"""MemoryView: every read, at one version and within one scope."""

from __future__ import annotations

import builtins
import copy
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from lance_memory.curate.export import ExportManifest, ExportOptions, Source, export
from lance_memory.curate.transform.execute import Execution
from lance_memory.curate.transform.protocol import Transform
from lance_memory.embed import Embedder, checked
from lance_memory.errors import (
    EmbeddingError,
    InvalidInputError,
    LanceMemoryError,
    NotFoundError,
    ScopeError,
    StorageError,
)
from lance_memory.index.health import IndexInfo, IndexRecall, inspect, measure_recall
from lance_memory.move import ArchiveManifest, ArchiveSource, export_archive
from lance_memory.record import filters, lineage
from lance_memory.record.arguments import several, whole
from lance_memory.record.compare import COLUMNS, differing
from lance_memory.record.decay import Decay, Uses
from lance_memory.record.filters import Filter, Where
from lance_memory.record.memory import SCOPE_LEVELS, Memory, Scope
from lance_memory.record.query import check_select
from lance_memory.record.results import (
    Change,
    Diff,
    Lineage,
    LineageNode,
    MemoryChange,
    Neighbour,
    Related,
    SearchResult,
    Stats,
)
from lance_memory.record.rows import EMBEDDING, embeddings, to_memories, valid_vectors
from lance_memory.record.times import Clock, utc
from lance_memory.record.values import text_value
from lance_memory.search import KnownActors, Mode, Page, Query, Ranking, around, run
from lance_memory.storage import (
    Branch,
    Comparison,
    Damage,
    LogEntry,
    Snapshot,
    Table,
    changes_of,
    history,
    indices,
    naming,
    row_named,
)
from lance_memory.usage import Chosen, QueryLog, QueryWhere, RecordedQuery, Usage, measured
from lance_memory.wording import counted

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MemoryView", "embedded_by"]

_VALUES = re.compile(r"(?s)(?<= values): \[.*\]")  # that could not be converted
_LONGEST_NUMBER = 20  # digits of a version; the engine's numbers have 64 bits


class MemoryView:
    """The memories as of one version. It has no method that writes.

    Every read verb takes the keywords of `Where`. What is *visible* is decided at the moment
    that the view is about: its version's time, or the very moment that `at` was asked for.
    """

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

    # -- what this is ---------------------------------------------------------------------

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

    # -- memories -------------------------------------------------------------------------

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
    ) -> SearchResult:
        """Recall by meaning, words, or both; visible memories unless `states` says otherwise.

        Args:
            query: the question, as asked. Nothing in it is an operator.
            vector: d numbers to use for the vector leg in place of the query's embedding.
            k: at most as many hits; 0 gives none.
            offset: hits to skip, for paging.
            mode: "hybrid" takes the union of both legs, "vector" and "text" one leg alone.
            ranking: how candidates become an order; see `Ranking`.
            where: see `Where`.

        Pages of one question at one version are parts of one order. Only over an approximate
        vector index may a page repeat or skip what another had: in mode "vector" where one ends
        within 10, 40, 160, 640, ... hits and the other beyond, else beyond 100, 400, 1600, ...

        Raises:
            InvalidInputError: a blank query, a wrong vector, a negative k, an unknown mode.
            EmbeddingError: the embedder failed, or the vectors of this version are from another
                model than it, in mode "vector" (in "hybrid" words answer alone, and `degraded`
                says so).
        """
        snapshot = self._snapshot()
        asked = Query.of(query, vector=vector, mode=mode, dimension=snapshot.dimension)
        return self._asked(snapshot, [asked], k, offset, ranking, where=where)[0]

    def search_many(
        self,
        queries: Iterable[str] | None = None,
        *,
        vectors: ArrayLike | None = None,
        k: int = 10,
        offset: int = 0,
        mode: Mode | str = Mode.HYBRID,
        ranking: Ranking | None = None,
        **where: Unpack[Where],
    ) -> builtins.list[SearchResult]:
        """Answer many questions at one version; several times the throughput of one by one.

        Many vectors at once are compared with every row where that is faster than the index: so
        the answers may be better than those of one by one over an approximate index, never worse.

        Args:
            queries: the questions.
            vectors: [n, d] numbers, in place of the questions' embeddings or of the questions.
            k: at most as many hits for each; 0 gives none.
            offset: hits to skip.
            mode: as for `search`.
            ranking: as for `search`.
            where: see `Where`; one filter for all.

        Returns:
            One result for each question, in order.

        Raises:
            InvalidInputError, EmbeddingError: as for `search`.
        """
        snapshot = self._snapshot()
        asked = Query.many(queries, vectors=vectors, mode=mode, dimension=snapshot.dimension)
        return self._asked(snapshot, asked, k, offset, ranking, where=where)

    # -- tables ---------------------------------------------------------------------------

    def to_arrow(self, *, columns: Sequence[str] | None = None, **where: Unpack[Where]) -> pa.Table:
        """The rows of this scope as Arrow, embeddings included; every state unless asked.

        Raises:
            InvalidInputError: no such column, or a filter makes no sense.
        """
        where.setdefault("states", "any")
        snapshot = self._snapshot()
        unknown = sorted(set(columns or ()) - set(snapshot.schema.names))
        if unknown:
            raise InvalidInputError(
                f"no column {', '.join(unknown)}; there are: {', '.join(snapshot.schema.names)}"
            )
        return snapshot.scan(
            self._predicate(where), columns=snapshot.schema.names if columns is None else columns
        )

    def to_polars(self) -> pl.LazyFrame:
        """The rows of this scope, every state, as a lazy Polars frame over the table's files.

        It reads them when it is collected, and nothing keeps the version until then: after a while
        upkeep may have removed it, and Polars says that a file is not there. Collect it soon, or
        make it of a version with a tag: `store.at("a-tag").to_polars()`.
        """
        import polars as pl  # slow to import, and most callers never need it

        frame = pl.scan_pyarrow_dataset(self._snapshot().dataset)
        for name, value in self._scope.given().items():
            frame = frame.filter(pl.col(name) == value)
        return frame.with_columns(pl.col("metadata").ext.storage())

    def sql(self, query: str) -> pl.DataFrame:
        """A SELECT over the table `memories`: the rows of this scope, every state, nothing else.

        Raises:
            InvalidInputError: the query is not valid, or names something else.
        """
        import polars as pl

        check_select(query)
        try:
            return pl.SQLContext(memories=self.to_polars()).execute(query, eager=True)
        except (pl.exceptions.PolarsError, TypeError) as error:
            told = _VALUES.sub("", str(error))  # and no cause: it has what memories say
            raise InvalidInputError(f"the query failed: {told}") from None

    def lancedb_table(self) -> Any:
        """The same table as a `lancedb.table.LanceTable`: query builder, hybrid search, rerankers.

        Of a store it follows the newest version, of a view it stays at that version. Read it as
        you like; write through the store, which alone keeps the rules and the record of writes.
        (LanceDB's lazy `to_polars()` cannot read the JSON column `metadata`: the store's can.)

        Raises:
            ScopeError: the handle is scoped, and the table holds every scope.
        """
        if self._scope:
            raise ScopeError(
                f"a LanceDB table holds every scope, and this handle is scoped to {self._scope}; "
                "use the store's own handle"
            )
        return self._table.lancedb(version=self._pinned.version if self._pinned else None)

    def export(
        self,
        path: str | os.PathLike[str],
        options: ExportOptions | None = None,
        *,
        transform: Transform | None = None,
        execution: Execution | None = None,
        dry_run: bool = False,
        **where: Unpack[Where],
    ) -> ExportManifest:
        """Write training data: examples made of the memories that pass, and a manifest of them.

        Of a version or tag (`at`) it is the same bytes whenever and wherever it is made, given the
        same parameters, a transform that is a function of its cluster, and, for Parquet, the same
        release of pyarrow. The live store decides what has expired now; the manifest's `at` names
        that moment, and `at(that moment)` makes the same export again.

        Args:
            path: a directory, which gets train.jsonl, with a split validation.jsonl, and
                manifest.json; or a file, x.jsonl or x.parquet, which gets its manifest beside it
                (x.jsonl.manifest.json).
            options: how memories become examples; see `ExportOptions`.
            transform: makes one text of each set of near-duplicates, for format "plain"; by
                default, and where it fails, the best of them stays as it is.
            execution: how the transform is called.
            dry_run: write nothing; the manifest is the same.
            where: see `Where`. `min_quality` is asked of the examples: of a conversation's lowest
                rated turn, of a pair's chosen answer.

        Raises:
            InvalidInputError: an option makes no sense, or something is at `path` already.
            EmbeddingError: an evaluation text could not be embedded.
            StorageError: the files cannot be written. Nothing is left of them.
        """
        snapshot = self._snapshot()
        source = Source(
            snapshot=snapshot,
            filter=Filter.of(where, within=self._scope),
            moment=self._moment(),
            branch=self.branch_name,
            embedding_model=snapshot.format.embedding_model,
            embed=self._embed,
        )
        with naming.holding(self._table, snapshot.version):
            return export(
                source,
                path,
                ExportOptions() if options is None else options,
                transform=transform,
                execution=Execution() if execution is None else execution,
                dry_run=dry_run,
            )

    def export_store(
        self, path: str | os.PathLike[str], *, dry_run: bool = False, **where: Unpack[Where]
    ) -> ArchiveManifest:
        """Write an archive: every column of every memory, for `MemoryStore.import_store`.

        Of a version or tag (`at`) it is the same bytes again, where `where` asks nothing about the
        present moment. The version is kept from clean-up while it is read.

        Args:
            path: a new directory, which gets Parquet files and manifest.json; or a file x.zip, the
                same as one file. For its owner alone (0700, 0600).
            dry_run: write nothing; the manifest has the counts and no files.
            where: see `Where`; every state unless asked. Related memories that do not pass are not
                in the archive, and relationships to them stay.

        Raises:
            InvalidInputError: something is at `path` already, that ends like a file of another
                kind, or a filter makes no sense.
            StorageError: the archive cannot be written. Nothing is left of it.
        """
        where.setdefault("states", "any")
        source = self._archive_source(Filter.of(where, within=self._scope))
        return export_archive(source, path, dry_run=dry_run)

    # -- versions -------------------------------------------------------------------------

    def at(self, when: int | str | datetime) -> MemoryView:
        """The memories as they were: at a version, at a tag, or at a moment.

        Raises:
            NotFoundError: there is no such version or tag, or nothing is that old.
            InvalidInputError: a time without a zone.
        """
        if isinstance(when, datetime):
            moment = utc(when, "at")
            pinned = self._snapshot(moment)
        else:
            pinned = self._snapshot(self._resolve(when))
            moment = history.entry(self._table, pinned.version).at
        return MemoryView(
            self._table,
            embedder=self._embedder,
            clock=self._clock,
            scope=self._scope,
            pinned=pinned,
            moment=moment,
            actors=self._actors,
            queries=self._queries.reading(),
        )

    def log(self, *, limit: int | None = None, upkeep: bool = False) -> builtins.list[LogEntry]:
        """What was done, newest first, up to this view's version.

        Args:
            limit: at most as many entries.
            upkeep: also the versions that changed no memory.

        Through a scoped handle only the writes that touched the scope are listed, and one that
        touched others too shows neither its reason nor its manifest.
        """
        if limit is not None and limit < 0:
            raise InvalidInputError(f"limit={limit}; it cannot be negative")
        newest = self._snapshot().version
        found: builtins.list[LogEntry] = []
        for entry in history.entries(self._table):
            if limit is not None and len(found) >= limit:
                break
            shown = self._shown(entry)
            if entry.version <= newest and shown and (upkeep or not entry.upkeep):
                found.append(shown)
        return found

    def changed_since(self, version: int, *, look: int = 8) -> bool:
        """Whether a later version wrote within this scope, or may have: for who remembers a read.

        The log of the versions in between tells whose memories they changed. Where it does not, or
        there are more than `look` of them, the answer is yes. It reads a small file for each.

        Args:
            version: the one that was read.
            look: versions to look at, at most.
        """
        newest = self._snapshot().version
        if not 0 <= newest - version <= look:
            return True
        return any(map(self._may_concern, range(version + 1, newest + 1)))

    def diff(self, before: int | str | datetime, after: int | str | datetime | None = None) -> Diff:
        """What stands differently at `after` (default: here) than at `before`.

        Both name a version, a tag or a moment, and may be in either order.
        """
        old, new = self._snapshot(before), self._snapshot(after)
        return self._diff(old, new, history.compare(old, new, self._boundary()))

    def history(self, ref: str, *, depth: int = 10) -> builtins.list[MemoryChange]:
        """Every change of a memory, and of what it replaced and was replaced by, oldest first.

        Of many versions few are read; see `row_changes` for what is not seen. Of what was cleaned
        up `lost` says how many revisions there were.

        Args:
            ref: as for `get`.
            depth: generations at most in each direction.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            InvalidInputError: `depth` is not within 1..100.
        """
        found = self.lineage(ref, depth=depth)
        related = {found.memory.id, *_ids_of(found.successors), *_ids_of(found.sources)}
        return changes_of(self._table, related, until=self._snapshot().version, within=self._scope)

    def tags(self) -> dict[str, int]:
        """Tag → version.

        Raises:
            ScopeError: this handle is kept to a scope; `at` takes a tag that it was told all the
                same.
        """
        self._whole_store("the list of tags")
        return naming.tags(self._table)

    def branches(self) -> builtins.list[Branch]:
        """All branches but main.

        Raises:
            ScopeError: this handle is kept to a scope.
        """
        self._whole_store("the list of branches")
        return naming.branches(self._table)

    def stats(self) -> Stats:
        """The store in numbers: memories at this version and within this scope.

        Versions, fragments, bytes and rows without an index are the whole store's, and of now. So
        are tags and branches, which are named to the store's own handle alone: they are its owner's
        words, and may be about anybody.
        """
        snapshot, moment = self._snapshot(), self._moment()
        columns = ["state", "kind", "user", "session"]
        rows = snapshot.scan(self._boundary(), columns=columns)
        missing = filters.all_of(self._boundary(), filters.missing(EMBEDDING))
        return Stats(
            uri=self.uri,
            version=snapshot.version,
            at=moment,
            scope=self._scope,
            rows=len(rows),
            visible=snapshot.count(Filter(scope=self._scope).predicate(moment)),
            by_state=_counts(rows, "state"),
            by_kind=_counts(rows, "kind"),
            users=len(set(rows["user"].to_pylist()) - {""}),
            sessions=len(set(rows["session"].to_pylist()) - {""}),
            without_embedding=snapshot.count(missing),
            embedding_model=snapshot.format.embedding_model,
            dimension=snapshot.format.dimension,
            versions=len(history.versions(self._table)),
            tags={} if self._scope else self.tags(),
            branches=() if self._scope else tuple(branch.name for branch in self.branches()),
            fragments=len(snapshot.fragment_ids),
            bytes=self._table.place.size(),
            unindexed_rows=indices.unindexed_rows(snapshot),
        )

    # -- use ------------------------------------------------------------------------------

    def queries(
        self, *, limit: int | None = None, **where: Unpack[QueryWhere]
    ) -> builtins.list[RecordedQuery]:
        """The recorded queries that were kept to this scope, newest first; see `record_queries`.

        They are the whole store's, of every branch; a view has those before its moment. What other
        processes have not written yet is not among them.

        Args:
            limit: at most as many.
            where: see `QueryWhere`.

        Raises:
            InvalidInputError: `limit` is negative, or a filter makes no sense.
        """
        if limit is not None and limit < 0:
            raise InvalidInputError(f"limit={limit}; it cannot be negative")
        chosen = Chosen.of(where, within=self._scope, until=self._fixed_moment)
        self._queries.flush()
        return self._queries.queries(chosen, limit=limit)

    def usage(self, **where: Unpack[Where]) -> Usage:
        """How often each memory answered a recorded query, and how often queries found something.

        Args:
            where: which memories to list, see `Where`; visible ones by default. The hit rate is
                about the queries that were kept to the same scope; every query that this handle
                may see counts as a recall.

        Raises:
            InvalidInputError: a filter makes no sense.
        """
        chosen = Filter.of(where, within=self._scope)
        self._queries.flush()
        return measured(
            self._snapshot(),
            chosen.predicate(self._moment()),
            self._queries.rows(self._scope, until=self._fixed_moment),
            scope=chosen.scope,
            recording=self._queries.recording.status,
        )

    # -- the vector index -----------------------------------------------------------------

    def index(self) -> IndexInfo | None:
        """The vector index of this version and what should be done about it.

        It is the whole store's, whatever the scope. None: vectors are searched exactly.
        """
        return inspect(self._snapshot())

    def index_recall(self, *, k: int = 10, sample: int = 200, seed: int = 0) -> IndexRecall:
        """How many of the true nearest a vector search finds, against an exact scan.

        Stored vectors of this scope are the queries, and each looks for its `k` nearest others
        within the scope, in whatever state. Reads every vector of the scope twice.

        Args:
            k: neighbours of each query.
            sample: queries.
            seed: of the choice of queries.

        Raises:
            InvalidInputError: `k` or `sample` is below 1.
        """
        return measure_recall(
            self._snapshot(), k=k, sample=sample, seed=seed, predicate=self._boundary()
        )

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

    def _archive_source(self, chosen: Filter) -> ArchiveSource:
        return ArchiveSource(
            table=self._table,
            snapshot=self._snapshot(),
            filter=chosen,
            moment=self._moment(),
        )

    def _boundary(self) -> str | None:
        """The predicate of the scope alone: every state."""
        return Filter(scope=self._scope, states="any").predicate(self._moment())

    def _embed(self, texts: Sequence[str], *, queries: bool = False) -> NDArray[np.float32]:
        return embedded_by(self._embedder, texts, queries=queries)

    def _embed_for(self, snapshot: Snapshot, texts: Sequence[str]) -> NDArray[np.float32]:
        """What questions are searched with at a version; its vectors must be of the same model."""
        of, mine = snapshot.format, self._embedder
        if (of.embedding_model, of.dimension) != (mine.name, mine.dimension):
            raise EmbeddingError(
                f"the vectors of version {snapshot.version} are from the model "
                f"{of.embedding_model!r} ({of.dimension} numbers), and the embedder here is "
                f"{mine.name!r} ({mine.dimension}): search by words, or by a vector of that model; "
                "a store whose model was changed since it was opened is to be opened again"
            )
        return self._embed(texts, queries=True)

    def _asked(
        self,
        snapshot: Snapshot,
        queries: Sequence[Query],
        k: int,
        offset: int,
        ranking: Ranking | None,
        *,
        where: Where,
    ) -> builtins.list[SearchResult]:
        chosen = Filter.of(where, within=self._scope)
        page = Page.of(k=k, offset=offset, where=chosen, ranking=ranking)
        results = self._run(snapshot, queries, page)
        if self._queries.records:
            self._queries.record(
                results,
                texts=[query.text for query in queries],
                scope=chosen.scope,
                branch=self.branch_name,
                at=self._moment(),
                k=page.k,
                offset=page.offset,
            )
        return results

    def _run(
        self, snapshot: Snapshot, queries: Sequence[Query], page: Page
    ) -> builtins.list[SearchResult]:
        return run(
            snapshot,
            queries,
            page,
            embed=partial(self._embed_for, snapshot),
            names=lambda scope: self._actors.names(snapshot, scope),
            moment=self._moment(),
            uses=self._uses(page.ranking.decay),
        )

    def _uses(self, decay: Decay | None) -> Uses:
        """How often each memory was recalled, as far as decay asks and this handle may see."""
        if decay is None or not decay.use:
            return Uses()
        return self._queries.uses(self._scope, until=self._fixed_moment)

    def _ordered_ids(self, snapshot: Snapshot, predicate: str | None) -> builtins.list[str]:
        rows = snapshot.scan(predicate, columns=["id", "event_at", "created_at"])
        happened = pc.coalesce(rows["event_at"], rows["created_at"])
        keyed = rows.append_column("at", happened)
        ordered = keyed.sort_by(
            [("at", "ascending"), ("created_at", "ascending"), ("id", "ascending")]
        )
        return [str(identifier) for identifier in ordered["id"].to_pylist()]

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

    def _may_concern(self, version: int) -> bool:
        try:
            entry = history.entry(self._table, version)
        except LanceMemoryError:  # cleaned up, or damaged
            return True
        if entry.upkeep and entry.operation in history.PHYSICAL:
            return False
        return not entry.scopes or any(map(self._scope.holds, entry.scopes))

    def _whole_store(self, action: str) -> None:
        """Refuse what concerns the whole store on a scoped handle."""
        if self._scope:
            raise ScopeError(
                f"{action} concerns the whole store, and this handle is scoped to {self._scope}; "
                "use the store's own handle"
            )

    def _shown(self, entry: LogEntry) -> LogEntry | None:
        if not self._scope or entry.upkeep:
            return entry
        if entry.scopes is not None and not any(map(self._scope.holds, entry.scopes)):
            return None
        if entry.scopes is not None and all(map(self._scope.holds, entry.scopes)):
            return entry
        return replace(entry, reason="", manifest=None, scopes=(), inserted=0, updated=0, deleted=0)

    def _diff(self, old: Snapshot, new: Snapshot, found: Comparison) -> Diff:
        before, after = (
            {m.id: m for m in to_memories(side.by_ids(ids, columns=side.schema.names))}
            for side, ids in (
                (old, [*found.updated, *found.removed]),
                (new, [*found.updated, *found.inserted]),
            )
        )
        return Diff(
            before=old.version,
            after=new.version,
            inserted=tuple(after[i] for i in found.inserted),
            updated=tuple(_change(before[i], after[i]) for i in found.updated),
            removed=tuple(before[i] for i in found.removed),
        )


def embedded_by(
    embedder: Embedder, texts: Sequence[str], *, queries: bool = False
) -> NDArray[np.float32]:
    """The vectors of texts, verified; see `checked`.

    Raises:
        EmbeddingError: the embedder failed, in whatever way.
    """
    try:
        return checked(embedder, texts, queries=queries)
    except LanceMemoryError:
        raise
    except Exception as error:  # an embedder is the user's code: it may raise anything
        raise EmbeddingError(
            f"the embedder {embedder.name!r} failed on {counted(len(texts), 'text')}: {error}"
        ) from error


def _checked_ids(ids: Collection[str]) -> builtins.list[str]:
    return [text_value("ids", one) for one in several("ids", ids)]


def _ids_of(nodes: Iterable[LineageNode]) -> Iterator[str]:
    for node in nodes:
        yield node.memory.id
        yield from _ids_of(node.nodes)


def _counts(rows: pa.Table, column: str) -> dict[str, int]:
    pairs = rows[column].value_counts().to_pylist()
    return {pair["values"]: pair["counts"] for pair in sorted(pairs, key=lambda p: p["values"])}


def _change(before: Memory, after: Memory) -> Change:
    told = [name for name in COLUMNS if name not in ("revision", "updated_at")]
    return Change(before=before, after=after, columns=differing(before, after, told))
