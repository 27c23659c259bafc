"""Checks of work that was begun: upkeep, forgetting, re-embedding, held versions, journals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from lance_memory.errors import StorageError
from lance_memory.govern.doctor.health import HealthFinding, Severity
from lance_memory.govern.doctor.patient import Patient, finding
from lance_memory.govern.forget import marker as forget_marker
from lance_memory.record.schema import SCHEMA_VERSION, read_format
from lance_memory.storage import naming
from lance_memory.storage.files.beside import look_beside
from lance_memory.storage.upkeep.state import read_state
from lance_memory.storage.vector.staged import STAGED
from lance_memory.wording import counted

__all__ = ["dead_jobs", "forgetting", "held", "journals", "schema", "tended"]

STALE = timedelta(days=1)
"""No pass over a store takes as long; upkeep drops older holds."""


def forgetting(patient: Patient) -> Iterator[HealthFinding]:
    """A forgetting that was interrupted: what was to be gone may still be there."""
    try:
        mark = forget_marker.unfinished(patient.table)
    except StorageError as error:
        yield HealthFinding(code="damaged_mark", severity=Severity.ERROR, message=str(error))
        return
    if mark is not None:
        left = [file for file in mark.left if Path(file).exists()]
        yield HealthFinding(
            code="unfinished_forget",
            severity=Severity.ERROR,
            message=f"a forgetting of {counted(len(mark.ids), 'memory', 'memories')}, begun "
            f"{mark.at:%Y-%m-%d %H:%M} by "
            f"{mark.actor or 'nobody named'}, is not finished",
            count=len(mark.ids),
            sample=mark.ids[:1],
            fixable=not left,
            advice=f"remove {', '.join(left)}, then `lmem forget --finish`" if left else "",
        )


def tended(patient: Patient) -> Iterator[HealthFinding]:
    """Steps of the upkeep that follows writes, which fail."""
    state = read_state(patient.table.place, patient.table.branch)
    yield from finding(
        "upkeep_fails",
        Severity.WARNING,
        "{n} [step|steps] of upkeep failed the last time; later writes try again",
        [str(failure) for failure in state.failures],
        advice="`lmem optimize` does them now, and says why if it cannot",
    )


def held(patient: Patient) -> Iterator[HealthFinding]:
    """Versions that a long read holds; a killed one holds its own until upkeep lets go."""
    since = naming.holds(patient.table)
    end = patient.moment - STALE
    stale = [name for name, at in since.items() if at < end]
    yield from finding(
        "stale_holds",
        Severity.WARNING,
        "{n} [version is|versions are] held by readers that were killed, a day ago or longer",
        stale,
        fixable=True,
    )
    yield from finding(
        "holds",
        Severity.NOTE,
        "{n} [version is|versions are] held by readers at work",
        [name for name in since if name not in stale],
    )


def journals(patient: Patient) -> Iterator[HealthFinding]:
    """The tables beside the memories."""
    found = look_beside(patient.table)
    yield from finding(
        "broken_journal",
        Severity.ERROR,
        "{n} [table|tables] beside the memories cannot be read",
        [f"{one.name}.lance: {one.broken}" for one in found if one.broken],
        advice="restore it from a backup; without `queries` and `audit` their records are lost",
    )
    yield from finding(
        "unfinished_reembed",
        Severity.WARNING,
        "{n} [model has|models have] vectors in waiting: a re-embedding was not finished",
        [
            f"{one.name}: {counted(one.rows, 'vector')}"
            for one in found
            if one.name.startswith(STAGED)
        ],
        advice="`lmem reembed --model ...` goes on where it was",
    )
    yield from finding(
        "journals",
        Severity.NOTE,
        "{n} [table lies|tables lie] beside the memories",
        [
            f"{one.name}: {counted(one.rows, 'row')}, {counted(one.versions, 'version')}"
            for one in found
        ],
    )


def dead_jobs(patient: Patient) -> Iterator[HealthFinding]:
    """Jobs that were accepted, and that no worker tries any more: what they have is not stored."""
    yield from finding(
        "dead_jobs",
        Severity.WARNING,
        "{n} [job has|jobs have] died, and what [it was|they were] to store is not there",
        patient.dead_jobs(),
        advice="`lmem jobs show ID` says why; `lmem jobs retry ID`, or `lmem jobs purge`",
    )


def schema(patient: Patient) -> Iterator[HealthFinding]:
    """A store of an earlier schema, which is read and not written."""
    found = read_format(patient.snapshot.schema, patient.table.uri).schema_version
    if found < SCHEMA_VERSION:
        yield HealthFinding(
            code="old_schema",
            severity=Severity.WARNING,
            message=f"the store has schema version {found}, and is read-only until it has "
            f"{SCHEMA_VERSION}",
            advice="`lmem migrate`",
        )
