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
from lance_memory.storage import history
from lance_memory.storage.files.beside import look_beside
from lance_memory.storage.upkeep.state import read_state
from lance_memory.storage.vector.staged import STAGED

__all__ = ["forgetting", "held", "journals", "schema", "tended"]

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
            message=f"a forgetting of {len(mark.ids)} memories, begun {mark.at:%Y-%m-%d %H:%M} by "
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
        "{n} steps of upkeep failed the last time, and are tried again with later writes",
        [str(failure) for failure in state.failures],
        advice="`lmem optimize` does them now, and says why if it cannot",
    )


def held(patient: Patient) -> Iterator[HealthFinding]:
    """Versions that a long read holds; a killed one holds its own until upkeep lets go."""
    since = history.holds(patient.table)
    end = patient.moment - STALE
    stale = [name for name, at in since.items() if at < end]
    yield from finding(
        "stale_holds",
        Severity.WARNING,
        "{n} versions are held by readers that were killed, a day ago or longer",
        stale,
        fixable=True,
    )
    yield from finding(
        "holds",
        Severity.NOTE,
        "{n} versions are held by readers at work",
        [name for name in since if name not in stale],
    )


def journals(patient: Patient) -> Iterator[HealthFinding]:
    """The tables beside the memories."""
    found = look_beside(patient.table)
    yield from finding(
        "broken_journal",
        Severity.ERROR,
        "{n} tables beside the memories cannot be read",
        [f"{one.name}.lance: {one.broken}" for one in found if one.broken],
        advice="restore it from a backup; without `queries` and `audit` their records are lost",
    )
    yield from finding(
        "unfinished_reembed",
        Severity.WARNING,
        "{n} models have vectors in waiting: a re-embedding was not finished",
        [f"{one.name}: {one.rows} vectors" for one in found if one.name.startswith(STAGED)],
        advice="`lmem reembed --model ...` goes on where it was",
    )
    yield from finding(
        "journals",
        Severity.NOTE,
        "{n} tables lie beside the memories",
        [f"{one.name}: {one.rows} rows, {one.versions} versions" for one in found],
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
