"""What numbers count: `5 mg` is not `5 g`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from lance_memory.facts.folding import plain
from lance_memory.facts.lexicon import UNITS
from lance_memory.facts.numbers import Quantity

__all__ = ["measures"]


def measures(text: str, quantities: Iterable[Quantity]) -> Iterator[tuple[str, str]]:
    """Each number with the unit behind it, as "5 mg", and the unit as it is written there.

    Args:
        text: what the quantities were read from.
        quantities: see `numbers`; those without a unit, or with an unknown one, are left out.
    """
    for quantity in quantities:
        end = quantity.start + len(quantity.written)
        behind = _unit().match(plain(text[end : end + _LONGEST]))
        if behind and quantity.kind == "number":
            yield f"{quantity.value} {behind.lastgroup}", behind.group(behind.lastgroup or 0)


_LONGEST = 24
"""Characters behind a number that its unit is looked for in."""


@cache
def _unit() -> re.Pattern[str]:
    forms = "|".join(f"(?P<{unit}>{forms})" for unit, forms in UNITS.items())
    return re.compile(rf"[\s-]?(?:{forms})(?![a-z])")
