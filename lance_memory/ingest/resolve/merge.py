"""Two memories that say the same, each with details of its own, as one."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_memory.facts import dropped, joined, sentences
from lance_memory.ingest.candidate import Candidate
from lance_memory.ingest.resolve.held import EXTRACTED, Held, Saying
from lance_memory.ingest.resolve.rows import fresh_row
from lance_memory.ingest.resolve.statement import Statement, announces_change
from lance_memory.record.identity import content_hash
from lance_memory.record.memory import Relationship, State
from lance_memory.record.unit import unit

__all__ = ["merged", "merged_text"]

_NAMES = uuid.UUID("2a0b6b7e-3d5c-5f10-9c1e-8f6f0f2d7c11")


def merged_text(texts: Sequence[str]) -> str:
    """The sentences of texts that say the same, in order, without those that add no fact.

    Deterministic. A sentence is left out where every number, name, date and negation of it is in
    what stands before it, and its words are.
    """
    parts: list[str] = []
    for text in texts:
        fresh = [one for one in sentences(text) if one not in parts]
        parts += [s for s in fresh if not parts or dropped([s], joined(parts)).missing]
    return joined(parts)


def merged(
    old: Held,
    new: Held,
    *,
    candidate: Candidate,
    text: str,
    vector: NDArray[np.float32] | None,
) -> Held:
    """The memory that takes the place of both.

    It carries the latest time, the highest importance and confidence, and the tags of both, and
    "consolidates" both.

    Args:
        old: a memory that stands.
        new: the candidate, which is stored too.
        candidate: what `new` was made of.
        text: what it says; see `merged_text`.
        vector: of the text.
    """
    both = sorted((old, new), key=lambda held: held.own)
    last = both[-1]
    identifier = str(uuid.uuid5(_NAMES, "\x1f".join(held.id for held in both)))
    statement = Statement(
        id=identifier,
        content=text,
        at=last.own.at,
        claim=last.statement.claim or both[0].statement.claim,
        category=new.statement.category,
        domain=new.statement.domain,
        announced=announces_change(text),
        authority=max(held.statement.authority for held in both),
        confidence=max(held.confidence for held in both),
        valid_from=last.statement.valid_from,
        valid_to=last.statement.valid_to,
    )
    row: dict[str, Any] = fresh_row(candidate, place=last.own.place, vector=vector)
    row |= {"content": text, "id": identifier, "event_at": last.own.at, "source_ref": last.event}
    row |= {"confidence": statement.confidence, "source": EXTRACTED}
    importance = max(held.importance for held in both)
    tags = tuple(dict.fromkeys(tag for held in both for tag in held.tags))
    row |= {"importance": importance, "tags": list(tags)}
    row["metadata"] = {**row["metadata"], "sure": float(statement.confidence)}
    said = sorted({*old.sayings, *new.sayings} - {last.own})
    return Held(
        statement=statement,
        kind=new.kind,
        content_hash=content_hash(text),
        event=last.event,
        state=State.ACTIVE,
        own=Saying(
            at=last.own.at,
            seq=last.own.seq,
            place=last.own.place,
            id=identifier,
            event=last.event,
            confidence=statement.confidence,
            authority=statement.authority,
            announced=statement.announced,
        ),
        edges=tuple(Relationship(relation="consolidates", target=held.id) for held in both),
        heard=tuple(said),
        confidence=statement.confidence,
        importance=importance,
        tags=tags,
        fresh=row,
        vector=None if vector is None else unit(vector[None], without=0.0)[0],
    )
