"""The memories that candidates are compared with: those of one tenant, user and agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.facts import content_words
from lance_memory.ingest.candidate import Category
from lance_memory.ingest.resolve.held import Held
from lance_memory.ingest.resolve.statement import Topic, attributes_about
from lance_memory.ingest.resolve.timeline import Walk
from lance_memory.record.filters import (
    FIRST_HAND,
    REMEMBERED,
    Filter,
    all_of,
    any_of,
    equals,
    is_one_of,
    none_of,
)
from lance_memory.record.memory import DISTILLED, SAID, Kind, Scope, State
from lance_memory.record.rows import EMBEDDING, embeddings, to_memories, valid_vectors
from lance_memory.record.unit import unit
from lance_memory.storage import Snapshot

__all__ = ["OWNER", "Board", "Wanted"]

OWNER = ("tenant", "user", "agent")
"""The levels of the scope that memories are compared within."""

_READ_ALL = 20_000
"""Up to as many memories of an owner, all are read; beyond, those that are asked about."""

_NEAREST = 8
"""Neighbours of a candidate that are looked at."""

_FLOOR = 0.5
"""The least cosine, and the least share of common words, of a neighbour."""

_COMPARED = (State.ACTIVE, State.PENDING, State.SUPERSEDED)


class Wanted:
    """What the candidates of one owner ask about: ids, contents, attributes, vectors, words."""

    def __init__(
        self,
        *,
        ids: Sequence[str],
        hashes: Sequence[str],
        topics: Iterable[Topic],
        texts: Sequence[str],
        vectors: NDArray[np.float32],
        valid: NDArray[np.bool_],
    ) -> None:
        self.ids = ids
        self.hashes = hashes
        self.attributes = sorted({a for topic in topics for a in attributes_about(topic.attribute)})
        self.texts = texts
        self.vectors = unit(np.asarray(vectors, np.float32), without=0.0)
        self.valid = valid


class Board:
    """The memories of an owner at one version, and what the candidates have made of them so far.

    Columns stay columns until a memory is asked about: then it becomes a `Held`.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        owner: Sequence[str],
        wanted: Wanted,
        *,
        now: datetime,
        within: Scope,
    ) -> None:
        self.now = now
        self._snapshot = snapshot
        self._wanted = wanted
        self._within = within
        self._rows = _read(snapshot, _owned_by(owner, within), wanted)
        self._places = {i: n for n, i in enumerate(self._rows["id"].to_pylist())}
        self.walks: dict[tuple[Topic, str], Walk] = {}
        self._held: dict[str, Held] = {}
        self._fresh = _Fresh(rows=2 * len(wanted.texts), dimension=snapshot.dimension)

    def add(self, held: Held) -> None:
        """One memory more."""
        self._held[held.id] = held
        self._fresh.add(held)

    def find(self, identifier: str) -> Held | None:
        """The memory with this id."""
        held = self._held.get(identifier)
        place = self._places.get(identifier)
        if held is not None or place is None:
            return held
        row = self._rows.slice(place, 1).drop_columns([EMBEDDING])
        held = self._held[identifier] = Held.of(to_memories(row)[0])
        return held

    def end(self, held: Held) -> Held | None:
        """What has taken its place, over any number of generations; None: that is not there."""
        seen = {held.id}
        while held.by is not None:
            successor = self.find(held.by) or self._fetched(held.by)
            if successor is None or successor.id in seen:
                return None
            seen.add(successor.id)
            held = successor
        return None if held.gone(self.now) else held

    def hides(self, held: Held) -> bool:
        """Whether what replaced it is out of sight of a handle that is kept to a session or run."""
        kept = bool(self._within.session or self._within.run)
        superseded = held.state is State.SUPERSEDED and held.by is not None
        return kept and superseded and self.find(held.by or "") is None

    def about(self, topic: Topic, kind: str) -> list[Held]:
        """The memories of a kind with a claim about the topic, in whatever state."""
        names = attributes_about(topic.attribute)
        ids = [i for name in names for i in self._by_attribute.get(name, ())]
        stored = [h for h in map(self.find, dict.fromkeys(ids)) if h and h.statement.topic == topic]
        return [h for h in (*stored, *self._fresh.about(topic)) if h.kind == kind]

    def others(self, topic: Topic, kind: str) -> list[Held]:
        """The standing memories with another value of the same attribute of the same subject."""
        ids = [i for n in attributes_about(topic.attribute) for i in self._by_attribute.get(n, ())]
        found = [*map(self.find, dict.fromkeys(ids)), *self._fresh.beside(topic)]
        return [
            h
            for h in found
            if h
            and h.kind == kind
            and h.state is State.ACTIVE
            and not h.gone(self.now)
            and (other := h.statement.topic) is not None
            and (other.subject, other.attribute) == (topic.subject, topic.attribute)
            and other != topic
        ]

    def saying(self, content_hash: str) -> list[Held]:
        """The memories with exactly this content, of whatever kind and in whatever state."""
        found = [self.find(i) for i in self._by_hash.get(content_hash, ())]
        found += self._fresh.by_hash.get(content_hash, [])
        return [h for h in found if h]

    def neighbours(self, place: int, kind: str) -> list[tuple[Held, float | None]]:
        """The nearest memories of a kind, nearest first, with their cosines.

        The cosine is None where the candidate, or the memory, has no vector: those are found by
        their words.

        Args:
            place: the candidate's, in what was `Wanted`.
            kind: of memories.
        """
        found: list[tuple[float, Held, float | None]] = []
        for likeness, identifier in self._stored(place, kind):
            held = self.find(identifier)
            if held is not None:
                measured = bool(self._wanted.valid[place]) and self._has_vector(identifier)
                found.append((likeness, held, likeness if measured else None))
        valid = bool(self._wanted.valid[place])
        vector = self._wanted.vectors[place] if valid else None
        found += self._fresh.near(vector, self._wanted.texts[place], kind=kind)
        near = [one for one in found if one[0] >= _FLOOR]
        near.sort(key=lambda one: (-one[0], one[1].id))
        return [(held, cosine) for _, held, cosine in near[:_NEAREST]]

    def changed(self) -> Iterator[Held]:
        """The stored memories that are not as they were."""
        for held in self._held.values():
            if held.fresh is None and held.now() != held.before:
                yield held

    @property
    def fresh(self) -> list[Held]:
        """What is to be stored, in order."""
        return self._fresh.all

    def _fetched(self, identifier: str) -> Held | None:
        rows = self._snapshot.by_ids([identifier])
        memory = to_memories(rows)[0] if len(rows) else None
        if memory is None or not self._within.holds(memory.scope):
            return None
        held = self._held[identifier] = Held.of(memory)
        return held

    def _has_vector(self, identifier: str) -> bool:
        return bool(self._valid[self._places[identifier]])

    @cached_property
    def _by_attribute(self) -> dict[str, list[str]]:
        """Attribute → the ids of the rows that have it as a tag."""
        lists = self._rows["tags"].combine_chunks()
        tags, parents = pc.list_flatten(lists), pc.list_parent_indices(lists)
        mask = pc.is_in(tags, pa.array(self._wanted.attributes, pa.string()))
        ids = self._rows["id"].take(parents.filter(mask))
        found: dict[str, list[str]] = {}
        for tag, identifier in zip(tags.filter(mask).to_pylist(), ids.to_pylist(), strict=True):
            found.setdefault(tag, []).append(identifier)
        return found

    @cached_property
    def _by_hash(self) -> dict[str, list[str]]:
        mask = pc.is_in(self._rows["content_hash"], pa.array(self._wanted.hashes, pa.string()))
        same = self._rows.filter(mask)
        found: dict[str, list[str]] = {}
        pairs = zip(same["content_hash"].to_pylist(), same["id"].to_pylist(), strict=True)
        for digest, identifier in pairs:
            found.setdefault(digest, []).append(identifier)
        return found

    @cached_property
    def _valid(self) -> NDArray[np.bool_]:
        return valid_vectors(self._rows)

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        """Unit vectors of the rows, zeros where one has none, float32 [n, d]."""
        return unit(embeddings(self._rows), without=0.0)

    @cached_property
    def _compared(self) -> NDArray[np.bool_]:
        """Which rows may be neighbours; a snapshot says what others say, and none of its own."""
        states = pa.array([str(state) for state in _COMPARED])
        standing = pc.is_in(self._rows["state"], states)
        own = pc.not_equal(self._rows["source"], DISTILLED)
        return np.asarray(pc.and_(standing, own).to_numpy(), dtype=np.bool_)

    @cached_property
    def _of_kind(self) -> dict[str, NDArray[np.bool_]]:
        """Kind → which rows are of it."""
        kinds = self._rows["kind"]
        return {kind: pc.equal(kinds, kind).to_numpy() for kind in kinds.unique().to_pylist()}

    @cached_property
    def _cosines(self) -> NDArray[np.float32]:
        """Of every candidate with every row, float32 [m, n]; -1 where they are not compared."""
        cosines = self._wanted.vectors @ self._vectors.T
        cosines[:, ~(self._valid & self._compared)] = -1.0
        return cosines

    def _stored(self, place: int, kind: str) -> list[tuple[float, str]]:
        """The rows of a kind nearest to a candidate: likeness and id, nearest first."""
        if kind not in self._of_kind:
            return []
        compared = self._compared & self._of_kind[kind]
        if not self._wanted.valid[place]:
            return self._by_words(place, among=compared)
        cosines = np.where(compared, self._cosines[place], np.float32(-1.0))
        best = _best(cosines)
        ids = self._rows["id"]
        found = [(float(cosines[i]), ids[i].as_py()) for i in best.tolist()]
        lacking = compared & ~self._valid
        return found + (self._by_words(place, among=lacking) if lacking.any() else [])

    def _by_words(self, place: int, *, among: NDArray[np.bool_]) -> list[tuple[float, str]]:
        words = content_words(self._wanted.texts[place])
        shared = Counter(i for word in words for i in self._words.get(word, ()) if among[i])
        likeness = [
            (count / (len(words) + self._sizes[i] - count), i) for i, count in shared.items()
        ]
        likeness.sort(key=lambda one: (-one[0], one[1]))
        ids = self._rows["id"]
        return [(share, ids[i].as_py()) for share, i in likeness[:_NEAREST] if share >= _FLOOR]

    @cached_property
    def _said(self) -> list[frozenset[str]]:
        return [content_words(text) for text in self._rows["content"].to_pylist()]

    @cached_property
    def _sizes(self) -> list[int]:
        return [len(words) for words in self._said]

    @cached_property
    def _words(self) -> dict[str, list[int]]:
        """Word → the rows that have it."""
        found: dict[str, list[int]] = {}
        for i, words in enumerate(self._said):
            for word in words:
                found.setdefault(word, []).append(i)
        return found


