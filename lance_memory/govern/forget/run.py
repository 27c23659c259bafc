"""Forget: memories go from every version, tag, branch, index and log, with proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import ConflictError, NotFoundError
from lance_memory.govern.forget.beside import clear_beside, naming_plans, remove_orphans
from lance_memory.govern.forget.marker import MARKER, Marker, place_of_store, unfinished
from lance_memory.govern.forget.proof import Evidence, prove
from lance_memory.govern.forget.results import ForgetPlan, ForgetResult
from lance_memory.govern.forget.round import Round, scope_digest
from lance_memory.govern.forget.survey import Census, survey
from lance_memory.record.filters import Filter
from lance_memory.record.identity import new_id
from lance_memory.record.memory import Scope
from lance_memory.record.rows import EMBEDDING
from lance_memory.storage import history
from lance_memory.storage.erase.stains import Needles, Stains, rows_in
from lance_memory.storage.files.lines import raw_tags
from lance_memory.storage.rewritten import place_of
from lance_memory.storage.table import Table

__all__ = ["Asked", "Queries", "finish", "forget", "plan", "unfinished"]

_LOCK = "forget.lock"
_PATIENCE = 60.0
_ROUNDS = 8
_CLONE = "checkout-"
_SHORTEST_TEXT = 12
"""Shorter texts stand in other texts by chance; they are looked for in rows alone."""

_VECTORS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be forgotten: names within a scope, or all that ever passed a filter."""

    refs: Sequence[str] | None
    chosen: Filter
    successors: bool
    moment: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """The query log, whose room this one does not know.

    `count` and `remove` take the ids, the texts, and the scopes that no memory is left in.
    """

    count: Callable[[Sequence[str], Sequence[str], Sequence[Scope]], int]
    remove: Callable[[Sequence[str], Sequence[str], Sequence[Scope]], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What was found of what was asked for."""

    plan: ForgetPlan
    texts: tuple[str, ...]
    emptied: tuple[Scope, ...]
    evidence: Evidence


def plan(table: Table, asked: Asked, queries: Queries) -> ForgetPlan:
    """What would be forgotten; nothing is written.

    Raises:
        NotFoundError, AmbiguousError: a name that no memory has or had, or several.
    """
    return _chosen(table, asked, queries).plan


def forget(
    table: Table, asked: Asked, queries: Queries, *, actor: str, reason: str
) -> ForgetResult:
    """Forget, and prove it. One that was not finished is finished first.

    Raises:
        NotFoundError, AmbiguousError: as for `plan`.
        ConflictError: another process forgets just now, or a clone shares files.
        StoreFormatError: the store is of an earlier schema.
        StorageError: something is left; running it again goes on.
    """
    table.refuse_earlier_schema()
    with _alone(table):
        _finished(table, queries)
        found = _chosen(table, asked, queries)
        _refuse_clones(found.plan)
        marker = Marker(
            op_id=new_id(asked.moment),
            at=asked.moment,
            actor=actor,
            reason=reason,
            ids=found.plan.ids,
            scopes=tuple(map(scope_digest, found.emptied)),
            rebuilt={},
            versions=dict(found.plan.versions),
        )
        return _carried_out(table, marker, found, queries)


def finish(table: Table, queries: Queries) -> ForgetResult | None:
    """Finish a forgetting that was interrupted; None where there is none.

    Raises:
        ConflictError, StorageError: as for `forget`.
    """
    table.refuse_earlier_schema()
    with _alone(table):
        return _finished(table, queries)


def _finished(table: Table, queries: Queries) -> ForgetResult | None:
    marker = Marker.read(place_of_store(table))
    if marker is None:
        return None
    found = _found(Census(table), table, set(marker.ids), queries, successors=())
    _refuse_clones(found.plan)
    return _carried_out(table, marker, found, queries)


@contextmanager
def _alone(table: Table) -> Iterator[None]:
    with place_of_store(table).alone(_LOCK, wait=_PATIENCE):
        yield


def _chosen(table: Table, asked: Asked, queries: Queries) -> _Found:
    census = Census(table)
    scope = asked.chosen.scope
    if asked.refs is None:
        ids = census.passing(asked.chosen.predicate(asked.moment))
    else:
        ids = set().union(*(census.named(ref, scope) for ref in asked.refs))
    if not ids:
        raise NotFoundError(
            f"no memory in {scope} passes, in no version, tag or branch; nothing to forget"
        )
    successors = census.successors(ids, scope)
    if asked.successors:
        ids |= successors
    return _found(
        census, table, ids, queries, successors=sorted(successors), taken=asked.successors
    )


def _found(
    census: Census,
    table: Table,
    ids: set[str],
    queries: Queries,
    *,
    successors: Sequence[str],
    taken: bool = False,
) -> _Found:
    place = place_of_store(table)
    stains = Stains(place, ids, options=table.storage_options)
    main = table.on_branch("main")
    todo = survey(main, stains, {"main": 0})
    texts = tuple(census.contents(ids, stains))
    scopes = census.scopes(ids)
    emptied = tuple(s for s in scopes if census.count(s) == scopes[s])
    named = sorted(ids)
    own = {n: at for n, at in todo.tags.items() if not n.startswith(history.RESERVED)}
    tagged = {(line, v) for line, v in raw_tags(main).values()}
    return _Found(
        plan=ForgetPlan(
            version=main.latest().version,
            ids=tuple(named),
            scopes=tuple(scopes.items()),
            successors=tuple(successors),
            with_successors=taken,
            versions={
                name: tuple(v for v in versions if (name, v) not in tagged)
                for name, versions in todo.dirty.items()
                if versions and place_of(name, 0) == (name, 0)
            },
            tags={n: place_of(*at)[1] for n, at in own.items()},
            branches=tuple(n for n in todo.newest if n != "main" and place_of(n, 0) == (n, 0)),
            clones=tuple(n for n in own if n.startswith(_CLONE)),
            elsewhere=_elsewhere(table, census, stains),
            queries=queries.count(named, _told(texts), emptied),
            plans=naming_plans(place, Needles(named, _told(texts))),
        ),
        texts=texts,
        emptied=emptied,
        evidence=Evidence(texts=_told(texts), vectors=_vectors(table, census, stains, named)),
    )


def _carried_out(table: Table, marker: Marker, found: _Found, queries: Queries) -> ForgetResult:
    main, place = table.on_branch("main"), place_of_store(table)
    texts = _told(found.texts)
    work = Round(
        table=main,
        place=place,
        stains=Stains(place, marker.ids, options=table.storage_options),
        needles=Needles(marker.ids, texts),
        marker=marker.write(place),
    )
    # While the texts are known: after a kill they may be in no row any more.
    removed = queries.remove(marker.ids, texts, found.emptied)
    plans = clear_beside(work)
    work.keep(
        replace(
            work.marker,
            queries=marker.queries + removed,
            plans=(*marker.plans, *plans),
        )
    )
    for _ in range(_ROUNDS):
        if not work.look():
            break
        work.run()
    remove_orphans(work)
    clear_beside(work)
    proof = prove(work, found.evidence)
    place.remove(MARKER)
    return ForgetResult(
        version=main.latest().version,
        op_id=marker.op_id,
        ids=marker.ids,
        scopes=found.plan.scopes,
        successors=found.plan.successors,
        with_successors=found.plan.with_successors,
        versions=work.marker.versions,
        tags=found.plan.tags,
        branches=found.plan.branches,
        elsewhere=found.plan.elsewhere,
        queries=work.marker.queries,
        plans=work.marker.plans,
        proof=proof,
    )


def _refuse_clones(found: ForgetPlan) -> None:
    if found.clones:
        raise ConflictError(
            f"{len(found.clones)} stores made by checkout share files that hold these memories "
            f"(tags {', '.join(found.clones[:3])}); nothing was written: forget them there too, "
            "or remove those stores, then remove the tags with `lmem untag`: a store that is "
            "still there loses the files it shares"
        )


def _told(texts: Sequence[str]) -> list[str]:
    return [text for text in texts if len(text) >= _SHORTEST_TEXT]


def _elsewhere(table: Table, census: Census, stains: Stains) -> tuple[str, ...]:
    """Directories of other stores whose files hold the memories, and that this one reads."""
    own = f"{table.on_branch('main').home}/"
    away = [p for p in census.paths if not p.startswith(own) and stains.in_rows(p)]
    return tuple(sorted({path.rpartition("/data/")[0] for path in away}))


def _vectors(
    table: Table, census: Census, stains: Stains, ids: Sequence[str]
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """A few of the memories' vectors, to ask the index for."""
    gone = pa.array(list(ids), pa.string())
    for path in filter(stains.in_rows, census.paths):
        rows = rows_in(path, ["id", EMBEDDING], options=table.storage_options)
        if rows.num_columns < len(("id", EMBEDDING)):
            continue
        rows = rows.filter(pc.is_in(rows["id"], gone)).slice(0, _VECTORS)
        found = [v for v in rows[EMBEDDING].to_pylist() if v is not None]
        if found:
            return np.array(found, np.float32)
    return np.empty((0, 0), np.float32)
