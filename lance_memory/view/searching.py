"""Recall, what was asked and how often, and the index that answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lance_memory.errors import (
    EmbeddingError,
    InvalidInputError,
)
from lance_memory.index.health import IndexInfo, IndexRecall, inspect, measure_recall
from lance_memory.record.decay import Decay, Uses
from lance_memory.record.filters import Filter, Where
from lance_memory.record.results import (
    SearchResult,
)
from lance_memory.search import Mode, Page, Query, Ranking, run
from lance_memory.storage import (
    Snapshot,
)
from lance_memory.usage import Chosen, QueryWhere, RecordedQuery, Usage, measured
from lance_memory.view.handle import Handle

__all__ = ["Searching"]


class Searching(Handle):
    """A handle that is asked questions."""

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
    ) -> list[SearchResult]:
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

    def queries(
        self, *, limit: int | None = None, **where: Unpack[QueryWhere]
    ) -> list[RecordedQuery]:
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
    ) -> list[SearchResult]:
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

    def _run(self, snapshot: Snapshot, queries: Sequence[Query], page: Page) -> list[SearchResult]:
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
