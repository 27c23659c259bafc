"""Which candidates go into a pack. Pure: the same candidates and budget give the same pack.

Greedily by maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998): the next one is that
with the greatest

    relevance · score - (1 - relevance) · (cosine to the nearest one that is in the pack, or 0)

as long as its source's share and the budget have room. Then the whole text is counted, and what
came last goes until it fits: a tokenizer may count a text as more than its lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_memory.agent.context.candidate import Candidate, ContextSource
from lance_memory.agent.context.clash import Taken, Why, stands_for
from lance_memory.agent.context.measure import Measured
from lance_memory.agent.context.options import ContextOptions, Count
from lance_memory.agent.context.render import arranged, mark, rendered
from lance_memory.agent.context.result import ContextItem, DroppedItem, DropReason
from lance_memory.agent.context.room import Room
from lance_memory.agent.context.score import Scored
from lance_memory.record.memory import Scope

__all__ = ["Packed", "packed"]

_RECALLED: Final = (
    *(ContextSource.EPISODIC, ContextSource.SEMANTIC),
    *(ContextSource.PROCEDURAL, ContextSource.DISTILLED, ContextSource.SHARED),
)
"""What is there for the question's sake alone."""

_FULL: Final = 16
"""Candidates in a row for which there was no room: then nobody else is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The text, its tokens, those of its frame, its items in order, and what is left out."""

    text: str
    tokens: int
    frame: int
    items: tuple[ContextItem, ...]
    dropped: tuple[DroppedItem, ...]


def packed(
    found: Sequence[Scored],
    *,
    budget: int,
    options: ContextOptions,
    count: Count,
    within: Scope,
    query: str = "",
) -> Packed:
    """The pack of the candidates, best first, that fit.

    Args:
        found: as `scored` orders them.
        budget: tokens of the whole text, at least 1.
        options: shares of sources, diversity, length of an item, ids.
        count: tokens of texts; whatever it does, the text never has more than the budget.
        within: the scope of whoever asks; items of others say whose they are.
        query: the question, which is no answer to itself.
    """
    candidates = [one.candidate for one in found]
    measured = Measured(candidates, budget=budget, options=options, count=count, within=within)
    room = Room(budget, options=options, measured=measured)
    choice = _Choice(found, measured, room, options=options, taken=Taken(query))
    choice.choose()
    return choice.fitted(budget, count=count, within=within)


