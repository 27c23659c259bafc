"""Snapshots are drawn by the transform, and stored as one version."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lance_memory.agent.distill.group import Group, Place
from lance_memory.agent.distill.options import DistillOptions
from lance_memory.agent.distill.snapshot import Drawn, Refused, drawn
from lance_memory.curate import Execution, Transform
from lance_memory.curate.transform.execute import outcomes
from lance_memory.errors import ConflictError, QuotaExceededError
from lance_memory.record.memory import Memory
from lance_memory.record.results import AddManyResult
from lance_memory.record.rows import to_memories
from lance_memory.store import MemoryStore

__all__ = ["Stored", "made_of", "refused", "stored"]

_TRIES: Final = 3


def made_of(
    view: MemoryStore,
    asked: Sequence[Group],
    transform: Transform,
    *,
    options: DistillOptions,
    execution: Execution,
) -> tuple[list[Drawn], list[Refused]]:
    """What the transform makes of the groups, and of which it makes nothing.

    Args:
        view: at the version that the groups are of.
        asked: the groups.
        transform: makes one text of memories.
        options: how many of them, and how much of what they say.
        execution: how the transform is called.
    """
    read: deque[tuple[Group, list[Memory]]] = deque()

    def clusters() -> Iterator[list[Memory]]:
        for group in asked:
            read.append((group, _read(view, group.chosen(options.max_sources))))
            yield read[-1][1]

    made: list[Drawn] = []
    left: list[Refused] = []
    bounds = (options.max_dropped, options.max_words)
    for outcome in outcomes(clusters(), transform, execution, stop=lambda: False):
        group, sources = read.popleft()
        one: Drawn | str = outcome.reason
        if outcome.derived is not None:
            one = drawn(group, sources, outcome.derived, bounds=bounds)
        if isinstance(one, Drawn):
            made.append(one)
        else:
            left.append(refused(group, one))
    return made, left


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What came of a commit.

    Attributes:
        kept: the snapshots that are stored.
        refused: those that could not be.
        retired: the ids of those that were retired.
        written: the version and the ids of `kept`, in order; None: there was nothing to do.
    """

    kept: tuple[Drawn, ...]
    refused: tuple[Refused, ...]
    retired: tuple[str, ...]
    written: AddManyResult | None = None


def stored(
    store: MemoryStore,
    made: Sequence[Drawn],
    orphans: Mapping[Place, str],
    *,
    known: Callable[[Place], str],
) -> Stored:
    """Commit; without those whose memories were changed meanwhile, or whose tenant is full.

    Args:
        store: to write to.
        made: the snapshots.
        orphans: by their places, the ids of snapshots that are to be retired unless one of `made`
            takes their place.
        known: the id of the snapshot that is to be superseded at a place; "" for none.

    Raises:
        ConflictError: a snapshot was made by somebody else meanwhile; or memories kept being
            changed.
    """
    left: list[Refused] = []
    tries = 0
    while tries < _TRIES:
        gone = retired(orphans, made)
        if not made and not gone:
            return Stored(kept=(), refused=tuple(left), retired=())
        try:
            written = store.upsert_many(
                [one.row for one in made],
                expected=[known(one.group.place) for one in made],
                retire=gone,
                made_from=[memory for one in made for memory in one.sources],
                reason="distill",
            )
        except (ConflictError, QuotaExceededError) as error:
            without, why = _stopping(error, made)
            if not without:
                raise
            left += [refused(one.group, why) for one in without]
            made = [one for one in made if one not in without]
            tries += isinstance(error, ConflictError)  # each full tenant stops it but once
        else:
            return Stored(kept=tuple(made), refused=tuple(left), retired=gone, written=written)
    raise ConflictError(
        f"memories were changed {_TRIES} times while snapshots of them were made; nothing was "
        "written: try again"
    )


def retired(orphans: Mapping[Place, str], made: Sequence[Drawn]) -> tuple[str, ...]:
    """The ids of the orphans that nothing takes the place of."""
    places = {one.group.place for one in made}
    return tuple(id for place, id in orphans.items() if place not in places)


def refused(group: Group, reason: str) -> Refused:
    """Of a group no snapshot is made."""
    return Refused(of=group.of, name=group.name, scope=group.scope, reason=reason)


def _read(view: MemoryStore, ids: Sequence[str]) -> list[Memory]:
    """Whole memories with their vectors, in that order."""
    snapshot = view._snapshot()
    found = {m.id: m for m in to_memories(snapshot.by_ids(ids, columns=snapshot.schema.names))}
    return [found[id] for id in ids if id in found]


def _stopping(
    error: ConflictError | QuotaExceededError, made: Sequence[Drawn]
) -> tuple[list[Drawn], str]:
    """The snapshots without which the commit could have been, and why."""
    if isinstance(error, QuotaExceededError):
        full = f"its tenant has {error.used:,} {error.resource} of {error.limit:,}"
        return [one for one in made if one.group.scope.tenant == error.tenant], full
    changed = "its memories were changed meanwhile; the next time it is made"
    return [one for one in made if not one.sources_without(error.ids)], changed
