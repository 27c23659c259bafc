"""The step that makes candidates of conversations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from lance_memory.errors import ExtractionError, LanceMemoryError
from lance_memory.ingest.candidate import Candidate, Decision
from lance_memory.ingest.extract.patterns import book_of
from lance_memory.ingest.extract.protocol import Extractor, Reading
from lance_memory.ingest.extract.reading import readable
from lance_memory.ingest.extract.rules import Rules
from lance_memory.ingest.message import Conversation
from lance_memory.ingest.steps import Passed, Surroundings

__all__ = ["Extract"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """Conversations → candidates, by an extractor that can be replaced.

    No extractor sees what was recalled from the store and is fed back, nor a message that asks not
    to be remembered; those have a decision.

    A conversation that the extractor fails on for good has the decision "failed", and the others
    go on. A failure that may pass by itself is raised, so that the whole job is tried again:
    nothing of it was committed, and a replay gives the same candidates.

    Attributes:
        extractor: by default rules, which need no model.
        known: how many of the user's memories an extractor that asks for them gets.
    """

    extractor: Extractor = field(default_factory=Rules)
    known: int = 50

    @property
    def name(self) -> str:
        """For decisions and figures."""
        return "extract"

    def __call__(self, items: Sequence[Conversation], around: Surroundings) -> Passed[Candidate]:
        """The candidates of all conversations, in their order.

        Raises:
            ExtractionError: the extractor failed on one, and it may pass by itself.
        """
        found: list[Candidate] = []
        decisions: list[Decision] = []
        degraded: dict[str, None] = {}
        for number, conversation in enumerate(items, start=1):
            own, lost = readable(conversation, book=book_of("en"), job=around.job)
            decisions += lost
            passed = self._extracted(own, around)
            found += passed.items
            decisions += passed.decisions
            degraded.update(dict.fromkeys(passed.degraded))
            around.progress(self.name, number, len(items))
        return Passed(items=tuple(found), decisions=tuple(decisions), degraded=tuple(degraded))

    def _extracted(self, conversation: Conversation, around: Surroundings) -> Passed[Candidate]:
        reading = Reading(
            job=around.job,
            now=around.now,
            known=partial(around.known, conversation.scope, self.known),
        )
        try:
            found = self.extractor.extract(conversation, reading=reading)
        except ExtractionError as error:
            if error.passing:
                raise
            return _failed(error.reason)
        except LanceMemoryError:  # a missing extra, a store that fails: the caller's to mend
            raise
        except Exception as error:  # noqa: BLE001 - anybody's code; its words may quote
            return _failed(type(error).__name__)
        return found if isinstance(found, Passed) else _failed(f"gave {type(found).__name__}")


def _failed(reason: str) -> Passed[Candidate]:
    return Passed(decisions=(Decision(step="extract", verdict="failed", reason=reason),))
