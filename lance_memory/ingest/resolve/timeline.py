"""What stands of all that was said about one topic: a function of what was said, and when.

The order in which it came in plays no part. So a log can be played again, and two jobs can come in
either order, and the same memories stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from lance_memory.ingest.candidate import Resolution
from lance_memory.ingest.resolve.classify import Classifier
from lance_memory.ingest.resolve.held import RESOLVED, Held, Saying
from lance_memory.ingest.resolve.routing import OnClash, Routing
from lance_memory.ingest.resolve.statement import Statement
from lance_memory.record.memory import Relationship, State

__all__ = ["BOTH", "Walk", "settle", "untold"]

BOTH = "both"

_MADE = ("updates", "contradicts")
"""The relations that are made anew each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """How one member stands: its state, why, and which other one that is because of."""

    state: State
    reason: str = ""
    other: Held | None = None


class Walk:
    """The sayings of one topic in their order, as far as they were walked.

    A log is said in order: where only something later was said than all that was walked, and
    nothing else has changed, the walk goes on where it was. What comes of it is the same.
    """

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        self._known: list[tuple[Any, ...]] = []
        self._members: list[Held] = []
        self._last: Saying | None = None
        self._standing: dict[int, Statement] = {}
        self._targets: set[str] = set()
        self.heard: set[int] = set()

    def on(
        self, members: Sequence[Held], classifier: Classifier, routing: Routing
    ) -> dict[int, _Place]:
        """Where members are now, by their number: all, or those whose place may have changed."""
        more = self._more(members)
        if more is None:
            self.number = {member.id: i for i, member in enumerate(members)}
            self._standing = {}
            told = sorted((saying, i) for i, one in enumerate(members) for saying in one.sayings)
        else:
            told = [more]
            self.number[members[more[1]].id] = more[1]
        self.heard = {i for _, i in told}
        places: dict[int, _Place] = {}
        for saying, i in told:
            self._step(saying, i, members, by=(classifier, routing), places=places)
        self._last = told[-1][0] if told else None
        return places

    def keep(self, members: Sequence[Held], touched: AbstractSet[int]) -> None:
        """Remember how the members are now, to see later what has changed."""
        if len(touched) == len(members):
            self._members, self._targets = [*members], set()
            self._known = [_stand(member) for member in members]
        else:
            self._members += members[len(self._members) :]
            self._known += [()] * (len(members) - len(self._known))
            for i in touched:
                self._known[i] = _stand(members[i])
        self._targets |= {edge.target for i in touched for edge in members[i].edges}

    def _more(self, members: Sequence[Held]) -> tuple[Saying, int] | None:
        """The one saying that is new, and later than all others; None: begin anew."""
        fresh, known = len(members) - len(self._members), zip(members, self._members, strict=False)
        if self._last is None or fresh not in (0, 1) or any(a is not b for a, b in known):
            return None
        changed = [i for i, was in enumerate(self._known) if _stand(members[i]) != was]
        if fresh and not changed:
            member = members[-1]
            new = member.own
            if member.heard or member.id in self._targets:
                return None
            changed.append(len(members) - 1)
        elif not fresh and len(changed) == 1:
            heard, *rest = _stand(members[changed[0]])
            was, *before = self._known[changed[0]]
            if heard[:-1] != was or rest != before:
                return None
            new = heard[-1]
        else:
            return None
        return (new, changed[0]) if new > self._last else None

    def _step(
        self,
        saying: Saying,
        i: int,
        members: Sequence[Held],
        *,
        by: tuple[Classifier, Routing],
        places: dict[int, _Place],
    ) -> None:
        """One thing more was said."""
        standing, said = self._standing, _as_said(members[i], saying)
        if i in standing:
            standing[i] = _surer(standing[i], said)
            return
        beaten: dict[int, _Place] = {}
        places[i] = _Place(state=State.ACTIVE)
        for k, stated in standing.items():
            verdict = _beside(members[k], stated, members[i], said, by=by)
            if isinstance(verdict, _Place):
                places[i] = verdict
                return
            if verdict:
                reason = f"{RESOLVED}{verdict}"
                beaten[k] = _Place(state=State.SUPERSEDED, reason=reason, other=members[i])
        places |= beaten
        for k in beaten:
            del standing[k]
        standing[i] = said


