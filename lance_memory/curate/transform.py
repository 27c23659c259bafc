"""From a cluster to the one memory that takes its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from lance_memory.curate.cluster import unit
from lance_memory.curate.facts import content_words, salient, sentences
from lance_memory.record.memory import Kind, Memory

__all__ = ["Derived", "Transform", "keep_distinct"]

_COVERED = 0.6
"""A sentence is a repetition once as much of its content words stand in what is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """What a transform makes of a cluster.

    Everything but the content is optional: scope, event times, importance, tags and the
    metadata that all sources agree on come from the sources.
    """

    content: str
    kind: Kind | str | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    importance: float | None = None
    confidence: float | None = None


Transform: TypeAlias = Callable[[Sequence[Memory]], "Derived | str | None"]
"""Makes one memory of a cluster (oldest member first). None leaves the cluster alone."""


def keep_distinct(cluster: Sequence[Memory]) -> Derived:
    """The default: keeps what was said, and invents nothing.

    First the newest statement, because it holds the latest word; then the most central one; then,
    oldest first, each sentence of the others that still adds something: a number, a name or a
    negation that is not there yet, or mostly other words.
    """
    newest = max(cluster, key=lambda memory: (memory.happened_at, memory.id))
    others = [memory for memory in (_most_central(cluster), *cluster) if memory is not newest]
    kept = sentences(newest.content)
    words, facts = content_words(newest.content), salient(newest.content)
    for memory in others:
        for sentence in sentences(memory.content):
            if _adds(sentence, words, facts):
                kept.append(sentence)
                words |= content_words(sentence)
                facts |= salient(sentence)
    return Derived(content=" ".join(kept))


def _most_central(cluster: Sequence[Memory]) -> Memory:
    """The member with the highest mean cosine to all; the newest where vectors are missing."""
    known = [memory for memory in cluster if memory.embedding is not None]
    if not known:
        return cluster[-1]
    vectors = unit(np.stack([np.asarray(m.embedding, dtype=np.float32) for m in known]))
    return known[int(np.argmax(vectors @ vectors.sum(axis=0)))]


def _adds(sentence: str, words: frozenset[str], facts: frozenset[str]) -> bool:
    own = content_words(sentence)
    if not salient(sentence) <= facts | words:
        return True
    return bool(own) and len(own & words) / len(own) < _COVERED
