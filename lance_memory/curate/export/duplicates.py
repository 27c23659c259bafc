"""Near-duplicates: which memories count as one, and which examples stay."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_memory.curate.cluster.select import select
from lance_memory.curate.export.draft import Draft
from lance_memory.curate.export.frame import Frame, Turn
from lance_memory.curate.options import ClusterMethod, ConsolidateOptions
from lance_memory.record.memory import SCOPE_LEVELS
from lance_memory.storage import Snapshot

__all__ = ["Labels", "Leaks", "Survivors", "near_or_same", "same_text"]

Labels: TypeAlias = NDArray[np.intp]
"""A number for each row of the frame [n], equal where the rows count as one."""

_SHARED = 0.5
"""Share of an example's memories that the other side has, from which on it leaks."""


def same_text(frame: Frame, *, across: Sequence[str]) -> Labels:
    """Labels by content, within the scope levels that are not in `across`."""
    return frame.codes("content_hash", *(level for level in SCOPE_LEVELS if level not in across))


def near_or_same(
    snapshot: Snapshot,
    predicate: str | None,
    frame: Frame,
    *,
    floor: float,
    across: Sequence[str],
) -> Labels:
    """Labels by cosine: the clusters of consolidation, joined where one text is in several.

    Connected components, as Lee et al. 2022 ("Deduplicating Training Data Makes Language Models
    Better") have it: where greedy clusters leave near pairs in two clusters, here one row of each
    label leaves none but what consolidation keeps apart too: another kind or actor, number, name
    or negation. A row without a vector counts by its text alone.
    """
    from scipy.sparse import coo_array  # slow to import, and most callers never need it
    from scipy.sparse.csgraph import connected_components

    options = ConsolidateOptions(
        method=ClusterMethod.COMPONENTS,
        min_similarity=floor,
        max_size=max(2, len(frame)),
        across=tuple(across),
    )
    clusters = [found.ids for found in select(snapshot, predicate, options).clusters]
    texts = same_text(frame, across=across)
    rows, size = np.arange(len(frame)), 2 * len(frame)
    # Rows are nodes 0..n-1, and each text is a node of its own behind them.
    edges = np.concatenate([np.column_stack([rows, len(frame) + texts]), _chains(frame, clusters)])
    ones = np.ones(len(edges), dtype=np.bool_)
    graph = coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(size, size))
    _, labels = connected_components(graph, directed=False)
    return np.asarray(labels[: len(frame)], dtype=np.intp)


def _chains(frame: Frame, clusters: Sequence[Sequence[str]]) -> NDArray[np.intp]:
    """Each member of a cluster with the next one, as places [m, 2]."""
    places = frame.places([identifier for ids in clusters for identifier in ids])
    numbers = np.repeat(np.arange(len(clusters)), [len(ids) for ids in clusters])
    places, numbers = places[places >= 0], numbers[places >= 0]
    together = numbers[1:] == numbers[:-1]
    return np.column_stack([places[:-1][together], places[1:][together]])


@dataclass(slots=True)
class _Best:
    rank: tuple[bool, float, datetime]
    number: int
    members: list[Turn] | None


class Survivors:
    """The best of each set of examples that are near-duplicates, part for part.

    Two examples are when they have as many parts, and these count as one by the labels, one for
    one and in the same roles. Of equally good ones the first stays.
    """

    def __init__(self, drafts: Iterable[Draft], labels: Labels, *, with_members: bool) -> None:
        best: dict[bytes, _Best] = {}
        self.found = 0
        for number, draft in enumerate(drafts):
            self.found += 1
            signature = _signature(draft, labels)
            known = best.get(signature)
            if known is None:
                members = list(draft.turns) if with_members else None
                best[signature] = _Best(draft.rank, number, members)
                continue
            if known.members is not None:
                known.members += draft.turns
            if draft.rank > known.rank:
                known.rank, known.number = draft.rank, number
        self._members = {b.number: b.members for b in best.values()}

    def __len__(self) -> int:
        return len(self._members)

    def of(self, drafts: Iterable[Draft]) -> Iterable[tuple[Draft, Sequence[Turn]]]:
        """Those of the same drafts that stay, each with the members of its set, if kept."""
        for number, draft in enumerate(drafts):
            if number in self._members:
                yield draft, self._members[number] or ()


class Leaks:
    """What training must not repeat, because it is for validation."""

    def __init__(
        self, drafts: Iterable[Draft], labels: Labels, *, validation: Callable[[Draft], bool]
    ) -> None:
        self._labels = labels
        self._held = np.zeros(int(labels.max(initial=-1)) + 1, dtype=np.bool_)
        self._validation = validation
        for draft in drafts:
            if validation(draft):
                self._held[self._of(draft)] = True

    def has(self, draft: Draft) -> bool:
        """Whether it is for training, and at least half of its memories are in validation."""
        if self._validation(draft):
            return False
        return float(self._held[self._of(draft)].mean()) >= _SHARED

    def _of(self, draft: Draft) -> Labels:
        return self._labels[[turn.place for turn in draft.turns]]


def _signature(draft: Draft, labels: Labels) -> bytes:
    """Names the set of near-duplicates."""
    numbers = labels[[turn.place for turn in draft.turns]].tolist()
    text = repr((numbers, draft.parts, draft.prompt))
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
