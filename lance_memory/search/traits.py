"""What ranking needs of the candidates beside their legs, for many questions at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from lance_memory.record.decay import Decay, Uses, evergreen, seconds_since, strengths
from lance_memory.search.candidates import Addresses, Frame, Union
from lance_memory.search.fusion import Floats
from lance_memory.search.places import Places, places
from lance_memory.search.query import Mode, Page
from lance_memory.search.question import Question
from lance_memory.search.ranking import Ranking
from lance_memory.search.scoring import Traits
from lance_memory.search.standing import Standing, standing
from lance_memory.storage import RankingColumns, Snapshot

__all__ = ["traits"]


def traits(
    snapshot: Snapshot,
    questions: Sequence[Question],
    found: Sequence[Union],
    page: Page,
    *,
    uses: Uses,
    moment: datetime,
) -> list[Traits]:
    """Of each question's candidates; in hybrid mode of those that are fused."""
    if not any(_asks(question, page.ranking) for question in questions):
        return [Traits()] * len(questions)
    columns = snapshot.ranking_columns
    rows = [
        one.head.addresses if question.query.mode == Mode.HYBRID else one.whole.addresses
        for question, one in zip(questions, found, strict=True)
    ]
    stood = standing(snapshot, columns, rows)
    sessions = [columns.sessions(one.rows) for one in stood]
    around = places(columns, _shared(sessions)) if page.ranking.neighbours else None
    known = [
        _of(columns, *one, around=around, ranking=page.ranking)
        for one in zip(questions, rows, stood, sessions, strict=True)
    ]
    if page.ranking.decay is None:
        return known
    heads = [one.head.addresses for one in found]
    strong = _strengths(snapshot, heads, page.ranking.decay, uses=uses, moment=moment)
    return [replace(one, strength=strength) for one, strength in zip(known, strong, strict=True)]


def _asks(question: Question, ranking: Ranking) -> bool:
    """Whether its ranking looks at anything but the legs."""
    return ranking.factors or question.query.mode == Mode.HYBRID


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
    stood: Standing,
    sessions: NDArray[np.uint64],
    *,
    around: Places | None,
    ranking: Ranking,
) -> Traits:
    hybrid = question.query.mode == Mode.HYBRID
    named = question.mentions.single if hybrid and ranking.actor_bonus else frozenset()
    dated = question.periods if hybrid and ranking.period_bonus else ()
    period = None
    if dated:
        happened = columns.happened(stood.rows)
        period = stood.any(np.any([one.covers(happened) for one in dated], axis=0))
    return Traits(
        sessions=sessions if hybrid and around is not None else None,
        positions=around.of(stood.rows) if hybrid and around is not None else None,
        owners=stood.owners,
        actor=columns.said_by(rows, named) if named else None,
        period=period,
        happened=columns.happened(rows) if ranking.recency is not None else None,
        importance=columns.importance(rows) if ranking.importance else None,
    )


def _strengths(
    snapshot: Snapshot,
    heads: Sequence[Addresses],
    decay: Decay,
    *,
    uses: Uses,
    moment: datetime,
) -> list[Floats]:
    """How strong each head's rows are. Where nothing was recalled, no ids need to be read."""
    columns = snapshot.ranking_columns
    fixed = snapshot.addresses(evergreen(decay))
    frame = Frame(snapshot, heads, ["id"] if uses else [])
    found = []
    for addresses in heads:
        ids = frame.rows(addresses)["id"].to_pylist() if uses else [""] * len(addresses)
        recalls, last = uses.of(ids)
        found.append(
            strengths(
                columns.importance(addresses),
                seconds_since(columns.happened(addresses), moment),
                decay,
                recalls=recalls,
                idle=seconds_since(last, moment),
                evergreen=np.isin(addresses, fixed),
            )
        )
    return found
