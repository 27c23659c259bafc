"""What happened on one line of versions, as a change set for another (design/039-merge.md).

Three states decide about each memory: the one that both lines come from, theirs, and ours as it
is when the change set is made. What they changed and we did not is taken; what both changed, and
not to the same, is a clash.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import ConflictError, InvalidInputError, LanceMemoryError, NotFoundError
from lance_memory.record.memory import SCOPE_LEVELS
from lance_memory.record.results import MergePlan
from lance_memory.record.rows import EMBEDDING, changed, patched, retired
from lance_memory.storage import naming
from lance_memory.storage.change import Audit, ChangeSet
from lance_memory.storage.history import compare, entries
from lance_memory.storage.keys import taken
from lance_memory.storage.opening import MAIN
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.table import Table
from lance_memory.storage.undo import Refit, as_at

__all__ = ["OPERATION", "Lines", "Prefer", "bring", "lines"]

OPERATION: Final = "merge"
"""What the log calls it; see `Lines.told` for what stands with it."""

_STAMPS: Final = ("revision", "updated_at")


class Prefer(StrEnum):
    """Whose version of a memory stands, where two lines changed it each in its way."""

    OURS = "ours"
    THEIRS = "theirs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Another line that is merged into one.

    Attributes:
        theirs: the other line.
        tip: what is merged, the newest version of the other.
        base: the last state that both had; None: it cannot be read any more.
        branch: the identity of the branch of the two, of no other of the same name before or after.
    """

    theirs: Table
    tip: Snapshot
    base: Snapshot | None
    branch: str

    def told(self) -> dict[str, Any]:
        """What the log keeps of the merge, for the next one."""
        return {"branch": self.theirs.branch, "line": self.branch, "tip": self.tip.version}

    def keep_tip(self) -> None:
        """Keep what was merged from clean-up, in place of what was before: the next begins there.

        Where that fails, the next merge may ask about memories that were merged already.
        """
        with suppress(LanceMemoryError):
            naming.keep_merged(self.theirs, self.branch, self.tip.version)


def lines(ours: Table, name: str) -> Lines:
    """A line and the other one, a branch that left it or the one that it left.

    What both had is where the branch began, or what was merged last, in either direction.

    Raises:
        NotFoundError: there is no such branch.
        InvalidInputError: neither of the two left the other.
        StoreFormatError: the other line is of an earlier schema.
    """
    branches = {one.name: one for one in naming.branches(ours)}
    if name not in {MAIN, *branches}:
        there = ", ".join([MAIN, *branches])
        raise NotFoundError(f"there is no branch {name!r}; there are: {there}")
    if name == ours.branch:
        raise InvalidInputError(f"{name!r} is this line itself; name another")
    theirs = ours.on_branch(name)
    theirs.refuse_writes()
    tip = theirs.latest()
    for branch, parent in ((theirs, ours), (ours, theirs)):
        found = branches.get(branch.branch)
        if found is not None and found.parent == parent.branch:
            identity = naming.identity(ours, found.name)
            merged = _merged_last(ours, theirs, identity, since=found.parent_version)
            line, version = merged or (parent, found.parent_version)
            base: Snapshot | None = None
            with suppress(NotFoundError):  # it was cleaned up, or had what was forgotten
                base = line.at(version)
            return Lines(theirs=theirs, tip=tip, base=base, branch=identity)
    raise InvalidInputError(
        f"{name!r} did not leave {ours.branch!r}, nor the other way round: merge it into the line "
        "that it left, and that one into this"
    )


