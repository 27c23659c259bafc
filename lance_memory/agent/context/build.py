"""From a question to a pack: ask the sources, score, pack, and tell how it went."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from lance_memory.agent.context.legs import Legs
from lance_memory.agent.context.options import ContextOptions, Count
from lance_memory.agent.context.pack import packed
from lance_memory.agent.context.result import ContextPack, DropReason
from lance_memory.agent.context.score import scored
from lance_memory.agent.context.sources import Layers, found
from lance_memory.agent.hot import HotTier
from lance_memory.agent.workspace import MemoryMode, WorkspaceView
from lance_memory.agent.workspace.place import owner_of, reading
from lance_memory.embed.tokens import count_tokens, verified_counts
from lance_memory.record.arguments import text
from lance_memory.store import MemoryStore
from lance_memory.telemetry import count, observe

__all__ = ["build"]


def build(
    layers: Layers,
    *,
    session: str,
    query: str,
    options: ContextOptions,
    budget_tokens: int | None = None,
) -> ContextPack:
    """What the agent is to know for its next turn.

    Args:
        layers: where it comes from.
        session: whose recent messages are looked at.
        query: what is asked; nothing in it is an operator.
        options: how the pack is made.
        budget_tokens: in place of that of the options.

    Raises:
        InvalidInputError: a blank query or session, or a budget below 1.
        ScopeError: the handle is kept to another session.
    """
    text("query", query)
    layers.store.scope.narrowed(session=text("session", session))
    if budget_tokens is not None:
        options = replace(options, budget_tokens=budget_tokens)
    begun = time.perf_counter()
    legs = Legs(options.latency)
    mode = _mode(layers.store, legs, options)
    candidates = found(layers, legs, session=session, query=query, mode=mode, options=options)
    made = packed(
        scored(candidates.candidates, options),
        budget=options.budget_tokens,
        options=options,
        count=_counter(layers.store, options),
        within=layers.store.scope,
        query=query,
    )
    if candidates.candidates and not made.items:
        of = f"of a budget of {options.budget_tokens} tokens the frame alone takes {made.frame}"
        if any(one.reason is DropReason.BUDGET for one in made.dropped):
            legs.note("budget", f"{of}, and nothing fits beside it")
    pack = ContextPack(
        text=made.text,
        items=made.items,
        tokens=made.tokens,
        budget=options.budget_tokens,
        mode=mode,
        version=candidates.version,
        degraded=tuple(legs.failures),
        failures=dict(legs.failures),
        dropped=made.dropped,
        seconds={**legs.seconds, "all": time.perf_counter() - begun},
    )
    _tell(pack, tenant=layers.store.scope.tenant)
    return pack


def _mode(store: MemoryStore, legs: Legs, options: ContextOptions) -> MemoryMode:
    """The mode that was asked for, else the workspace's, else hybrid."""
    if options.mode is not None:
        return MemoryMode(options.mode)
    if not (store.scope.tenant or store.scope.agent):
        return MemoryMode.HYBRID
    owner = owner_of(store.scope)
    key = ("memory_mode", owner)  # `reading` sees the tenant, which several agents have in common
    told = partial(HotTier.of(store).read, reading(store, owner), key)
    asked = legs.asked("workspace", lambda: told(lambda: WorkspaceView(store).memory_mode))
    return MemoryMode.HYBRID if asked is None else asked


def _counter(store: MemoryStore, options: ContextOptions) -> Count:
    """Counts by the tokenizer that was given, verified, or by the embedder's own."""
    if options.tokenizer is None:
        return partial(count_tokens, store.embedder)
    given = options.tokenizer
    return lambda texts: verified_counts(given(texts), name="tokenizer", count=len(texts))


def _tell(pack: ContextPack, *, tenant: str) -> None:
    """Figures, by tenant: packs, whether anything was found, items and tokens, time, failures."""
    count("context.packs", mode=str(pack.mode), tenant=tenant)
    count("context.hits" if pack.items else "context.misses", tenant=tenant)
    for source, items in pack.sources.items():
        tokens = sum(item.tokens for item in pack.items if item.source is source)
        count("context.items", items, source=str(source), tenant=tenant)
        count("context.tokens", tokens, source=str(source), tenant=tenant)
    for leg, seconds in pack.seconds.items():
        observe("context.seconds", seconds, leg=leg, tenant=tenant)
    for leg in pack.degraded:
        count("context.degraded", leg=leg, tenant=tenant)
