"""What an export says of itself: where it came from, how it was made, and what is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from lance_memory.record.memory import Scope
from lance_memory.wording import counted

__all__ = ["Contamination", "ExportCounts", "ExportManifest", "ExportedFile"]

_FORMAT = "lance-memory training export 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """One file: its name, examples, bytes and SHA-256 in hex."""

    name: str
    examples: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contamination:
    """An example that gives away a text of the evaluation set.

    Attributes:
        source_ids: its memories.
        by: "ngram" or "cosine".
        evaluation: position of the evaluation text, 0-based.
        found: the words in common, or the cosine.
    """

    source_ids: tuple[str, ...]
    by: str
    evaluation: int
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportCounts:
    """How many there were, went and stayed: found = those that went + examples.

    Attributes:
        considered: memories that were read.
        groups: groups that these are of.
        found: examples that they make.
        low_quality: examples that went because of their rating.
        across_sides: pairs of two groups that the split parts.
        near_duplicates: examples that went because a better one says the same.
        leaking: training examples that went because validation has half of them or more.
        contaminated: examples that went because they give away an evaluation text.
        examples: what was written.
        merged: examples of these whose text the transform made.
        declined: sets of near-duplicates that the transform failed on, left alone or made a text
            of that lacks more than half of their facts; the best member stands for each.
    """

    considered: int
    groups: int
    found: int
    low_quality: int
    across_sides: int
    near_duplicates: int
    leaking: int
    contaminated: int
    examples: int
    merged: int
    declined: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportManifest:
    """The account of an export. It has no time of its own: made again, it is the same.

    Attributes:
        version: the table version that was read.
        branch: the line of versions it is on.
        at: the moment that decided what had expired; of a tag or version, when it was made.
        embedding_model: whose vectors were compared.
        scope: nothing outside was read.
        filter: the other filters that were given.
        parameters: what was asked; see `ExportOptions`.
        counts: what came of it.
        files: what was written.
        content_hash: SHA-256 over all examples as JSON lines, in order, whatever the file type
            and the split.
        contaminations: what gave an evaluation text away.
        source_ids: every memory that an example was made of, sorted. Each example names its own.
    """

    version: int
    branch: str
    at: datetime
    embedding_model: str
    scope: Scope
    filter: Mapping[str, Any]
    parameters: Mapping[str, Any]
    counts: ExportCounts
    files: tuple[ExportedFile, ...]
    content_hash: str
    contaminations: tuple[Contamination, ...]
    source_ids: tuple[str, ...]

    def __str__(self) -> str:
        files = ", ".join(f"{one.name} ({one.examples})" for one in self.files)
        return (
            f"{counted(self.counts.examples, 'example')} of "
            f"{counted(self.counts.considered, 'memory', 'memories')} at version {self.version}: "
            f"{files}"
        )

    def to_json(self) -> str:
        """As the text of the manifest's file: sorted, a value a line."""
        values = {
            "manifest": _FORMAT,
            **{name: getattr(self, name) for name in ("version", "branch", "embedding_model")},
            "at": self.at.isoformat(),
            "scope": self.scope.given(),
            "filter": self.filter,
            "parameters": self.parameters,
            "counts": asdict(self.counts),
            "files": [asdict(file) for file in self.files],
            "content_hash": self.content_hash,
            "contaminations": [asdict(one) for one in self.contaminations],
            "source_ids": self.source_ids,
        }
        return json.dumps(values, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
