"""What ranking needs of the fused candidates, read once for many questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.search.candidates import Candidates, Frame, Union
from lance_memory.search.places import Places, places
from lance_memory.search.query import Mode, Page
from lance_memory.search.question import Question
from lance_memory.search.scoring import Traits
from lance_memory.storage import Snapshot

__all__ = ["traits"]

_HAPPENED = ("event_at", "created_at")


def traits(
    snapshot: Snapshot,
    questions: Sequence[Question],
    found: Sequence[Union],
    page: Page,
) -> list[Traits]:
    """Of each question's candidates; in hybrid mode of those that are fused."""
    heads = [
        one.head if question.query.mode == Mode.HYBRID else one.whole
        for question, one in zip(questions, found, strict=True)
    ]
    frame = Frame(
        snapshot,
        [head.addresses for head in heads],
        {column for question in questions for column in _columns(question, page)},
    )
    rows = [frame.rows(head.addresses) for head in heads]
    spoken = [
        (question.query.mode == Mode.HYBRID and page.ranking.neighbours > 0)
        for question in questions
    ]
    around = places(snapshot, _shared(rows, spoken), scope=page.filter.scope)
    return [
        _of(question, head, table, page, around if near else None)
        for question, head, table, near in zip(questions, heads, rows, spoken, strict=True)
    ]


def _columns(question: Question, page: Page) -> list[str]:
    ranking, hybrid = page.ranking, question.query.mode == Mode.HYBRID
    columns: list[str] = []
    if hybrid and ranking.neighbours > 0:
        columns.append("session")
    if hybrid and question.mentions.single and ranking.actor_bonus:
        columns.append("actor")
    if (hybrid and question.periods and ranking.period_bonus) or ranking.recency is not None:
        columns += _HAPPENED
    if ranking.importance:
        columns.append("importance")
    return columns


def _shared(rows: Sequence[pa.Table], spoken: Sequence[bool]) -> list[str]:
    """The names of the sessions that two candidates of a question share."""
    names: set[str] = set()
    for table, near in zip(rows, spoken, strict=True):
        if near and len(table):
            counts = pc.value_counts(table["session"])
            several = counts.filter(pc.greater(counts.field("counts"), 1))
            names.update(several.field("values").to_pylist())
    return sorted(names - {""})


def _of(
    question: Question, head: Candidates, rows: pa.Table, page: Page, around: Places | None
) -> Traits:
    hybrid = question.query.mode == Mode.HYBRID
    held = set(rows.column_names)
    happened = _happened(rows) if held.issuperset(_HAPPENED) else None
    sessions, positions = (None, None) if around is None else around.of(head.addresses)
    actor = None
    if hybrid and question.mentions.single and "actor" in held:
        actor = _is_one_of(rows["actor"], question.mentions.single)
    period = None
    if hybrid and question.periods and happened is not None:
        period = np.any([p.covers(happened) for p in question.periods], axis=0)
    return Traits(
        sessions=sessions,
        positions=positions,
        actor=actor,
        period=period,
        happened=happened if page.ranking.recency is not None else None,
        importance=rows["importance"].to_numpy().astype(np.float64)
        if page.ranking.importance
        else None,
    )


def _happened(rows: pa.Table) -> NDArray[np.datetime64]:
    stamps = pc.coalesce(*(rows[name] for name in _HAPPENED)).cast(pa.int64())
    happened: NDArray[np.datetime64] = stamps.to_numpy().astype("datetime64[us]")
    return happened


def _is_one_of(column: pa.ChunkedArray, values: frozenset[str]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.is_in(column, pa.array(sorted(values), pa.string())).to_numpy()
    return found
