"""What the doctor does: nothing that changes a memory, or takes away what somebody may need."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress

from lance_memory.errors import InvalidInputError
from lance_memory.govern.doctor.health import Treated
from lance_memory.govern.doctor.of_files import old_orphans
from lance_memory.govern.doctor.patient import Patient
from lance_memory.index.build import build_index
from lance_memory.index.ensure import ensure_index
from lance_memory.storage.disk import aside, moved, whole
from lance_memory.storage.erase.indices import drop_vector_index, renew
from lance_memory.storage.upkeep import steps as upkeep
from lance_memory.storage.vector.facts import has_vector_index
from lance_memory.wording import counted, worded

__all__ = ["TREATMENTS", "Treatment"]

Treatment = Callable[[Patient], Treated]


def _set_aside(patient: Patient) -> Treated:
    gone = aside.set_aside(patient.table)
    message = f"moved aside what is torn ({counted(len(gone), 'file')}): {', '.join(gone)}"
    left = whole.damage(patient.table)
    if left is not None and left.indices:
        rebuilt = _rebuild(patient).message
        message = f"{message}; {rebuilt}" if gone else rebuilt
    return Treated(code="torn", message=message, count=max(1, len(gone)))


def _bring_home(patient: Patient) -> Treated:
    changed = moved.brought_home(patient.table)
    return Treated(
        code="moved",
        message=worded(
            "{n} [version looks for its|versions look for their] files in this store now",
            len(changed),
        ),
        count=len(changed),
    )


def _rebuild(patient: Patient) -> Treated:
    """All of them: which one gives a wrong answer is known, which page of it is not."""
    table = patient.table
    with upkeep.alone_anyway(table):
        had_vectors = has_vector_index(table.latest())
        if had_vectors:
            drop_vector_index(table)
        renew(table)
        if had_vectors:
            with suppress(InvalidInputError):  # of too few vectors none is built: a scan is exact
                build_index(table)  # not `ensure_index`, which may adopt the old one's files
    return Treated(code="damaged_index", message="built all indices anew, from the rows", count=1)


def _optimize(patient: Patient) -> Treated:
    table = patient.table
    table.ensure_text_index()
    done = upkeep.optimize(table, clean_older_than=None, retain=None, ensure_index=ensure_index)
    return Treated(
        code="unindexed",
        message="folded new rows into the indices; "
        f"{counted(done.fragments_before, 'fragment')} before, {done.fragments_after} now",
        count=done.fragments_before,
    )


def _remove_orphans(patient: Patient) -> Treated:
    table = patient.table
    files = old_orphans(patient)
    for file in files:
        table.place.remove(file.name)
    freed = sum(file.size for file in files)
    return Treated(
        code="orphans",
        message=f"removed {counted(len(files), 'file')} of {counted(freed, 'byte')}",
        count=len(files),
    )


def _let_go(patient: Patient) -> Treated:
    upkeep.clean(patient.table, None)  # drops stale holds, and no version
    return Treated(code="stale_holds", message="let go of versions nobody reads", count=1)


TREATMENTS: tuple[tuple[Collection[str], Treatment], ...] = (
    (("moved",), _bring_home),
    (("torn",), _set_aside),
    (("damaged_index", "wrong_index"), _rebuild),
    (("stale_holds",), _let_go),
    (("orphans",), _remove_orphans),
    (("no_text_index", "unindexed", "vector_index", "fragments"), _optimize),
)
"""Codes of findings, and what is done about them, in order."""
