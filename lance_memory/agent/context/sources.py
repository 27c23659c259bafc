"""What may go into a pack: the candidates of every source, each with its relevance."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_memory.agent.context.candidate import Candidate, ContextSource
from lance_memory.agent.context.legs import Begun, Legs
from lance_memory.agent.context.options import ContextOptions
from lance_memory.agent.context.outdated import corrections, with_corrections
from lance_memory.agent.context.score import (
    hit_relevance,
    profile_relevance,
    snapshot_relevance,
    talk_relevance,
    with_neighbours,
)
from lance_memory.agent.hot import HotTier, visible
from lance_memory.agent.procedural import ProceduralMemory
from lance_memory.agent.procedure import RankedProcedure, procedure_of
from lance_memory.agent.working import WorkingMemory
from lance_memory.agent.workspace import MemoryMode
from lance_memory.ingest import Message, event_of
from lance_memory.record.memory import CONSOLIDATED, DISTILLED, Kind, Memory, Scope, State
from lance_memory.record.results import Hit, SearchResult
from lance_memory.search import Mode
from lance_memory.store import MemoryStore

__all__ = ["Found", "Layers", "found"]

_LINEAGE = ("consolidates", "derived_from", "updates")
_KINDS = (Kind.EPISODIC, Kind.SEMANTIC, Kind.PROCEDURAL, Kind.PROFILE)
_SOURCES = {
    Kind.EPISODIC: ContextSource.EPISODIC,
    Kind.SEMANTIC: ContextSource.SEMANTIC,
    Kind.PROCEDURAL: ContextSource.PROCEDURAL,
    Kind.PROFILE: ContextSource.PROFILE,
}
_MADE = ("extracted", CONSOLIDATED, DISTILLED)
"""Sources of memories that are not what was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Where candidates come from.

    Attributes:
        store: a handle, usually scoped; nothing outside of it is read.
        working: the recent messages, and what a session is about.
        procedural: ways of doing things.
    """

    store: MemoryStore
    working: WorkingMemory
    procedural: ProceduralMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The candidates, and the version of the store that was searched."""

    candidates: tuple[Candidate, ...]
    version: int


def found(
    layers: Layers,
    legs: Legs,
    *,
    session: str,
    query: str,
    mode: MemoryMode,
    options: ContextOptions,
) -> Found:
    """The candidates of all sources; what failed or was late is noted in `legs`.

    What needs the embedder is begun first, and waited for last.
    """
    search = partial(layers.store.search, query, k=options.hits, kinds=_KINDS)
    by_words = partial(search, mode=Mode.TEXT)
    how = Mode.VECTOR if mode is MemoryMode.VECTOR else Mode.HYBRID
    recalling = legs.beside(partial(search, mode=how))
    fitting = legs.beside(partial(layers.procedural.best, query, options.procedures))
    talk = legs.asked("working", lambda: _talk(layers, session, query, options.recent))
    known = legs.asked("profile", lambda: _profile(layers.store))
    result = _recalled(legs, recalling, by_words)
    procedures = legs.asked("procedural", fitting) if options.procedures else ()
    hits = _hits(result, mode)
    recalled = _with_profile(hits, known or (), options.min_score)
    around = legs.asked("neighbours", lambda: _around(layers.store, recalled, options.lead))
    every = [*(talk or ()), *(around or recalled), *map(_of_procedure, procedures or ())]
    every = legs.asked("outdated", lambda: _corrected(layers.store, every)) or every
    whole = [one for one in every if one.source is not ContextSource.WORKING]
    vectors = legs.asked("diversity", lambda: _vectors(layers.store, whole, options)) or {}
    with_vectors = [replace(one, vector=vectors.get(one.id)) for one in whole]
    said = [one for one in every if one.source is ContextSource.WORKING]
    return Found(
        candidates=(*said, *with_vectors),
        version=layers.store.version if result is None else result.version,
    )


# -- asking -----------------------------------------------------------------------------------


