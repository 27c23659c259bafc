"""How deep a vector search looks into the index. Pure numbers, from measurements (design/009)."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["EXACT_ROWS", "Depth", "depth", "exact_rows"]

EXACT_ROWS = 2_000
"""Up to as many rows that pass, every one of their vectors is compared: exact, and as fast."""

_EXACT_SHARE = 50
_MOST_EXACT_ROWS = 10_000
_MOST_EXACT_BYTES = 16 * 2**20
"""In a large table the index is slow under a filter that keeps little, as it reads every code. Of
1M x 384 with 10,000 rows that pass it takes 45 ms, and comparing them 8 (185 the first time). The
bound in bytes is half of what is kept in memory between searches, so that one filter, and another
one of its size, are not read each time."""

_PROBES = 32
"""Partitions that are read where every row passes."""

_RANKED_AGAIN = 80
"""Of the quantised neighbours as many are ranked again by their true vectors, and never fewer
than two for each row asked for. 100k x 384: recall@10 1.0 with codes of 3 bits, 0.98 with PQ."""

_GROWTH = 1.5
"""How the number grows as fewer rows pass. The hardest case seen: the half of the rows that lies
nearest to the questions is hidden, and of what is left the 10th has cosine .420, the 120th .387.
Ranked again 80 / 160 / 240: recall@10 .93 / .98 / .99, at 100k x 384 with codes of 3 bits."""

_MOST_RANKED_AGAIN = 320
"""Each true vector takes 8 us to read."""

_MOST_PROBES = 1_000_000
"""More than any index has partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """Partitions to read at least, and how many times k rows to rank again."""

    probes: int
    refine: int


def exact_rows(rows: int, dimension: int) -> int:
    """Up to how many rows that pass, of so many, each one is compared.

    Nothing but the table decides: what is found must not change with what was searched before.
    """
    bound = min(_MOST_EXACT_ROWS, _MOST_EXACT_BYTES // (4 * dimension))
    return max(EXACT_ROWS, min(rows // _EXACT_SHARE, bound))


def depth(k: int, *, share: float) -> Depth:
    """The depth for k rows, where a `share` of all rows passes the filter.

    Where few pass, the right ones lie in more partitions and further from the query: there
    the codes tell them apart less well, so that more have to be ranked again.
    """
    probes = _PROBES / max(share, _PROBES / _MOST_PROBES)
    again = min(_RANKED_AGAIN / max(share, 1e-9) ** _GROWTH, _MOST_RANKED_AGAIN)
    return Depth(probes=math.ceil(probes), refine=math.ceil(max(again, 2 * k) / k))
