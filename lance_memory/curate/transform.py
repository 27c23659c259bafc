"""From a cluster to the one memory that takes its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from lance_memory.curate.cluster import unit
from lance_memory.curate.facts import content_words, joined, salient, sentences
from lance_memory.errors import InvalidInputError
from lance_memory.record.memory import Kind, Memory

__all__ = ["Derived", "Transform", "keep_distinct"]


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

    def __post_init__(self) -> None:
        if isinstance(self.tags, str) or not isinstance(self.tags, Sequence):
            raise InvalidInputError(f"tags is {self.tags!r}; it takes a list of texts")
        if not isinstance(self.metadata, Mapping):
            raise InvalidInputError(f"metadata is {self.metadata!r}; it takes a mapping")


Transform: TypeAlias = Callable[[Sequence[Memory]], "Derived | str | None"]
"""Makes one memory of a cluster (oldest member first). None leaves the cluster alone."""


def keep_distinct(cluster: Sequence[Memory]) -> Derived:
    """The default: keeps what was said, and invents nothing.

    First the newest statement, because it holds the latest word; then the most central one; then,
    oldest first, each sentence of the others that says something which no kept sentence says: a
    word beside the common ones, a number, a name, or the opposite.
    """
    newest = max(cluster, key=lambda memory: (memory.happened_at, memory.id))
    others = [memory for memory in (_most_central(cluster), *cluster) if memory is not newest]
    kept = sentences(newest.content)
    said = [_said(sentence) for sentence in kept]
    for memory in others:
        for sentence in sentences(memory.content):
            words, negated = _said(sentence)
            if not any(words <= known and negated is no for known, no in said):
                kept.append(sentence)
                said.append((words, negated))
    return Derived(content=joined(kept))


def _said(sentence: str) -> tuple[frozenset[str], bool]:
    """The words and facts of a sentence, and whether it denies."""
    facts = salient(sentence)
    return (content_words(sentence) | facts) - {"not"}, "not" in facts


def _most_central(cluster: Sequence[Memory]) -> Memory:
    """The member with the highest mean cosine to all; the newest where vectors are missing."""
    known = [memory for memory in cluster if memory.embedding is not None]
    if not known:
        return cluster[-1]
    vectors = unit(np.stack([np.asarray(m.embedding, dtype=np.float32) for m in known]))
    return known[int(np.argmax(vectors @ vectors.sum(axis=0)))]
