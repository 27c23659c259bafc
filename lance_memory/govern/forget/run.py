"""Forget: memories go from every version, tag, branch, index and log, with proof."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import ConflictError, InvalidInputError, NotFoundError
from lance_memory.govern.forget.beside import clear_beside, naming_plans, remove_orphans
from lance_memory.govern.forget.marker import Marker, place_of_store, unfinished, waiting
from lance_memory.govern.forget.proof import Evidence, HeldBesideError, prove
from lance_memory.govern.forget.results import ForgetPlan, ForgetResult
from lance_memory.govern.forget.round import FORGOTTEN, Round, scope_digest
from lance_memory.govern.forget.survey import Census, survey
from lance_memory.record.filters import Filter, any_of
from lance_memory.record.identity import new_id
from lance_memory.record.memory import Scope
from lance_memory.record.rows import EMBEDDING
from lance_memory.storage import FORGET, history, naming
from lance_memory.storage.erase.needles import SHORTEST_TEXT, Needles
from lance_memory.storage.erase.stains import Stains
from lance_memory.storage.files.lines import raw_tags
from lance_memory.storage.rewritten import place_of
from lance_memory.storage.table import Table
from lance_memory.storage.upkeep import steps as upkeep
from lance_memory.storage.vector.staged import discard_staged, nobody_stages, staged_tables
from lance_memory.wording import worded

__all__ = ["Asked", "Queries", "finish", "forget", "plan", "unfinished"]

_PATIENCE = 60.0
_ROUNDS = 8
_CLONE = "checkout-"
_VECTORS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be forgotten: names within a scope, or all that ever passed a filter.

    `beside` is what of the scope is beside the table. Where there is any, no memory is no error.
    `also` is a predicate of rows that name the scope, in whatever scope they are; None: of none.
    """

    refs: Sequence[str] | None
    chosen: Filter
    successors: bool
    moment: datetime
    beside: Mapping[str, int] = field(default_factory=dict)
    also: str | None = None

    @property
    def digest(self) -> str:
        """What the same command is known by; it tells nothing of what was asked."""
        told = repr((self.refs, self.chosen, self.successors))
        return hashlib.sha256(told.encode()).hexdigest()


_Words = tuple[Sequence[str], Sequence[str], Sequence[Scope]]
"""Ids, texts, and the scopes that the memories are of."""


def _none_go(chosen: Filter | None, words: _Words) -> Mapping[str, int]:  # noqa: ARG001
    return {}