def bring(
    present: Snapshot,
    theirs: Snapshot,
    base: Snapshot | None,
    *,
    audit: Audit,
    prefer: Prefer | None,
    refit: Refit,
) -> tuple[ChangeSet, MergePlan]:
    """What happened between `base` and `theirs`, for the present.

    Without a base nobody knows who changed what: all in which theirs differs clashes, and what only
    the present has stays.

    Args:
        present: where it is to happen too.
        theirs: the version that is merged.
        base: what both come from; None: it cannot be read any more.
        audit: of the commit; its manifest is `Lines.told`.
        prefer: who is right in a clash; None leaves what clashes out of the change set.
        refit: see `Refit`.

    Raises:
        ConflictError: an id is in two scopes.
    """
    found = compare(present if base is None else base, theirs)
    gone = () if base is None else found.removed
    touched = [*found.inserted, *found.updated, *gone]
    new, now = (_told(side, touched) for side in (theirs, present))
    was = {} if base is None else _told(base, touched)
    differs = [i for i in touched if now.get(i) != new.get(i)]
    clashes = {i for i in differs if base is None or now.get(i) != was.get(i)}
    take = [i for i in differs if prefer is Prefer.THEIRS or i not in clashes]
    rows = _on_top(
        as_at(theirs, [i for i in take if i in new], present, refit),
        present.by_ids(take, columns=["id", *_STAMPS, *SCOPE_LEVELS]),
        audit,
    )
    keys = taken(present, rows, audit.at, leaving=take)
    held = pc.is_in(rows["id"], pa.array([*keys], pa.string()))
    parts = [rows.filter(pc.invert(held))]
    if prefer is Prefer.THEIRS:
        ours = present.by_ids([*keys.values()], columns=present.schema.names)
        parts += [rows.filter(held), _given_way(ours, audit)]
    elif prefer is Prefer.OURS:
        parts.append(_given_way(rows.filter(held), audit))
    written = pa.concat_tables(parts)
    standing = present.by_ids(written["id"].to_pylist(), columns=["id"])["id"]
    there = pc.is_in(written["id"], standing.combine_chunks())
    change = ChangeSet(
        audit=audit,
        inserts=written.filter(pc.invert(there)),
        updates=written.filter(there),
        deletes=present.by_ids([i for i in take if i not in new], columns=["id", *SCOPE_LEVELS]),
        noted=bool(touched),  # or what both did alike, and what was decided, would be asked again
    )
    plan = MergePlan(
        version=present.version,
        branch=audit.manifest["branch"],
        tip=theirs.version,
        added=_ids(change.inserts),
        changed=_ids(change.updates),
        removed=_ids(change.deletes),
        clashes=tuple(sorted(clashes)),
        keys=keys,
    )
    return change, plan


def _told(side: Snapshot, ids: list[str]) -> dict[str, dict[str, Any]]:
    """What rows say: all but when and how often they were changed, and their vectors.

    A revision and a time name one content on one line. On two they do not: clocks that stand still
    give both edits the same, and `_on_top` gives what is the same others.
    """
    columns = [name for name in side.columns if name not in _STAMPS and name != EMBEDDING]
    return {row["id"]: row for row in side.by_ids(ids, columns=columns).to_pylist()}


def _on_top(theirs: pa.Table, ours: pa.Table, audit: Audit) -> pa.Table:
    """Rows that take the place of ours, as revisions that come after them.

    Raises:
        ConflictError: one is in another scope here.
    """
    before = {row["id"]: row for row in ours.to_pylist()}
    late, stamps = [], []
    for row in theirs.select(["id", *_STAMPS, *SCOPE_LEVELS]).to_pylist():
        old = before.get(row["id"], row)
        if any(row[level] != old[level] for level in SCOPE_LEVELS):
            raise ConflictError(
                f"memory {row['id']} is in one scope here, and in another on the other line; "
                "nothing was written: delete one of the two",
                ids=[row["id"]],
            )
        grown = all(row[name] > old[name] for name in _STAMPS)
        late.append(old is not row and not grown)
        stamps.append({name: max(row[name], old[name]) for name in _STAMPS})
    columns = {
        name: pa.array([stamp[name] for stamp in stamps], theirs.schema.field(name).type)
        for name in _STAMPS
    }
    behind = pa.array(late, pa.bool_())
    later = changed(patched(theirs, columns).filter(behind), {}, now=audit.at)
    return pa.concat_tables([theirs.filter(pc.invert(behind)), later])


def _ids(rows: pa.Table | None) -> tuple[str, ...]:
    return () if rows is None else tuple(sorted(rows["id"].to_pylist()))


def _given_way(rows: pa.Table, audit: Audit) -> pa.Table:
    """Rows of which the other line's has the key: retired, and not superseded by it.

    That one may be what they took the place of, and a succession must not lead in circles.
    """
    return retired(rows, reason=audit.reason or "its key was given to another", now=audit.at)


class _Merge(NamedTuple):
    """A merge: the version that it made on the one line, and the one that it took of the other."""

    made: int
    tip: int


def _merged_last(
    ours: Table, theirs: Table, branch: str, *, since: int
) -> tuple[Table, int] | None:
    """What one of two lines took of the other last, as a version of that; None: nothing yet.

    Args:
        ours: one of them.
        theirs: the other.
        branch: the identity of the branch of the two.
        since: the version that it left the other at.
    """
    by_us, by_them = (_last_merge(line, branch, since) for line in (ours, theirs))
    if by_us and (not by_them or by_them.tip < by_us.made):  # the later one knew of the other
        return theirs, by_us.tip
    return (ours, by_them.tip) if by_them else None


def _last_merge(line: Table, branch: str, since: int) -> _Merge | None:
    """The last merge between the two lines that was made on one of them."""
    for made in entries(line):
        if made.version <= since:
            return None
        told = made.manifest or {}
        if made.operation == OPERATION and told["line"] == branch:
            return _Merge(made.version, int(told["tip"]))
    return None
