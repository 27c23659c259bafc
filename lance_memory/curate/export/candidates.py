"""Which examples there could be, and on which side of the split each one would lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from lance_memory.curate.export.corrections import EDGE_COLUMNS, corrections
from lance_memory.curate.export.draft import Draft, chats, pairs, plain
from lance_memory.curate.export.frame import Frame, read
from lance_memory.curate.export.options import ExportFormat, ExportOptions
from lance_memory.curate.export.split import is_validation
from lance_memory.record.filters import FIRST_HAND, Filter, all_of, any_of
from lance_memory.record.memory import State
from lance_memory.storage import Snapshot

__all__ = ["ACROSS_SIDES", "ADMITTED", "LOW_QUALITY", "Candidates", "Source"]

ADMITTED, LOW_QUALITY, ACROSS_SIDES = "admitted", "low_quality", "across_sides"

_CORRECTED = (State.SUPERSEDED, State.CONTRADICTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is exported: the rows of one version that pass a filter at a moment.

    Attributes:
        snapshot: the version.
        filter: which memories, and nothing outside of its scope. Its `min_quality` is asked of
            the examples: a conversation is not to lose the turns that nobody rated.
        moment: decides what has expired.
        branch: the version's line.
        embedding_model: whose vectors the rows have.
        embed: texts → float32 [n, d], by that model.
    """

    snapshot: Snapshot
    filter: Filter
    moment: datetime
    branch: str
    embedding_model: str
    embed: Callable[[Sequence[str]], NDArray[np.float32]]


class Candidates:
    """The drafts of an export, as often as they are asked for, and in the same order.

    Of pairs, the rejected side may be a memory that something else took the place of: such are
    read within the scope, whatever the other filters; of what was retired or has expired, nothing.
    """

    def __init__(self, source: Source, options: ExportOptions) -> None:
        self._options = options
        self._min_quality = source.filter.min_quality
        self._pairs = options.format == ExportFormat.PREFERENCE
        self.predicate = _predicate(source, also_hidden=self._pairs)
        self.frame = read(
            source.snapshot,
            self.predicate,
            levels=options.levels(),
            alive_at=source.moment if self._pairs else None,
        )
        self._validation = _sides(self.frame, options)
        self._corrected = (
            corrections(self.frame, source.snapshot.scan(self.predicate, columns=EDGE_COLUMNS))
            if self._pairs
            else {}
        )

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self._validation)

    def for_validation(self, group: int) -> bool:
        """The side of a group."""
        return self._validation[group]

    def admitted(self, counts: Counter[str] | None = None) -> Iterator[Draft]:
        """The drafts but those that their rating or the split forbids; `counts` gets them all."""
        for draft in self._drafts():
            verdict = self._verdict(draft)
            if counts is not None:
                counts[verdict] += 1
            if verdict == ADMITTED:
                yield draft

    def _drafts(self) -> Iterator[Draft]:
        options = self._options
        if self._pairs:
            groups = self.frame.groups()
            found = (pairs(g, self._corrected, margin=options.margin) for g in groups)
            return chain.from_iterable(found)
        if options.format == ExportFormat.CHAT:
            groups = self.frame.groups()
            return chain.from_iterable(chats(g, max_turns=options.max_turns) for g in groups)
        return plain(self.frame.turns())

    def _verdict(self, draft: Draft) -> str:
        least = self._min_quality
        if least is not None and (draft.quality is None or draft.quality < least):
            return LOW_QUALITY
        sides = {self._validation[turn.group] for turn in draft.turns}
        return ADMITTED if len(sides) == 1 else ACROSS_SIDES


def _sides(frame: Frame, options: ExportOptions) -> list[bool]:
    """Of each group, whether it is for validation."""
    if not options.validation:
        return [False] * frame.group_count
    return [
        is_validation(identity, share=options.validation, seed=options.seed)
        for identity in frame.identities()
    ]


def _predicate(source: Source, *, also_hidden: bool) -> str | None:
    """Which rows are read: never what the agent is told, nor a snapshot of what is there too."""
    shown = replace(source.filter, min_quality=None).predicate(source.moment)
    if not also_hidden or shown is None:
        return all_of(shown, FIRST_HAND)
    hidden = Filter(scope=source.filter.scope, states=_CORRECTED).predicate(source.moment)
    return all_of(any_of(shown, *([hidden] if hidden else [])), FIRST_HAND)
