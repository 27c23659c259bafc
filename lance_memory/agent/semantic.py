"""The semantic layer: what is true."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from numpy.typing import ArrayLike

from lance_memory.agent.kinds import of_kind
from lance_memory.errors import InvalidInputError
from lance_memory.record.filters import Where
from lance_memory.record.memory import Kind, Memory, Relationship
from lance_memory.record.results import AddResult, SearchResult, WriteResult
from lance_memory.record.times import utc
from lance_memory.search import Mode, Ranking
from lance_memory.store import MemoryStore

__all__ = ["SemanticMemory"]

ABOUT = "about"
_CORRECTS = "updates"
_RANKING = Ranking(neighbours=0.0)


class SemanticMemory:
    """Facts, recalled by meaning and by words. Rows of `kind=semantic`.

    A fact stands for itself: what was said before and after it does not make it an answer, so the
    default ranking looks at no neighbours.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def add(
        self,
        content: str,
        *,
        about: str | Iterable[str] = (),
        confidence: float = 1.0,
        importance: float = 0.5,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        ref: str = "",
    ) -> AddResult:
        """Keep one fact; the same content in the same scope is one fact, which stays as it is.

        Args:
            content: the fact, as a text.
            about: memories that it is about: ids, keys, or unambiguous beginnings of ids.
            confidence: how sure it is, 0..1.
            importance: how much it matters, 0..1.
            tags: as of any memory.
            metadata: as of any memory.
            valid_from: since when it is true, timezone-aware; None: always.
            valid_to: until when; None: for ever.
            ref: where it comes from.

        Raises:
            RejectedError: the fact is malformed.
            NotFoundError, AmbiguousError: what it is about is not there, or not told apart.
            EmbeddingError: the embedder failed; nothing was stored.
        """
        names = [about] if isinstance(about, str) else [*about]
        ids = dict.fromkeys(self._store.get(name).id for name in names)
        return self._store.add(
            content,
            kind=Kind.SEMANTIC,
            confidence=confidence,
            importance=importance,
            tags=tags,
            metadata=metadata or {},
            valid_from=valid_from,
            valid_to=valid_to,
            source_ref=ref,
            relationships=[Relationship(relation=ABOUT, target=id) for id in ids],
        )

    def correct(self, ref: str, content: str, *, reason: str = "") -> WriteResult:
        """Put a corrected fact in the place of one; the old one is hidden, linked and kept.

        Returns:
            `ids` has the new one's id first, then the old one's.

        Raises:
            NotFoundError, AmbiguousError: as for `MemoryStore.get`.
            InvalidInputError: the memory is no fact.
            ConflictError: the fact was superseded or retired already.
            EmbeddingError: the embedder failed.
        """
        old = self._store.get(ref)
        if old.kind is not Kind.SEMANTIC:
            raise InvalidInputError(
                f"memory {old.id} is {old.kind}, no fact; the store's own `supersede` takes any"
            )
        return self._store.supersede(old.id, content, relation=_CORRECTS, reason=reason)

    def list(
        self, *, limit: int | None = None, newest_first: bool = True, **where: Unpack[Where]
    ) -> builtins.list[Memory]:
        """The facts that pass, the newest first, or the oldest.

        Raises:
            InvalidInputError: a negative limit, or a filter makes no sense.
        """
        chosen = of_kind(Kind.SEMANTIC, where)
        return self._store.list(limit=limit, newest_first=newest_first, **chosen)

    def recall(
        self,
        query: str | None,
        k: int = 10,
        *,
        vector: ArrayLike | None = None,
        mode: Mode | str = Mode.HYBRID,
        ranking: Ranking = _RANKING,
        **where: Unpack[Where],
    ) -> SearchResult:
        """The facts that answer a question, best first; the arguments are those of `search`.

        `valid_at` keeps to what was true at a moment; without it a fact that has ended answers too,
        as a question may be about the past.

        Raises:
            InvalidInputError, EmbeddingError: as for `MemoryStore.search`.
        """
        chosen = of_kind(Kind.SEMANTIC, where)
        return self._store.search(query, vector=vector, k=k, mode=mode, ranking=ranking, **chosen)

    def about(self, ref: str) -> builtins.list[Memory]:
        """The visible facts about a memory, of whatever kind it is.

        Those that were added as being about it, and what took the place of one.

        Raises:
            NotFoundError, AmbiguousError: as for `MemoryStore.get`.
        """
        moment = utc(self._store.clock(), "clock()")
        related = self._store.related(ref, relation=ABOUT)
        found = (self._standing(one.memory) for one in related if one.direction == "in")
        facts = {memory.id: memory for memory in found if memory is not None}.values()
        return [m for m in facts if m.kind is Kind.SEMANTIC and m.visible_at(moment)]

    def _standing(self, memory: Memory | None) -> Memory | None:
        """What took its place last; itself, where nothing did."""
        while memory is not None and memory.superseded_by:
            memory = self._store.find(memory.superseded_by)
        return memory