def _recalled(
    legs: Legs, recalling: Begun[SearchResult], by_words: Callable[[], SearchResult]
) -> SearchResult | None:
    """What the search gives, or the words alone; None where they fail too.

    Where the search may be late the words are asked while it is under way.
    """
    words = legs.asked("words", by_words) if recalling.under_way else None
    result = legs.asked("vector", recalling)
    if result is None:
        return legs.asked("words", by_words) if words is None else words
    legs.failures.pop("words", None)  # the search has asked them too
    if reason := result.degraded.get("vector"):
        legs.note("vector", reason)
    return result


def _talk(layers: Layers, session: str, query: str, count: int) -> list[Candidate]:
    """The recent messages, and the values of the session."""
    scope = layers.store.scope.narrowed(session=session)
    messages = layers.working.recent(session, count)
    talk = [
        _of_message(message, scope, query, place=place, later=len(messages) - 1 - place)
        for place, message in enumerate(messages)
    ]
    values = layers.working.context(session)
    return [_of_values(values, scope), *talk] if values else talk


def _profile(store: MemoryStore) -> tuple[Memory, ...]:
    """What is known of whoever the handle is about; from memory, while nothing has changed."""
    return HotTier.of(store).read(
        store,
        "profile",
        lambda: tuple(store.list(kinds=Kind.PROFILE, states=State.ACTIVE)),
        shown=visible,
    )


def _around(store: MemoryStore, recalled: Sequence[Candidate], lead: int) -> list[Candidate]:
    """The candidates, and what stands next to the leading events."""
    events = [one.id for one in recalled if one.source is ContextSource.EPISODIC][:lead]
    if not events:
        return list(recalled)
    beside = store.around(events, kinds=Kind.EPISODIC)
    firsthand = [near for near in beside if near.memory.source != DISTILLED]
    return with_neighbours(
        recalled,
        [(_of_memory(near.memory, 0.0, ""), near.of, near.offset) for near in firsthand],
    )


def _corrected(store: MemoryStore, every: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, and what took the place of what some of them say, which are marked."""
    known = corrections(store, every)
    new = {by.id: _of_memory(by, 0.0, "") for one in known.values() for by in one.by}
    return with_corrections(every, known, new)


def _vectors(
    store: MemoryStore, candidates: Sequence[Candidate], options: ContextOptions
) -> Mapping[str, NDArray[np.float32]]:
    if options.relevance == 1 or not candidates:
        return {}
    return store.embeddings([one.id for one in candidates])


# -- what is a candidate ----------------------------------------------------------------------


def _hits(result: SearchResult | None, mode: MemoryMode) -> list[Hit]:
    """The hits; snapshots are for the mode that asks for them, procedures are ranked elsewhere."""
    distilled = mode is MemoryMode.DISTILLED
    hits = result.hits if result is not None else ()
    return [
        hit
        for hit in hits
        if (distilled or hit.memory.source != DISTILLED) and procedure_of(hit.memory) is None
    ]


def _with_profile(hits: Sequence[Hit], known: Sequence[Memory], least: float) -> list[Candidate]:
    """The hits, and of the profile also what the search has not found."""
    recalled = [_of_memory(hit.memory, hit_relevance(hit, least), _why(hit)) for hit in hits]
    there = {one.id for one in recalled}
    return [*recalled, *(_of_memory(one, 0.0, "") for one in known if one.id not in there)]


def _why(hit: Hit) -> str:
    """What its score is made from; the score itself stands beside it."""
    return hit.explain().partition(" from ")[2]


def _of_message(message: Message, scope: Scope, query: str, *, place: int, later: int) -> Candidate:
    event = event_of(scope, message)
    return Candidate(
        id=event,
        source=ContextSource.WORKING,
        kind=Kind.WORKING,
        content=message.content,
        relevance=talk_relevance(later, query, message.content),
        why=f"{later} messages later" if later else "the newest message",
        who=message.actor or str(message.role),
        at=message.at,
        scope=scope,
        place=place,
        ref=event,
        verbatim=True,
    )


def _of_values(values: Mapping[str, Any], scope: Scope) -> Candidate:
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


def _of_memory(memory: Memory, score: float, why: str) -> Candidate:
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


def _of_procedure(ranked: RankedProcedure) -> Candidate:
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
