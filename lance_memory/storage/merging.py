"""What happened on one line of versions, as a change set for another (design/039-merge.md).

Three states decide about each memory: the one that both lines come from, theirs, and ours as it
is when the change set is made. What they changed and we did not is taken; what both changed, and
not to the same, is a clash.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import ConflictError, InvalidInputError, NotFoundError
from lance_memory.record.memory import SCOPE_LEVELS
from lance_memory.record.rows import changed, patched, retired
from lance_memory.storage import naming
from lance_memory.storage.change import Audit, ChangeSet
from lance_memory.storage.history import compare, entries
from lance_memory.storage.keys import taken
from lance_memory.storage.naming import Branch
from lance_memory.storage.opening import MAIN
from lance_memory.storage.snapshot import Snapshot
from lance_memory.storage.table import Table
from lance_memory.storage.undo import Refit, as_at
from lance_memory.wording import some, worded

__all__ = ["OPERATION", "Brought", "Prefer", "bring", "common", "line", "refuse_clashes", "told"]

OPERATION: Final = "merge"
"""What the log calls it; see `told` for what stands with it."""


class Prefer(StrEnum):
    """Whose version of a memory stands, where two lines changed it each in its way."""

    OURS = "ours"
    THEIRS = "theirs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What a merge does: ids, sorted.

    Attributes:
        added: memories that only they have.
        changed: memories of both that become theirs.
        removed: memories that they took away.
        clashes: memories that both changed, each in its way.
        keys: id of one of theirs -> of the one of ours that is live under the same key.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    clashes: tuple[str, ...]
    keys: Mapping[str, str]


def line(ours: Table, name: str) -> Table:
    """The other line.

    Raises:
        NotFoundError: there is no such branch.
    """
    there = sorted({MAIN, *(one.name for one in naming.branches(ours))})
    if name not in there:
        raise NotFoundError(f"there is no branch {name!r}; there are: {', '.join(there)}")
    return ours.on_branch(name)


def common(ours: Table, theirs: Table) -> Snapshot:
    """The last state that a line and the branch that left it, or the line that it left, both had.

    That is where the branch began, or what was merged last, in either direction; of what was merged
    the last that clean-up has left.

    Raises:
        InvalidInputError: neither of the two left the other.
    """
    branches = {one.name: one for one in naming.branches(ours)}
    for branch, parent in ((theirs, ours), (ours, theirs)):
        found = branches.get(branch.branch)
        if found is not None and found.parent == parent.branch:
            return _merged_last(ours, theirs, found) or parent.at(found.parent_version)
    raise InvalidInputError(
        f"{theirs.branch!r} did not leave {ours.branch!r}, nor the other way round: merge it into "
        "the line that it left, and that one into this"
    )


def told(theirs: Snapshot, branch: str) -> dict[str, Any]:
    """What the log of the other line keeps of a merge, for the next one."""
    return {"branch": branch, "tip": theirs.version, "made": theirs.written_at().isoformat()}


def bring(
    present: Snapshot,
    theirs: Snapshot,
    base: Snapshot,
    *,
    audit: Audit,
    prefer: Prefer | None,
    refit: Refit,
) -> tuple[ChangeSet, Brought]:
    """What happened between `base` and `theirs`, for the present.

    Args:
        present: where it is to happen too.
        theirs: the version that is merged.
        base: what both come from.
        audit: of the commit.
        prefer: who is right in a clash; None leaves what clashes out of the change set.
        refit: see `Refit`.
    """
    found = compare(base, theirs)
    touched = [*found.inserted, *found.updated, *found.removed]
    was, new, now = (side.locate(touched).fingerprints() for side in (base, theirs, present))
    differs = [i for i in touched if now.get(i) != new.get(i)]
    clashes = {i for i in differs if now.get(i) != was.get(i)}
    take = [i for i in differs if prefer is Prefer.THEIRS or i not in clashes]
    gone = [i for i in take if i not in new]
    rows = _after_both(
        as_at(theirs, [i for i in take if i in new], present, refit),
        present.by_ids(sorted(clashes), columns=["id", "revision", "updated_at"]),
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
    standing = present.locate(written["id"].to_pylist()).rows["id"]
    there = pc.is_in(written["id"], standing.combine_chunks())
    change = ChangeSet(
        audit=audit,
        inserts=written.filter(pc.invert(there)),
        updates=written.filter(there),
        deletes=present.by_ids(gone, columns=["id", *SCOPE_LEVELS]),
        noted=prefer is not None and bool(clashes or keys),  # or they would be asked again
    )
    brought = Brought(
        added=_ids(change.inserts),
        changed=_ids(change.updates),
        removed=_ids(change.deletes),
        clashes=tuple(sorted(clashes)),
        keys=keys,
    )
    return change, brought


def refuse_clashes(brought: Brought, branch: str) -> None:
    """Refuse a merge in which nobody has said who is right.

    Raises:
        ConflictError: lists the memories.
    """
    if not brought.clashes and not brought.keys:
        return
    ids = [*brought.clashes, *brought.keys.values()]
    counts = {
        "{n} [memory was|memories were] changed on both lines": brought.clashes,
        "{n} [key was|keys were] given to a memory on each": brought.keys,
    }
    why = " and ".join(worded(text, len(which)) for text, which in counts.items() if which)
    raise ConflictError(
        f"could not merge {branch!r}: {why} ({some(ids)}); nothing was written: look at them with "
        'dry_run=True, and say who is right with prefer="ours" or "theirs"',
        ids=ids,
    )


def _after_both(theirs: pa.Table, ours: pa.Table, audit: Audit) -> pa.Table:
    """Those of theirs that take the place of one of ours as a revision that comes after both."""
    over = pc.is_in(theirs["id"], ours["id"].combine_chunks())
    rows = theirs.filter(over)
    order = pc.index_in(rows["id"], ours["id"].combine_chunks())
    pairs = {name: (rows[name], ours[name].take(order)) for name in ("revision", "updated_at")}
    latest = {n: pc.if_else(pc.less(its, mine), mine, its) for n, (its, mine) in pairs.items()}
    later = changed(patched(rows, latest), {}, now=audit.at)
    return pa.concat_tables([theirs.filter(pc.invert(over)), later])


def _ids(rows: pa.Table | None) -> tuple[str, ...]:
    return () if rows is None else tuple(sorted(rows["id"].to_pylist()))


def _given_way(rows: pa.Table, audit: Audit) -> pa.Table:
    """Rows of which the other line's has the key: retired, and not superseded by it.

    That one may be what they took the place of, and a succession must not lead in circles.
    """
    return retired(rows, reason=audit.reason or "its key was given to another", now=audit.at)


def _merged_last(ours: Table, theirs: Table, branch: Branch) -> Snapshot | None:
    """What one of two lines took of the other last; None: nothing yet that can be read."""
    by_us = _last_merge(ours, theirs, branch)
    by_them = _last_merge(theirs, ours, branch)
    if by_us and by_them:  # the later one knew of the other
        return (by_them if by_them.of.version >= by_us.at else by_us).of
    found = by_us or by_them
    return found.of if found else None


class _Merge(NamedTuple):
    """A merge: the version that it made on the one line, and what it took of the other."""

    at: int
    of: Snapshot


def _last_merge(into: Table, other: Table, branch: Branch) -> _Merge | None:
    for made in entries(into):
        if made.version <= branch.parent_version:
            return None
        found = made.manifest or {}
        if made.operation != OPERATION or found["branch"] != other.branch:
            continue
        with suppress(NotFoundError):
            of = other.at(found["tip"])
            if told(of, other.branch) == found:  # and no branch of the same name that is gone
                return _Merge(made.version, of)
    return None