class _Choice:
    """One packing under way: the places that were taken, in order, and why others were not."""

    def __init__(
        self,
        found: Sequence[Scored],
        measured: Measured,
        room: Room,
        *,
        options: ContextOptions,
        taken: Taken,
    ) -> None:
        self._found = found
        self._measured = measured
        self._room = room
        self._options = options
        self._taken = taken
        self._picked: list[int] = []
        self._dropped: dict[int, Why] = {}
        self._places = {one.candidate.id: place for place, one in enumerate(found)}

    def choose(self) -> None:
        """Take what fits, the best first."""
        scores = np.array([one.score for one in self._found])
        similar = _Similar([one.candidate for one in self._found])
        asked = self._without_successors()
        self._leave_out_weak(asked)
        waiting = self._outdated(asked)
        share = self._options.relevance
        without_room = 0
        while asked.any() or waiting:
            for outdated in [p for p, by in waiting.items() if not asked[by].any()]:
                asked[outdated] = True
                del waiting[outdated]
            worth = np.where(asked, share * scores - (1.0 - share) * similar.nearest, -np.inf)
            place = int(worth.argmax())
            asked[place] = False
            refused = self._refused(place) if without_room < _FULL else _NO_ROOM
            if refused is None:
                self._take(place)
                similar.add(place)
                without_room = 0
                continue
            self._dropped[place] = refused
            without_room += refused[0] in (DropReason.BUDGET, DropReason.DIVERSITY)

    def fitted(self, budget: int, *, count: Count, within: Scope) -> Packed:
        """The text of what was taken; what was taken last goes until the whole is within budget."""
        self._leave_out_alone()
        while True:
            places = {self._found[p].candidate.id: p for p in self._picked}
            entries = arranged(map(self._measured.entry, self._picked))
            text = rendered(entries, within=within, ids=self._options.ids)
            tokens = count([text])[0] if text else 0
            if tokens <= budget:
                order = [places[one.candidate.id] for one in entries]
                items = tuple(self._item(p, number) for number, p in enumerate(order, start=1))
                return Packed(
                    text=text,
                    tokens=tokens,
                    frame=self._measured.frame(),
                    items=items,
                    dropped=self._left_out(),
                )
            last = self._picked.pop()
            self._dropped[last] = DropReason.BUDGET, f"the text had {tokens} tokens with it"
            self._leave_out_alone()

    # -- inside ---------------------------------------------------------------------------

    def _without_successors(self) -> NDArray[np.bool_]:
        """Which candidates are asked: none whose successor is one."""
        known = {one.candidate.id for one in self._found}
        asked = np.ones(len(self._found), dtype=np.bool_)
        for place, one in enumerate(self._found):
            if one.candidate.successor in known:
                asked[place] = False
                self._dropped[place] = (
                    DropReason.LINEAGE,
                    f"superseded by {one.candidate.successor}",
                )
        return asked

    def _leave_out_weak(self, asked: NDArray[np.bool_]) -> None:
        """What was recalled and has next to nothing to do with the question is not asked."""
        least = self._options.min_score
        for place, one in enumerate(self._found):
            relevance = one.candidate.relevance
            if asked[place] and one.candidate.source in _RECALLED and relevance < least:
                asked[place] = False
                self._dropped[place] = DropReason.WEAK, f"relevance {relevance:.3f} below {least:g}"

    def _outdated(self, asked: NDArray[np.bool_]) -> dict[int, list[int]]:
        """The places of what is outdated, asked after all that took its place: their places."""
        waiting: dict[int, list[int]] = {}
        for place, one in enumerate(self._found):
            if asked[place] and one.candidate.outdated_by:
                asked[place] = False
                by = (self._places.get(id) for id in sorted(one.candidate.outdated_by))
                waiting[place] = [p for p in by if p is not None]
        return waiting

    def _alone(self, place: int) -> Why | None:
        """Why what is outdated cannot stand: not all that took its place is told."""
        for id in sorted(self._found[place].candidate.outdated_by):
            by = self._places.get(id)
            if by is None or not any(self._tells(p, by) for p in self._picked if p != place):
                return DropReason.LINEAGE, f"outdated by {id}, which is not in"
        return None

    def _tells(self, place: int, other: int) -> bool:
        return stands_for(self._found[place].candidate, self._found[other].candidate)

    def _leave_out_alone(self) -> None:
        """What is outdated goes with what took its place."""
        while alone := {place: why for place in self._picked if (why := self._alone(place))}:
            self._picked = [place for place in self._picked if place not in alone]
            self._dropped |= alone

    def _refused(self, place: int) -> Why | None:
        """Why it is not taken; None: it is."""
        candidate = self._found[place].candidate
        if clash := self._taken.clash(candidate) or self._alone(place):
            return clash
        tokens = self._measured.tokens(place)
        refused = self._room.refused(candidate, tokens)
        waited = bool(candidate.outdated_by)  # for others, not because it is like them
        if refused is None or refused[0] is not DropReason.BUDGET or waited:
            return refused
        before = sum(self._measured.tokens(p) for p in self._picked if p > place)
        return _UNLIKE if before and tokens <= self._room.left + before else refused

    def _take(self, place: int) -> None:
        candidate = self._found[place].candidate
        self._picked.append(place)
        self._room.take(candidate, self._measured.tokens(place))
        for id in self._taken.take(candidate):
            made = next(p for p in self._picked if self._found[p].candidate.id == id)
            self._picked.remove(made)
            self._room.give_back(self._found[made].candidate, self._measured.tokens(made))
            self._dropped[made] = DropReason.DUPLICATE, f"said in {candidate.id}"

    def _item(self, place: int, number: int) -> ContextItem:
        one, entry = self._found[place], self._measured.entry(place)
        candidate = one.candidate
        return ContextItem(
            number=number,
            id=candidate.id,
            source=candidate.source,
            kind=candidate.kind,
            score=one.score,
            tokens=self._measured.tokens(place),
            text=entry.text(mark(candidate, number, ids=self._options.ids)),
            scope=candidate.scope,
            shared_by=candidate.shared_by,
            who=candidate.who,
            at=candidate.at,
            ref=candidate.ref,
            reason=candidate.why,
            cut=entry.cut,
        )

    def _left_out(self) -> tuple[DroppedItem, ...]:
        return tuple(
            DroppedItem(
                id=self._found[place].candidate.id,
                source=self._found[place].candidate.source,
                score=self._found[place].score,
                reason=reason,
                detail=detail,
            )
            for place, (reason, detail) in sorted(self._dropped.items())
        )


_NO_ROOM: Final = DropReason.BUDGET, f"there was no room for {_FULL} in a row that are better"
_UNLIKE: Final = DropReason.DIVERSITY, "others that say something else were taken before it"


class _Similar:
    """How near each candidate is to the nearest one that was taken. [n]."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.nearest = np.zeros(len(candidates))
        self._known = np.array([one.vector is not None for one in candidates], dtype=np.bool_)
        vectors = [one.vector for one in candidates if one.vector is not None]
        self._units = _units(np.stack(vectors)) if vectors else np.empty((0, 0))
        self._row = np.cumsum(self._known) - 1

    def add(self, place: int) -> None:
        """One more was taken."""
        if self._known[place]:
            cosines = self._units @ self._units[self._row[place]]
            self.nearest[self._known] = np.maximum(self.nearest[self._known], cosines)


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    rows = vectors.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units: NDArray[np.float64] = rows / np.where(lengths > 0, lengths, 1.0)
    return units
