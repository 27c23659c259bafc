"""A snapshot: what several memories say, in one; and the row that keeps it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from lance_memory.agent.distill.group import Group
from lance_memory.agent.distill.in_order import gathered, speakers
from lance_memory.agent.distill.options import SnapshotOf
from lance_memory.agent.distill.shorten import shortened
from lance_memory.curate import Derived
from lance_memory.curate.merge import averaged
from lance_memory.facts import dropped
from lance_memory.record.memory import DISTILLED, Kind, Memory, Relationship, Scope

__all__ = ["DistilledSnapshot", "Drawn", "Refused", "drawn", "sources_of", "told_of"]

_TAG: Final = "snapshot"
_DERIVED_FROM: Final = "derived_from"
_MEMBER: Final = "snapshot"
_SHOWN: Final = 60  # characters of the text, where a snapshot is shown in a line


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilledSnapshot:
    """What several memories say, in one.

    Attributes:
        of: what the memories have in common.
        name: which session, day, topic or tag.
        scope: whose it is.
        content: what it says.
        quality: the share 0..1 of the memories' numbers, names, dates and negations that it holds;
            1 where they have none.
        sources: ids of the memories that it was made from, oldest first.
        left_out: how many memories there were beside those.
        seq_from: the least number of an event among all of them; None: they have none.
        seq_to: the greatest.
        id: of the memory that keeps it; "" while it is only planned.
    """

    of: SnapshotOf
    name: str
    scope: Scope
    content: str
    quality: float
    sources: tuple[str, ...]
    left_out: int = 0
    seq_from: int | None = None
    seq_to: int | None = None
    id: str = ""

    def __str__(self) -> str:
        return f"{self.of} {self.name}"

    def __repr__(self) -> str:
        words = " ".join(self.content.split())
        start = f"{words[:_SHOWN]}…" if len(words) > _SHOWN else words
        whose = f" of {self.scope}" if self.scope else ""
        return f"<DistilledSnapshot {self}{whose}, from {len(self.sources)}: {start!r}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What no snapshot was made of, and why; one that was there stays."""

    of: SnapshotOf
    name: str
    scope: Scope
    reason: str

    def __str__(self) -> str:
        return f"{self.of} {self.name}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A snapshot that is to be stored.

    Attributes:
        group: whose.
        snapshot: the value.
        row: the memory that is going to keep it.
        sources: what it was made from, without their texts.
    """

    group: Group
    snapshot: DistilledSnapshot
    row: Mapping[str, Any]
    sources: tuple[Memory, ...] = field(repr=False)

    def sources_without(self, ids: Collection[str]) -> bool:
        """Whether none of these memories is among its sources."""
        return not any(memory.id in ids for memory in self.sources)


def drawn(
    group: Group,
    sources: Sequence[Memory],
    derived: Derived,
    *,
    bounds: tuple[float, int],
) -> Drawn | str:
    """The snapshot of a group; a reason, where what the transform gave loses too much.

    Args:
        group: all of the memories.
        sources: those of them that went into the transform, oldest first.
        derived: what it gave.
        bounds: share of the sources' facts that it may drop, and words of the text.
    """
    max_dropped, max_words = bounds
    texts = [memory.content for memory in sources]
    lost = dropped(texts, derived.content)
    if lost.share > max_dropped:
        some = ", ".join(lost.missing[:5])
        return f"it would drop {lost.share:.0%} of the facts of its sources, such as {some}"
    content = shortened(derived.content, max_words)
    if names := speakers(sources):
        content = gathered(content, names)
    seqs = [row.seq for row in group.rows if row.seq is not None]
    snapshot = DistilledSnapshot(
        of=group.of,
        name=group.name,
        scope=group.scope,
        content=content,
        quality=round(1.0 - dropped(texts, content).share, 4),
        sources=tuple(memory.id for memory in sources),
        left_out=len(group.rows) - len(sources),
        seq_from=min(seqs, default=None),
        seq_to=max(seqs, default=None),
    )
    return Drawn(
        group=group,
        snapshot=snapshot,
        row=_row(group, snapshot, sources, derived),
        sources=tuple(replace(memory, content="", embedding=None) for memory in sources),
    )


def told_of(memory: Memory) -> Mapping[str, Any]:
    """What the row of a snapshot says of it; nothing, where it was written by something else."""
    told = memory.metadata.get(_MEMBER)
    return told if isinstance(told, Mapping) else {}


def sources_of(memory: Memory) -> dict[str, str]:
    """What a snapshot was made from: id → hash of what it said then."""
    edges = memory.relationships
    return {edge.target: edge.note for edge in edges if edge.relation == _DERIVED_FROM}


def _row(
    group: Group, snapshot: DistilledSnapshot, sources: Sequence[Memory], derived: Derived
) -> dict[str, Any]:
    """The row: as long as the first of its sources lasts, and from the first to the last of them.

    The relationships carry the hash of what each source said, so that a change of one is seen.
    """
    ends = [memory.expires_at for memory in sources if memory.expires_at is not None]
    importance = derived.importance
    confidence = derived.confidence
    return {
        **group.scope.names(),
        "key": group.key,
        "content": snapshot.content,
        "kind": Kind.EPISODIC,
        "source": DISTILLED,
        "tags": list(dict.fromkeys([_TAG, *derived.tags])),
        "metadata": {
            **derived.metadata,
            _MEMBER: {
                "of": str(group.of),
                "name": group.name,
                "seq_from": snapshot.seq_from,
                "seq_to": snapshot.seq_to,
                "quality": snapshot.quality,
                "left_out": snapshot.left_out,
                "digest": group.digest,
            },
        },
        "quality": snapshot.quality,
        "importance": max(m.importance for m in sources) if importance is None else importance,
        "confidence": averaged([m.confidence for m in sources])
        if confidence is None
        else confidence,
        "valid_from": min(memory.happened_at for memory in sources),
        "event_at": max(memory.happened_at for memory in sources),
        "expires_at": min(ends, default=None),
        "relationships": [
            Relationship(relation=_DERIVED_FROM, target=memory.id, note=memory.content_hash)
            for memory in sources
        ],
    }
