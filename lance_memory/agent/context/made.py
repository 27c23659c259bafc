"""What may go into a pack, as candidates: messages, values, memories, procedures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lance_memory.agent.context.candidate import Candidate, ContextSource
from lance_memory.agent.context.score import (
    hit_relevance,
    profile_relevance,
    snapshot_relevance,
    talk_relevance,
)
from lance_memory.agent.procedure import RankedProcedure
from lance_memory.ingest import Message, event_of
from lance_memory.record.memory import CONSOLIDATED, DISTILLED, Kind, Memory, Scope
from lance_memory.record.results import Hit
from lance_memory.sharing import SharedHit
from lance_memory.wording import counted

__all__ = ["of_memory", "of_message", "of_procedure", "of_shared", "of_values", "why_of"]

_LINEAGE = ("consolidates", "derived_from", "updates")
_SOURCES = {
    Kind.EPISODIC: ContextSource.EPISODIC,
    Kind.SEMANTIC: ContextSource.SEMANTIC,
    Kind.PROCEDURAL: ContextSource.PROCEDURAL,
    Kind.PROFILE: ContextSource.PROFILE,
}
_MADE = ("extracted", CONSOLIDATED, DISTILLED)
"""Sources of memories that are not what was said."""


def why_of(hit: Hit) -> str:
    """What its score is made from; the score itself stands beside it."""
    return hit.explain().partition(" from ")[2]


def of_message(message: Message, scope: Scope, query: str, *, place: int, later: int) -> Candidate:
    """A message of the conversation, with so many later ones."""
    event = event_of(scope, message)
    return Candidate(
        id=event,
        source=ContextSource.WORKING,
        kind=Kind.WORKING,
        content=message.content,
        relevance=talk_relevance(later, query, message.content),
        why=f"{counted(later, 'message')} later" if later else "the newest message",
        who=message.actor or str(message.role),
        at=message.at,
        scope=scope,
        place=place,
        ref=event,
        verbatim=True,
    )


def of_values(values: Mapping[str, Any], scope: Scope) -> Candidate:
    """What a session is about, a line for each value."""
    lines = (
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in sorted(values.items())
    )
    return Candidate(
        id=f"{scope.session}#context",
        source=ContextSource.WORKING,
        kind=Kind.WORKING,
        content="\n".join(lines),
        relevance=1.0,
        why="what the session is about",
        who="context",
        scope=scope,
    )


def of_memory(memory: Memory, score: float, why: str) -> Candidate:
    """A memory that the search has found with this score; 0: it did not."""
    source = ContextSource.DISTILLED if memory.source == DISTILLED else _SOURCES[memory.kind]
    relevance = score
    if source is ContextSource.DISTILLED:
        relevance = snapshot_relevance(memory.quality, score)
    if source is ContextSource.PROFILE:
        relevance = profile_relevance(memory.confidence, score)
        why = f"profile, confidence {memory.confidence:.2f}" + (f"; {why}" if why else "")
    return Candidate(
        id=memory.id,
        source=source,
        kind=memory.kind,
        content=memory.content,
        relevance=relevance,
        why=why,
        who=memory.actor or memory.role,
        at=memory.happened_at,
        until=memory.valid_to,
        scope=memory.scope,
        place=memory.seq or 0,
        ref=memory.source_ref,
        verbatim=source is ContextSource.EPISODIC and memory.source not in _MADE,
        successor=memory.superseded_by,
        made_of=frozenset(
            edge.target for edge in memory.relationships if edge.relation in _LINEAGE
        ),
    )


def of_shared(shared: SharedHit, hit: Hit, least: float) -> Candidate:
    """What somebody else lets be read: by the score of `hit`, whatever kind it is."""
    giver = shared.grant.giver
    return replace(
        of_memory(hit.memory, 0.0, ""),
        source=ContextSource.SHARED,
        relevance=hit_relevance(hit, least),
        why=f"shared by {giver}; {why_of(hit)}",
        shared_by=giver,
    )


def of_procedure(ranked: RankedProcedure) -> Candidate:
    """A procedure that fits the question."""
    one = ranked.procedure
    return Candidate(
        id=one.id,
        source=ContextSource.PROCEDURAL,
        kind=Kind.PROCEDURAL,
        content=one.content,
        relevance=ranked.score,
        why=ranked.explain(),
        at=one.last_used or one.learned_at,
        scope=one.scope,
    )
