"""Checks of the indices: whether they are there, cover the rows, and find what a scan finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lance_memory.govern.doctor.health import HealthFinding, Severity
from lance_memory.govern.doctor.patient import Patient, finding
from lance_memory.index.health import inspect
from lance_memory.record.filters import equals
from lance_memory.storage import indices
from lance_memory.storage.described import VECTOR_INDEX, described
from lance_memory.wording import counted, worded

__all__ = ["answers", "coverage", "fragmentation"]

_SHARE, _FEW = 0.2, 5_000
"""Rows outside an index are scanned. As many of them cost more than the index saves; few cost
nothing that was measured."""

_MANY_FRAGMENTS, _SMALL = 64, 4_096
"""1,001 fragments of a row each made a search forty times as slow as one."""

_ASKED = 16
_EQUAL = ("state", "kind", "tenant", "user", "agent", "session", "run", "key", "content_hash", "id")


def coverage(patient: Patient) -> Iterator[HealthFinding]:
    """Indices that are missing, rows that they do not cover, and the state of the vector index."""
    snapshot = patient.snapshot
    count = snapshot.count()
    if count and not indices.has_text_index(snapshot):
        yield HealthFinding(
            code="no_text_index",
            severity=Severity.WARNING,
            message="there is no index of words: they cannot be searched",
            fixable=True,
        )
    outside = {name: n for name, n in indices.unindexed_rows(snapshot).items() if n}
    most = max(outside.values(), default=0)
    bad = most > _FEW and most > _SHARE * count
    yield from finding(
        "unindexed",
        Severity.WARNING if bad else Severity.NOTE,
        f"{{n}} [index does|indices do] not cover all of {counted(count, 'row')}; "
        "the rest is scanned",
        [f"{name}: {counted(n, 'row')}" for name, n in sorted(outside.items())],
        fixable=bad,
    )
    info = inspect(snapshot)
    if info is not None and info.proposal is not None:
        yield HealthFinding(
            code="vector_index",
            severity=Severity.WARNING,
            message=info.proposal,
            fixable=info.proposal.startswith("fold"),
        )


def fragmentation(patient: Patient) -> Iterator[HealthFinding]:
    """Many small files make every read slow."""
    fragments, count = len(patient.snapshot.fragment_ids), patient.snapshot.count()
    bad = fragments > _MANY_FRAGMENTS and count < _SMALL * fragments
    yield HealthFinding(
        code="fragments",
        severity=Severity.WARNING if bad else Severity.NOTE,
        message=f"{worded('{n} [row lies|rows lie]', count)} in {counted(fragments, 'fragment')}",
        count=fragments,
        fixable=bad,
    )


def answers(patient: Patient) -> Iterator[HealthFinding]:
    """Whether each index finds what a scan finds, for its most frequent values; deep.

    A damaged page of an index may answer wrongly without an error: the engine has no checksums.
    """
    if not patient.deep:
        return
    snapshot = patient.snapshot
    rows = snapshot.scan(columns=list(_EQUAL))
    wrong = []
    for name in sorted(described(snapshot.dataset)):
        column = name.removesuffix("_idx")
        if name == VECTOR_INDEX or column not in _EQUAL:
            continue
        values = Counter(value for value in rows[column].to_pylist() if value is not None)
        for value, number in values.most_common(_ASKED):
            found = snapshot.count(equals(column, value))
            if found != number:
                wrong.append(
                    f"{name}: {value!r} has {counted(number, 'row')}, and it finds {found}"
                )
    yield from finding(
        "wrong_index",
        Severity.ERROR,
        "{n} [question|questions] to an index with another answer than a scan",
        wrong,
        fixable=True,
    )
