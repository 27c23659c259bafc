"""How far grants reach: the rows that they share, at one moment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from lance_memory.errors import LanceMemoryError
from lance_memory.record.filters import (
    REMEMBERED,
    Filter,
    all_of,
    any_of,
    equals,
    is_one_of,
    visible,
)
from lance_memory.record.memory import Memory
from lance_memory.record.times import parse_instant
from lance_memory.sharing.grant import TIMES, Grant, Rights

__all__ = ["Reach"]

Passing = Callable[[Collection[str], str], Collection[str]]
"""Of some ids, those whose rows pass a predicate."""


@dataclass(frozen=True)
class Reach:
    """The grants to one receiver that hold at `moment`, and the rows that they share.

    Of each: what is visible, is no part of a workspace, lies inside the giver's scope, is of the
    giver's very tenant, and is named or passes the filter. A grant whose filter cannot be read
    shares nothing.
    """

    grants: Sequence[Grant]
    moment: datetime

    @cached_property
    def meant(self) -> str | None:
        """The rows that one of the grants means, visible or not; None: there is no grant.

        It is the same at every moment, and a search counts but once what passes it.
        """
        several = [text for _, text in self._ranked]
        return all_of(REMEMBERED, any_of(*several)) if several else None

    @property
    def predicate(self) -> str | None:
        """The rows that one of the grants shares; None: there is no grant."""
        return self.visible(self.moment) if self.meant else None

    def visible(self, moment: datetime | None) -> str | None:
        """Of the rows that the grants mean those that have not expired at another moment.

        None: as if nothing had expired.
        """
        return all_of(self.meant or is_one_of("id", ()), visible(moment))

    def behind(self, memories: Sequence[Memory], passing: Passing) -> list[Grant]:
        """For each of the memories, which pass the predicate, the grant that lets it be read.

        Of several the one with more rights, then the older one. A filter is looked up where it
        decides between them.
        """
        likely = {m.id: [g.id for g, _ in self._ranked if _may_share(g, m)] for m in memories}
        found: dict[str, Grant] = {}
        for grant, text in self._ranked:
            asked = {id for id, grants in likely.items() if id not in found and grant.id in grants}
            sure = {id for id in asked if grant.ids is not None or likely[id][-1] == grant.id}
            passed = passing(asked - sure, text) if asked - sure else ()
            found |= dict.fromkeys([*sure, *passed], grant)
        return [found[memory.id] for memory in memories]

    @cached_property
    def _ranked(self) -> list[tuple[Grant, str]]:
        """Each grant and the predicate of its rows; those with more rights first, then the older.

        Without those that say nothing, or nothing more.
        """
        ordered = sorted(self.grants, key=lambda grant: (grant.rights is Rights.READ, grant.id))
        told = [(grant, text) for grant in ordered if (text := _rows_of(grant)) is not None]
        first = {text: grant for grant, text in reversed(told)}
        return [(grant, text) for grant, text in told if first[text] is grant]


def _may_share(grant: Grant, memory: Memory) -> bool:
    """Whether it shares the memory, as far as can be told without the filter."""
    inside = grant.giver.tenant == memory.tenant and grant.giver.holds(memory.scope)
    return inside and (grant.ids is None or memory.id in grant.ids)


def _rows_of(grant: Grant) -> str | None:
    """The predicate of one grant; None: its filter cannot be read."""
    tenant = None if grant.giver.tenant else equals("tenant", "")  # the scope says which
    if grant.ids is not None:
        inside = Filter(scope=grant.giver, states="any").predicate(None)
        return f"({all_of(tenant, inside, is_one_of('id', grant.ids))})"
    try:
        where: Any = {name: _read(name, value) for name, value in grant.where.items()}
        where["states"] = "any"
        chosen = Filter.of(where, within=grant.giver)
    except (LanceMemoryError, TypeError):  # a row that somebody wrote by hand
        return None
    return f"({all_of(tenant, chosen.predicate(None))})"


def _read(name: str, value: Any) -> Any:
    return parse_instant(value, name) if name in TIMES else value
