"""From candidates to one change set: what each becomes beside the memories that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from lance_memory.errors import EmbeddingError, InvalidInputError
from lance_memory.ingest.candidate import Candidate, Decision, Resolution
from lance_memory.ingest.embedding import Vectors
from lance_memory.ingest.resolve.board import OWNER, Board, Wanted
from lance_memory.ingest.resolve.classify import STANDARD, Careful, Classifier, Judgement
from lance_memory.ingest.resolve.held import RESOLVED, Held, Saying
from lance_memory.ingest.resolve.merge import merged, merged_text
from lance_memory.ingest.resolve.routing import Routing
from lance_memory.ingest.resolve.rows import change_of, fresh_row
from lance_memory.ingest.resolve.statement import Statement
from lance_memory.ingest.resolve.timeline import Walk, settle
from lance_memory.ingest.steps import Embed
from lance_memory.record.evidence import agreeing
from lance_memory.record.identity import content_hash
from lance_memory.record.memory import Scope, State
from lance_memory.storage import Audit, ChangeSet, Snapshot

__all__ = ["Resolve", "Resolved"]

STEP = "resolve"
_MONTH = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What is to be written, and why.

    Attributes:
        change: one version, or nothing.
        decisions: one for each candidate, in the order of the candidates.
        degraded: what was done without, such as a classifier that failed.
    """

    change: ChangeSet
    decisions: tuple[Decision, ...]
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve:
    """Resolves candidates against the memories of their tenant, user and agent, of the same kind.

    A text that is there to the letter is known, whatever its kind and whoever stored it. Messages
    of working memory, and the episodes that they became, are no statements and do not count.

    What was said decides, and when; never the order in which it comes in. What is said earlier than
    what stands is put in its place in the past; what was resolved before is not resolved again.

    Attributes:
        classifier: compares two statements.
        routing: decides where two clash.
        pending_for: how long a candidate of little confidence waits to be heard again.

    Raises:
        InvalidInputError: `pending_for` is not longer than nothing.
    """

    classifier: Classifier = field(default=STANDARD)
    routing: Routing = field(default_factory=Routing)
    pending_for: timedelta = _MONTH

    def __post_init__(self) -> None:
        if not isinstance(self.pending_for, timedelta) or self.pending_for <= timedelta(0):
            raise InvalidInputError(f"pending_for={self.pending_for!r}; it takes some time")

    @property
    def name(self) -> str:
        """What decisions call this step."""
        return STEP

    def settle(self, board: Board, held: Held, *, careful: Careful | None = None) -> None:
        """Put everything that was said about the topic of a memory in its place.

        Args:
            board: of the owner.
            held: one of its memories.
            careful: the classifier, where what it fails on is told.
        """
        topic = held.statement.topic
        if topic is not None:
            about = board.about(topic, held.kind)
            open_to = [
                h for h in about if not (h.gone(board.now) or h.fixed or h.waits or board.hides(h))
            ]
            walk = board.walks.setdefault((topic, held.kind), Walk())
            settle(open_to, careful or Careful(self.classifier), self.routing, walk=walk)

    def resolved(
        self,
        snapshot: Snapshot,
        candidates: Sequence[Candidate],
        vectors: Vectors,
        *,
        audit: Audit,
        now: datetime,
        embed: Embed | None = None,
        within: Scope | None = None,
    ) -> Resolved:
        """What becomes of the candidates at a version. It writes nothing, and reads that version.

        Args:
            snapshot: the version that the commit builds on.
            candidates: as they were extracted, in the order in which they were said.
            vectors: one for each candidate.
            audit: of the commit.
            now: the moment of ingestion.
            embed: makes the vectors of merged texts; without it, or where it fails, they have none
                until a repair.
            within: no memory outside of this scope is read or changed.
        """
        order = sorted(range(len(candidates)), key=lambda i: (_when(candidates[i]), i))
        decided: dict[int, Decision] = {}
        boards: list[Board] = []
        careful = Careful(self.classifier)
        owners = dict.fromkeys(_owner(candidate) for candidate in candidates)
        for owner in owners:
            mine = [i for i in order if _owner(candidates[i]) == owner]
            work = _Work(
                resolve=self,
                careful=careful,
                snapshot=snapshot,
                owner=owner,
                within=within or Scope(),
                candidates=[candidates[i] for i in mine],
                places=mine,
                vectors=Vectors(values=vectors.values[mine], valid=vectors.valid[mine]),
                now=now,
                embed=embed,
            )
            decided.update(zip(mine, work.done(), strict=True))
            boards.append(work.board)
        change = change_of(snapshot, boards, audit=audit, now=now)
        decisions = tuple(decided[i] for i in sorted(decided))
        return Resolved(change=change, decisions=decisions, degraded=careful.lacking)


