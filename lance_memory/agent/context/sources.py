"""What may go into a pack: the candidates of every source, each with its relevance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_memory.agent.context.candidate import Candidate, ContextSource
from lance_memory.agent.context.legs import Begun, Legs
from lance_memory.agent.context.made import (
    of_memory,
    of_message,
    of_procedure,
    of_shared,
    of_values,
    why_of,
)
from lance_memory.agent.context.options import ContextOptions
from lance_memory.agent.context.outdated import corrections, with_corrections
from lance_memory.agent.context.scale import on_scale_of
from lance_memory.agent.context.score import hit_relevance, with_neighbours
from lance_memory.agent.hot import HotTier, visible
from lance_memory.agent.procedural import ProceduralMemory
from lance_memory.agent.procedure import BestProcedures, RankedProcedure, procedure_of
from lance_memory.agent.working import WorkingMemory
from lance_memory.agent.workspace import MemoryMode
from lance_memory.record.memory import DISTILLED, Kind, Memory, State
from lance_memory.record.results import Hit, SearchResult
from lance_memory.record.rows import EMBEDDING, embeddings, valid_vectors
from lance_memory.search import Mode
from lance_memory.sharing import SharedResult
from lance_memory.store import MemoryStore

__all__ = ["Found", "Layers", "found"]

_KINDS = (Kind.EPISODIC, Kind.SEMANTIC, Kind.PROCEDURAL, Kind.PROFILE)

_MOST_FACTS = 1_000
"""Of a profile that come in without being searched for; nobody has as many."""


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
    store = layers.store
    search = partial(store.search, query, k=options.hits, kinds=_KINDS)
    by_words = partial(search, mode=Mode.TEXT)
    how = Mode.VECTOR if mode is MemoryMode.VECTOR else Mode.HYBRID
    recalling = legs.beside(partial(search, mode=how))
    given = _asking_others(store, legs, query, how, options)
    best = partial(layers.procedural.best, query, options.procedures)
    fitting = legs.beside(best) if options.procedures else None
    talk = legs.asked("working", lambda: _talk(layers, session, query, options.recent))
    known = legs.asked("profile", lambda: _profile(store))
    result = _recalled(legs, recalling, by_words)
    procedures = _fit(legs, fitting)
    recalled = _with_profile(_hits(result, mode), known or (), options.min_score)
    around = legs.asked("neighbours", lambda: _around(store, recalled, options.lead))
    own = [*(talk or ()), *(around or recalled), *map(of_procedure, procedures)]
    own = legs.asked("outdated", lambda: _corrected(store, own)) or own
    others = _others(store, legs, given, result, mode=mode, least=options.min_score)
    every = [*own, *others]
    whole = [one for one in every if one.source is not ContextSource.WORKING]
    vectors = legs.asked("diversity", lambda: _vectors(store, whole, options)) or {}
    with_vectors = [replace(one, vector=vectors.get(one.id)) for one in whole]
    said = [one for one in every if one.source is ContextSource.WORKING]
    return Found(
        candidates=(*said, *with_vectors),
        version=store.version if result is None else result.version,
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


def _asking_others(
    store: MemoryStore, legs: Legs, query: str, mode: Mode, options: ContextOptions
) -> Begun[SharedResult] | None:
    """The search among what others share, by the same legs; None: it is not asked for.

    Where nothing is granted it ends before anything is embedded or read.
    """
    if not options.shared:
        return None
    k = math.ceil(options.hits * options.share(ContextSource.SHARED).tokens)
    return legs.beside(partial(store.sharing.search, query, k=k, mode=mode, kinds=_KINDS))


def _fit(legs: Legs, fitting: Begun[BestProcedures] | None) -> Sequence[RankedProcedure]:
    """The procedures that fit; None: they are not asked for."""
    found = None if fitting is None else legs.asked("procedural", fitting)
    if found is None:
        return ()
    if reason := found.degraded.get("vector"):
        legs.note("procedural", reason)
    return found.ranks


def _talk(layers: Layers, session: str, query: str, count: int) -> list[Candidate]:
    """The recent messages, and the values of the session."""
    scope = layers.working._handle(session).scope  # as the memories of what was said have it
    messages = layers.working.recent(session, count)
    talk = [
        of_message(message, scope, query, place=place, later=len(messages) - 1 - place)
        for place, message in enumerate(messages)
    ]
    values = layers.working.context(session)
    return [of_values(values, scope), *talk] if values else talk


def _profile(store: MemoryStore) -> tuple[Memory, ...]:
    """What is known of whoever the handle is about; from memory, while nothing has changed.

    Of a handle of very many users what is surest: the search finds what the question is about.
    """

    def load() -> tuple[Memory, ...]:
        facts = store.list(kinds=Kind.PROFILE, states=State.ACTIVE)
        return tuple(sorted(facts, key=lambda fact: (-fact.confidence, fact.id))[:_MOST_FACTS])

    return HotTier.of(store).read(store, "profile", load, shown=visible)


def _around(store: MemoryStore, recalled: Sequence[Candidate], lead: int) -> list[Candidate]:
    """The candidates, and what stands next to the leading events."""
    events = [one.id for one in recalled if one.source is ContextSource.EPISODIC][:lead]
    if not events:
        return list(recalled)
    beside = store.around(events, kinds=Kind.EPISODIC)
    firsthand = [near for near in beside if near.memory.source != DISTILLED]
    return with_neighbours(
        recalled,
        [(of_memory(near.memory, 0.0, ""), near.of, near.offset) for near in firsthand],
    )


def _corrected(store: MemoryStore, every: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, and what took the place of what some of them say, which are marked."""
    known = corrections(store, every)
    new = {by.id: of_memory(by, 0.0, "") for one in known.values() for by in one.by}
    return with_corrections(every, known, new)


