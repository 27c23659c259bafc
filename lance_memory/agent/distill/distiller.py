"""Distiller: snapshots of sessions, days and topics, as one version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Final

from lance_memory.agent.distill.group import NARROW, SNAPSHOT, Group, Place, by_owner
from lance_memory.agent.distill.in_order import in_order
from lance_memory.agent.distill.looked import Looked, Sight
from lance_memory.agent.distill.marks import Marks
from lance_memory.agent.distill.near import near
from lance_memory.agent.distill.options import DistillOptions, SnapshotOf
from lance_memory.agent.distill.reached import Reached
from lance_memory.agent.distill.result import DistillResult
from lance_memory.agent.distill.snapshot import Drawn
from lance_memory.agent.distill.stored import made_of, refused, retired, stored
from lance_memory.agent.distill.wanted import Wanted
from lance_memory.agent.pinned import pinned
from lance_memory.curate import Execution, Transform
from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import instance, text
from lance_memory.record.filters import Filter
from lance_memory.record.memory import Kind, Scope
from lance_memory.record.times import utc
from lance_memory.store import MemoryStore

__all__ = ["Distiller"]

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

    def __repr__(self) -> str:
        of = ", ".join(map(str, self._options.of))
        return f"<Distiller of {of}: {self._store.uri} scope {self._store.scope}>"

    def distill(
        self, *, since: datetime | None = None, whole: bool = False, dry_run: bool = False
    ) -> DistillResult:
        """Make the snapshots of all sessions and days that have news, as one version.

        The day that is not over waits. What the transform fails on, or loses too much of, is
        refused and told; the rest is made. Of a handle that is kept to a tenant, or to nothing, it
        notes as the watermark `distilled` up to which event all went in.

        Of a long history it reads the sessions and days that can have changed since the last pass
        through such a handle, and makes the same as if it had read everything. Where the log does
        not tell what can have changed, such as after memories were deleted, it reads everything.

        Args:
            since: only of what was learned or changed then or later; None: of all that is not, as
                it is, in a snapshot.
            whole: read everything, whatever the last pass has noted.
            dry_run: write nothing; the transform is called all the same.

        Raises:
            EmbeddingError: the embedder failed on a snapshot; nothing was written.
            ConflictError: memories kept being changed meanwhile; nothing was written.
            InvalidInputError: `since` has no zone; or the store's ledger is elsewhere.
        """
        begun = None if since is None else utc(since, "since")
        sight = self._sight()
        last = None if whole else Reached.read(self._store, self._options)
        found = None if last is None else last.looked(sight, self._options)
        found = found or Looked.everything(sight)
        every = list(found.groups(self._of, until=sight.now.date()))
        stale = self._stale(found, every)
        asked = [group for group in stale if begun is None or group.has_news(begun)]
        orphans = found.orphans()
        result, kept = self._made(found, asked, orphans=orphans, dry_run=dry_run)
        places = {one.group.place for one in kept}
        left = [group for group in stale if group.place not in places]
        result = replace(
            result,
            unchanged=self._unchanged(found, stale, orphans),
            small=sum(not self._is_enough(found, group) for group in every),
            read=len(found.rows),
        )
        if dry_run:
            return result
        if (reached := Reached.of(sight, left)) is not None:
            reached.note(self._store, self._options)
        return replace(result, watermarks=self._advanced(found, every, left, kept))

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
            topic: a question; of each owner the nearest memories, `DistillOptions.k` at most.
            tag: the memories that have it.
            dry_run: as for `distill`.

        Raises:
            InvalidInputError: none or several of them are given, or one makes no sense.
            ScopeError: the handle is kept to another session.
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
        found, every = self._named(self._sight(), of, _name(of, given[of]))
        stale = self._stale(found, every)
        result, _ = self._made(found, stale, orphans={}, dry_run=dry_run)
        return replace(
            result,
            unchanged=sum(map(found.is_fresh, every)),
            small=sum(not self._is_enough(found, group) for group in every),
            read=len(found.rows),
        )

    # -- inside ---------------------------------------------------------------------------

    @property
    def _of(self) -> tuple[SnapshotOf, ...]:
        return tuple(map(SnapshotOf, self._options.of))

    def _sight(self) -> Sight:
        marks = Marks.of(self._store)  # before the version: what is complete then is in it
        view = pinned(self._store)
        now = utc(view.clock(), "clock()")
        kinds = tuple(map(str, self._options.kinds))
        return Sight(view=view, now=now, kinds=kinds, marks=marks)

    def _named(self, sight: Sight, of: SnapshotOf, name: str) -> tuple[Looked, list[Group]]:
        """The groups of that name, and what was looked at for them."""
        if of is SnapshotOf.SESSION:
            self._store.scope.narrowed(session=name)
            found = Looked.of(sight, Wanted(sessions=frozenset([name])))
            return found, list(found.groups([of], until=None))
        if of is SnapshotOf.DAY:
            found = Looked.of(sight, Wanted(days=frozenset([date.fromisoformat(name)])))
            return found, list(found.groups([of], until=None))
        if of is SnapshotOf.TOPIC:
            table = near(sight, name, k=self._options.k)
        else:
            kinds = tuple(map(Kind, sight.kinds))
            tagged = Filter(tags=(name,), kinds=kinds).predicate(sight.now)
            table = sight.scan(tagged, columns=NARROW)
        rows = sight.rows(table)
        found = Looked.some(sight, rows, [f"{SNAPSHOT}{of}/{name}"])
        return found, list(by_owner(rows, of, name, within=self._store.scope))

    def _is_enough(self, found: Looked, group: Group) -> bool:
        return len(group.rows) >= self._options.min_sources or group.place in found.there

    def _stale(self, found: Looked, every: Sequence[Group]) -> list[Group]:
        """The groups that a snapshot is to be made of, the newest first."""
        enough = [group for group in every if self._is_enough(found, group)]
        stale = [group for group in enough if not found.is_fresh(group)]
        return sorted(stale, key=lambda group: group.last, reverse=True)

    def _unchanged(self, found: Looked, stale: Sequence[Group], orphans: dict[Place, str]) -> int:
        """How many snapshots of sessions and days stay as they are."""
        going = {group.place for group in stale} & found.there.keys()
        heads = tuple(f"{SNAPSHOT}{of}/" for of in self._of)
        going |= {place for place in orphans if place[0].startswith(heads)}
        return max(0, found.sight.standing(self._of) - len(going))

    def _made(
        self,
        found: Looked,
        asked: Sequence[Group],
        *,
        orphans: dict[Place, str],
        dry_run: bool,
    ) -> tuple[DistillResult, Sequence[Drawn]]:
        """Make the snapshots of these groups; what is stored of them."""
        view, most = found.sight.view, self._options.max_snapshots
        now, later = asked[:most], asked[most:]
        made, left = made_of(
            view,
            [group for group in now if group.place not in found.taken],
            self._transform,
            options=self._options,
            execution=self._execution,
        )
        for group in now:
            if group.place in found.taken:
                named = f"memory {found.taken[group.place]} has the key {group.key!r}"
                left.append(refused(group, f"{named}; give it another key"))
        result = DistillResult(
            uri=self._store.uri,
            version=view.version,
            planned=dry_run,
            snapshots=tuple(one.snapshot for one in made),
            refused=tuple(left),
            left=len(later),
            retired=retired(orphans, made),
        )
        if dry_run:
            return result, ()
        done = stored(self._store, made, orphans, known=found.known)
        written = done.written
        ids = () if written is None else written.ids
        pairs = zip(done.kept, ids, strict=True)
        result = replace(
            result,
            version=result.version if written is None else written.version,
            snapshots=tuple(replace(one.snapshot, id=id) for one, id in pairs),
            refused=(*left, *done.refused),
            retired=done.retired,
            upkeep="" if written is None else written.upkeep,
        )
        return result, done.kept

    def _advanced(
        self,
        found: Looked,
        every: Sequence[Group],
        left: Sequence[Group],
        kept: Sequence[Drawn],
    ) -> dict[str, int]:
        """How far all events are in snapshots now, where that is further than it was."""
        marks = found.sight.marks
        if marks.order is None or not self._sees_all():
            return {}
        done = [group for group in every if found.is_fresh(group)]
        done += [one.group for one in kept]
        done += found.beside(left, self._of)
        days = SnapshotOf.DAY in self._of
        return marks.advance(found.waiting(done=done, open=left, days=days))

    def _sees_all(self) -> bool:
        """Whether the handle sees all of each tenant that it sees."""
        scope = self._store.scope
        return scope == Scope(tenant=scope.tenant)


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
