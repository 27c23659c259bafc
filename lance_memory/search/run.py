"""questions → legs → union → scores → collapse → page → hits, for one question or many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.errors import LanceMemoryError
from lance_memory.record.decay import Uses
from lance_memory.record.memory import Memory, Scope
from lance_memory.record.results import Hit, SearchResult
from lance_memory.record.rows import to_memories
from lance_memory.search.candidates import Addresses, Candidates, Frame, Leg, Union, union
from lance_memory.search.depth import CANDIDATES, GROWTH, first_depth
from lance_memory.search.legs import Vectors, legs
from lance_memory.search.names import Names
from lance_memory.search.query import Mode, Page, Query
from lance_memory.search.question import Question, understood
from lance_memory.search.rerank import Reranker, reranked, scaled
from lance_memory.search.scoring import Scored, Traits, scored
from lance_memory.search.traits import traits
from lance_memory.storage import Snapshot

__all__ = ["run"]

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


def run(
    snapshot: Snapshot,
    queries: Sequence[Query],
    page: Page,
    *,
    embed: Embed,
    names: Callable[[Scope], Names],
    moment: datetime,
    uses: Uses,
) -> list[SearchResult]:
    """The page of hits of each query; filters hold before ranking, so a page is always full.

    `uses` counts in `Ranking.decay` only.
    Where the embedder fails in hybrid mode, words alone answer, and `degraded` says so.
    """
    today = moment.astimezone(UTC).date()
    known = partial(names, page.filter.scope)
    questions = [understood(query, names=known, today=today) for query in queries]
    degraded: dict[str, str] = {}
    hits: list[tuple[Hit, ...]] = [()] * len(questions)
    if page.k and questions:
        vectors = _vectors(questions, embed, degraded)
        ranked = _ranked(snapshot, questions, vectors, page=page, moment=moment, uses=uses)
        hits = _hits(snapshot, ranked, page)
    return [
        SearchResult(
            version=snapshot.version,
            mode=question.query.mode,
            hits=found,
            understood=question.told(),
            degraded=degraded,
        )
        for question, found in zip(questions, hits, strict=True)
    ]


def _vectors(questions: Sequence[Question], embed: Embed, degraded: dict[str, str]) -> Vectors:
    """The vector of each question; those that are not given in one call of the embedder."""
    texts = [question.embed for question in questions if question.embed]
    try:
        made = iter(embed(texts) if texts else ())
    except LanceMemoryError as error:
        if any(question.query.mode == Mode.VECTOR for question in questions):
            raise
        degraded["vector"] = str(error)
        return [None] * len(questions)
    return [next(made) if question.embed else question.query.vector for question in questions]


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Candidates with their scores; `order` has their places, best first.

    `firm`: of how many candidates no deeper look would change the place; `complete`: there is none
    deeper.
    """

    question: Question
    found: Candidates
    scored: Scored
    order: NDArray[np.intp]
    firm: int
    complete: bool

    def reaches(self, end: int) -> bool:
        """Whether a deeper look would change nothing before the place `end`."""
        return self.complete or int(np.count_nonzero(self.order < self.firm)) >= end

    def addresses(self, places: slice) -> Addresses:
        """Of a part of the order."""
        return self.found.addresses[self.order[places]]

    def hits(self, memories: Sequence[Memory], places: slice) -> list[Hit]:
        """A part of the order, whose memories these are."""
        return [
            Hit(
                memory=memory,
                score=float(self.scored.scores[i]),
                similarity=_seen(self.found.cosines[i].clip(-1.0, 1.0)),  # rounding
                words=_seen(self.found.words[i]),
                parts=self.scored.of(i),
            )
            for memory, i in zip(memories, self.order[places], strict=True)
        ]


def _seen(score: np.float64) -> float | None:
    return None if np.isnan(score) else float(score)


