"""Checks of what the rows of the newest version say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lance_memory.govern.doctor.health import HealthFinding, Severity
from lance_memory.govern.doctor.patient import Patient, finding
from lance_memory.record import soundness
from lance_memory.record.rows import EMBEDDING
from lance_memory.record.schema import read_format
from lance_memory.storage.vector.rows import vectors
from lance_memory.wording import counted, worded

__all__ = [
    "circles",
    "contents",
    "doubles",
    "embeddings",
    "lifecycle",
    "model",
    "references",
    "waiting",
]

_UNIT = 1e-3
"""By how much the length of a vector may differ from 1."""


def doubles(patient: Patient) -> Iterator[HealthFinding]:
    """Ids that two rows have; keys and contents that two live memories of a scope have."""
    rows, now = patient.rows, patient.moment
    yield from finding(
        "duplicate_ids",
        Severity.ERROR,
        "{n} [id stands|ids stand] in more than one row",
        soundness.doubled_ids(rows),
        advice="roll back to the version before: `lmem log`, `lmem rollback`",
    )
    yield from finding(
        "duplicate_keys",
        Severity.ERROR,
        "{n} live [memory shares its|memories share their] key with another one of their scope",
        soundness.keys_held_twice(rows, now),
        advice="retire all but one of each: `lmem retire ID`",
    )
    yield from finding(
        "duplicate_contents",
        Severity.NOTE,
        "{n} live [memory says|memories say] the same as another one of their scope",
        soundness.contents_held_twice(rows, now),
        advice="`lmem consolidate` makes one of them",
    )


def lifecycle(patient: Patient) -> Iterator[HealthFinding]:
    """Superseded rows and their successors."""
    rows = patient.rows
    yield from finding(
        "state",
        Severity.ERROR,
        "{n} [memory is|memories are] superseded and without a successor, or the other way round",
        soundness.unlike_their_state(rows),
        advice="roll back to the version before: `lmem log`, `lmem rollback`",
    )
    yield from finding(
        "unnamed_sources",
        Severity.WARNING,
        "{n} [memory has|memories have] a successor that does not name [it|them]",
        soundness.unacknowledged(rows, soundness.edges(rows)),
        advice="`lmem lineage` shows their successors, and not the way back",
    )


def references(patient: Patient) -> Iterator[HealthFinding]:
    """References to memories that are not there."""
    rows = patient.rows
    gone = soundness.nowhere(rows, soundness.successions(rows))
    yield from finding(
        "dangling_successor",
        Severity.WARNING,
        "{n} [memory is|memories are] hidden behind a successor that is not there: it was deleted",
        sorted(edge.start for edge in gone),
        advice="delete them too, or undo the deletion: `lmem delete ID`, `lmem revert VERSION`",
    )
    lost = soundness.nowhere(rows, soundness.edges(rows))
    yield from finding(
        "dangling_relationship",
        Severity.NOTE,
        "{n} [relationship leads|relationships lead] to what is not there, as deletion leaves it",
        sorted(f"{edge.start} {edge.relation} {edge.target}" for edge in lost),
    )


def circles(patient: Patient) -> Iterator[HealthFinding]:
    """Successions that lead back to where they began: nothing of them is ever recalled."""
    rows = patient.rows
    followed = [e for e in soundness.edges(rows) if e.relation in soundness.FOLLOWED]
    told = {
        "superseded_by": soundness.in_circles(soundness.successions(rows)),
        "consolidates or updates": soundness.in_circles(followed),
    }
    for name, ids in told.items():
        yield from finding(
            "circle",
            Severity.ERROR,
            f"{{n}} [memory leads back to itself|memories lead back to themselves] by {name}",
            ids,
            advice="roll back to the version before: `lmem log`, `lmem rollback`",
        )


def embeddings(patient: Patient) -> Iterator[HealthFinding]:
    """Vectors that no search by meaning finds, or that are of another length than a model's."""
    without = patient.snapshot.count(f"{EMBEDDING} IS NULL")
    if without:
        yield HealthFinding(
            code="no_vector",
            severity=Severity.NOTE,
            message=worded(
                "{n} [memory has|memories have] no vector: words alone find [it|them]", without
            ),
            count=without,
            advice="`lmem embed-missing` makes what is missing",
        )
    bad, long = 0, 0
    for _, block in vectors(patient.snapshot):
        squares = np.einsum("ij,ij->i", block, block)
        usable = np.isfinite(squares) & (squares > 0)
        bad += int(np.count_nonzero(~usable))
        long += int(np.count_nonzero(usable & (np.abs(np.sqrt(squares) - 1) > _UNIT)))
    if bad:
        yield HealthFinding(
            code="bad_vector",
            severity=Severity.ERROR,
            message=f"{counted(bad, 'vector')} that no search finds: of zeros, or infinite",
            count=bad,
            advice="`lmem update ID TEXT` embeds a memory anew",
        )
    if long:
        yield HealthFinding(
            code="vector_length",
            severity=Severity.NOTE,
            message=f"{counted(long, 'vector')} not of length 1; compared by cosine all the same",
            count=long,
        )


def waiting(patient: Patient) -> Iterator[HealthFinding]:
    """Memories that nothing recalls until somebody decides about them, or they are said again."""
    pending = "state = 'pending'"
    asked = patient.snapshot.count(f"{pending} AND {_begins('clarify')}")
    reviewed = patient.snapshot.count(f"{pending} AND {_begins('review')}")
    others = patient.snapshot.count(pending) - asked - reviewed
    for code, number, message, advice in (
        ("pending", others, "{n} [memory is|memories are] pending", "`lmem pending list`"),
        ("clarify", asked, "{n} [memory waits|memories wait] for an answer", "`lmem clarify list`"),
        (
            "review",
            reviewed,
            "{n} [memory waits|memories wait] for a review",
            "`lmem clarify list`",
        ),
    ):
        if number:
            yield HealthFinding(
                code=code,
                severity=Severity.NOTE,
                message=worded(message, number),
                count=number,
                advice=advice,
            )


def _begins(reason: str) -> str:
    return f"starts_with(state_reason, '{reason}')"


def model(patient: Patient) -> Iterator[HealthFinding]:
    """The model of the store's vectors, and that of the handle."""
    found = read_format(patient.snapshot.schema, patient.table.uri)
    if patient.model is None:
        yield HealthFinding(
            code="no_embedder",
            severity=Severity.NOTE,
            message=f"the vectors are of the model {found.embedding_model!r}, and no embedder of "
            "it was given: words are searched, meaning is not",
            advice="open the store with embedder=... of that model",
        )
    elif patient.model != found.embedding_model:
        yield HealthFinding(
            code="other_model",
            severity=Severity.ERROR,
            message=f"the vectors are of the model {found.embedding_model!r}, and the embedder is "
            f"{patient.model!r}: the two cannot be compared",
            advice="open the store anew, with that model's embedder; `lmem reembed` changes it",
        )


def contents(patient: Patient) -> Iterator[HealthFinding]:
    """Contents that are not the ones that were hashed when they were written; deep."""
    if not patient.deep:
        return
    wrong: list[str] = []
    columns = ["id", "content", "content_hash"]
    for batch in patient.snapshot.batches(None, columns=columns, batch_size=8_192):
        wrong += soundness.wrongly_hashed(pa.Table.from_batches([batch]))
    yield from finding(
        "content_hash",
        Severity.ERROR,
        "{n} [memory holds|memories hold] a content that is not the one that was written",
        wrong,
        advice="restore the store from a backup, or write them anew: `lmem update ID TEXT`",
    )
