"""The doctor: looks a store over, says what is wrong, and fixes what is safe to fix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial

from lance_memory.errors import LanceMemoryError, StorageError
from lance_memory.govern.doctor import of_files, of_indices, of_rows, of_times, of_work
from lance_memory.govern.doctor.health import Health, HealthFinding, Severity, Treated, VersionBytes
from lance_memory.govern.doctor.patient import Patient
from lance_memory.govern.doctor.treatment import TREATMENTS
from lance_memory.storage import Table

__all__ = [
    "CHECKS",
    "Health",
    "HealthFinding",
    "Severity",
    "Treated",
    "VersionBytes",
    "examine",
    "treat",
]

Check = Callable[[Patient], Iterator[HealthFinding]]

CHECKS: tuple[Check, ...] = (
    of_files.torn,
    of_files.moved,
    of_files.damaged,
    of_files.orphans,
    of_files.sizes,
    of_files.modes,
    of_indices.coverage,
    of_indices.fragmentation,
    of_indices.answers,
    of_rows.doubles,
    of_rows.lifecycle,
    of_rows.references,
    of_rows.circles,
    of_rows.embeddings,
    of_rows.waiting,
    of_rows.contents,
    of_rows.model,
    of_times.clocks,
    of_work.schema,
    of_work.tended,
    of_work.forgetting,
    of_work.held,
    of_work.journals,
    of_work.dead_jobs,
)
"""Every check, in the order in which they are made."""

_READ_ROWS = CHECKS[CHECKS.index(of_indices.coverage) : CHECKS.index(of_times.clocks) + 1]
_FORGETTING = "unfinished_forget"
_WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


def examine(
    table: Table,
    *,
    moment: datetime,
    model: str | None,
    deep: bool,
    dead_jobs: Callable[[], Sequence[str]],
) -> Health:
    """Look a store over; nothing is written.

    Args:
        table: the branch whose rows are looked at; files are looked at of all branches.
        moment: the present.
        model: the name of the handle's embedder; None where it has none that works.
        deep: read every file of every version, and ask the indices what a scan finds.
        dead_jobs: gives the ids of the jobs of the write path that have died.

    A check that cannot be made, because a file is damaged, is a finding of its own.
    """
    return _health(Patient(table, moment=moment, model=model, deep=deep, dead_jobs=dead_jobs))


def treat(
    table: Table,
    *,
    moment: datetime,
    model: str | None,
    deep: bool,
    dead_jobs: Callable[[], Sequence[str]],
    finish: Callable[[], object],
) -> Health:
    """Fix what is safe to fix, and look again; see `TREATMENTS`.

    Args:
        table: as for `examine`.
        moment: as for `examine`.
        model: as for `examine`.
        deep: as for `examine`.
        dead_jobs: as for `examine`.
        finish: finishes a forgetting that was interrupted.

    Raises:
        ConflictError: writers were faster too often. What was done so far stays.
        StorageError: the disk is full, or not writable.
    """
    look = partial(Patient, table, moment=moment, model=model, deep=deep, dead_jobs=dead_jobs)
    patient = look()
    codes = {one.code for one in _health(patient).fixable}
    fixed = [treatment(patient) for meant, treatment in TREATMENTS if codes & {*meant}]
    if _FORGETTING in codes:
        finish()
        fixed.append(
            Treated(code=_FORGETTING, message="finished what was to be forgotten", count=1)
        )
    return _health(look(), tuple(fixed))


def _health(patient: Patient, fixed: tuple[Treated, ...] = ()) -> Health:
    findings = [found for check in CHECKS for found in _made(check, patient)]
    findings.sort(key=lambda one: _WORST_FIRST.index(one.severity))
    return Health(
        uri=patient.table.uri,
        version=patient.snapshot.version,
        at=patient.moment,
        checked=tuple(check.__name__ for check in CHECKS),
        findings=tuple(findings),
        fixed=fixed,
        versions=_weighed(patient),
    )


def _weighed(patient: Patient) -> tuple[VersionBytes, ...]:
    """Nothing while a torn tag or branch, of which a finding tells, hides what there is."""
    try:
        return of_files.weigh(patient.inventory)
    except LanceMemoryError:
        return ()


def _made(check: Check, patient: Patient) -> list[HealthFinding]:
    """What a check finds; that it cannot be made, where it cannot."""
    try:
        if patient.spoiled and check in _READ_ROWS:
            raise StorageError(
                "a file of the rows is damaged, and reading it could end the process"
            )
        return list(check(patient))
    except LanceMemoryError as error:
        return [
            HealthFinding(
                code=f"unchecked_{check.__name__}",
                severity=Severity.ERROR,
                message=f"{check.__name__} could not be checked: {error}",
                advice="`lmem doctor --deep` names damaged files",
            )
        ]
