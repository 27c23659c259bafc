"""What the verbs answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from lance_memory.errors import ConflictError
from lance_memory.html import Told
from lance_memory.record import shown
from lance_memory.record.memory import Memory, Scope, State
from lance_memory.wording import shown as line
from lance_memory.wording import some, worded

__all__ = [
    "AddManyResult",
    "AddResult",
    "Change",
    "Diff",
    "EmbedResult",
    "Hit",
    "Lineage",
    "LineageNode",
    "MemoryChange",
    "MergePlan",
    "Neighbour",
    "Outcome",
    "Related",
    "RollbackPlan",
    "ScoreParts",
    "SearchResult",
    "Stats",
    "Understood",
    "WriteResult",
]


_LISTED = 10
"""Hits that are told one by one."""


class Outcome(StrEnum):
    """What became of an added memory."""

    STORED = "stored"
    ALREADY_THERE = "already_there"
    PENDING = "pending"

    @classmethod
    def of(cls, state: State | str | None) -> Outcome:
        """Of a memory that was stored in this state."""
        return cls.PENDING if state == State.PENDING else cls.STORED


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult(Told):
    """A write that is durable: the version it made, and what that version changed.

    A write that had nothing to do changes nothing and names the version it found. `upkeep` says
    why the last upkeep of the store failed, and is "" where it did not. `warnings` says which soft
    limits of a quota are passed.
    """

    uri: str
    version: int
    operation: str
    ids: tuple[str, ...] = ()
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    upkeep: str = ""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = {"inserted": self.inserted, "updated": self.updated, "deleted": self.deleted}
        told = ", ".join(f"{n:,} {what}" for what, n in counts.items() if n) or "nothing to change"
        return f"version {self.version}: {self.operation}, {told}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddResult:
    """What became of one memory: `id` is the stored one, or the one that was there already.

    `upkeep` and `warnings` are as in `WriteResult`.
    """

    uri: str
    version: int
    id: str
    outcome: Outcome
    reason: str = ""
    upkeep: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddManyResult:
    """What became of a batch.

    `ids` has one id for each row of the batch, in order; `already_there` maps the positions
    of the rows that were not stored to the reason. `upkeep` and `warnings` are as in `WriteResult`.
    """

    uri: str
    version: int
    ids: tuple[str, ...]
    stored: int
    already_there: Mapping[int, str] = field(default_factory=dict)
    upkeep: str = ""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        there = len(self.already_there)
        return f"version {self.version}: {self.stored:,} stored, {there:,} already there"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedResult:
    """How many memories got the vector that they lacked, and how many still lack one."""

    uri: str
    version: int
    embedded: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreParts:
    """What a score is made from: the sum of the first five, times the factors.

    Divided by what the best candidate has, that is the score; a reranker's word comes after it.

    Attributes:
        vector: share of the cosine, scaled to 0..1 over the candidates.
        words: share of BM25, divided by the best.
        neighbours: from what stands before and after it in its session.
        actor: bonus, when the question names its actor.
        period: bonus, when it happened in a period that the question names.
        recency: factor, 0..1; 1 unless asked for.
        importance: factor, 0..1; 1 unless asked for.
        decay: factor, 0..1; 1 unless asked for.
        reranker: what the reranker gave, on its own scale; None where it did not look.
    """

    vector: float = 0.0
    words: float = 0.0
    neighbours: float = 0.0
    actor: float = 0.0
    period: float = 0.0
    recency: float = 1.0
    importance: float = 1.0
    decay: float = 1.0
    reranker: float | None = None

    def __str__(self) -> str:
        sums = ("vector", "words", "neighbours", "actor", "period")
        told = [f"{name} {getattr(self, name):.3f}" for name in sums if getattr(self, name)]
        factors = [
            f", times {name} {getattr(self, name):.3f}"
            for name in ("recency", "importance", "decay")
            if getattr(self, name) != 1
        ]
        last = "" if self.reranker is None else f"; reranker {self.reranker:.3f}"
        return f"{' + '.join(told or ['nothing'])}{''.join(factors)} = {self.total:.3f}{last}"

    @property
    def total(self) -> float:
        """The sum times the factors; the best candidate's is what a score of 1 stands for."""
        sums = self.vector + self.words + self.neighbours + self.actor + self.period
        return sums * self.recency * self.importance * self.decay


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One recalled memory, and why.

    Attributes:
        score: 0..1, higher is nearer; comparable within one result only: the best has 1.
        similarity: cosine of query and memory, -1..1; None where the vector leg did not see it.
        words: BM25 of the words leg, >= 0; None where that leg did not see it.
        parts: what the score is made from.
    """

    memory: Memory
    score: float
    similarity: float | None = None
    words: float | None = None
    parts: ScoreParts = field(default_factory=ScoreParts)

    def __repr__(self) -> str:
        one = self.memory
        return f"<Hit {self.score:.3f} {line(one.content)!r}; {one.scope}, id {one.id}>"

    def explain(self) -> str:
        """The score and its parts in one line."""
        seen = [
            f"cosine {self.similarity:.3f}" if self.similarity is not None else "not by vector",
            f"BM25 {self.words:.2f}" if self.words is not None else "not by words",
        ]
        return f"score {self.score:.3f} from {self.parts} ({', '.join(seen)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """What a search made of the question.

    Attributes:
        embedded: the text whose vector was compared; empty where there was none.
        words: the text of the words leg.
        actors: known actors that the question names.
        periods: dates that it names, such as "2023-05-08", "2023-05", or "*-05" for any May.
    """

    embedded: str = ""
    words: str = ""
    actors: tuple[str, ...] = ()
    periods: tuple[str, ...] = ()

    def __str__(self) -> str:
        told = {
            "embedded": self.embedded,
            "words": self.words,
            "actors": ", ".join(self.actors),
            "dates": ", ".join(self.periods),
        }
        return "; ".join(f"{name}: {value}" for name, value in told.items() if value)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits of one search, best first, at one version.

    `understood` says what was made of the question; `degraded` names the legs that could not
    answer, with the reason. Iterates over its hits.
    """

    version: int
    mode: str
    hits: tuple[Hit, ...]
    understood: Understood = field(default_factory=Understood)
    degraded: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        without = f", without {', '.join(self.degraded)}" if self.degraded else ""
        listed = some(self.hits, _LISTED)
        return f"<SearchResult [{listed}]; mode {self.mode}, version {self.version}{without}>"

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]

    def _repr_html_(self) -> str:
        return shown.hits(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """A memory reached over relationships.

    `direction` is "out" when the walk followed edges from the start to their targets, "in"
    when it followed them backwards; `depth` counts the edges.
    """

    memory: Memory
    relation: str
    direction: str
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A memory that stands near another in its session.

    Attributes:
        of: the id of that other.
        offset: -1 right before it, 1 right after it, 2 the one after that, ...
    """

    memory: Memory
    of: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageNode:
    """A memory in a lineage.

    Attributes:
        relation: of the edge between it and the memory that it hangs on.
        generation: 1, 2, ... for successors of the start and theirs; -1, -2, ... for sources.
        nodes: the next generation in the same direction, oldest event first.
        repeated: it stands in the tree already, with its `nodes` there.
        more: it has `nodes` too, further away than was asked for.
    """

    memory: Memory
    relation: str
    generation: int
    nodes: tuple[LineageNode, ...] = ()
    repeated: bool = False
    more: bool = False

    def __iter__(self) -> Iterator[LineageNode]:
        """This node and all that hang on it, in reading order."""
        yield self
        for node in self.nodes:
            yield from node


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """What took a memory's place, and what it was made from, over the generations.

    Iterates over all nodes, successors first, in reading order.
    """

    memory: Memory
    successors: tuple[LineageNode, ...]
    sources: tuple[LineageNode, ...]

    def __iter__(self) -> Iterator[LineageNode]:
        for node in (*self.successors, *self.sources):
            yield from node

    def _repr_html_(self) -> str:
        return shown.lineage(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A memory that stands in both versions with another content; `columns` names what differs."""

    before: Memory
    after: Memory
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """What a reader of `before` and of `after` sees differently."""

    before: int
    after: int
    inserted: tuple[Memory, ...]
    updated: tuple[Change, ...]
    removed: tuple[Memory, ...]

    def __str__(self) -> str:
        return (
            f"version {self.before} -> {self.after}: {len(self.inserted):,} inserted, "
            f"{len(self.updated):,} updated, {len(self.removed):,} removed"
        )

    def __bool__(self) -> bool:
        return bool(self.inserted or self.updated or self.removed)

    def _repr_html_(self) -> str:
        return shown.difference(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """One change of one memory, as `history` tells it.

    Attributes:
        id: of the memory.
        version: which made it.
        at: when.
        operation: what was done.
        actor: who did it.
        reason: why.
        before: the memory before; None: the version made it, or it cannot be read any more.
        after: the memory since; None: the version took it away.
        columns: the names of the columns that differ.
        lost: how many earlier revisions of it cannot be read any more; they were cleaned up.
    """

    id: str
    version: int
    at: datetime
    operation: str
    actor: str = ""
    reason: str = ""
    before: Memory | None = None
    after: Memory | None = None
    columns: tuple[str, ...] = ()
    lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPlan(Told):
    """What a rollback or revert would do, made at version `version`: ids that come back or go."""

    operation: str
    version: int
    target: int
    reappear: tuple[str, ...]
    change: tuple[str, ...]
    disappear: tuple[str, ...]

    def __str__(self) -> str:
        aim = "to" if self.operation == "rollback" else "of"
        told = {"back": self.reappear, "changed back": self.change, "gone": self.disappear}
        lines = [f"{name}: {some(ids)}" for name, ids in told.items() if ids]
        head = f"{self.operation} {aim} version {self.target}"
        return "; ".join([head, *(lines or ["nothing to change"])])

    def __bool__(self) -> bool:
        return bool(self.reappear or self.change or self.disappear)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan(Told):
    """What a merge would do, made at version `version`.

    Attributes:
        version: of this line.
        branch: the line that would be merged.
        tip: its version that would be.
        added: ids of memories that only that line has.
        changed: of those that become as they are there.
        removed: of those that were taken away there.
        clashes: of those that were changed on both lines, each in its way; where what both come
            from cannot be read any more, of all that differ. They are among the others only where
            `prefer` says "theirs".
        keys: id of a memory of theirs → of the one of ours that is live under the same key. One of
            the two is retired, and so among the others, where `prefer` says which.
    """

    version: int
    branch: str
    tip: int
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    clashes: tuple[str, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        told = {
            "added": self.added,
            "changed": self.changed,
            "removed": self.removed,
            "changed on both": self.clashes,
            "of a key that is taken": tuple(self.keys),
        }
        lines = [f"{name}: {some(ids)}" for name, ids in told.items() if ids]
        return "; ".join([f"merge of {self.branch} at version {self.tip}", *(lines or ["nothing"])])

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.clashes or self.keys)

    def refuse_clashes(self) -> None:
        """Refuse what nobody has decided.

        Raises:
            ConflictError: there are clashes, or keys that both gave; `ids` lists the memories.
        """
        ids = [*self.clashes, *self.keys.values()]
        counts = {
            "{n} [memory was|memories were] changed on both lines": self.clashes,
            "{n} [key was|keys were] given to a memory on each": self.keys,
        }
        why = " and ".join(worded(text, len(which)) for text, which in counts.items() if which)
        if ids:
            raise ConflictError(
                f"could not merge {self.branch!r}: {why} ({some(ids)}); nothing was written: look "
                'at them with dry_run=True, and say who is right with prefer="ours" or "theirs"',
                ids=ids,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The store in numbers, at one version and within one scope."""

    uri: str
    version: int
    at: datetime
    scope: Scope
    rows: int
    visible: int
    by_state: Mapping[str, int]
    by_kind: Mapping[str, int]
    users: int
    sessions: int
    without_embedding: int
    embedding_model: str
    dimension: int
    versions: int
    tags: Mapping[str, int]
    branches: tuple[str, ...]
    fragments: int
    bytes: int
    unindexed_rows: Mapping[str, int]
