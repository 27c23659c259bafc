"""The memories nearest to a question, of each owner by itself."""

from __future__ import annotations

import pyarrow as pa

from lance_memory.agent.distill.group import NARROW, OWNER
from lance_memory.agent.distill.looked import Sight
from lance_memory.record.filters import FIRST_HAND, Filter, all_of, equals, is_one_of, visible
from lance_memory.record.memory import Kind
from lance_memory.search import Mode, Page, Query

__all__ = ["near"]


def near(sight: Sight, question: str, *, k: int) -> pa.Table:
    """The `k` memories of each tenant, user and agent that are nearest, as `NARROW` rows.

    Others' nearer memories and snapshots take no place among them. It is one search for each owner
    that the handle sees, and no query of the agent's: none is recorded.

    Raises:
        InvalidInputError: a blank question.
    """
    view, snapshot = sight.view, sight.view._snapshot()
    asked = Query.of(question, vector=None, mode=Mode.HYBRID, dimension=snapshot.dimension)
    ids: list[str] = []
    for owner in _owners(sight):
        blank = all_of(*(equals(level, "") for level in OWNER if not owner[level]))
        chosen = Filter(
            scope=view.scope.narrowed(**{level: name for level, name in owner.items() if name}),
            kinds=tuple(map(Kind, sight.kinds)),
            also=all_of(FIRST_HAND, blank),
        )
        page = Page.of(k=k, offset=0, where=chosen, ranking=None)
        (result,) = view._run(snapshot, [asked], page)
        ids += [hit.memory.id for hit in result.hits]
    return snapshot.by_ids(ids, columns=NARROW)


def _owners(sight: Sight) -> list[dict[str, str]]:
    """Tenant, user and agent of each owner of memories."""
    mine = all_of(is_one_of("kind", sight.kinds), visible(sight.now), FIRST_HAND)
    found = sight.scan(mine, columns=OWNER).group_by(list(OWNER)).aggregate([])
    owners: list[dict[str, str]] = found.sort_by(
        [(level, "ascending") for level in OWNER]
    ).to_pylist()
    return owners