def _stand(member: Held) -> tuple[Any, ...]:
    """What the place of a member comes from, and what it has made of it."""
    return (
        member.heard,
        member.settled,
        member.state,
        member.reason,
        member.by,
        member.edges,
    )


def settle(
    members: Sequence[Held], classifier: Classifier, routing: Routing, *, walk: Walk | None = None
) -> None:
    """Put every member in its state, with its successor and its relationships.

    What is said takes the place of what it updates, from the moment it was said until something
    else is said; see `Classifier` and `Routing`.

    Args:
        members: all memories about one topic whose state may change.
        classifier: compares two of them.
        routing: decides where two clash.
        walk: of this topic, so far; see `Walk`.
    """
    walk = walk or Walk()
    placed = walk.on(members, classifier, routing)
    touched = {*placed, *walk.heard}
    for i, place in placed.items():
        member = members[i]
        touched |= {walk.number[id] for id in (member.by,) if id in walk.number}
        member.state = place.state
        active = member.reason if not untold(member.reason) else ""
        member.reason = active if place.state is State.ACTIVE else place.reason
        superseded = place.state is State.SUPERSEDED and place.other is not None
        member.by = place.other.id if superseded and place.other else None
        touched |= {walk.number[id] for id in (member.by,) if id in walk.number}
    _relate(members, touched, walk.number)
    walk.keep(members, touched)


def _relate(members: Sequence[Held], touched: AbstractSet[int], number: Mapping[str, int]) -> None:
    """Put the relationships of these members right."""
    replaced: dict[str | None, list[str]] = {members[i].id: [] for i in touched}
    for other in members:
        if other.by in replaced:
            replaced[other.by].append(other.id)
    for i in touched:
        member = members[i]
        against = member.reason.rpartition(" ")[2] if member.asks else ""
        told = [("updates", target) for target in replaced[member.id]]
        told += [("contradicts", against)] if against else []
        made = [Relationship(relation=relation, target=target) for relation, target in told]
        kept = [e for e in member.edges if e.relation not in _MADE or e.target not in number]
        others = {*kept}
        now = [*kept, *(edge for edge in dict.fromkeys(made) if edge not in others)]
        if {*now} != {*member.edges}:  # else it stays in the order that is stored
            member.edges = tuple(now)


def untold(reason: str) -> bool:
    """Whether the reason of a state was given here, and goes when the state does."""
    return reason.startswith((RESOLVED, "clarify:", "review:"))


def _as_said(member: Held, saying: Saying) -> Statement:
    """What it says, as it was said that time."""
    return replace(
        member.statement,
        at=saying.at,
        authority=saying.authority,
        confidence=saying.confidence,
        announced=saying.announced,
    )


def _surer(one: Statement, other: Statement) -> Statement:
    """The same said twice while it stands: by the better authority, with the more confidence."""
    return replace(
        one,
        authority=max(one.authority, other.authority),
        confidence=max(one.confidence, other.confidence),
    )


def _beside(
    holder: Held,
    stated: Statement,
    member: Held,
    said: Statement,
    *,
    by: tuple[Classifier, Routing],
) -> _Place | str:
    """Where a member lands that cannot stand beside the holder; or why it replaces it, or ""."""
    classifier, routing = by
    judged = classifier(stated, said, cosine=None)
    if judged.resolution in (Resolution.NEW, Resolution.KEEP_BOTH):
        return ""
    if judged.resolution is Resolution.REJECT:
        return _lost(holder, judged.reason)
    if not judged.clash or member.settled:
        return "" if judged.clash and member.settled == BOTH else judged.reason
    decides = routing.of(said)
    if decides is OnClash.RECENT:
        unsure = said.confidence < stated.confidence - routing.less_sure
        return _lost(holder, "less_sure") if unsure else judged.reason
    return _Place(state=State.PENDING, reason=f"{decides}: against {holder.id}", other=holder)


def _lost(holder: Held, reason: str) -> _Place:
    return _Place(state=State.SUPERSEDED, reason=f"{RESOLVED}{reason}", other=holder)
