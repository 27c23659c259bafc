"""Who decides where two statements clash and nothing says that something changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.resolve.statement import Statement

__all__ = ["OnClash", "Routing", "Whose"]


class Whose(StrEnum):
    """Whose business a fact is."""

    PERSONAL = "personal"
    SHARED = "shared"
    INSTITUTION = "institution"


class OnClash(StrEnum):
    """What becomes of a statement that clashes with one that stands.

    CLARIFY: it waits until the person is asked; REVIEW: until somebody of the institution looks;
    RECENT: the later one stands, unless one is much less sure of it.
    """

    CLARIFY = "clarify"
    REVIEW = "review"
    RECENT = "recent"


_POLICIES = {
    Whose.PERSONAL: OnClash.CLARIFY,
    Whose.SHARED: OnClash.RECENT,
    Whose.INSTITUTION: OnClash.REVIEW,
}
_DOMAINS = {"education": Whose.INSTITUTION, "support": Whose.SHARED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """By whose a fact is: what is said of the user is personal, unless its name is listed here.

    Attributes:
        whose: a claim's attribute, or else a category, → whose it is, whatever the subject.
        others: a domain → whose the facts are that nobody says of themselves; "shared" elsewhere.
        policies: whose → what becomes of a clash.
        less_sure: of RECENT: by how much less confident the later one may be, 0..1.

    Raises:
        InvalidInputError: a name that does not exist, or a margin outside 0..1.
    """

    whose: Mapping[str, Whose] = field(default_factory=dict)
    others: Mapping[str, Whose] = field(default_factory=lambda: _DOMAINS)
    policies: Mapping[Whose, OnClash] = field(default_factory=lambda: _POLICIES)
    less_sure: float = 0.2

    def __post_init__(self) -> None:
        named = {*self.whose.values(), *self.others.values(), *self.policies}
        unknown = sorted(map(str, named - set(Whose)))
        unknown += sorted(map(str, set(self.policies.values()) - set(OnClash)))
        if unknown or set(self.policies) != set(Whose):
            raise InvalidInputError(
                f"a routing with {', '.join(unknown) or 'a policy missing'}; facts are "
                f"{', '.join(Whose)}, each with a policy: {', '.join(OnClash)}"
            )
        if not 0 <= self.less_sure <= 1:
            raise InvalidInputError(f"less_sure={self.less_sure}; it takes 0..1")

    def of(self, statement: Statement) -> OnClash:
        """Who decides about a statement that clashes with one that stands."""
        claim = statement.claim
        attribute = claim.attribute if claim else ""
        whose = self.whose.get(attribute) or self.whose.get(statement.category)
        if whose is None:
            about_user = claim is None or claim.subject in {"user", statement.speaker}
            others = self.others.get(statement.domain, Whose.SHARED)
            whose = Whose.PERSONAL if about_user else others
        return self.policies[whose]
