"""What snapshots are made of, and within what bounds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lance_memory.record.arguments import real, several, whole
from lance_memory.record.memory import Kind

__all__ = ["DistillOptions", "SnapshotOf"]


class SnapshotOf(StrEnum):
    """What a snapshot is of: a session, a day (UTC), what is near to a question, or a tag."""

    SESSION = "session"
    DAY = "day"
    TOPIC = "topic"
    TAG = "tag"


_NIGHTLY = (SnapshotOf.SESSION, SnapshotOf.DAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillOptions:
    """What snapshots are made of, and within what bounds.

    Attributes:
        of: what `Distiller.distill` makes snapshots of: sessions, days, or both.
        kinds: of memories that go in; never another snapshot, nor what an agent is told.
        min_sources: of fewer memories nothing is made.
        max_sources: memories of one snapshot at most: the most important ones, then the newest.
        max_words: a longer text is shortened to this; 400 words are some 550 tokens, a third of a
            context of 1,500.
        max_dropped: share 0..1 of the sources' numbers, names, dates and negations that the
            transform may drop; where it drops more, nothing is made.
        max_snapshots: of one `distill` at most, the newest first; the next one goes on.
        k: memories of a topic at most.
    """

    of: tuple[SnapshotOf | str, ...] = _NIGHTLY
    kinds: tuple[Kind | str, ...] = (Kind.EPISODIC, Kind.SEMANTIC)
    min_sources: int = 2
    max_sources: int = 500
    max_words: int = 400
    max_dropped: float = 0.5
    max_snapshots: int = 200
    k: int = 20

    def __post_init__(self) -> None:
        several("of", self.of, _NIGHTLY)
        several("kinds", self.kinds, [kind for kind in Kind if kind is not Kind.WORKSPACE])
        whole("min_sources", self.min_sources, least=1)
        whole("max_sources", self.max_sources, least=self.min_sources)
        whole("max_words", self.max_words, least=10)
        real("max_dropped", self.max_dropped, least=0, most=1)
        whole("max_snapshots", self.max_snapshots, least=1)
        whole("k", self.k, least=1)
