"""From drafts to examples: the texts are read, merged and screened, some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_memory.curate.export.contamination import Match, Screen
from lance_memory.curate.export.draft import Draft
from lance_memory.curate.export.frame import Frame, Turn
from lance_memory.curate.options import ConsolidateOptions
from lance_memory.curate.transform.execute import Execution, outcomes
from lance_memory.curate.transform.protocol import Transform
from lance_memory.facts import dropped
from lance_memory.record.rows import EMBEDDING, embeddings, to_memories, valid_vectors
from lance_memory.storage import Snapshot

__all__ = ["Chosen", "Ready", "read_texts"]

_READ_AT_ONCE = 512
"""Memories whose texts are held at a time."""

Vector: TypeAlias = "NDArray[np.float32] | None"

Chosen: TypeAlias = "tuple[Draft, Sequence[Turn]]"
"""A draft, and the near-duplicates, itself included, that a transform may make one text of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """An example with its texts, one for each part.

    Attributes:
        draft: of a merged one, with all its sources.
        texts: one for each part.
        merged: whether the transform made the text.
        declined: whether it was to, and did not.
        match: how it gives an evaluation text away, or None.
    """

    draft: Draft
    texts: tuple[str, ...]
    merged: bool = False
    declined: bool = False
    match: Match | None = None


def read_texts(
    snapshot: Snapshot,
    frame: Frame,
    chosen: Iterable[Chosen],
    *,
    transform: Transform | None,
    execution: Execution,
    screen: Screen | None,
) -> Iterator[Ready]:
    """The drafts with their texts, in order."""
    for some in _some(chosen):
        yield from _read(
            snapshot, frame, some, transform=transform, execution=execution, screen=screen
        )


def _some(chosen: Iterable[Chosen]) -> Iterator[list[Chosen]]:
    waiting: list[Chosen] = []
    size = 0
    for draft, members in chosen:
        waiting.append((draft, members))
        size += len(draft.turns) + len(members)
        if size >= _READ_AT_ONCE:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def _read(
    snapshot: Snapshot,
    frame: Frame,
    some: Sequence[Chosen],
    *,
    transform: Transform | None,
    execution: Execution,
    screen: Screen | None,
) -> Iterator[Ready]:
    places = list(dict.fromkeys(t.place for d, more in some for t in (*d.turns, *more)))
    with_vectors = screen is not None and screen.compares_vectors
    columns = ["content", *([EMBEDDING] if with_vectors else [])]
    rows = frame.take(snapshot, places, columns)
    texts: dict[int, str] = dict(zip(places, rows["content"].to_pylist(), strict=True))
    vectors: dict[int, Vector] = dict.fromkeys(places)
    if with_vectors:
        present = zip(places, embeddings(rows), valid_vectors(rows), strict=True)
        vectors = {place: vector if valid else None for place, vector, valid in present}
    merged = (
        _merged(snapshot, frame, some, texts, transform=transform, execution=execution)
        if transform
        else {}
    )
    for number, (draft, _) in enumerate(some):
        ready = merged.get(number) or Ready(
            draft=draft, texts=tuple(texts[t.place] for t in draft.turns)
        )
        yield ready if screen is None else _screened(ready, texts, vectors, screen)


def _screened(
    ready: Ready, texts: dict[int, str], vectors: dict[int, Vector], screen: Screen
) -> Ready:
    """With what is found in the memories, and in the texts that are none."""
    turns = ready.draft.turns
    made = ready.texts if ready.merged else ()
    extra = [text for text in (*made, ready.draft.prompt) if text]
    found = screen.match(
        [*(texts[t.place] for t in turns), *extra],
        [*(vectors[t.place] for t in turns), *(None for _ in extra)],
    )
    return replace(ready, match=found)


def _merged(
    snapshot: Snapshot,
    frame: Frame,
    some: Sequence[Chosen],
    texts: dict[int, str],
    *,
    transform: Transform,
    execution: Execution,
) -> dict[int, Ready]:
    """Position → what became of it, for the drafts that are to be merged with others."""
    several = {number: members for number, (_, members) in enumerate(some) if len(members) > 1}
    places = [turn.place for members in several.values() for turn in members]
    if not places:
        return {}
    rows = frame.take(snapshot, places, snapshot.schema.names)
    memories = iter(to_memories(rows))
    clusters = [[next(memories) for _ in members] for members in several.values()]
    answers = outcomes(clusters, transform, execution, stop=lambda: False)
    found = {}
    for (number, members), answer in zip(several.items(), answers, strict=True):
        draft = some[number][0]
        contents = [texts[turn.place] for turn in members]
        made = answer.derived and answer.derived.content
        if made and dropped(contents, made).share <= ConsolidateOptions().max_dropped:
            whole = replace(draft, turns=tuple(members))
            found[number] = Ready(draft=whole, texts=(made,), merged=True)
        else:
            own = tuple(texts[turn.place] for turn in draft.turns)
            found[number] = Ready(draft=draft, texts=own, declined=True)
    return found