def _best(cosines: NDArray[np.float32]) -> NDArray[np.intp]:
    """The places of the greatest ones that reach the floor, greatest first."""
    near = np.flatnonzero(cosines >= _FLOOR)
    order = np.argsort(-cosines[near], kind="stable")
    best: NDArray[np.intp] = near[order[:_NEAREST]]
    return best


_KIND = f"U{max(map(len, Kind))}"


class _Fresh:
    """The memories that are about to be stored, by whatever they are asked for."""

    def __init__(self, *, rows: int, dimension: int) -> None:
        self.all: list[Held] = []
        self.by_hash: dict[str, list[Held]] = {}
        self._by_topic: dict[Topic, list[Held]] = {}
        self._by_attribute: dict[tuple[str, str], list[Held]] = {}
        self._vectors = np.zeros((rows, dimension), np.float32)
        self._kinds = np.full(rows, "", dtype=_KIND)
        self._words: dict[str, list[int]] = {}
        self._sizes: list[int] = []
        self._lacking: set[int] = set()

    def add(self, held: Held) -> None:
        place, topic = len(self.all), held.statement.topic
        self.all.append(held)
        self._kinds[place] = held.kind
        self.by_hash.setdefault(held.content_hash, []).append(held)
        if topic is not None:
            self._by_topic.setdefault(topic, []).append(held)
            self._by_attribute.setdefault((topic.subject, topic.attribute), []).append(held)
        if held.vector is not None:
            self._vectors[place] = held.vector
        else:
            self._lacking.add(place)
        words = content_words(held.statement.content)
        self._sizes.append(len(words))
        for word in words:
            self._words.setdefault(word, []).append(place)

    def about(self, topic: Topic) -> list[Held]:
        """Those with a claim about this topic."""
        return self._by_topic.get(topic, [])

    def beside(self, topic: Topic) -> list[Held]:
        """Those with a claim about this attribute of this subject."""
        return self._by_attribute.get((topic.subject, topic.attribute), [])

    def near(
        self, vector: NDArray[np.float32] | None, text: str, *, kind: str
    ) -> list[tuple[float, Held, float | None]]:
        """Those of a kind near to a vector, and, where one of the two is missing, to a text."""
        found: list[tuple[float, Held, float | None]] = []
        if vector is not None:
            cosines = self._vectors[: len(self.all)] @ vector
            cosines[self._kinds[: len(self.all)] != kind] = -1.0
            best = [(float(cosines[i]), self.all[i]) for i in _best(cosines).tolist()]
            found += [(cosine, held, cosine) for cosine, held in best]
            if not self._lacking:
                return found
        words = content_words(text)
        shared = Counter(i for word in words for i in self._words.get(word, ()))
        for i, count in shared.items():
            share = count / (len(words) + self._sizes[i] - count)
            known = share >= _FLOOR and self.all[i].kind == kind
            if known and (vector is None or i in self._lacking):
                found.append((share, self.all[i], None))
        return found


