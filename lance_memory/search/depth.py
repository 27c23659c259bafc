"""How deep the legs look for a page.

Pages of one question must be parts of one order. So what is reordered is a fixed head, and the
vector leg, whose approximate index gives other rows for another depth, is asked in few, wide steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_memory.search.query import Mode, Page
from lance_memory.search.question import Question
from lance_memory.search.ranking import Ranking

__all__ = ["CANDIDATES", "GROWTH", "first_depth"]

CANDIDATES = 100
"""From each leg as many are fused or reordered; recall on LoCoMo rises no more beyond."""

GROWTH = 4

_FIRST_PAGE, _SPARE = 10, 6
_FIRST_PAGES = 40
"""The index ranks 80 rows again by their true vectors for any depth that divides 80: 16 and 40."""


def first_depth(questions: Sequence[Question], page: Page, *, rows: int) -> int:
    """How deep each leg looks at first, in a table of so many rows."""
    end = max(1, min(page.reach, rows))
    modes = {question.query.mode for question in questions}
    if Mode.HYBRID in modes or _reorders(page.ranking) or page.successors_too:
        return _step(end, CANDIDATES)
    if modes == {Mode.TEXT}:
        return end
    return _FIRST_PAGE + _SPARE if end <= _FIRST_PAGE else _step(end, _FIRST_PAGES)


def _reorders(ranking: Ranking) -> bool:
    return ranking.factors or ranking.reranker is not None


def _step(end: int, step: int) -> int:
    while step < end:
        step *= GROWTH
    return step
