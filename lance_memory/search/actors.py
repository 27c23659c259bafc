"""What the actors of a scope go by, remembered by one handle."""

from __future__ import annotations

from lance_memory.record.memory import Scope
from lance_memory.search.names import Names
from lance_memory.storage import Snapshot

__all__ = ["KnownActors"]

_SCOPES_KEPT = 64


class KnownActors:
    """The names of each scope's actors at a version, made again when there are others.

    Safe to share between threads: two may make the same names at once, which costs time only.
    """

    def __init__(self) -> None:
        self._names: dict[Scope, tuple[frozenset[str], Names]] = {}

    def names(self, snapshot: Snapshot, scope: Scope) -> Names:
        """What the actors that `scope` has at this version go by."""
        actors = snapshot.ranking_columns.actors(scope)
        known, names = self._names.get(scope, (None, Names()))
        if known != actors:
            names = Names.of(actors)
            if len(self._names) >= _SCOPES_KEPT:
                self._names = {}
            self._names[scope] = actors, names
        return names
