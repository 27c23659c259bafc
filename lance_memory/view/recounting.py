"""What was done: the log, differences, one memory's past, and the store in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

import pyarrow as pa

from lance_memory.errors import (
    InvalidInputError,
    LanceMemoryError,
)
from lance_memory.html import pairs
from lance_memory.record import filters
from lance_memory.record.compare import COLUMNS, differing
from lance_memory.record.filters import Filter
from lance_memory.record.memory import Memory
from lance_memory.record.results import (
    Change,
    Diff,
    LineageNode,
    MemoryChange,
    Stats,
)
from lance_memory.record.rows import EMBEDDING, to_memories
from lance_memory.storage import (
    Branch,
    Comparison,
    LogEntry,
    Snapshot,
    changes_of,
    history,
    indices,
    naming,
)
from lance_memory.view.reading import Reading

__all__ = ["Recounting"]


class Recounting(Reading):
    """A handle that tells its versions."""

    def log(self, *, limit: int | None = None, upkeep: bool = False) -> list[LogEntry]:
        """What was done, newest first, up to this view's version.

        Args:
            limit: at most as many entries.
            upkeep: also the versions that changed no memory.

        Through a scoped handle only the writes that touched the scope are listed, and one that
        touched others too, or too many to tell, is `partial`: it shows neither its reason and
        manifest nor its counts.
        """
        if limit is not None and limit < 0:
            raise InvalidInputError(f"limit={limit}; it cannot be negative")
        newest = self._snapshot().version
        found: list[LogEntry] = []
        for entry in history.entries(self._table):
            if limit is not None and len(found) >= limit:
                break
            shown = self._shown(entry)
            if entry.version <= newest and shown and (upkeep or not entry.upkeep):
                found.append(shown)
        return found

    def changed_since(self, version: int, *, look: int = 8) -> bool:
        """Whether a later version wrote within this scope, or may have: for who remembers a read.

        The log of the versions in between tells whose memories they changed. Where it does not, or
        there are more than `look` of them, the answer is yes. It reads a small file for each.

        Args:
            version: the one that was read.
            look: versions to look at, at most.
        """
        newest = self._snapshot().version
        if not 0 <= newest - version <= look:
            return True
        return any(map(self._may_concern, range(version + 1, newest + 1)))

    def diff(self, before: int | str | datetime, after: int | str | datetime | None = None) -> Diff:
        """What stands differently at `after` (default: here) than at `before`.

        Both name a version, a tag or a moment, and may be in either order.
        """
        old, new = self._snapshot(before), self._snapshot(after)
        return self._diff(old, new, history.compare(old, new, self._boundary()))

    def history(self, ref: str, *, depth: int = 10) -> list[MemoryChange]:
        """Every change of a memory, and of what it replaced and was replaced by, oldest first.

        Of many versions few are read; see `row_changes` for what is not seen. Of what was cleaned
        up `lost` says how many revisions there were.

        Args:
            ref: as for `get`.
            depth: generations at most in each direction.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            InvalidInputError: `depth` is not within 1..100.
        """
        found = self.lineage(ref, depth=depth)
        related = {found.memory.id, *_ids_of(found.successors), *_ids_of(found.sources)}
        return changes_of(self._table, related, until=self._snapshot().version, within=self._scope)

    def tags(self) -> dict[str, int]:
        """Tag → version.

        Raises:
            ScopeError: this handle is kept to a scope; `at` takes a tag that it was told all the
                same.
        """
        self._whole_store("the list of tags")
        return naming.tags(self._table)

    def branches(self) -> list[Branch]:
        """All branches but main.

        Raises:
            ScopeError: this handle is kept to a scope.
        """
        self._whole_store("the list of branches")
        return naming.branches(self._table)

    def stats(self) -> Stats:
        """The store in numbers: memories at this version and within this scope.

        Versions, fragments, bytes and rows without an index are the whole store's, and of now. So
        are tags and branches, which are named to the store's own handle alone: they are its owner's
        words, and may be about anybody.
        """
        snapshot, moment = self._snapshot(), self._moment()
        columns = ["state", "kind", "user", "session"]
        rows = snapshot.scan(self._boundary(), columns=columns)
        missing = filters.all_of(self._boundary(), filters.missing(EMBEDDING))
        return Stats(
            uri=self.uri,
            version=snapshot.version,
            at=moment,
            scope=self._scope,
            rows=len(rows),
            visible=snapshot.count(Filter(scope=self._scope).predicate(moment)),
            by_state=_counts(rows, "state"),
            by_kind=_counts(rows, "kind"),
            users=len(set(rows["user"].to_pylist()) - {""}),
            sessions=len(set(rows["session"].to_pylist()) - {""}),
            without_embedding=snapshot.count(missing),
            embedding_model=snapshot.format.embedding_model,
            dimension=snapshot.format.dimension,
            versions=len(history.readable(self._table)),
            tags={} if self._scope else self.tags(),
            branches=() if self._scope else tuple(branch.name for branch in self.branches()),
            fragments=len(snapshot.fragment_ids),
            bytes=self._table.place.size(),
            unindexed_rows=indices.unindexed_rows(snapshot),
        )

    def _repr_html_(self) -> str:
        found = self.stats()
        told = {
            "store": found.uri,
            "version": f"{found.version}, of {found.versions} that can be read",
            "scope": str(found.scope) if found.scope else "",
            "memories": f"{found.rows:,}, of which {found.visible:,} are visible",
            "states": ", ".join(f"{n:,} {state}" for state, n in found.by_state.items()),
            "kinds": ", ".join(f"{n:,} {kind}" for kind, n in found.by_kind.items()),
            "users": found.users,
            "sessions": found.sessions,
            "tags": ", ".join(found.tags),
            "branches": ", ".join(found.branches),
            "embeddings": f"{found.embedding_model}, {found.dimension} numbers",
        }
        return pairs(told)

    def _may_concern(self, version: int) -> bool:
        try:
            entry = history.entry(self._table, version)
        except LanceMemoryError:  # cleaned up, or damaged
            return True
        if entry.upkeep and entry.operation in history.PHYSICAL:
            return False
        return not entry.scopes or any(map(self._scope.holds, entry.scopes))

    def _shown(self, entry: LogEntry) -> LogEntry | None:
        if not self._scope or entry.upkeep:
            return entry
        if entry.scopes is not None and not any(map(self._scope.holds, entry.scopes)):
            return None
        if entry.scopes is not None and all(map(self._scope.holds, entry.scopes)):
            return entry
        told = replace(entry, partial=True, inserted=0, updated=0, deleted=0)
        return replace(told, reason="", manifest=None, scopes=())

    def _diff(self, old: Snapshot, new: Snapshot, found: Comparison) -> Diff:
        before, after = (
            {m.id: m for m in to_memories(side.by_ids(ids, columns=side.schema.names))}
            for side, ids in (
                (old, [*found.updated, *found.removed]),
                (new, [*found.updated, *found.inserted]),
            )
        )
        return Diff(
            before=old.version,
            after=new.version,
            inserted=tuple(after[i] for i in found.inserted),
            updated=tuple(_change(before[i], after[i]) for i in found.updated),
            removed=tuple(before[i] for i in found.removed),
        )


def _ids_of(nodes: Iterable[LineageNode]) -> Iterator[str]:
    for node in nodes:
        yield node.memory.id
        yield from _ids_of(node.nodes)


def _counts(rows: pa.Table, column: str) -> dict[str, int]:
    pairs = rows[column].value_counts().to_pylist()
    return {pair["values"]: pair["counts"] for pair in sorted(pairs, key=lambda p: p["values"])}


def _change(before: Memory, after: Memory) -> Change:
    told = [name for name in COLUMNS if name not in ("revision", "updated_at")]
    return Change(before=before, after=after, columns=differing(before, after, told))
