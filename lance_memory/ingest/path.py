"""The write path: its steps, in their order. Each can be replaced by one of your own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.extract import Extract
from lance_memory.ingest.formats import Normalise
from lance_memory.ingest.gate import Gate
from lance_memory.ingest.keep import Keep
from lance_memory.ingest.message import Conversation
from lance_memory.ingest.order import OrderOptions
from lance_memory.ingest.overlay import OVERLAYS, Overlay
from lance_memory.ingest.redaction import Redact
from lance_memory.ingest.resolve import Resolve
from lance_memory.ingest.steps import Step

__all__ = ["WritePath"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePath:
    """What happens to a conversation, in this order.

    `dataclasses.replace(WritePath(), extract=Extract(mine))` puts another step in.

    Attributes:
        normalise: one form for every text.
        redact: takes secrets and personal data out, before anything is queued, logged or stored.
        gate: lets a conversation in, or says why not. None: all come in.
        extract: finds candidates in what was said.
        keep: which candidates are worth keeping, now or once they were seen again.
        resolve: what each becomes beside the memories that are there, as one change set.
        overlays: what domains add after the commit, by the domain of a conversation.
        events: the registered back-end events: a conversation's `source` is one of them, or empty.
            They are taken at their word, whoever speaks, and are no repetition of one another.
        order: how long, and for how many, numbered events wait. Of the path that a store is opened
            with: all of its jobs are in one order.
    """

    normalise: Step = field(default_factory=Normalise)
    redact: Step = field(default_factory=Redact)
    gate: Step | None = field(default_factory=Gate)
    extract: Step = field(default_factory=Extract)
    keep: Step = field(default_factory=Keep)
    resolve: Resolve = field(default_factory=Resolve)
    overlays: Mapping[str, tuple[Overlay, ...]] = field(default_factory=lambda: OVERLAYS)
    events: frozenset[str] = frozenset()
    order: OrderOptions = field(default_factory=OrderOptions)

    def refuse_unregistered(self, conversations: Iterable[Conversation]) -> None:
        """Refuse conversations of an event that nobody has registered.

        Raises:
            InvalidInputError: names it.
        """
        for source in sorted({one.source for one in conversations} - self.events - {""}):
            raise InvalidInputError(
                f"source={source!r} is no registered event: they are taken at their word, so name "
                "them in WritePath(events={...}); people who talk have no source"
            )

    @property
    def steps(self) -> tuple[Step, ...]:
        """Those before the commit, in order."""
        return (*self.entering, *self.finding)

    @property
    def entering(self) -> tuple[Step, ...]:
        """What a conversation goes through before it is queued."""
        return (*self.cleaning, *self.gates)

    @property
    def cleaning(self) -> tuple[Step, ...]:
        """What must be done before anybody else sees the conversations."""
        return (self.normalise, self.redact)

    @property
    def gates(self) -> tuple[Step, ...]:
        """What is asked before they are queued."""
        return () if self.gate is None else (self.gate,)

    def settled(self, job: str, *, safe: bool) -> None:
        """What the gate let in is stored or queued; or the job failed, and may come again."""
        settled = getattr(self.gate, "settled", None)
        if settled is not None:
            settled(job, safe=safe)

    @property
    def finding(self) -> tuple[Step, ...]:
        """From conversations that were let in to candidates that are kept."""
        return (self.extract, self.keep)
