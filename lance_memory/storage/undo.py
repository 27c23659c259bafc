"""Going back, as change sets: the whole table to a version, or one version's change alone.

The engine could restore a version by itself, but then the indices made since are gone, and a
write that came in between is lost without a conflict. A change set keeps the indices, meets
other writers like every other write, and can be kept to one scope (design/003-going-back.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from lance_memory.errors import ConflictError, InvalidInputError
from lance_memory.record.memory import SCOPE_LEVELS
from lance_memory.storage.change import Audit, ChangeSet
from lance_memory.storage.history import Comparison, compare
from lance_memory.storage.snapshot import Snapshot

__all__ = ["NothingToRevertError", "Refit", "as_at", "revert", "rollback"]


Refit = Callable[[pa.Table], pa.Table]
"""Gives rows of a former embedding model vectors of the present one."""


class NothingToRevertError(InvalidInputError):
    """The version changed no memories that are looked at."""


def rollback(
    present: Snapshot, target: Snapshot, *, audit: Audit, predicate: str | None, refit: Refit
) -> tuple[ChangeSet, Comparison]:
    """Make the rows that `predicate` names what they were at `target`, revision and all.

    Past a change of the embedding model the vectors alone are not what they were; see `Refit`.

    Returns:
        The change set, and the comparison it came from: target → present.
    """
    found = compare(target, present, predicate)
    return _inverse(present, target, found, audit=audit, refit=refit), found


def revert(
    present: Snapshot,
    before: Snapshot,
    after: Snapshot,
    *,
    audit: Audit,
    predicate: str | None,
    refit: Refit,
) -> tuple[ChangeSet, Comparison]:
    """Undo what happened between `before` and `after`, and keep everything since.

    Raises:
        ConflictError: rows that were changed then have been changed again since; lists them.
        NothingToRevertError: nothing happened between the two.
    """
    found = compare(before, after, predicate)
    if not found:
        raise NothingToRevertError(
            f"version {after.version} changed no memories here; there is nothing to revert"
        )
    _refuse_changed_since(present, after, found)
    return _inverse(present, before, found, audit=audit, refit=refit), found


def _refuse_changed_since(present: Snapshot, after: Snapshot, found: Comparison) -> None:
    touched = [*found.inserted, *found.updated]
    then, now = (side.locate(touched).fingerprints() for side in (after, present))
    back = present.locate(found.removed).fingerprints()
    changed = sorted([*(i for i in touched if now.get(i) != then[i]), *back])
    if changed:
        raise ConflictError(
            f"could not revert version {after.version}: {len(changed)} of the memories it changed "
            f"have been changed since ({', '.join(changed[:3])}); revert the later change first",
            ids=changed,
        )


def _inverse(
    present: Snapshot, target: Snapshot, found: Comparison, *, audit: Audit, refit: Refit
) -> ChangeSet:
    taken = present.by_ids(found.removed, columns=["id"])["id"].to_pylist()
    if taken:  # ids are the whole table's, and the comparison may be of one scope
        raise ConflictError(
            f"could not {audit.operation}: {len(taken)} of the ids that would come back are taken "
            f"outside this scope ({', '.join(taken[:3])}); nothing was written",
            ids=taken,
        )
    return ChangeSet(
        audit=audit,
        inserts=as_at(target, found.removed, present, refit),
        updates=as_at(target, found.updated, present, refit),
        deletes=present.by_ids(found.inserted, columns=["id", *SCOPE_LEVELS]),
    )


def as_at(target: Snapshot, ids: Sequence[str], present: Snapshot, refit: Refit) -> pa.Table:
    """The rows as they were at `target`, with vectors comparable with the present ones."""
    if not ids:
        return present.by_ids((), columns=present.schema.names)
    rows = target.by_ids(ids, columns=present.schema.names)
    return rows if target.format.same_vectors(present.format) else refit(rows)
