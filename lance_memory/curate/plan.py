"""A consolidation that has not happened yet: what would replace what. Can be saved and applied."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from lance_memory.curate import shown
from lance_memory.curate.merge import SUCCESSOR_COLUMNS
from lance_memory.curate.options import ConsolidateOptions, OnFailure
from lance_memory.errors import InvalidInputError, TransformError
from lance_memory.html import Told
from lance_memory.record.memory import SCOPE_LEVELS, Scope
from lance_memory.record.results import WriteResult
from lance_memory.record.rows import EMBEDDING, Fingerprint
from lance_memory.record.times import parse_instant
from lance_memory.wording import counted

__all__ = ["ClusterPlan", "ConsolidationPlan", "ConsolidationResult", "Recalled"]

_LONGEST_ID = 100
_SHOWN = 20
_FORMAT = "lance-memory consolidation plan 2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """How often probes found what they are about in their top k.

    Attributes:
        probes: questions asked.
        before: how many found the source as the store is.
        after: how many find the source, or its successor, as the store would be.
    """

    probes: int
    before: int
    after: int

    @property
    def loss(self) -> float:
        """How much less is found, 0..1; 0 where as much is found, or more."""
        return max(0.0, (self.before - self.after) / self.before) if self.before else 0.0

    def __add__(self, other: Recalled) -> Recalled:
        return Recalled(
            probes=self.probes + other.probes,
            before=self.before + other.before,
            after=self.after + other.after,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """One cluster: its sources as they were read, and the row that takes their place.

    Attributes:
        sources: id → fingerprint (revision, updated_at, content_hash) of the row that was read.
        scope: the levels that all sources share.
        cohesion: mean cosine over all pairs, -1..1.
        derived: the whole row to insert, by column; None: the cluster is left alone.
        reason: why it is left alone.
        failed: it is left alone because its transform failed, or lost too much.
        may_pass: the transform raised, timed out or did not answer; asked again, it may do better.
        dropped: the sources' numbers, names, dates and negations that the derived text lacks.
        recalled: what the guard's probes found; None: none was about this cluster.
        contents: the sources' texts, oldest first, for the reader of the plan.
    """

    sources: Mapping[str, Fingerprint]
    scope: Scope
    cohesion: float
    derived: Mapping[str, Any] | None = field(default=None, repr=False)
    reason: str = ""
    failed: bool = False
    may_pass: bool = False
    dropped: tuple[str, ...] = ()
    recalled: Recalled | None = None
    contents: tuple[str, ...] = ()

    def left_alone(self, reason: str) -> ClusterPlan:
        """The same without its derived memory, as a failure."""
        return replace(self, derived=None, reason=reason, failed=True)

    @property
    def size(self) -> int:
        """Number of sources."""
        return len(self.sources)

    @property
    def successor(self) -> str | None:
        """The id of the derived memory."""
        return None if self.derived is None else str(self.derived["id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationPlan:
    """Exactly what applying it commits, made at table version `version`.

    Attributes:
        version: the version that it was made at.
        at: when.
        op_id: of the commit, so that no plan is applied twice.
        options: how it was clustered.
        clusters: by their earliest memory.
        selected: memories considered.
        cut: why it ends before all clusters were looked at; empty: it does not.
    """

    version: int
    at: datetime
    op_id: str
    options: ConsolidateOptions
    clusters: tuple[ClusterPlan, ...]
    selected: int
    cut: str = ""

    @property
    def accepted(self) -> tuple[ClusterPlan, ...]:
        """The clusters that have a derived memory."""
        return tuple(cluster for cluster in self.clusters if cluster.derived is not None)

    @property
    def skipped(self) -> tuple[ClusterPlan, ...]:
        """The clusters that are left alone, each with its reason."""
        return tuple(cluster for cluster in self.clusters if cluster.derived is None)

    @property
    def failed(self) -> tuple[ClusterPlan, ...]:
        """The skipped clusters whose transform failed, or lost too much."""
        return tuple(cluster for cluster in self.clusters if cluster.failed)

    @property
    def failures(self) -> str:
        """How many failed, such as "2 of 5 clusters failed"; empty: none."""
        asked = counted(len(self.clusters), "cluster")
        return f"{len(self.failed)} of {asked} failed" if self.failed else ""

    @property
    def recalled(self) -> Recalled | None:
        """What the guard's probes found of the accepted clusters, all in all; None: not asked."""
        found = [cluster.recalled for cluster in self.accepted if cluster.recalled]
        return sum(found[1:], start=found[0]) if found else None

    def refuse_failures(self) -> None:
        """Nothing of the plan may be committed where all of it must be, and a part failed.

        Raises:
            TransformError: says which.
        """
        if self.options.on_failure == OnFailure.ALL_OR_NOTHING and self.failed:
            first = self.failed[0]
            raise TransformError(
                f"{self.failures}, and all or nothing was asked for; nothing was written. "
                f"The first, of {_memories(first.size)} ({next(iter(first.sources))}, ...): "
                f"{first.reason}"
            )

    def refuse_unanswered(self) -> None:
        """A pass whose transform answered for no cluster failed; it did not find nothing to do.

        Raises:
            TransformError: it raised, timed out or did not answer, each time; says why.
        """
        if self.accepted or not self.clusters or not all(c.may_pass for c in self.clusters):
            return
        number, reason = len(self.clusters), self.clusters[0].reason
        if number == 1:
            raise TransformError(f"the only cluster failed; nothing was written: {reason}")
        raise TransformError(
            f"all {number} clusters failed; nothing was written; the first: {reason}"
        )

    @property
    def rows_saved(self) -> int:
        """By how many the number of visible memories falls."""
        return sum(cluster.size - 1 for cluster in self.accepted)

    def __str__(self) -> str:
        """What would replace what, for a person; the first twenty clusters."""
        considered = f"{_memories(self.selected)} considered at version {self.version}"
        found = f"{counted(len(self.accepted), 'cluster')}, {len(self.skipped)} skipped"
        lines = [f"{considered}: {found}, {counted(self.rows_saved, 'row')} saved"]
        for cluster in self.clusters[:_SHOWN]:
            lines.append(f"{_memories(cluster.size)}, cohesion {cluster.cohesion:.2f}")
            lines += [f"  - {content}" for content in cluster.contents]
            made = cluster.derived and f"=> {cluster.derived['content']}"
            lines.append(f"  {made or f'left alone: {cluster.reason}'}")
            if cluster.dropped:
                lines.append(f"  dropped: {', '.join(cluster.dropped)}")
        if len(self.clusters) > _SHOWN:
            lines.append(f"... and {counted(len(self.clusters) - _SHOWN, 'more cluster')}")
        if self.recalled:
            kept = self.recalled
            lines.append(
                f"recall of {counted(kept.probes, 'probe')}: {kept.before} -> {kept.after}"
            )
        if self.cut:
            lines.append(f"not all clusters were looked at: {self.cut}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return shown.plan(self)

    def manifest(self) -> dict[str, Any]:
        """What rides in the commit."""
        accepted = self.accepted
        return {
            "read_version": self.version,
            "clusters": len(accepted),
            "skipped": [
                {"sources": list(c.sources), "reason": c.reason, "failed": c.failed}
                for c in self.skipped
            ],
            "derived": [c.successor for c in accepted],
            "sources": [source for c in accepted for source in c.sources],
            "parameters": self.options.to_json(),
            "recalled": self.recalled and asdict(self.recalled),
            "cut": self.cut,
        }

    def document(self, *, embeddings: bool = False) -> dict[str, Any]:
        """The plan as JSON values; to read it, without the derived memories' embeddings."""
        return {
            "format": _FORMAT,
            "version": self.version,
            "at": self.at.isoformat(),
            "op_id": self.op_id,
            "options": self.options.to_json(),
            "selected": self.selected,
            "rows_saved": self.rows_saved,
            "cut": self.cut,
            "recalled": self.recalled and asdict(self.recalled),
            "clusters": [_cluster_json(one, embeddings=embeddings) for one in self.clusters],
        }

    def to_json(self) -> str:
        """The whole plan as one JSON text, a line for each cluster."""
        document = self.document(embeddings=True)
        clusters = ",\n".join(_text(cluster) for cluster in document.pop("clusters"))
        return f'{_text(document)[:-1]}, "clusters": [\n{clusters}\n]}}'

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
                op_id=_short(document["op_id"]),
                options=ConsolidateOptions.from_json(document["options"]),
                clusters=clusters,
                selected=int(document["selected"]),
                cut=str(document["cut"]),
            )
        except InvalidInputError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise InvalidInputError(
                f"that is no saved consolidation plan ({error!r}); make one with "
                "`lmem consolidate --dry-run --plan FILE`"
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationResult(Told):
    """A pass that was committed: the plan, and the version it made."""

    plan: ConsolidationPlan
    write: WriteResult

    def __str__(self) -> str:
        put = counted(len(self.plan.accepted), "cluster")
        return f"{self.write}; {put}, {counted(self.plan.rows_saved, 'row')} saved"

    @property
    def version(self) -> int:
        """The version that the pass made."""
        return self.write.version

    @property
    def inserted(self) -> int:
        """How many memories it made."""
        return self.write.inserted

    @property
    def updated(self) -> int:
        """How many it changed: those that have a successor now."""
        return self.write.updated

    @property
    def deleted(self) -> int:
        """How many it took away: none, as sources stay."""
        return self.write.deleted

    @property
    def warnings(self) -> tuple[str, ...]:
        """The soft limits of a quota that are passed."""
        return self.write.warnings


def _memories(number: int) -> str:
    return counted(number, "memory", "memories")


def _check_sources(clusters: Sequence[ClusterPlan]) -> None:
    """Each source goes into one cluster, and each derived memory has sources."""
    sources = [source for cluster in clusters for source in cluster.sources]
    if len(set(sources)) != len(sources) or not all(cluster.sources for cluster in clusters):
        raise InvalidInputError("the plan has a cluster without sources, or a source in two")


def _short(value: Any) -> str:
    """An id of a saved plan."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_ID:
        raise InvalidInputError(f"the plan has the op_id {str(value)[:40]!r}; it takes an id")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise InvalidInputError(f"the plan has {str(value)[:40]!r} where a number of probes stands")
    return value


def _document(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    if document["format"] != _FORMAT:
        raise InvalidInputError(
            f"the plan has format {document['format']!r}; this release reads {_FORMAT!r}"
        )
    return document


def _text(values: Any) -> str:
    return json.dumps(values, ensure_ascii=False)


def _cluster_json(cluster: ClusterPlan, *, embeddings: bool) -> dict[str, Any]:
    left_out = () if embeddings else (EMBEDDING,)
    derived = cluster.derived and {k: v for k, v in cluster.derived.items() if k not in left_out}
    return {
        "sources": {
            i: [revision, at.isoformat(), content]
            for i, (revision, at, content) in cluster.sources.items()
        },
        "scope": cluster.scope.given(),
        "size": cluster.size,
        "cohesion": cluster.cohesion,
        "derived": derived,
        "reason": cluster.reason,
        "failed": cluster.failed,
        "may_pass": cluster.may_pass,
        "dropped": list(cluster.dropped),
        "recalled": cluster.recalled and asdict(cluster.recalled),
        "contents": list(cluster.contents),
    }


def _cluster_from(values: Mapping[str, Any]) -> ClusterPlan:
    seen = {
        identifier: (int(revision), parse_instant(at, "a source's time"), str(content))
        for identifier, (revision, at, content) in values["sources"].items()
    }
    derived = values["derived"]
    if derived is not None:
        _check_derived(derived, seen, values["scope"])
    return ClusterPlan(
        sources=seen,
        scope=Scope(**values["scope"]),
        cohesion=float(values["cohesion"]),
        derived=derived,
        reason=str(values["reason"]),
        failed=bool(values["failed"]),
        may_pass=bool(values["may_pass"]),
        dropped=tuple(values["dropped"]),
        recalled=_recalled(values["recalled"]),
        contents=tuple(values["contents"]),
    )


def _recalled(values: Mapping[str, Any] | None) -> Recalled | None:
    if values is None:
        return None
    return Recalled(**{name: _whole(value) for name, value in values.items()})


def _check_derived(
    derived: Mapping[str, Any], sources: Mapping[str, Fingerprint], scope: Mapping[str, str]
) -> None:
    """A derived memory is of its sources: linked to them, in their scope, and with a vector."""
    if derived.keys() != {*SUCCESSOR_COLUMNS, EMBEDDING}:
        odd = sorted(derived.keys() ^ {*SUCCESSOR_COLUMNS, EMBEDDING})
        raise InvalidInputError(f"the plan has a derived memory with other columns: {odd}")
    linked = [edge["target"] for edge in derived["relationships"]]
    within = {level: derived[level] for level in SCOPE_LEVELS}
    if linked != list(sources) or within != Scope(**scope).names() or not derived[EMBEDDING]:
        raise InvalidInputError(
            f"the plan has a derived memory ({derived['id']}) that is not linked to its sources, "
            "is in another scope than they share, or has no vector; was the file edited?"
        )
