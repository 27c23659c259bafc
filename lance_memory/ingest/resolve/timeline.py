"""What stands of all that was said about one topic: a function of what was said, and when.

The order in which it came in plays no part. So a log can be played again, and two jobs can come in
either order, and the same memories stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lance_memory.ingest.candidate import Resolution
from lance_memory.ingest.resolve.classify import Classifier
from lance_memory.ingest.resolve.held import RESOLVED, Held, Saying
from lance_memory.ingest.resolve.routing import OnClash, Routing
from lance_memory.ingest.resolve.statement import Statement
from lance_memory.record.memory import State

__all__ = ["BOTH", "settle", "untold"]

BOTH = "both"

_MADE = ("updates", "contradicts")
"""The relations that are made anew each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """How one member stands: its state, why, and which other one that is because of."""

    state: State
    reason: str = ""
    other: Held | None = None


def settle(members: Sequence[Held], classifier: Classifier, routing: Routing) -> None:
    """Put every member in its state, with its successor and its relationships.

    What is said takes the place of what it updates, from the moment it was said until something
    else is said; see `Classifier` and `Routing`.

    Args:
        members: all memories about one topic whose state may change.
        classifier: compares two of them.
        routing: decides where two clash.
    """
    ids = [member.id for member in members]
    for member, place in zip(members, _places(members, classifier, routing), strict=True):
        member.state = place.state
        active = member.reason if not untold(member.reason) else ""
        member.reason = active if place.state is State.ACTIVE else place.reason
        superseded = place.state is State.SUPERSEDED and place.other is not None
        member.by = place.other.id if superseded and place.other else None
    for member in members:
        kept = member.edges
        member.unlink(_MADE, ids)
        for relation, target in _edges(member, members):
            member.link(relation, target)
        if set(member.edges) == set(kept):
            member.edges = kept  # in the order that is stored


def untold(reason: str) -> bool:
    """Whether the reason of a state was given here, and goes when the state does."""
    return reason.startswith((RESOLVED, "clarify:", "review:"))


def _edges(member: Held, members: Sequence[Held]) -> list[tuple[str, str]]:
    replaced = [("updates", other.id) for other in members if other.by == member.id]
    against = member.reason.rpartition(" ")[2] if member.asks else ""
    return [*replaced, *([("contradicts", against)] if against else [])]


def _places(members: Sequence[Held], classifier: Classifier, routing: Routing) -> list[_Place]:
    """How each stands when everything was said."""
    places: dict[str, _Place] = {}
    standing: dict[int, Statement] = {}
    told = sorted((saying, i) for i, member in enumerate(members) for saying in member.sayings)
    for saying, i in told:
        member, said = members[i], _as_said(members[i], saying)
        if i in standing:
            standing[i] = _surer(standing[i], said)
            continue
        beaten: dict[int, _Place] = {}
        place = _Place(state=State.ACTIVE)
        for k, stated in standing.items():
            verdict = _beside(members[k], stated, member, said, by=(classifier, routing))
            if isinstance(verdict, _Place):
                place = verdict
                break
            if verdict:
                reason = f"{RESOLVED}{verdict}"
                beaten[k] = _Place(state=State.SUPERSEDED, reason=reason, other=member)
        places[member.id] = place
        if place.state is State.ACTIVE:
            places |= {members[k].id: lost for k, lost in beaten.items()}
            standing = {k: one for k, one in standing.items() if k not in beaten} | {i: said}
    return [places[member.id] for member in members]


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
