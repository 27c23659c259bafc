"""Ninety neighbours with confusable names in one store, and how to tell what leaked of them."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import reduce
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lance_memory import MemoryStore, MemoryView, ProceduralMemory, ProfileMemory, Scope
from lance_memory.agent.working import WorkingMemory

LEVELS = ("tenant", "user", "agent", "session", "run")
HOME = {"tenant": "t", "user": "u", "agent": "g", "session": "s", "run": "r"}

NAMES = (
    *("a", "ab", "a b", "A", "\u0430", "\u00e1", "a\u0301", "\uff41", "a\u200b"),
    *("%", "_", "*", "a%", "'", '"', "a' OR '1'='1", "a\x1fb", "user=a"),
)
"""Prefixes, cases, a Cyrillic and a full-width `a`, NFC and NFD, an invisible space, wildcards,
quotes, SQL, separators."""

NEAR = ("a", "ab", "A", "%")
"""The names of those who have memories of every kind and state."""

SCOPES = [
    {**HOME, level: name}
    for level in LEVELS
    for name in (NAMES if level in ("tenant", "user") else NEAR)
]

JOINT_REASON, JOINT_TEXT, OTHERS_REASON, TAG, BRANCH, ASKED = range(991, 997)
"""Numbers of secrets that are of several neighbours, or of the store's owner."""

START = datetime(2025, 1, 1, tzinfo=UTC)

_SECRET = re.compile(r"zq(\d{3})x")
_ID = re.compile(r"mem-\d{3}-\d\d")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def secret(number):
    return f"zq{number:03d}x"


def id_of(number, place):
    return f"mem-{number:03d}-{place:02d}"


def number_of(level, name):
    return SCOPES.index({**HOME, level: name})


def rows_of(number):
    """The memories of one neighbour: every kind and state, and edges that lead to the next one."""
    mine, following = secret(number), (number + 1) % len(SCOPES)
    about = {"relation": "about", "target": id_of(following, 0)}
    rows = [
        {"content": f"likes green tea {mine}", "actor": "Ana", "key": f"drink-{number:03d}"},
        {"content": f"walks by the river {mine}", "actor": f"Zed{mine}", "quality": 0.9},
        {"content": f"the kettle is on {mine}", "kind": "working", "role": "user"},
        {"content": f"boil, wait, pour {mine}", "kind": "procedural", "key": "procedure:brew"},
        {"content": f"city is Lyon {mine}", "kind": "profile", "key": "profile:city"},
        {"content": f"be brief {mine}", "kind": "workspace", "key": "workspace:prompt/system"},
        {"content": f"moved to Paris {mine}", "state": "pending", "state_reason": "clarify: city"},
        {"content": f"liked coffee {mine}", "state": "superseded"},
        {"content": f"lost a key {mine}", "state": "retired", "state_reason": f"old {mine}"},
        {"content": f"hates tea {mine}", "state": "contradicted", "kind": "semantic"},
        {"content": f"has a dog {mine}", "state": "pending"},
    ]
    rows[6]["relationships"] = [{"relation": "contradicts", "target": id_of(following, 0)}]
    rows[7]["superseded_by"] = id_of(following, 0)
    full = any(SCOPES[number][level] in NEAR for level in LEVELS)
    for place, row in enumerate(rows):
        row.setdefault("relationships", [about])
        row |= SCOPES[number]
        row |= {
            "id": id_of(number, place),
            "tags": ["shared", f"tag-{mine}"],
            "metadata": {"shared": 1, "who": mine},
            "source": "user" if place % 2 else f"src-{mine}",
            "source_ref": f"ref-{mine}",
            "event_at": START + timedelta(minutes=place),
        }
    return rows if full else rows[::5]


class World:
    """What the store holds when it is built: at the newest version, and at the tagged one."""

    def __init__(self, store):
        self.past = table(store.at(f"tag-{secret(TAG)}"))
        self.rows = table(store).select(["id", *LEVELS]).to_pylist()
        self.known = {row["id"] for row in self.rows}


def table(view):
    """Every row, by id."""
    return view.to_arrow().sort_by("id")


