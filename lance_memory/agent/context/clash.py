"""What cannot stand beside what is in a pack: the same again, a source with its successor."""

from __future__ import annotations

from lance_memory.agent.context.candidate import Candidate, ContextSource, Event
from lance_memory.agent.context.result import DropReason

__all__ = ["Taken", "Why", "stands_for"]

Why = tuple[DropReason, str]


class Taken:
    """The candidates that are in the pack, as others may clash with them.

    Args:
        query: the question. Whoever asks has it: what was only asked before is no answer.
    """

    def __init__(self, query: str = "") -> None:
        self._query = _plain(query)
        self._ids: set[str] = set()
        self._texts: dict[tuple[bool, str], str] = {}
        self._said: dict[Event, str] = {}
        self._outdated: set[str] = set()
        self._made: dict[Event, dict[str, None]] = {}
        self._sources: dict[str, str] = {}
        self._makings: dict[str, frozenset[str]] = {}

    def clash(self, candidate: Candidate) -> Why | None:
        """Why it cannot stand beside what was taken; None: it can."""
        if candidate.id in self._ids:
            return DropReason.DUPLICATE, "it is in already"
        return self._related(candidate) or self._said_again(candidate)

    def take(self, candidate: Candidate) -> tuple[str, ...]:
        """Add it; the ids of what was made of that message, which need not stand beside it."""
        self._ids.add(candidate.id)
        talk = candidate.source is ContextSource.WORKING
        self._texts.setdefault((talk, _plain(candidate.content)), candidate.id)
        for source in candidate.made_of:
            self._sources.setdefault(source, candidate.id)
        if candidate.made_of:
            self._makings[candidate.id] = candidate.made_of
        if candidate.event is None:
            return ()
        if not candidate.verbatim:
            self._made.setdefault(candidate.event, {})[candidate.id] = None
            return ()
        self._said.setdefault(candidate.event, candidate.id)
        if candidate.outdated_by:  # what still holds of it is told by its facts
            self._outdated.add(candidate.id)
            return ()
        return tuple(self._made.pop(candidate.event, ()))

    def _related(self, candidate: Candidate) -> Why | None:
        """What is in that it was made of, that was made of it, or that was made of the same."""
        for source in sorted(candidate.made_of & self._ids):
            return DropReason.LINEAGE, f"its source {source} is in"
        if made := self._sources.get(candidate.id):
            return DropReason.LINEAGE, f"{made} is in, which was made from it"
        for other, sources in self._makings.items() if candidate.made_of else ():
            if candidate.made_of <= sources or sources <= candidate.made_of:
                return DropReason.DUPLICATE, f"{other} was made from the same"
        return None

    def _said_again(self, candidate: Candidate) -> Why | None:
        """What is in that says it; what is said twice in the conversation stands there twice."""
        talking = candidate.source is ContextSource.WORKING
        if self._query and not talking and _plain(candidate.content) == self._query:
            return DropReason.DUPLICATE, "it is the question"
        for talk in (False,) if talking else (False, True):
            if same := self._texts.get((talk, _plain(candidate.content))):
                return DropReason.DUPLICATE, f"{same} says the same"
        said = self._said.get(candidate.event) if candidate.event else None
        if said and (candidate.verbatim or said not in self._outdated):
            return DropReason.DUPLICATE, f"said in {said}"
        return None


def stands_for(one: Candidate, other: Candidate) -> bool:
    """Whether one says what the other says: it is it, its message, or the same text."""
    message = one.verbatim and one.event is not None and one.event == other.event
    return one.id == other.id or message or _plain(one.content) == _plain(other.content)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
