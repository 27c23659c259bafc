"""The step that says which candidates are worth keeping, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.candidate import Candidate, Category, Decision
from lance_memory.ingest.extract.patterns import Book, book_of
from lance_memory.ingest.extract.reading import MARKED
from lance_memory.ingest.message import Role
from lance_memory.ingest.steps import Passed, Surroundings
from lance_memory.record.arguments import real, whole

__all__ = ["OBJECTIONS", "Keep", "KeepPolicy", "Objection"]

_PLACEHOLDER: Final = re.compile(r"\[[a-z]+(?:-\d+)?\]")
_FILLING: Final = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepPolicy:
    """What is kept.

    Attributes:
        confidence: from here on, 0..1, a candidate becomes a memory.
        pending: from here on it waits, invisible, until it is said again or somebody approves it.
        importance: the least, 0..10.
        shortest: characters.
        longest: characters.
        categories: those that are kept.

    Raises InvalidInputError for numbers out of bounds, or that cross each other.
    """

    confidence: float = 0.65
    pending: float = 0.45
    importance: float = 2.0
    shortest: int = 10
    longest: int = 500
    categories: frozenset[str] = frozenset(Category)

    def __post_init__(self) -> None:
        real("confidence", self.confidence, least=0, most=1)
        real("pending", self.pending, least=0, most=1)
        real("importance", self.importance, least=0, most=10)
        whole("shortest", self.shortest, least=1)
        whole("longest", self.longest, least=1)
        if self.pending > self.confidence:
            raise InvalidInputError(
                f"pending={self.pending} is above confidence={self.confidence}; nothing would wait"
            )
        if self.shortest > self.longest:
            raise InvalidInputError(
                f"shortest={self.shortest} is above longest={self.longest}; nothing would be kept"
            )


class Objection(NamedTuple):
    """Why a candidate is refused, as it is counted, and whether it is."""

    reason: str
    refuses: Callable[[Candidate, KeepPolicy], bool]


def _recalled(candidate: Candidate, _: KeepPolicy) -> bool:
    """Not somebody's own word: an assistant's, a tool's, or marked as recalled text (C07)."""
    own = candidate.role is Role.USER or bool(candidate.source)
    return not own or MARKED.search(candidate.content) is not None


def _never_store(candidate: Candidate, _: KeepPolicy) -> bool:
    """Credentials, what is said off the record, and a redacted value with nothing beside it."""
    keep, text = _book().keep, candidate.content
    if keep["never_store"].search(text) or keep["off_record"].search(text):
        return True
    return "[" in text and not _FILLING.search(_PLACEHOLDER.sub("", text))


def _temporary(candidate: Candidate, _: KeepPolicy) -> bool:
    """True for this conversation alone."""
    return _book().keep["temporary"].search(candidate.content) is not None


def _unknown_category(candidate: Candidate, policy: KeepPolicy) -> bool:
    return candidate.category not in policy.categories


def _length(candidate: Candidate, policy: KeepPolicy) -> bool:
    return not policy.shortest <= len(candidate.content.strip()) <= policy.longest


def _low_importance(candidate: Candidate, policy: KeepPolicy) -> bool:
    return candidate.importance < policy.importance


def _low_confidence(candidate: Candidate, policy: KeepPolicy) -> bool:
    return candidate.confidence < policy.pending


OBJECTIONS: Final = (
    Objection("recalled", _recalled),
    Objection("never_store", _never_store),
    Objection("temporary", _temporary),
    Objection("unknown_category", _unknown_category),
    Objection("length", _length),
    Objection("low_importance", _low_importance),
    Objection("low_confidence", _low_confidence),
)
"""Asked in this order; the first that refuses gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Candidates → those worth keeping; every candidate has a decision: kept, pending, discarded.

    Whether a memory says the same already is not asked here but where candidates are resolved:
    there it is known what stood when each was said, so the order of arrival does not matter.

    Attributes:
        policy: the bounds.
        objections: what is asked, in order. `(*OBJECTIONS, Objection("mine", f))` adds one.
    """

    policy: KeepPolicy = field(default_factory=KeepPolicy)
    objections: tuple[Objection, ...] = OBJECTIONS

    @property
    def name(self) -> str:
        """For decisions and figures."""
        return "keep"

    def __call__(self, items: Sequence[Candidate], around: Surroundings) -> Passed[Candidate]:  # noqa: ARG002 - of every step
        """The candidates that pass, those that are to wait with `pending`, and all decisions."""
        kept: list[Candidate] = []
        decisions: list[Decision] = []
        for candidate in items:
            reason = self._refused(candidate)
            waits = not reason and candidate.confidence < self.policy.confidence
            if waits and not candidate.pending:
                told = f"confidence {candidate.confidence:.2f}"
                candidate = replace(candidate, pending=told)  # noqa: PLW2901 - the same one
            if not reason:
                kept.append(candidate)
            decisions.append(_decision(candidate, reason))
        return Passed(items=tuple(kept), decisions=tuple(decisions))

    def _refused(self, candidate: Candidate) -> str:
        """The reason of the first filter that refuses; empty, where none does."""
        for one in self.objections:
            if one.refuses(candidate, self.policy):
                return one.reason
        return ""


def _decision(candidate: Candidate, refused: str) -> Decision:
    waits = candidate.pending.split(" ", 1)[0]
    return Decision(
        step="keep",
        verdict="discarded" if refused else "pending" if waits else "kept",
        reason=refused or waits,
        event=candidate.event,
        figures={"confidence": candidate.confidence, "importance": candidate.importance},
        content=candidate.content,
    )


def _book() -> Book:
    return book_of("en")
