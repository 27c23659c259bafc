"""What ranking needs of the candidates beside their legs, for many questions at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lance_memory.search.candidates import Addresses, Union
from lance_memory.search.places import Places, places
from lance_memory.search.query import Mode, Page
from lance_memory.search.question import Question
from lance_memory.search.ranking import Ranking
from lance_memory.search.scoring import Traits
from lance_memory.storage import RankingColumns, Snapshot

__all__ = ["traits"]


def traits(
    snapshot: Snapshot, questions: Sequence[Question], found: Sequence[Union], page: Page
) -> list[Traits]:
    """Of each question's candidates; in hybrid mode of those that are fused."""
    if not any(_asks(question, page.ranking) for question in questions):
        return [Traits()] * len(questions)
    columns = snapshot.ranking_columns
    rows = [
        one.head.addresses if question.query.mode == Mode.HYBRID else one.whole.addresses
        for question, one in zip(questions, found, strict=True)
    ]
    sessions = [columns.sessions(one) for one in rows]
    around = places(columns, _shared(sessions)) if page.ranking.neighbours else None
    return [
        _of(columns, *one, around=around, ranking=page.ranking)
        for one in zip(questions, rows, sessions, strict=True)
    ]


def _asks(question: Question, ranking: Ranking) -> bool:
    """Whether its ranking looks at anything but the legs."""
    factors = ranking.recency is not None or ranking.importance > 0
    return factors or question.query.mode == Mode.HYBRID


def _shared(sessions: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """The sessions that two candidates of one question share."""
    shared = [np.empty(0, dtype=np.uint64)]
    for one in sessions:
        numbers, counts = np.unique(one[one > 0], return_counts=True)
        shared.append(numbers[counts > 1])
    return np.unique(np.concatenate(shared))


def _of(
    columns: RankingColumns,
    question: Question,
    rows: Addresses,
    sessions: NDArray[np.uint64],
    *,
    around: Places | None,
    ranking: Ranking,
) -> Traits:
    hybrid = question.query.mode == Mode.HYBRID
    named = question.mentions.single if hybrid and ranking.actor_bonus else frozenset()
    dated = question.periods if hybrid and ranking.period_bonus else ()
    happened = columns.happened(rows) if dated or ranking.recency is not None else None
    period = None
    if dated and happened is not None:
        period = np.any([one.covers(happened) for one in dated], axis=0)
    return Traits(
        sessions=sessions if hybrid and around is not None else None,
        positions=around.of(rows) if hybrid and around is not None else None,
        actor=columns.said_by(rows, named) if named else None,
        period=period,
        happened=happened if ranking.recency is not None else None,
        importance=columns.importance(rows) if ranking.importance else None,
    )