def _none_left(words: _Words) -> tuple[int, Sequence[str]]:  # noqa: ARG001
    return 0, ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """The query log, and what else is beside the table: rooms that this one does not know.

    `count` and `remove` take the ids, the texts, and the scopes that no memory is left in; `remove`
    also the scopes that the memories are of. `beside` counts what goes beside the table, with a
    filter where not names were given; `left` gives how many files of it were read for the proof,
    and the places that still have something.
    """

    count: Callable[[Sequence[str], Sequence[str], Sequence[Scope]], int]
    remove: Callable[[Sequence[str], Sequence[str], Sequence[Scope], Sequence[Scope]], int]
    beside: Callable[[Filter | None, _Words], Mapping[str, int]] = _none_go
    left: Callable[[_Words], tuple[int, Sequence[str]]] = _none_left


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What was found of what was asked for."""

    plan: ForgetPlan
    needles: Needles
    emptied: tuple[Scope, ...]
    evidence: Evidence


def plan(table: Table, asked: Asked, queries: Queries) -> ForgetPlan:
    """What would be forgotten; nothing is written.

    Raises:
        NotFoundError, AmbiguousError: a name that no memory has or had, or several.
    """
    try:
        return _chosen(table, asked, queries).plan
    except NotFoundError:
        begun = _begun(table, asked)
        if begun is None:
            raise
        return _again(table, begun, queries).plan


def forget(
    table: Table, asked: Asked, queries: Queries, *, actor: str, reason: str
) -> ForgetResult:
    """Forget, and prove it. One that was not finished is finished first.

    Raises:
        NotFoundError, AmbiguousError: as for `plan`.
        InvalidInputError: the reason, which the log keeps, quotes what is to go. Nothing was done.
        ConflictError: another process forgets, re-embeds or optimizes just now, for a minute; or a
            clone shares files. Nothing was done.
        StoreFormatError: the store is of an earlier schema.
        StorageError: something is left; running it again goes on.
    """
    table.refuse_writes()
    with _alone(table):
        done = _finished_before(table, asked, queries)
        try:
            found = _chosen(table, asked, queries)
        except NotFoundError:
            if done is None:
                raise
            return done
        _refuse_clones(found.plan)
        _refuse_quotes(found.needles, reason)
        beside = Counter(asked.beside) + Counter(found.plan.beside)  # the first is gone by now
        found = replace(found, plan=replace(found.plan, beside=dict(sorted(beside.items()))))
        marker = Marker(
            op_id=new_id(asked.moment),
            at=asked.moment,
            actor=actor,
            reason=reason,
            ids=found.plan.ids,
            scopes=tuple(map(scope_digest, found.emptied)),
            rebuilt={},
            versions=dict(found.plan.versions),
            texts=found.needles.texts,
            asked=asked.digest,
        )
        return _carried_out(table, marker, found, queries)


def finish(table: Table, queries: Queries) -> ForgetResult | None:
    """Finish a forgetting that was interrupted; None where there is none.

    After it, those that wait for files to be removed which are not the store's.

    Raises:
        ConflictError, StorageError: as for `forget`.
    """
    table.refuse_writes()
    with _alone(table):
        done = None
        begun = Marker.read(table.place)
        for marker in [begun] if begun else waiting(table.place):
            done = _continued(table, marker, queries)
        return done


def _finished_before(table: Table, asked: Asked, queries: Queries) -> ForgetResult | None:
    """Finish what was begun; what was done, where the same was asked for.

    One that waits for files which are not the store's is in nobody's way.
    """
    same = _begun(table, asked)
    begun = Marker.read(table.place)
    if begun is not None and begun != same:
        with suppress(HeldBesideError):
            _continued(table, begun, queries)
    return None if same is None else _continued(table, same, queries)


def _begun(table: Table, asked: Asked) -> Marker | None:
    """The mark of a forgetting of the same that is not done yet."""
    begun = Marker.read(table.place)
    marks = [*([begun] if begun else []), *waiting(table.place)]
    return next((mark for mark in marks if mark.asked == asked.digest), None)


def _continued(table: Table, marker: Marker, queries: Queries) -> ForgetResult:
    found = _again(table, marker, queries)
    _refuse_clones(found.plan)
    return _carried_out(table, marker, found, queries)


def _again(table: Table, marker: Marker, queries: Queries) -> _Found:
    ids, census = set(marker.ids), Census(table)
    return _found(census, table, ids, queries, successors=(), texts=marker.texts)


@contextmanager
def _alone(table: Table) -> Iterator[None]:
    """Nobody else forgets in the store, re-embeds it, or tends it, while the block lasts.

    What they have not committed yet looks like what a killed process left behind.
    """
    with ExitStack() as held:
        held.enter_context(table.place.alone(FORGET, wait=_PATIENCE))
        held.enter_context(nobody_stages(table.place, wait=_PATIENCE))
        held.enter_context(upkeep.alone(table.on_branch("main")))
        yield


def _chosen(table: Table, asked: Asked, queries: Queries) -> _Found:
    census = Census(table)
    scope = asked.chosen.scope
    if asked.refs is None:
        passing = asked.chosen.predicate(asked.moment)
        ids = census.passing(any_of(passing, asked.also) if passing and asked.also else passing)
    else:
        ids = set().union(*(census.named(ref, scope) for ref in asked.refs))
    if not ids and not asked.beside:
        raise NotFoundError(
            f"no memory in {scope} passes, in no version, tag or branch; nothing to forget"
        )
    successors = census.successors(ids, scope)
    if asked.successors:
        ids |= successors
    found = _found(
        census,
        table,
        ids,
        queries,
        successors=sorted(successors),
        taken=asked.successors,
        within=scope,
    )
    chosen = asked.chosen if asked.refs is None else None
    words = found.plan.ids, found.needles.texts, [scope for scope, _ in found.plan.scopes]
    beside = queries.beside(chosen, words)
    return replace(found, plan=replace(found.plan, beside=beside))


def _found(
    census: Census,
    table: Table,
    ids: set[str],
    queries: Queries,
    *,
    successors: Sequence[str],
    taken: bool = False,
    texts: Collection[str] = (),
    within: Scope | None = None,
) -> _Found:
    """All about these ids; `texts` are those that are known of them already.

    No scope outside of `within` counts as emptied.
    """
    place = place_of_store(table)
    stains = Stains(place, ids, options=table.storage_options)
    main = table.on_branch("main")
    contents = census.contents(ids, stains)
    needles = Needles(ids, [*contents, *texts])
    stains.also(needles.texts)
    todo = survey(main, stains, {"main": 0})
    scopes = census.scopes(ids)
    inside = [scope for scope in scopes if within is None or within.holds(scope)]
    emptied = tuple(s for s in inside if census.count(s) == scopes[s])
    named = sorted(ids)
    own = {n: at for n, at in todo.tags.items() if not n.startswith(naming.RESERVED)}
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
            staged=staged_tables(place),
            queries=queries.count(named, needles.texts, emptied),
            plans=naming_plans(place, needles),
        ),
        needles=needles,
        emptied=emptied,
        evidence=Evidence(
            texts=needles.texts,
            short=sum(len(text) < SHORTEST_TEXT for text in contents),
            vectors=_vectors(census, stains, named),
        ),
    )


def _carried_out(table: Table, marker: Marker, found: _Found, queries: Queries) -> ForgetResult:
    main, place = table.on_branch("main"), place_of_store(table)
    if found.needles.quoted(marker.reason):
        marker = replace(marker, reason=FORGOTTEN)
    stains = Stains(place, marker.ids, options=table.storage_options)
    stains.also(found.needles.texts)
    work = Round(
        table=main,
        place=place,
        stains=stains,
        needles=found.needles,
        marker=replace(marker, texts=found.needles.texts).write(place),
    )
    work.drop_torn()
    scopes = [scope for scope, _ in found.plan.scopes]
    removed = queries.remove(marker.ids, found.needles.texts, found.emptied, scopes)
    plans = clear_beside(work)
    discard_staged(place)
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
    try:
        left = queries.left((marker.ids, found.needles.texts, scopes))
        proof = prove(work, replace(found.evidence, beside=left))
    except HeldBesideError as error:
        work.marker.wait(place, error.files)
        raise
    work.marker.remove(place)
    return ForgetResult(
        plan=replace(found.plan, versions=work.marker.versions),
        op_id=marker.op_id,
        version=main.latest().version,
        logged=next((e.version for e in history.entries(main) if e.op_id == marker.op_id), 0),
        queries=work.marker.queries,
        plans=work.marker.plans,
        proof=proof,
    )


def _refuse_clones(found: ForgetPlan) -> None:
    if found.clones:
        told = worded(
            "{n} [store made by checkout shares|stores made by checkout share] files that hold "
            "these memories",
            len(found.clones),
        )
        raise ConflictError(
            f"{told} (tags {', '.join(found.clones[:3])}); nothing was written: forget them there "
            "too, or remove those stores, then remove the tags with `lmem untag`: a store that is "
            "still there loses the files it shares"
        )


def _refuse_quotes(needles: Needles, reason: str) -> None:
    if needles.quoted(reason):
        raise InvalidInputError(
            "the reason quotes what is to be forgotten, by id or by its words, and the log keeps "
            "it; nothing was done: give one that does not"
        )


def _elsewhere(table: Table, census: Census, stains: Stains) -> tuple[str, ...]:
    """Directories of other stores whose files hold the memories, and that this one reads."""
    own = f"{table.on_branch('main').home}/"
    away = [p for p in census.paths if not p.startswith(own) and stains.in_rows(p)]
    return tuple(sorted({path.rpartition("/data/")[0] for path in away}))


def _vectors(
    census: Census, stains: Stains, ids: Sequence[str]
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """A few of the memories' vectors, to ask the index for."""
    gone = pa.array(list(ids), pa.string())
    for path in filter(stains.in_rows, census.paths):
        rows = census.read(path, ["id", EMBEDDING])
        if rows.num_columns < len(("id", EMBEDDING)):
            continue
        rows = rows.filter(pc.is_in(rows["id"], gone)).slice(0, _VECTORS)
        found = [v for v in rows[EMBEDDING].to_pylist() if v is not None]
        if found:
            return np.array(found, np.float32)
    return np.empty((0, 0), np.float32)