def _vectors(
    store: MemoryStore, candidates: Sequence[Candidate], options: ContextOptions
) -> Mapping[str, NDArray[np.float32]]:
    """Of candidates, which the handle may read: so whose they are is not asked again."""
    if options.relevance == 1 or not candidates:
        return {}
    rows = store._snapshot().by_ids([one.id for one in candidates], columns=["id", EMBEDDING])
    known = rows.filter(pa.array(valid_vectors(rows)))
    return dict(zip(known["id"].to_pylist(), embeddings(known), strict=True))


# -- what is found ----------------------------------------------------------------------------


def _hits(result: SearchResult | None, mode: MemoryMode) -> list[Hit]:
    """The hits that are asked for; procedures are ranked elsewhere."""
    hits = result.hits if result is not None else ()
    return [hit for hit in hits if _is_for(hit, mode) and procedure_of(hit.memory) is None]


def _is_for(hit: Hit, mode: MemoryMode) -> bool:
    """Whether the mode asks for it: snapshots are for the one that is named after them."""
    return mode is MemoryMode.DISTILLED or hit.memory.source != DISTILLED


def _others(
    store: MemoryStore,
    legs: Legs,
    given: Begun[SharedResult] | None,
    result: SearchResult | None,
    *,
    mode: MemoryMode,
    least: float,
) -> list[Candidate]:
    """What others share, on the scale of what the handle's own search has found."""
    answer = None if given is None else legs.asked("shared", given)
    if answer is None:
        return []
    if reason := answer.degraded.get("vector"):
        legs.note("vector", reason)
    shared = [
        one for one in answer if _is_for(one.hit, mode) and not store.scope.holds(one.memory.scope)
    ]
    hits = on_scale_of(result.hits if result is not None else (), [one.hit for one in shared])
    return [of_shared(one, hit, least) for one, hit in zip(shared, hits, strict=True)]


def _with_profile(hits: Sequence[Hit], known: Sequence[Memory], least: float) -> list[Candidate]:
    """The hits, and of the profile also what the search has not found."""
    recalled = [of_memory(hit.memory, hit_relevance(hit, least), why_of(hit)) for hit in hits]
    there = {one.id for one in recalled}
    return [*recalled, *(of_memory(one, 0.0, "") for one in known if one.id not in there)]
