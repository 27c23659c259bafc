"""The invariants of a store: of the rows of each version, from one to the next, and of searches.

from lance_memory.testing import check
check(store)  # AssertionError, with a line for each that is broken
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import NotFoundError
from lance_memory.record import soundness
from lance_memory.record.memory import SCOPE_LEVELS, Kind
from lance_memory.record.rows import EMBEDDING, embeddings, valid_vectors
from lance_memory.store import MemoryStore
from lance_memory.view import MemoryView
from lance_memory.wording import counted

__all__ = ["check", "violations"]

_COLUMNS = (*soundness.COLUMNS, "content", EMBEDDING)
_GOES_BACK = ("rollback", "revert")
_ASKED = 8
"""Words, vectors and values of a column that each index is asked about."""

_WORD = re.compile(r"[a-z]{5,}")
_SHOWN = 3


def check(store: MemoryStore, *, history: bool = True) -> None:
    """Make sure that the store keeps its promises.

    Args:
        store: a store's own handle, without a scope; its branch is looked at.
        history: at every version that can be read; else at the newest alone.

    Raises:
        AssertionError: it does not; a line for each that is broken. See `violations`.
    """
    found = violations(store, history=history)
    if found:
        head = f"{store.uri} breaks {counted(len(found), 'invariant')}:"
        raise AssertionError("\n".join([head, *found]))


def violations(store: MemoryStore, *, history: bool = True) -> list[str]:
    """What is broken, a line each: none of a sound store.

    - No id is there twice, no live key twice in a scope, and every content is the one hashed.
    - Who is superseded has a successor, and nobody else has; a successor that is there names its
      sources; nothing leads in circles. (A successor may have been deleted.)
    - No vector is zero, infinite or NaN.
    - From one version to the next a memory keeps its scope, and its revision grows with every
      change, unless the version goes back.
    - A filter finds the rows that a scan finds, a word the visible memories that have it, and a
      vector the memory that it is of: with every index there is, for a few of each, at the newest
      version.

    Args:
        store: as for `check`.
        history: as for `check`.

    Raises:
        StorageError: a version cannot be read.
    """
    found = list(_of_indices(store))
    before: pa.Table | None = None
    operations = {entry.version: entry.operation for entry in store.log(upkeep=True)}
    for version in sorted(operations) if history else [store.version]:
        try:
            view = store.at(version)
        except NotFoundError:  # cleaned up
            before = None
            continue
        rows = view.to_arrow(columns=list(_COLUMNS))
        broken = list(_of_rows(rows, view))
        if before is not None:
            broken += _of_change(before, rows, goes_back=operations[version] in _GOES_BACK)
        found += [f"version {version}: {text}" for text in broken]
        before = rows
    return found


def _of_rows(rows: pa.Table, view: MemoryView) -> Iterator[str]:
    """The laws of the rows of one version."""
    moment = view.stats().at
    edges = soundness.edges(rows)
    followed = [edge for edge in edges if edge.relation in soundness.FOLLOWED]
    broken = {
        "an id is there twice": soundness.doubled_ids(rows),
        "live memories of a scope have the same key": soundness.keys_held_twice(rows, moment),
        "a content is not the one hashed": soundness.wrongly_hashed(rows),
        "state and successor disagree": soundness.unlike_their_state(rows),
        "a successor does not name its source": soundness.unacknowledged(rows, edges),
        "supersession goes in circles": soundness.in_circles(soundness.successions(rows)),
        "relationships go in circles": soundness.in_circles(followed),
        **{
            f"a vector is {name}": ids
            for name, ids in soundness.bad_vectors(rows).items()
            if name != "missing"
        },
    }
    yield from (_told(text, ids) for text, ids in broken.items() if ids)


def _of_change(before: pa.Table, after: pa.Table, *, goes_back: bool) -> Iterator[str]:
    """The laws from one version to the next."""
    names = ["id", "revision", "updated_at", "content_hash", "state", *SCOPE_LEVELS]
    both = before.select(names).join(
        after.select(names), keys="id", join_type="inner", right_suffix=" after"
    )
    moved = [pc.not_equal(both[level], both[f"{level} after"]) for level in SCOPE_LEVELS]
    for level, mask in zip(SCOPE_LEVELS, moved, strict=True):
        ids = both.filter(mask)["id"].to_pylist()
        if ids:
            yield _told(f"the {level} of a memory changed", ids)
    if goes_back:
        return
    changed = pc.or_(
        pc.not_equal(both["content_hash"], both["content_hash after"]),
        pc.or_(
            pc.not_equal(both["state"], both["state after"]),
            pc.not_equal(both["revision"], both["revision after"]),
        ),
    )
    stale = pc.or_(
        pc.less_equal(both["revision after"], both["revision"]),
        pc.less_equal(both["updated_at after"], both["updated_at"]),
    )
    ids = both.filter(pc.and_(changed, stale))["id"].to_pylist()
    if ids:
        yield _told("a memory changed, and its revision or its time did not grow", ids)


def _of_indices(store: MemoryStore) -> Iterator[str]:
    """What searches and filters find, and what a scan does."""
    rows = store.to_arrow(columns=[*_COLUMNS, "kind", "tags"])
    yield from _of_filters(store, rows)
    yield from _of_words(store)
    yield from _of_vectors(store, rows)


def _of_filters(store: MemoryStore, rows: pa.Table) -> Iterator[str]:
    def held(column: str) -> Counter[Any]:
        return Counter(value for value in rows[column].to_pylist() if value not in (None, ""))

    def differing(column: str, count: Callable[[Any], int], true: Counter[Any]) -> Iterator[str]:
        for value, number in true.most_common(_ASKED):
            if count(value) != number:
                yield f"the filter {column}={value!r} finds {count(value)} of {number}"

    for level in SCOPE_LEVELS:
        yield from differing(level, partial(_in_scope, store, level), held(level))
    every = tuple(Kind)  # what an agent is told too, which reads leave out unless asked
    count = partial(store.count, kinds=every)
    yield from differing("states", lambda v: count(states=v), held("state"))
    yield from differing("kinds", lambda v: store.count(states="any", kinds=v), held("kind"))
    yield from differing("key", lambda v: store.count(states="any", key=v), held("key"))
    tags = Counter(tag for row in rows["tags"].to_pylist() for tag in set(row or ()))
    yield from differing("tags", lambda v: store.count(states="any", tags=[v]), tags)
    for identifier in rows["id"].to_pylist()[:_ASKED]:
        if store.find(identifier) is None:
            yield f"the id {identifier} is not found"


def _in_scope(store: MemoryStore, level: str, name: str) -> int:
    return store.scoped(**{level: name}).count(states="any")


def _of_words(store: MemoryStore) -> Iterator[str]:
    visible = store.list()
    words = {memory.id: set(_WORD.findall(memory.content.casefold())) for memory in visible}
    common = Counter(word for of_one in words.values() for word in of_one)
    for word, number in common.most_common()[:: max(1, len(common) // _ASKED)]:
        true = {identifier for identifier, of_one in words.items() if word in of_one}
        hits = store.search(word, mode="text", k=len(visible))
        missed = true - {hit.memory.id for hit in hits}
        if missed and len(hits):  # of none it is a stop word
            yield _told(f"the word {word!r}, of {number}, does not find", sorted(missed))


def _of_vectors(store: MemoryStore, rows: pa.Table) -> Iterator[str]:
    active = rows.filter(pc.and_(pc.equal(rows["state"], "active"), rows["expires_at"].is_null()))
    vectors, ids = embeddings(active), active["id"].to_pylist()
    there = np.flatnonzero(valid_vectors(active))
    for place in there[:: max(1, len(there) // _ASKED)].tolist():
        hits = store.search(vector=vectors[place], mode="vector", k=1, kinds=tuple(Kind))
        if not len(hits) or (hits[0].similarity or 0.0) < 1 - 1e-3:
            yield f"the vector of {ids[place]} does not find it"


def _told(text: str, ids: Iterable[str]) -> str:
    listed = sorted(ids)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return f"{text}: {', '.join(listed[:_SHOWN])}{more}"