def inside(rows, scope):
    """The rows that a scope holds."""
    return rows.filter(_held(rows, scope))


def outside(rows, scope):
    """The rows that it does not hold."""
    return rows.filter(pc.invert(_held(rows, scope)))


def _held(rows, scope):
    return reduce(pc.and_, [pc.equal(rows[n], name) for n, name in scope.given().items()])


def build(path, embedder, clock):
    """Everybody's memories, then what has happened to them, across the scopes too."""
    store = MemoryStore.open(
        path, embedder=embedder, clock=clock, upkeep=None, record_queries=True, author="operator"
    )
    store.add_many([row for number in range(len(SCOPES)) for row in rows_of(number)])
    number = store.version
    store.tag(f"tag-{secret(TAG)}", number)
    store.branch(f"branch-{secret(BRANCH)}")
    for level in ("user", "agent"):
        one, other = number_of(level, "a"), number_of(level, "ab")
        store.approve([id_of(one, 10), id_of(other, 10)], reason=f"of both {secret(JOINT_REASON)}")
        store.supersede(
            [id_of(one, 2), id_of(other, 2)], f"both have tea {secret(JOINT_TEXT)}", reason="joint"
        )
        store.update(id_of(other, 1), importance=0.9, reason=f"his {secret(OTHERS_REASON)}")
        for number in (one, other):
            lived(store.scoped(**SCOPES[number]), secret(number), key=f"key-{level}-{number}")
    store.search(f"tea for {secret(ASKED)}")
    store.query_log.flush()
    return store


def lived(handle, mine, *, key):
    """What somebody's agent has done, beside adding memories."""
    session = handle.scope.session
    handle.search(f"green tea of {mine}")
    told = f"I live in Rome and I like {mine} a lot."
    handle.ingest(told, wait=False, idempotency_key=key)
    working = WorkingMemory(handle)
    working.append_message(session, "user", f"the kettle {mine} is on", ref=f"ref-{mine}")
    working.set_context(session, {"topic": mine})
    ProfileMemory(handle).set("food", {"likes": mine})
    ProceduralMemory(handle).learn("tidy", context="boil, wait, pour", steps=[f"use {mine}"])
    handle.sharing.share(with_={"user": "nobody"}, tags="shared", reason=f"for {mine}")


def state(store):
    """All that is in a store: rows, recorded queries, jobs, messages."""
    neighbours = [SCOPES[number_of(level, "ab")] for level in ("user", "agent")]
    said = [(levels, WorkingMemory(store.scoped(**levels))) for levels in neighbours]
    return (
        table(store),
        store.queries(),
        store.jobs.list(),
        [(Scope(**levels), layer.recent(levels["session"])) for levels, layer in said],
    )


def elsewhere(whole, *scopes):
    """What of a state is in none of the scopes."""
    rows, queries, jobs, messages = whole

    def held(one):
        return any(scope.holds(one) for scope in scopes)

    return (
        reduce(outside, scopes, rows),
        [query for query in queries if not held(query.scope)],
        [job for job in jobs if not all(map(held, job.scopes))],
        [said for of, said in messages if not held(of)],
    )


# -- what an answer tells ---------------------------------------------------------------------


def told(answer):
    """All that can be read in an answer, as one text."""
    return "\n".join(_told(answer))


def scopes_in(answer):
    """Every scope that an answer names."""
    return list(_scopes(answer))


def _told(answer) -> Iterator[str]:
    if isinstance(answer, str | bytes | int | float | datetime | Enum) or answer is None:
        yield str(answer)
    elif isinstance(answer, np.ndarray):
        yield str(answer.shape)
    elif isinstance(answer, pl.LazyFrame | pl.DataFrame):
        yield from _told(answer.lazy().collect().to_arrow())
    elif isinstance(answer, pa.Table):
        yield str(answer.drop_columns({"embedding"} & {*answer.column_names}).to_pylist())
    elif isinstance(answer, MemoryView):
        yield repr(answer)
        yield from _told([answer.list(states="any"), answer.log(), answer.queries()])
    elif isinstance(answer, Path):
        yield from files_in(answer)
    elif isinstance(answer, BaseException):
        yield from _told([*answer.args, vars(answer)])
    else:
        yield from _inside(answer)


