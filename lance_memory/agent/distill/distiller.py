"""Distiller: snapshots of sessions, days and topics, as one version."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Final

from lance_memory.agent.distill.group import Group, by_owner, groups
from lance_memory.agent.distill.in_order import in_order
from lance_memory.agent.distill.looked import Looked
from lance_memory.agent.distill.marks import Marks
from lance_memory.agent.distill.options import DistillOptions, SnapshotOf
from lance_memory.agent.distill.result import DistillResult
from lance_memory.agent.distill.snapshot import Drawn, Refused, drawn
from lance_memory.curate import Execution, Transform
from lance_memory.curate.transform.execute import outcomes
from lance_memory.errors import ConflictError, InvalidInputError, QuotaExceededError
from lance_memory.record.arguments import instance, text
from lance_memory.record.memory import Memory, Scope
from lance_memory.record.rows import to_memories
from lance_memory.record.times import utc
from lance_memory.store import MemoryStore

__all__ = ["Distiller"]

_TRIES: Final = 3
_LONGEST_NAME: Final = 200


class Distiller:
    """Makes snapshots: what a session, a day or a topic comes to, in one memory each.

    A snapshot is a memory (`source="distilled"`, kind episodic, tag "snapshot") that is
    "derived_from" those that it was made of. They stay as they are, and visible; an older snapshot
    of the same is superseded. Where the memories are what they were nothing is made again.

        Distiller(store.scoped(tenant="acme")).distill()

    No snapshot crosses a tenant, user or agent. Memories that something is missing before (see
    `order`) wait.

    Args:
        store: a handle; nothing outside of its scope is read or made.
        transform: makes one text of memories, as for `MemoryStore.consolidate`; by default
            each sentence that says something new, in the order of the session, and by whom.
        options: see `DistillOptions`.
        execution: how the transform is called.
    """

    def __init__(
        self,
        store: MemoryStore,
        transform: Transform = in_order,
        *,
        options: DistillOptions | None = None,
        execution: Execution | None = None,
    ) -> None:
        self._store = store
        self._transform = transform
        self._options = DistillOptions() if options is None else options
        self._execution = Execution() if execution is None else execution
        instance("options", self._options, DistillOptions, "DistillOptions")
        instance("execution", self._execution, Execution, "an Execution")
        if not callable(transform):
            raise InvalidInputError(f"transform is {transform!r}; it takes a callable")

    def distill(self, *, since: datetime | None = None, dry_run: bool = False) -> DistillResult:
        """Make the snapshots of all sessions and days that have news, as one version.

        The day that is not over waits. What the transform fails on, or loses too much of, is
        refused and told; the rest is made. Of a handle that is kept to a tenant, or to nothing, it
        notes as the watermark `distilled` up to which event all went in.

        Args:
            since: only of what was learned or changed then or later; None: of all that is not, as
                it is, in a snapshot.
            dry_run: write nothing; the transform is called all the same.

        Raises:
            EmbeddingError: the embedder failed on a snapshot; nothing was written.
            ConflictError: memories kept being changed meanwhile; nothing was written.
            InvalidInputError: `since` has no zone; or the store's ledger is elsewhere.
        """
        begun = None if since is None else utc(since, "since")
        marks = Marks.of(self._store)
        found = Looked.at(self._store, marks, self._options.kinds)
        of = [SnapshotOf(one) for one in self._options.of]
        today = found.now.date()
        every = list(groups(found.rows, of, within=self._store.scope, until=today))
        return self._made(found, every, since=begun, dry_run=dry_run, marks=marks)

    def snapshot(
        self,
        *,
        session: str | None = None,
        day: date | None = None,
        topic: str | None = None,
        tag: str | None = None,
        dry_run: bool = False,
    ) -> DistillResult:
        """Make a snapshot of one session, day, topic or tag; several, where it has several owners.

        Args:
            session: the name of a session.
            day: in UTC; one that is not over too.
            topic: a question; its nearest memories go in, at most `DistillOptions.k`.
            tag: the memories that have it.
            dry_run: as for `distill`.

        Raises:
            InvalidInputError: none or several of them are given, or one makes no sense.
            EmbeddingError, ConflictError: as for `distill`.
        """
        given = {
            SnapshotOf.SESSION: session,
            SnapshotOf.DAY: day,
            SnapshotOf.TOPIC: topic,
            SnapshotOf.TAG: tag,
        }
        chosen = [of for of, value in given.items() if value is not None]
        if len(chosen) != 1:
            raise InvalidInputError(
                f"{len(chosen)} of session, day, topic and tag are given; a snapshot is of one"
            )
        of = chosen[0]
        name = _name(of, given[of])
        found = Looked.at(self._store, Marks.of(self._store), self._options.kinds)
        return self._made(found, self._of(found, of, name), dry_run=dry_run)

    # -- inside ---------------------------------------------------------------------------

    def _of(self, found: Looked, of: SnapshotOf, name: str) -> list[Group]:
        """The groups of that name."""
        scope = self._store.scope
        if of in (SnapshotOf.SESSION, SnapshotOf.DAY):
            every = groups(found.rows, [of], within=scope, until=None)
            return [group for group in every if group.name == name]
        kinds = list(self._options.kinds)
        if of is SnapshotOf.TOPIC:
            near = found.view.search(name, k=self._options.k, kinds=kinds)
            ids = {hit.memory.id for hit in near}
        else:
            tagged = found.view.to_arrow(columns=["id"], kinds=kinds, tags=[name], states="visible")
            ids = set(tagged["id"].to_pylist())
        rows = [row for row in found.rows if row.id in ids]
        return list(by_owner(rows, of, name, within=scope))

    def _made(
        self,
        found: Looked,
        every: Sequence[Group],
        *,
        dry_run: bool,
        since: datetime | None = None,
        marks: Marks | None = None,
    ) -> DistillResult:
        """Make the snapshots of the groups whose memories are not in one as they are."""
        least = self._options.min_sources
        enough = [g for g in every if len(g.rows) >= least or g.place in found.there]
        fresh = [g for g in enough if found.is_fresh(g)]
        known = {g.place for g in fresh}
        stale = [g for g in enough if g.place not in known]
        asked = [g for g in stale if since is None or g.has_news(since)]
        asked.sort(key=lambda group: group.last, reverse=True)
        now, later = asked[: self._options.max_snapshots], asked[self._options.max_snapshots :]
        made, refused = self._drawn(found.view, [g for g in now if g.place not in found.taken])
        for group in now:
            if group.place in found.taken:
                named = f"memory {found.taken[group.place]} has the key {group.key!r}"
                refused.append(_refused(group, f"{named}; give it another key"))
        result = DistillResult(
            uri=self._store.uri,
            version=found.view.version,
            planned=dry_run,
            snapshots=tuple(one.snapshot for one in made),
            refused=tuple(refused),
            unchanged=len(fresh),
            small=len(every) - len(enough),
            left=len(later),
            retired=tuple(found.orphans()) if marks is not None else (),
        )
        if dry_run:
            return result
        result, kept = self._stored(found, made, result)
        if marks is None or not self._sees_all():
            return result
        places = {one.group.place for one in kept}
        waiting = found.waiting(
            done=[*fresh, *(one.group for one in kept)],
            open=[g for g in stale if g.place not in places],
            days=SnapshotOf.DAY in self._options.of,
        )
        return replace(result, watermarks=marks.advance(waiting))

    def _drawn(
        self, view: MemoryStore, asked: Sequence[Group]
    ) -> tuple[list[Drawn], list[Refused]]:
        """What the transform makes of the groups, and of which it makes nothing."""
        read: deque[tuple[Group, list[Memory]]] = deque()

        def clusters() -> Iterator[list[Memory]]:
            for group in asked:
                read.append((group, _read(view, group.chosen(self._options.max_sources))))
                yield read[-1][1]

        made: list[Drawn] = []
        refused: list[Refused] = []
        results = outcomes(clusters(), self._transform, self._execution, stop=lambda: False)
        for outcome in results:
            group, sources = read.popleft()
            one: Drawn | str = outcome.reason
            if outcome.derived is not None:
                bounds = (self._options.max_dropped, self._options.max_words)
                one = drawn(group, sources, outcome.derived, bounds=bounds)
            if isinstance(one, Drawn):
                made.append(one)
            else:
                refused.append(_refused(group, one))
        return made, refused

    def _stored(
        self, found: Looked, made: Sequence[Drawn], result: DistillResult
    ) -> tuple[DistillResult, Sequence[Drawn]]:
        """Commit; without those whose memories were changed meanwhile, or whose tenant is full.

        Raises:
            ConflictError: a snapshot was made by somebody else meanwhile; or memories kept being
                changed.
        """
        tries = 0
        while tries < _TRIES:
            if not made and not result.retired:
                return result, made
            try:
                written = self._store.upsert_many(
                    [one.row for one in made],
                    expected=[found.known(one.group.place) for one in made],
                    retire=result.retired,
                    made_from=[memory for one in made for memory in one.sources],
                    reason="distill",
                )
            except (ConflictError, QuotaExceededError) as error:
                without, why = _stopping(error, made)
                if not without:
                    raise
                told = (*result.refused, *(_refused(one.group, why) for one in without))
                made = [one for one in made if one not in without]
                result = replace(result, refused=told)
                tries += isinstance(error, ConflictError)  # each full tenant stops it but once
            else:
                pairs = zip(made, written.ids, strict=True)
                named = tuple(replace(one.snapshot, id=id) for one, id in pairs)
                return (
                    replace(
                        result, version=written.version, snapshots=named, upkeep=written.upkeep
                    ),
                    made,
                )
        raise ConflictError(
            f"memories were changed {_TRIES} times while snapshots of them were made; nothing was "
            "written: try again"
        )

    def _sees_all(self) -> bool:
        """Whether the handle sees all of each tenant that it sees."""
        scope = self._store.scope
        return scope == Scope(tenant=scope.tenant)


def _read(view: MemoryStore, ids: Sequence[str]) -> list[Memory]:
    """Whole memories with their vectors, in that order."""
    snapshot = view._snapshot()
    found = {m.id: m for m in to_memories(snapshot.by_ids(ids, columns=snapshot.schema.names))}
    return [found[id] for id in ids if id in found]


def _refused(group: Group, reason: str) -> Refused:
    return Refused(of=group.of, name=group.name, scope=group.scope, reason=reason)


def _stopping(
    error: ConflictError | QuotaExceededError, made: Sequence[Drawn]
) -> tuple[list[Drawn], str]:
    """The snapshots without which the commit could have been, and why."""
    if isinstance(error, QuotaExceededError):
        full = f"its tenant has {error.used:,} {error.resource} of {error.limit:,}"
        return [one for one in made if one.group.scope.tenant == error.tenant], full
    changed = "its memories were changed meanwhile; the next time it is made"
    return [one for one in made if not one.sources_without(error.ids)], changed


def _name(of: SnapshotOf, value: object) -> str:
    """What is asked for, as the name of a snapshot.

    Raises:
        InvalidInputError: it is no day, or no text of 1 to 200 characters.
    """
    if of is SnapshotOf.DAY:
        if isinstance(value, datetime) or not isinstance(value, date):
            raise InvalidInputError(f"day={value!r}; it takes a datetime.date")
        return value.isoformat()
    name = text(str(of), value)
    if len(name) > _LONGEST_NAME:
        raise InvalidInputError(
            f"{of} has {len(name):,} characters; it takes {_LONGEST_NAME} at most"
        )
    return name