def _ranked(
    snapshot: Snapshot,
    questions: Sequence[Question],
    vectors: Vectors,
    *,
    page: Page,
    moment: datetime,
    uses: Uses,
) -> list[_Ranked]:
    """Deeper and deeper into the legs, until each page is full or they have no more to give."""
    # Asking for what has not expired takes as long as the search: leave it out where nothing has.
    predicate = page.filter.predicate(snapshot.ranking_columns.latest_expiry(moment))
    rows = snapshot.count()
    look = partial(_round, snapshot, page=page, moment=moment, uses=uses, predicate=predicate)
    depth = first_depth(questions, page, rows=rows)
    waiting = list(range(len(questions)))
    done: dict[int, _Ranked] = {}
    while waiting:
        found = look([questions[i] for i in waiting], [vectors[i] for i in waiting], depth=depth)
        done |= dict(zip(waiting, found, strict=True))
        waiting = [i for i in waiting if not done[i].reaches(min(page.reach, rows))]
        if not waiting or depth >= snapshot.passing(predicate):
            break
        depth = min(depth * GROWTH, snapshot.passing(predicate))
    return [done[i] for i in range(len(questions))]


def _round(
    snapshot: Snapshot,
    questions: Sequence[Question],
    vectors: Vectors,
    *,
    page: Page,
    moment: datetime,
    uses: Uses,
    predicate: str | None,
    depth: int,
) -> list[_Ranked]:
    """Each question's candidates from this deep, ranked, without those whose successor is there."""
    pairs = legs(snapshot, questions, vectors, depth=depth, predicate=predicate)
    found = [union(near, said, first=CANDIDATES) for near, said in pairs]
    known = traits(snapshot, questions, found, page, uses=uses, moment=moment)
    order = partial(_ordered, page=page, moment=moment, depth=depth)
    ranked = list(map(order, questions, pairs, found, known))
    return _collapsed(snapshot, ranked) if page.successors_too else ranked


def _ordered(
    question: Question,
    pair: tuple[Leg, Leg],
    found: Union,
    known: Traits,
    *,
    page: Page,
    moment: datetime,
    depth: int,
) -> _Ranked:
    alone = question.query.mode != Mode.HYBRID
    result = scored(found, known, page.ranking, moment=moment, alone=alone)
    near, said = (len(leg.addresses) < depth for leg in pair)
    return _Ranked(
        question=question,
        found=found.whole,
        scored=result,
        order=np.argsort(-result.scores, kind="stable"),
        firm=len(found.whole.addresses) if near else found.by_vector,
        complete=near and said,
    )


def _collapsed(snapshot: Snapshot, ranked: Sequence[_Ranked]) -> list[_Ranked]:
    """Without what was superseded by another candidate of the same question."""
    frame = Frame(snapshot, [one.found.addresses for one in ranked], ["id", "superseded_by"])
    kept = []
    for one in ranked:
        rows = frame.rows(one.found.addresses)
        there = pc.is_in(rows["superseded_by"], rows["id"].combine_chunks(), skip_nulls=True)
        alone = ~there.to_numpy().astype(np.bool_)
        kept.append(replace(one, order=one.order[alone[one.order]]))
    return kept


def _hits(snapshot: Snapshot, ranked: Sequence[_Ranked], page: Page) -> list[tuple[Hit, ...]]:
    """The pages, with the payload of all of them read at once."""
    reranker = page.ranking.reranker
    start, end = page.offset, page.end
    if reranker is not None:  # it orders the first, and their page may be any part of these
        start, end = 0, page.reach
    read = slice(start, end)
    shown = np.unique(np.concatenate([one.addresses(read) for one in ranked]))
    memories = to_memories(snapshot.take(shown, snapshot.columns))
    hits = [
        one.hits([memories[i] for i in np.searchsorted(shown, one.addresses(read))], read)
        for one in ranked
    ]
    if reranker is not None:
        hits = [
            _reordered(reranker, one.question, found, page.ranking.rerank_depth)
            for one, found in zip(ranked, hits, strict=True)
        ]
    return [tuple(found[page.offset - start : page.end - start]) for found in hits]


def _reordered(
    reranker: Reranker, question: Question, hits: Sequence[Hit], depth: int
) -> list[Hit]:
    """The first `depth` hits by what the reranker says, and the others after them.

    Its best has score 1, its worst the score of the last hit that it was given.
    """
    looked, rest = hits[:depth], hits[depth:]
    if not looked:
        return []
    given = reranked(reranker, question.plain, looked)
    shares = scaled(given)
    least = looked[-1].score
    again = [
        replace(
            looked[i],
            score=float(least + (1.0 - least) * shares[i]),
            parts=replace(looked[i].parts, reranker=float(given[i])),
        )
        for i in np.argsort(-given, kind="stable")
    ]
    return [*again, *rest]