def _inside(answer) -> Iterator[str]:
    if isinstance(answer, Mapping):
        yield from _told(list(answer.keys()))
        yield from _told(list(answer.values()))
    elif dataclasses.is_dataclass(answer):
        yield repr(answer)
        if type(answer).__str__ is not object.__str__:
            yield str(answer)
        whole = hasattr(type(answer).__repr__, "__wrapped__")  # one that was written tells less
        for field in dataclasses.fields(answer):
            if not (whole and field.repr and _is_plain(getattr(answer, field.name))):
                yield from _told(getattr(answer, field.name))
    elif isinstance(answer, Iterable):
        for item in answer:
            yield from _told(item)
    else:
        yield repr(answer)


def _is_plain(value):
    """Whether its `repr` in another value's tells all of it."""
    return isinstance(value, str | int | float | datetime | Enum | dict | Scope) or value is None


def _scopes(answer) -> Iterator[Scope]:
    if isinstance(answer, Scope):
        yield answer
    elif isinstance(answer, str | bytes | type | pa.Table | pl.DataFrame | pl.LazyFrame):
        return
    elif dataclasses.is_dataclass(answer):
        if isinstance(getattr(answer, "scope", None), Scope):
            yield answer.scope
        for field in dataclasses.fields(answer):
            yield from _scopes(getattr(answer, field.name))
    elif isinstance(answer, Mapping):
        yield from _scopes(list(answer.items()))
    elif isinstance(answer, list | tuple | set | frozenset):
        for item in answer:
            yield from _scopes(item)


def files_in(path) -> Iterator[str]:
    """What the files of a verb that writes files hold."""
    for file in sorted(p for p in [path, *path.rglob("*")] if p.is_file()):
        if file.suffix == ".parquet":
            yield str(pq.read_table(file).to_pylist())
        else:
            yield file.read_bytes().decode(errors="replace")


class Boundary:
    """What is a handle's own, now and at the tagged version; whatever else is told is a leak."""

    def __init__(self, world, handle):
        self.scope, self.known = handle.scope, world.known
        said = told([table(handle.at(f"tag-{secret(TAG)}")), table(handle)])
        self.secrets = set(_SECRET.findall(said))
        self.typed = {*_ID.findall(said), *_UUID.findall(said)}
        self.people = said

    def leaks(self, answer, given):
        """The secrets, ids and scopes of others in an answer that were not in the text `given`."""
        text = told(answer)
        found = {secret(int(n)) for n in set(_SECRET.findall(text)) - self.secrets}
        ids = {*_ID.findall(text), *(set(_UUID.findall(text)) & self.known)} - self.typed
        others = {str(s) for s in scopes_in(answer) if not self._agrees(s)}
        unknown = {scope for scope in others if scope not in self.people}
        return {leak for leak in found | ids | unknown if leak not in given}

    def type(self, given):
        """Note what was given, which the handle may have written down from now on."""
        self.typed |= {*_ID.findall(given)}
        self.people += given

    def _agrees(self, other):
        names = other.names()
        return all(names[level] in (name, "") for level, name in self.scope.given().items())


# -- the public API, by introspection -----------------------------------------------------------


def parameters_of(function):
    """Every parameter of a verb by name; keywords that a TypedDict lists are taken one by one."""
    if not inspect.isfunction(function):
        return []
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self":
            continue
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            found.append(name)
            continue
        seen = {"DuckDBPyConnection": object}  # is imported for type checkers alone
        hint = typing.get_type_hints(function, localns=seen, include_extras=True)[name]
        listed = typing.get_args(hint)[0] if typing.get_args(hint) else None
        found += [f"{name}.{key}" for key in listed.__annotations__] if listed else [name]
    return found


def realised(answer):
    """Generators are run: what they would give counts."""
    with suppress(StopIteration):
        if isinstance(answer, Iterator):
            return list(answer)
    return answer
