"""Events that said what is no longer so: each beside what took the place of its facts.

A fact that was superseded is hidden, but the message that it was taken from still says it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lance_memory.agent.context.candidate import Candidate, Event, event
from lance_memory.record.filters import Filter, is_one_of
from lance_memory.record.memory import DISTILLED, Kind, Memory, Scope, State
from lance_memory.record.rows import to_memories
from lance_memory.record.times import utc
from lance_memory.storage import Snapshot
from lance_memory.store import MemoryStore

__all__ = ["Correction", "corrections", "with_corrections"]

_KINDS: Final = (Kind.SEMANTIC, Kind.PROFILE)
_STATES: Final = (State.ACTIVE, State.SUPERSEDED)
_KEPT: Final = frozenset(["consolidates", "derived_from"])
"""What took a place with these says the same in other words."""

_COLUMNS: Final = ["id", "tenant", "user", "agent", "source_ref", "superseded_by"]

_OUTDATED: Final = 0.5
"""What is left of the relevance, as a share of that of what is true now; below the 0.8 of the
lightest source, so that the order of the scores is that of the relevance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What took the place of the facts of one event.

    Attributes:
        by: the visible memories.
        partly: whether other facts of the event still hold.
    """

    by: tuple[Memory, ...]
    partly: bool


def corrections(store: MemoryStore, said: Collection[Candidate]) -> dict[Event, Correction]:
    """Of the events of these candidates those that are outdated.

    One read of what was taken from them, whatever there is; a second one, where facts among it were
    superseded, of what took their place.
    """
    refs = {one.ref for one in said if one.verbatim and one.ref}
    if not refs:
        return {}
    snapshot, moment = store._snapshot(), utc(store.clock(), "clock()")
    of = Filter(scope=store.scope, kinds=_KINDS, states=_STATES, also=is_one_of("source_ref", refs))
    rows = snapshot.scan(of.predicate(moment), columns=_COLUMNS).to_pylist()
    ends = _Ends(snapshot, {row["id"]: row["superseded_by"] for row in rows})
    replaced: defaultdict[Event, dict[str, Memory]] = defaultdict(dict)
    holding: defaultdict[Event, set[str]] = defaultdict(set)
    for row in rows:
        of_it = (row["tenant"], row["user"], row["agent"], row["source_ref"])
        if row["superseded_by"] is None:
            holding[of_it].add(row["id"])
            continue
        by = ends.of(row["id"])
        if by is None or event(by.scope, by.source_ref) == of_it:
            continue
        if _stands(by, store.scope, moment):
            replaced[of_it][by.id] = by
    return {
        of_it: Correction(by=tuple(by.values()), partly=bool(holding[of_it] - by.keys()))
        for of_it, by in replaced.items()
    }


def with_corrections(
    candidates: Sequence[Candidate],
    known: Mapping[Event, Correction],
    new: Mapping[str, Candidate],
) -> list[Candidate]:
    """The candidates; what is outdated is marked, and what took its place is more relevant.

    Args:
        candidates: with their relevance.
        known: by event.
        new: what took a place, as candidates by id, for those that are not among them.
    """
    found = {one.id: one for one in candidates}
    outdated: dict[str, Correction] = {}
    for one in candidates:
        correction = known.get(one.event) if one.verbatim and one.event else None
        if correction is None:
            continue
        outdated[one.id] = correction
        for by in correction.by:
            there = found.get(by.id, new[by.id])
            if by.id not in found or there.relevance < one.relevance:
                why = f"it took the place of what {one.id} said"
                there = replace(there, relevance=one.relevance, why=why)
            found[by.id] = there
    for id, correction in outdated.items():
        one, ids = found[id], [by.id for by in correction.by]
        most = _OUTDATED * min(found[by].relevance for by in ids)
        found[id] = replace(
            one,
            relevance=min(one.relevance, most),
            why="; ".join([*([one.why] if one.why else []), f"outdated by {', '.join(ids)}"]),
            outdated_by=frozenset(ids),
            partly=correction.partly,
        )
    return list(found.values())


def _stands(memory: Memory, scope: Scope, moment: datetime) -> bool:
    seen = scope.holds(memory.scope) and memory.visible_at(moment)
    return seen and memory.source != DISTILLED


class _Ends:
    """What took the place of memories last, where it says something else."""

    def __init__(self, snapshot: Snapshot, successors: Mapping[str, str | None]) -> None:
        self._first = {id: by for id, by in successors.items() if by is not None}
        self._known: dict[str, Memory] = {}
        asked = set(self._first.values())
        while asked:
            memories = to_memories(snapshot.by_ids(sorted(asked)))
            self._known |= {memory.id: memory for memory in memories}
            after = {memory.superseded_by for memory in memories if memory.superseded_by}
            asked = after - self._known.keys()

    def of(self, id: str) -> Memory | None:
        """Where the way from a superseded memory ends; None: nowhere, or where it says the same."""
        passed, says_else = {id}, False
        by = self._first.get(id)
        found: Memory | None = None
        while by is not None and by not in passed and (found := self._known.get(by)) is not None:
            edges = {edge.relation for edge in found.relationships if edge.target == id}
            says_else |= not edges & _KEPT
            passed.add(by)
            id, by = by, found.superseded_by
        return found if says_else and by is None else None
