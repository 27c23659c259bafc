"""Checks of clocks: of the rows, of the log, and of the machine that wrote the versions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

from lance_memory.errors import NotFoundError, StorageError
from lance_memory.govern.doctor.health import HealthFinding, Severity
from lance_memory.govern.doctor.patient import Patient, finding
from lance_memory.record import soundness
from lance_memory.storage import LogEntry, history

__all__ = ["CLOCKS_DIFFER", "clocks"]

CLOCKS_DIFFER = timedelta(minutes=5)
"""Machines without a time service are off by less; a mistaken zone is off by half an hour or more.
"""

_LOOKED_AT = 200
"""Newest versions; each is opened."""


def clocks(patient: Patient) -> Iterator[HealthFinding]:
    """Rows and versions whose times cannot be: later than now, or in another order than made."""
    late = soundness.from_the_future(patient.rows, patient.moment + CLOCKS_DIFFER)
    yield from finding(
        "future_rows",
        Severity.WARNING,
        "{n} [memory was|memories were] written later than now, by [its|their] own word",
        late,
        advice="compare this machine's clock with that of the writers",
    )
    written = _written(patient)
    back = [
        f"version {b.version} is {_told(a.at - b.at)} before version {a.version}"
        for a, b in pairwise(e for e in written if not e.upkeep)
        if a.at - b.at > CLOCKS_DIFFER
    ]
    yield from finding(
        "clock_backwards",
        Severity.WARNING,
        "{n} [version says that it is|versions say that they are] older than the one before",
        back,
        advice="reads as of a moment take the later version for the later one",
    )
    yield from finding(
        "clock_skew",
        Severity.WARNING,
        "{n} [version was|versions were] made at another time than the writer's clock said",
        _skewed(patient, written),
        advice="compare the clocks; `clock=` of MemoryStore.open gives the writer's",
    )


def _written(patient: Patient) -> list[LogEntry]:
    """The log of the newest versions that can be read, oldest first."""
    newest = history.versions(patient.table)[-_LOOKED_AT:]
    found = []
    for version in newest:
        try:
            found.append(history.entry(patient.table, version))
        except (NotFoundError, StorageError):
            continue  # cleaned up meanwhile, or damaged: `damaged` tells
    return found


def _skewed(patient: Patient, written: list[LogEntry]) -> list[str]:
    told = []
    for entry in (one for one in written if not one.upkeep):
        made = patient.table.at(entry.version).written_at()
        if abs(made - entry.at) > CLOCKS_DIFFER:
            told.append(f"version {entry.version}: {_told(abs(made - entry.at))}")
    return told


def _told(span: timedelta) -> str:
    return str(timedelta(seconds=round(span.total_seconds())))
