"""The episodic layer: what happened, when, and how much it matters."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Unpack

from numpy.typing import ArrayLike

from lance_memory.agent.importance import Heuristic, ImportanceAssessor
from lance_memory.agent.kinds import of_kind
from lance_memory.errors import InvalidInputError
from lance_memory.ingest import Message, Role
from lance_memory.record.arguments import mapping, real
from lance_memory.record.filters import Where
from lance_memory.record.memory import Kind, Memory
from lance_memory.record.results import AddManyResult, AddResult, SearchResult
from lance_memory.search import Mode, Ranking
from lance_memory.store import MemoryStore

__all__ = ["Episode", "EpisodicMemory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """Something that happened.

    Attributes:
        content: what, as a text.
        type: what sort of event, such as "decision" or "tool_error"; the caller's own words.
        session: which session it is of; empty: the handle's.
        importance: 0..1; None: the layer's assessor says.
        at: when, timezone-aware; None: now.
        role: of whoever did or said it.
        actor: who did or said it.
        tags: as of any memory.
        metadata: as of any memory; `type` stands there too.
        ref: the caller's own id of the event.
    """

    content: str
    type: str = ""
    session: str = ""
    importance: float | None = None
    at: datetime | None = None
    role: str = ""
    actor: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    ref: str = ""

    def __post_init__(self) -> None:
        mapping("metadata", self.metadata, "a mapping")
        if self.type and self.metadata.get("type", self.type) != self.type:
            raise InvalidInputError(
                f"type={self.type!r}, and metadata says type={self.metadata['type']!r}; give one"
            )


class EpisodicMemory:
    """Events, by session, type, time and importance. Rows of `kind=episodic`.

    Args:
        store: a handle, usually scoped; nothing outside of it is read or written.
        assessor: how much an event matters of which nobody says it.
    """

    def __init__(self, store: MemoryStore, *, assessor: ImportanceAssessor | None = None) -> None:
        self._store = store
        self._assessor = Heuristic() if assessor is None else assessor

    def add(
        self,
        content: str,
        *,
        type: str = "",
        session: str = "",
        importance: float | None = None,
        at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AddResult:
        """Keep one event; see `Episode` for the rest that can be said of one, and `add_many`.

        Raises:
            RejectedError: the event is malformed.
            EmbeddingError: the embedder failed; nothing was stored.
        """
        episode = Episode(
            content=content,
            type=type,
            session=session,
            importance=importance,
            at=at,
            metadata={} if metadata is None else metadata,
        )
        return self._store.add(**self._fields(episode))

    def add_many(self, episodes: Iterable[Episode]) -> AddManyResult:
        """Keep events as one version, embedded in one call: all of them, or none.

        Raises:
            RejectedError: `rows` has the places of the malformed ones.
            EmbeddingError: the embedder failed; nothing was stored.
        """
        return self._store.add_many([self._fields(episode) for episode in episodes])

    def list(
        self,
        *,
        type: str = "",
        limit: int | None = None,
        newest_first: bool = True,
        **where: Unpack[Where],
    ) -> builtins.list[Memory]:
        """The events that pass, the newest first, or the oldest.

        Args:
            type: only those of that type.
            limit: at most as many.
            newest_first: False: the oldest first.
            where: `session`, `since`, `until`, `min_importance` and the others of `Where`.

        Raises:
            InvalidInputError: a negative limit, or a filter makes no sense.
        """
        chosen = _of_type(type, where)
        return self._store.list(limit=limit, newest_first=newest_first, **chosen)

    def recall(
        self,
        query: str | None,
        k: int = 10,
        *,
        type: str = "",
        vector: ArrayLike | None = None,
        mode: Mode | str = Mode.HYBRID,
        ranking: Ranking | None = None,
        **where: Unpack[Where],
    ) -> SearchResult:
        """The events that answer a question, best first; the arguments are those of `search`.

        The ranking is the store's own, which was chosen on conversations (design/006): an event
        counts more beside others of its session that answer too.

        Raises:
            InvalidInputError, EmbeddingError: as for `MemoryStore.search`.
        """
        chosen = _of_type(type, where)
        return self._store.search(query, vector=vector, k=k, mode=mode, ranking=ranking, **chosen)

    def _fields(self, episode: Episode) -> dict[str, Any]:
        """The columns of its row."""
        given = {
            "session": episode.session,
            "event_at": episode.at,
            "role": episode.role,
            "actor": episode.actor,
            "source_ref": episode.ref,
            "tags": episode.tags,
        }
        typed = {"type": episode.type} if episode.type else {}
        return {
            "content": episode.content,
            "kind": Kind.EPISODIC,
            "importance": self._importance(episode),
            "metadata": {**episode.metadata, **typed},
            **{name: value for name, value in given.items() if value},
        }

    def _importance(self, episode: Episode) -> float:
        if episode.importance is not None or not isinstance(episode.content, str):
            return 0.5 if episode.importance is None else episode.importance
        role = Role(episode.role) if episode.role in set(Role) else Role.USER
        said = Message(content=episode.content, role=role)
        return real("importance", self._assessor([said]), least=0, most=1)


def _of_type(type: str, where: Where) -> Where:
    return of_kind(Kind.EPISODIC, where, **({"type": type} if type else {}))