class _Work:
    """The candidates of one owner, one after the other."""

    def __init__(
        self,
        *,
        resolve: Resolve,
        careful: Careful,
        snapshot: Snapshot,
        owner: Sequence[str],
        within: Scope,
        candidates: Sequence[Candidate],
        places: Sequence[int],
        vectors: Vectors,
        now: datetime,
        embed: Embed | None,
    ) -> None:
        self._resolve = resolve
        self._careful = careful
        self._judged: dict[tuple[str, str], Judgement] = {}
        self._candidates = candidates
        self._places = places
        self._now = now
        self._embed = embed
        self._vectors = vectors
        self._hashes = [content_hash(candidate.content) for candidate in candidates]
        statements = [Statement.of(candidate) for candidate in candidates]
        self._statements = statements
        wanted = Wanted(
            ids=[statement.id for statement in statements],
            hashes=self._hashes,
            topics=[topic for s in statements if (topic := s.topic) is not None],
            texts=[candidate.content for candidate in candidates],
            vectors=vectors.values,
            valid=vectors.valid,
        )
        self._wanted = wanted
        self.board = Board(snapshot, owner, wanted, now=now, within=within)

    def done(self) -> list[Decision]:
        """What became of each."""
        return [self._one(i) for i in range(len(self._candidates))]

    def _one(self, i: int) -> Decision:
        statement = self._statements[i]
        known = self.board.find(statement.id)
        if known is not None:
            return self._decision(i, Resolution.REJECT, "replayed", memory=known.id)
        alike = self._alike(i)
        saying = self._saying(i)
        for held, _ in alike:
            if held.knows(saying):
                return self._decision(i, Resolution.REJECT, "replayed", memory=held.id)
        for held, cosine in alike:
            if self._is_another(held, i):
                continue
            target = self._stood(held, statement)
            if target is not None and self._says_nothing_new(target, i, cosine):
                return self._absorbed(i, target, saying)
        return self._stored(i, alike)

    def _alike(self, i: int) -> list[tuple[Held, float | None]]:
        """Whatever the candidate may repeat, change or add to: each memory once."""
        kind = str(self._candidates[i].category.kind)
        topic = self._statements[i].topic
        found: dict[str, tuple[Held, float | None]] = {}
        for held in self.board.saying(self._hashes[i]):
            found.setdefault(held.id, (held, None))
        if topic is not None:
            for held in self.board.about(topic, kind):
                found.setdefault(held.id, (held, None))
        for held, cosine in self.board.neighbours(i, kind):
            if topic is None or held.statement.topic is None:
                found.setdefault(held.id, (held, cosine))
        return list(found.values())

    def _stood(self, held: Held, statement: Statement) -> Held | None:
        """The memory that speaks for `held` as of when the statement was made; None: none does."""
        if held.gone(self._now):
            return None
        if held.fixed or self.board.hides(held):
            return self.board.end(held)
        topic = held.statement.topic
        if held.state is not State.SUPERSEDED or (topic and topic == statement.topic):
            return held
        successor = self.board.find(held.by or "")
        later = successor is not None and successor.own.at > statement.at
        return held if later else None

    def _is_another(self, held: Held, i: int) -> bool:
        """Whether the candidate cannot repeat a memory, which speaks for itself: the quick no."""
        if self._careful.may_repeat(held.statement, self._statements[i]):
            return False
        same_text = held.content_hash == self._hashes[i]
        return not (same_text or held.fixed or self.board.hides(held))

    def _says_nothing_new(self, held: Held, i: int, cosine: float | None) -> bool:
        same_event = held.event == self._candidates[i].event
        if same_event and held.content_hash == self._hashes[i]:
            return True
        judged = self._classify(held.statement, self._statements[i], cosine=cosine)
        return judged.resolution is Resolution.REJECT and judged.timeless

    def _absorbed(self, i: int, held: Held, saying: Saying) -> Decision:
        """The candidate says what a memory does: that was said once more."""
        candidate = self._candidates[i]
        stood, asked = held.state, held.asks
        promoted = held.waits and (saying.event != held.event or not candidate.pending)
        if held.ours and held.state is not State.RETIRED:
            held.hear(saying)
        if promoted:
            distinct = {one.event: one.confidence for one in held.sayings}
            held.confidence = agreeing(list(distinct.values()))
            held.state, held.reason, held.expires_at = State.ACTIVE, "seen again", None
        self._settle(held)
        if promoted:
            return self._decision(i, "promoted", "seen_again", memory=held.id)
        if held.asks is not None and asked is None:
            against = held.reason.rpartition(" ")[2]
            return self._decision(i, "pending", held.asks, memory=held.id, others=[against])
        if stood is State.SUPERSEDED and held.state is State.ACTIVE:
            return self._decision(i, Resolution.UPDATE, "said_again", memory=held.id)
        return self._decision(i, Resolution.REJECT, "duplicate", memory=held.id)

    def _stored(self, i: int, alike: Sequence[tuple[Held, float | None]]) -> Decision:
        """The candidate becomes a memory."""
        held = self._fresh(i)
        self.board.add(held)
        if held.waits:
            return self._decision(i, "pending", "low_confidence", memory=held.id)
        for other, cosine in alike:
            if other.state is State.ACTIVE and not other.gone(self._now):
                judged = self._classify(other.statement, held.statement, cosine=cosine)
                if judged.resolution is Resolution.MERGE:
                    return self._merged(i, held, other)
        self._settle(held)
        kept, beside = self._against_texts(held, alike)
        return self._told(i, held, kept, beside)

    def _told(
        self, i: int, held: Held, judged: Judgement | None, others: Sequence[Held]
    ) -> Decision:
        """What is to be said of a candidate that was stored."""
        reason = held.reason.removeprefix(RESOLVED)
        if held.asks is not None:
            against = held.reason.rpartition(" ")[2]
            return self._decision(i, "pending", held.asks, memory=held.id, others=[against])
        if held.state is State.SUPERSEDED:
            successor = self.board.find(held.by or "")
            late = successor is not None and successor.own.at > held.own.at
            told = "late" if late else reason
            return self._decision(i, "superseded", told, memory=held.id, others=[held.by or ""])
        replaced = [edge.target for edge in held.edges if edge.relation == "updates"]
        if replaced:
            first = self.board.find(replaced[0])
            why = first.reason.removeprefix(RESOLVED) if first else "changed"
            return self._decision(i, Resolution.UPDATE, why, memory=held.id, others=replaced)
        topic = held.statement.topic
        beside = self.board.others(topic, held.kind) if topic is not None else []
        if beside:
            ids = [other.id for other in beside]
            return self._decision(
                i, Resolution.KEEP_BOTH, "another_value", memory=held.id, others=ids
            )
        if judged is not None:
            ids = [other.id for other in others]
            return self._decision(
                i, Resolution.KEEP_BOTH, judged.reason, memory=held.id, others=ids
            )
        return self._decision(i, Resolution.NEW, "new", memory=held.id)

    def _against_texts(
        self, held: Held, alike: Sequence[tuple[Held, float | None]]
    ) -> tuple[Judgement | None, list[Held]]:
        """Compare with memories that claims say nothing about; why it is kept beside which."""
        kept: Judgement | None = None
        beside: list[Held] = []
        for other, cosine in alike:
            standing = other.state is State.ACTIVE and not other.gone(self._now)
            same_topic = held.statement.topic and other.statement.topic
            if not standing or same_topic or held.state is not State.ACTIVE:
                continue
            judged = self._compared(other, held, cosine)
            if judged.resolution is Resolution.KEEP_BOTH:
                kept = kept or judged
                beside.append(other)
        return kept, beside

    def _compared(self, other: Held, held: Held, cosine: float | None) -> Judgement:
        """Compare, and let the one take the place of the other where that is so."""
        judged = self._classify(other.statement, held.statement, cosine=cosine)
        first, last = other.sayings[0], other.sayings[-1]
        if judged.timeless or last <= held.own:
            if judged.resolution is Resolution.UPDATE:
                _replace(other, held, judged.reason)
            return judged
        if held.own <= first:
            judged = self._classify(held.statement, other.statement, cosine=cosine)
            if judged.resolution is Resolution.UPDATE:
                _replace(held, other, judged.reason)
        return judged

    def _merged(self, i: int, held: Held, other: Held) -> Decision:
        """The candidate and a memory become one that says what both do."""
        both = sorted((other, held), key=lambda one: one.own)
        text = merged_text([one.statement.content for one in both])
        candidate = self._candidates[i]
        made = merged(other, held, candidate=candidate, text=text, vector=self._vector(text))
        self.board.add(made)
        for source in (other, held):
            source.replaced(made, "merged")
        self._settle(made)
        return self._decision(
            i, Resolution.MERGE, "details_of_both", memory=made.id, others=[other.id, held.id]
        )

    def _vector(self, text: str) -> NDArray[np.float32] | None:
        if self._embed is None:
            return None
        try:
            made: NDArray[np.float32] = np.asarray(self._embed([text]), np.float32)
        except EmbeddingError:
            return None
        vector: NDArray[np.float32] = made[0]
        return vector

    def _settle(self, held: Held) -> None:
        self._resolve.settle(self.board, held, careful=self._careful)

    def _classify(self, earlier: Statement, later: Statement, *, cosine: float | None) -> Judgement:
        """What the classifier says of the two; asked once."""
        pair = (earlier.id, later.id)
        if pair not in self._judged:
            self._judged[pair] = self._careful(earlier, later, cosine=cosine)
        return self._judged[pair]

    def _saying(self, i: int) -> Saying:
        candidate = self._candidates[i]
        return Saying(
            at=candidate.event_at,
            seq=-1 if candidate.seq is None else candidate.seq,
            place=self._places[i],
            id=self._statements[i].id,
            event=candidate.event,
            confidence=candidate.confidence,
            authority=self._statements[i].authority,
            announced=self._statements[i].announced,
        )

    def _fresh(self, i: int) -> Held:
        candidate, now = self._candidates[i], self._now
        waiting = bool(candidate.pending)
        raw = self._vectors.values[i] if self._vectors.valid[i] else None
        row = fresh_row(candidate, place=self._places[i], vector=raw)
        return Held(
            statement=self._statements[i],
            kind=str(candidate.category.kind),
            content_hash=self._hashes[i],
            event=candidate.event,
            state=State.PENDING if waiting else State.ACTIVE,
            reason=candidate.pending,
            own=self._saying(i),
            expires_at=now + self._resolve.pending_for if waiting else None,
            confidence=candidate.confidence,
            importance=row["importance"],
            tags=tuple(row["tags"]),
            fresh=row,
            vector=None if raw is None else self._wanted.vectors[i],
        )

    def _decision(
        self,
        i: int,
        verdict: Resolution | str,
        reason: str,
        *,
        memory: str,
        others: Sequence[str] = (),
    ) -> Decision:
        candidate = self._candidates[i]
        return Decision(
            step=STEP,
            verdict=str(verdict),
            reason=reason,
            event=candidate.event,
            memory=memory,
            others=tuple(others),
            figures={"confidence": candidate.confidence, "importance": candidate.importance},
            content=candidate.content,
        )


def _replace(old: Held, new: Held, reason: str) -> None:
    """The new one stands in the place of the old one."""
    old.replaced(new, f"{RESOLVED}{reason}")
    new.link("updates", old.id)


def _owner(candidate: Candidate) -> tuple[str, ...]:
    return tuple(getattr(candidate.scope, level) for level in OWNER)


def _when(candidate: Candidate) -> tuple[datetime, int]:
    return candidate.event_at, -1 if candidate.seq is None else candidate.seq