def _owned_by(owner: Sequence[str], within: Scope) -> dict[str, str]:
    """The levels whose memories are read: an owner's, and those that a handle is kept to."""
    return {**within.given(), **dict(zip(OWNER, owner, strict=True))}


def _read(snapshot: Snapshot, owner: dict[str, str], wanted: Wanted) -> pa.Table:
    """All rows of the owner; of many, those that the candidates may have to do with.

    Messages of working memory are none of them: what was said word for word states nothing yet.
    """
    mine = (equals(level, name) for level, name in owner.items())
    within = all_of(*mine, REMEMBERED, none_of(equals("source", SAID)))
    columns = [*snapshot.columns, EMBEDDING]
    if snapshot.count(within) <= _READ_ALL:
        return snapshot.scan(within, columns=columns)
    parts = [is_one_of("id", wanted.ids), is_one_of("content_hash", wanted.hashes)]
    parts += [str(Filter(states="any", tags=(a,)).predicate(None)) for a in wanted.attributes]
    rows = snapshot.scan(all_of(within, any_of(*parts)), columns=columns)
    kinds = sorted({category.kind for category in Category})
    states = is_one_of("state", _COMPARED)
    compared = all_of(within, states, is_one_of("kind", kinds), FIRST_HAND)
    near = [snapshot.scan(None, columns=columns, limit=0), rows]
    for text, vector, valid in zip(wanted.texts, wanted.vectors, wanted.valid, strict=True):
        found = (
            snapshot.nearest(vector, k=_NEAREST, predicate=compared)
            if valid
            else snapshot.matching(text, k=_NEAREST, predicate=compared)
        )
        if len(found):
            near.append(snapshot.take(found["_rowaddr"].to_numpy(), columns))
    every = pa.concat_tables(near)
    first = {i: n for n, i in reversed([*enumerate(every["id"].to_pylist())])}
    return every.take(pa.array(sorted(first.values()), pa.int64()))
