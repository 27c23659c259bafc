"""The second sink of the curation engine: select → cluster → transform → files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import numpy as np

from lance_memory.curate.export.candidates import (
    ACROSS_SIDES,
    ADMITTED,
    LOW_QUALITY,
    Candidates,
    Source,
)
from lance_memory.curate.export.contamination import Screen
from lance_memory.curate.export.draft import Draft
from lance_memory.curate.export.duplicates import (
    Labels,
    Leaks,
    Survivors,
    near_or_same,
    same_text,
)
from lance_memory.curate.export.example import example, schema
from lance_memory.curate.export.files import Stage, staged
from lance_memory.curate.export.frame import Turn
from lance_memory.curate.export.manifest import Contamination, ExportCounts, ExportManifest
from lance_memory.curate.export.options import ExportFormat, ExportOptions
from lance_memory.curate.export.target import TRAIN, VALIDATION, Target
from lance_memory.curate.export.texts import Chosen, Ready, read_texts
from lance_memory.curate.transform.execute import Execution
from lance_memory.curate.transform.protocol import Transform
from lance_memory.errors import InvalidInputError
from lance_memory.record.filters import Filter
from lance_memory.record.memory import SCOPE_LEVELS

__all__ = ["export"]


def export(
    source: Source,
    path: str | os.PathLike[str],
    options: ExportOptions,
    *,
    transform: Transform | None,
    execution: Execution,
    dry_run: bool,
) -> ExportManifest:
    """Write the examples and their manifest; of a rehearsal, give the same manifest alone.

    Raises:
        InvalidInputError: the path does not go with the options, or a transform with the format.
        EmbeddingError: an evaluation text could not be embedded.
        StorageError: the files cannot be written. Nothing is left of them.
    """
    form = ExportFormat(options.format)
    if transform is not None and (form != ExportFormat.PLAIN or options.min_similarity is None):
        raise InvalidInputError(
            "a transform makes one text of near-duplicates: it takes format='plain' and a "
            f"min_similarity, and got format={str(form)!r}, min_similarity={options.min_similarity}"
        )
    target = Target.of(path, options)
    with staged(target, schema(form), dry_run=dry_run) as stage:
        manifest = _Run(source, options, transform, execution).into(stage)
        stage.publish(manifest.to_json())
    return manifest


class _Run:
    """One export on its way."""

    def __init__(
        self,
        source: Source,
        options: ExportOptions,
        transform: Transform | None,
        execution: Execution,
    ) -> None:
        self._source = source
        self._options = options
        self._transform = transform
        self._execution = execution
        self._candidates = Candidates(source, options)
        self._counts: Counter[str] = Counter()
        self._contaminations: list[Contamination] = []
        self._sources: set[str] = set()

    def into(self, stage: Stage) -> ExportManifest:
        """Every example to the stage; the account of them."""
        source, options = self._source, self._options
        screen = Screen(options.evaluation, source.embed) if options.evaluation else None
        for ready in read_texts(
            source.snapshot,
            self._candidates.frame,
            self._chosen(),
            transform=self._transform,
            execution=self._execution,
            screen=screen,
        ):
            self._add(ready, stage)
        files, content_hash = stage.finish()
        return ExportManifest(
            version=source.snapshot.version,
            branch=source.branch,
            at=source.moment,
            embedding_model=source.embedding_model,
            scope=source.filter.scope,
            filter=_told(source.filter),
            parameters=options.to_json(),
            counts=self._counted(),
            files=tuple(files),
            content_hash=content_hash,
            contaminations=tuple(self._contaminations),
            source_ids=tuple(sorted(self._sources)),
        )

    def _add(self, ready: Ready, stage: Stage) -> None:
        draft, match = ready.draft, ready.match
        ids = tuple(turn.id for turn in draft.turns)
        if match is not None:
            found = Contamination(
                source_ids=ids, by=match.by, evaluation=match.evaluation, found=match.found
            )
            self._contaminations.append(found)
            return
        self._sources.update(ids)
        self._counts["examples"] += 1
        self._counts["merged"] += ready.merged
        self._counts["declined"] += ready.declined
        side = VALIDATION if self._candidates.for_validation(draft.group) else TRAIN
        stage.add(side, example(draft, ready.texts, ExportFormat(self._options.format)))

    def _chosen(self) -> Iterator[Chosen]:
        """The examples that neither repeat another nor what is for validation."""
        admitted, counts = self._candidates.admitted, self._counts
        labels = self._labels(self._options.across)
        merges = self._transform is not None
        survivors = Survivors(admitted(counts), labels, with_members=merges)
        counts["near_duplicates"] = survivors.found - len(survivors)
        leaks = self._leaks(survivors, labels)
        for draft, members in survivors.of(admitted()):
            if leaks is not None and leaks.has(draft):
                counts["leaking"] += 1
            else:
                yield draft, self._same_side(draft, members)

    def _labels(self, across: Sequence[str]) -> Labels:
        """What counts as one; of no floor, each row by itself."""
        frame, floor = self._candidates.frame, self._options.min_similarity
        if floor is None:
            return np.arange(len(frame))
        snapshot, predicate = self._source.snapshot, self._candidates.predicate
        return near_or_same(snapshot, predicate, frame, floor=floor, across=across)

    def _leaks(self, survivors: Survivors, labels: Labels) -> Leaks | None:
        """What training must not repeat, whatever the scope it is in; None: there is no split."""
        options, candidates = self._options, self._candidates
        if not options.validation:
            return None
        if options.min_similarity is None:
            labels = same_text(candidates.frame, across=SCOPE_LEVELS)
        elif set(options.across) != set(SCOPE_LEVELS):
            labels = self._labels(SCOPE_LEVELS)
        kept = (draft for draft, _ in survivors.of(candidates.admitted()))
        return Leaks(kept, labels, validation=lambda d: candidates.for_validation(d.group))

    def _same_side(self, draft: Draft, members: Sequence[Turn]) -> Sequence[Turn]:
        """Those that may be made one text with the draft: on its side, oldest first."""
        side = self._candidates.for_validation
        here = (turn for turn in members if side(turn.group) == side(draft.group))
        return sorted(here, key=lambda turn: (turn.at, turn.id))

    def _counted(self) -> ExportCounts:
        counts, candidates = self._counts, self._candidates
        return ExportCounts(
            considered=len(candidates.frame),
            groups=candidates.groups,
            found=sum(counts[verdict] for verdict in (ADMITTED, LOW_QUALITY, ACROSS_SIDES)),
            low_quality=counts[LOW_QUALITY],
            across_sides=counts[ACROSS_SIDES],
            near_duplicates=counts["near_duplicates"],
            leaking=counts["leaking"],
            contaminated=len(self._contaminations),
            examples=counts["examples"],
            merged=counts["merged"],
            declined=counts["declined"],
        )


def _told(filter: Filter) -> dict[str, Any]:
    """What was asked of the memories beside their scope, as JSON values."""
    values = {f.name: getattr(filter, f.name) for f in fields(filter) if f.name != "scope"}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
        if value not in (None, (), {})
    }
