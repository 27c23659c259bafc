"""A consolidation that has not happened yet: what would replace what. Can be saved and applied."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lance_memory.curate.merge import SUCCESSOR_COLUMNS
from lance_memory.curate.options import ConsolidateOptions
from lance_memory.errors import InvalidInputError
from lance_memory.record.results import WriteResult
from lance_memory.record.rows import EMBEDDING, Fingerprint
from lance_memory.record.times import parse_instant

__all__ = ["ClusterPlan", "ConsolidationPlan", "ConsolidationResult"]

_FORMAT = "lance-memory consolidation plan 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """One cluster: its sources as they were read, and the row that takes their place.

    Attributes:
        sources: id → fingerprint (revision, updated_at, content_hash) of the row that was read.
        cohesion: mean cosine over all pairs, -1..1.
        derived: the whole row to insert, by column; None: the cluster is left alone.
        reason: why it is left alone.
        contents: the sources' texts, oldest first, for the reader of the plan.
    """

    sources: Mapping[str, Fingerprint]
    cohesion: float
    derived: Mapping[str, Any] | None = field(default=None, repr=False)
    reason: str = ""
    contents: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of sources."""
        return len(self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationPlan:
    """Exactly what applying it commits, made at table version `version`."""

    version: int
    at: datetime
    op_id: str
    options: ConsolidateOptions
    clusters: tuple[ClusterPlan, ...]
    selected: int

    @property
    def accepted(self) -> tuple[ClusterPlan, ...]:
        """The clusters that have a derived memory."""
        return tuple(cluster for cluster in self.clusters if cluster.derived is not None)

    @property
    def skipped(self) -> tuple[ClusterPlan, ...]:
        """The clusters that are left alone, each with its reason."""
        return tuple(cluster for cluster in self.clusters if cluster.derived is None)

    @property
    def rows_saved(self) -> int:
        """By how many the number of visible memories falls."""
        return sum(cluster.size - 1 for cluster in self.accepted)

    def __str__(self) -> str:
        """What would replace what, cluster by cluster, for a person."""
        considered = f"{self.selected} memories considered at version {self.version}"
        found = f"{len(self.accepted)} clusters, {len(self.skipped)} skipped"
        lines = [f"{considered}: {found}, {self.rows_saved} rows saved"]
        for cluster in self.clusters:
            lines.append(f"{cluster.size} memories, cohesion {cluster.cohesion:.2f}")
            lines += [f"  - {content}" for content in cluster.contents]
            made = cluster.derived and f"=> {cluster.derived['content']}"
            lines.append(f"  {made or f'left alone: {cluster.reason}'}")
        return "\n".join(lines)

    def manifest(self) -> dict[str, Any]:
        """What rides in the commit."""
        accepted = self.accepted
        return {
            "read_version": self.version,
            "clusters": len(accepted),
            "skipped": [{"sources": list(c.sources), "reason": c.reason} for c in self.skipped],
            "derived": [str(c.derived["id"]) for c in accepted if c.derived],
            "retired_sources": [source for c in accepted for source in c.sources],
            "parameters": self.options.to_json(),
        }

    def to_json(self) -> str:
        """The whole plan as one JSON text."""
        document = {
            "format": _FORMAT,
            "version": self.version,
            "at": self.at.isoformat(),
            "op_id": self.op_id,
            "options": self.options.to_json(),
            "selected": self.selected,
            "rows_saved": self.rows_saved,
            "clusters": [_cluster_json(cluster) for cluster in self.clusters],
        }
        return json.dumps(document, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> ConsolidationPlan:
        """The inverse of `to_json`.

        Raises:
            InvalidInputError: not such a text.
        """
        try:
            document = _document(text)
            clusters = tuple(_cluster_from(cluster) for cluster in document["clusters"])
            _check_sources(clusters)
            return cls(
                version=int(document["version"]),
                at=parse_instant(document["at"], "the plan's time"),
                op_id=document["op_id"],
                options=ConsolidateOptions.from_json(document["options"]),
                clusters=clusters,
                selected=int(document["selected"]),
            )
        except InvalidInputError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InvalidInputError(
                f"that is no saved consolidation plan ({error!r}); make one with "
                "`lmem consolidate --dry-run --plan FILE`"
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationResult:
    """A pass that was committed: the plan, and the version it made."""

    plan: ConsolidationPlan
    write: WriteResult

    @property
    def version(self) -> int:
        """The version that the pass made."""
        return self.write.version


def _check_sources(clusters: Sequence[ClusterPlan]) -> None:
    """Each source goes into one cluster, and each derived memory has sources."""
    sources = [source for cluster in clusters for source in cluster.sources]
    if len(set(sources)) != len(sources) or not all(cluster.sources for cluster in clusters):
        raise InvalidInputError("the plan has a cluster without sources, or a source in two")


def _document(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    if document["format"] != _FORMAT:
        raise InvalidInputError(
            f"the plan has format {document['format']!r}; this release reads {_FORMAT!r}"
        )
    return document


def _cluster_json(cluster: ClusterPlan) -> dict[str, Any]:
    return {
        "sources": {
            i: [revision, at.isoformat(), content]
            for i, (revision, at, content) in cluster.sources.items()
        },
        "size": cluster.size,
        "cohesion": cluster.cohesion,
        "derived": cluster.derived,
        "reason": cluster.reason,
        "contents": list(cluster.contents),
    }


def _cluster_from(values: Mapping[str, Any]) -> ClusterPlan:
    seen = {
        identifier: (int(revision), parse_instant(at, "a source's time"), str(content))
        for identifier, (revision, at, content) in values["sources"].items()
    }
    derived = values["derived"]
    if derived is not None and derived.keys() != {*SUCCESSOR_COLUMNS, EMBEDDING}:
        odd = sorted(derived.keys() ^ {*SUCCESSOR_COLUMNS, EMBEDDING})
        raise InvalidInputError(f"the plan has a derived memory with other columns: {odd}")
    return ClusterPlan(
        sources=seen,
        cohesion=float(values["cohesion"]),
        derived=derived,
        reason=values["reason"],
        contents=tuple(values["contents"]),
    )
