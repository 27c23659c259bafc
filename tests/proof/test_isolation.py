"""C16 for the whole public API: through a scoped handle nobody else's rows are told of or changed.

Every public verb is found by introspection, and called with every parameter set to what is
somebody else's. A new verb, a new parameter, and a new class over a store fail here by their names
until the tables of `isolation_arguments.py` say what they are to be tried with.
"""

from __future__ import annotations

import copy
import inspect
import shutil

import isolation_arguments as arguments
import pytest
from isolation_kit import (
    BRANCH,
    LEVELS,
    SCOPES,
    TAG,
    Boundary,
    World,
    build,
    elsewhere,
    inside,
    parameters_of,
    realised,
    secret,
    state,
    table,
    told,
)

import lance_memory
from lance_memory import Desk, LanceMemoryError, MemoryStore, MemoryView, Scope, ScopeError, Sharing
from lance_memory.agent.working import WorkingMemory

pytestmark = pytest.mark.disk

HANDLES = {"user": {"tenant": "t", "user": "a"}, "agent": {"agent": "a"}}
"""Level at which the neighbours differ → the handle; the second names no tenant."""

FULL = "user"
"""The level of the handle that is tried with everything; the other with what each verb needs."""

OF_OWNER = {secret(TAG), secret(BRANCH)}


def over_a_store(cls):
    """Whether it is made from a handle."""
    if not inspect.isclass(cls) or not inspect.isfunction(cls.__init__):
        return False
    first = next(iter(inspect.signature(cls).parameters.values()), None)
    return first is not None and str(first.annotation) in ("MemoryStore", "MemoryView")


PUBLIC = {name: getattr(lance_memory, name) for name in lance_memory.__all__}
LAYERS = {**PUBLIC, "WorkingMemory": WorkingMemory}
SURFACES = {
    "MemoryView": (MemoryView, lambda handle: handle.at(handle.version)),
    "MemoryStore": (MemoryStore, lambda handle: handle),
    "Desk": (Desk, lambda handle: handle.jobs),
    "Sharing": (Sharing, lambda handle: handle.sharing),
    **{name: (cls, cls) for name, cls in LAYERS.items() if over_a_store(cls)},
}
VERBS = [
    (surface, verb)
    for surface, (cls, _) in SURFACES.items()
    for verb in dir(cls)
    if not verb.startswith("_")
]
REFUSED = [pair for pair in VERBS if arguments.known(arguments.REFUSED, *pair)]
TRIED = [p for p in VERBS if p not in REFUSED and not arguments.known(arguments.ENDS, *p)]


@pytest.fixture(scope="module")
def built(tmp_path_factory, embedder, ticking):
    """The store of all neighbours, built once; and what is in it."""
    place = tmp_path_factory.mktemp("isolation") / "store"
    store = build(place, embedder, ticking())
    known = Known(store)
    store.close()
    return place, known


class Copy:
    """A copy of that store; what is in it by now, and what is each handle's own."""

    def __init__(self, store, known):
        self.store, self.state = store, known.state
        self.bounds = copy.deepcopy(known.bounds)


class Known:
    """What is known of every copy before anything is done in it."""

    def __init__(self, store):
        self.world, self.state = World(store), state(store)
        self.bounds = {
            level: Boundary(self.world, store.scoped(**levels)) for level, levels in HANDLES.items()
        }


@pytest.fixture(scope="module")
def copied(built, embedder, ticking, tmp_path_factory):
    """A way to open a copy: one for each verb of the store, one for each other class."""
    copies = {}

    def open_copy(name, *, recording=True):
        if name not in copies:
            place = tmp_path_factory.mktemp("isolation") / "copy"
            shutil.copytree(built[0], place)
            store = MemoryStore.open(
                place, embedder=embedder, clock=ticking(), upkeep=None, record_queries=recording
            )
            copies[name] = Copy(store, built[1])
        return copies[name]

    return open_copy


@pytest.fixture(scope="module")
def shared(copied):
    """The copy that verbs which only read have in common."""
    return copied("to read", recording=False)


def reads(surface, verb):
    """Whether it cannot write, as nothing of a view can."""
    return surface == "MemoryView" or (surface == "MemoryStore" and hasattr(MemoryView, verb))


def tried(surface, verb, case):
    """What the verb is called with: what it needs, then every parameter set to another's.

    What a store shares with its views is tried with everything once.
    """
    needed = arguments.entry(arguments.NEEDED, surface, verb)
    given = needed(case) if needed else [{}]
    yield from given
    if not given or case.level != FULL or (surface == "MemoryView" and hasattr(MemoryStore, verb)):
        return
    together = {}
    for name in parameters_of(inspect.getattr_static(SURFACES[surface][0], verb)):
        key = name.rpartition(".")[2]
        alone = arguments.entry(arguments.PARAMETERS, surface, verb, name)
        if name in arguments.TOGETHER:
            together[key] = arguments.TOGETHER[name](case)
        beside = {n: v for n, v in given[0].items() if n != "refs" or "where." not in name}
        values = alone(case) if alone else ()
        if name.startswith("where.") and verb not in arguments.EVERY_FILTER:
            values = values[:1] if name in arguments.STRONG else ()
        for value in values:
            yield value if name == "levels" else {**beside, key: value}
    if together:
        yield {**given[0], **together}


def answer_of(make, handle, verb, keywords):
    """What the verb answers; of a property its value."""
    try:
        found = getattr(make(handle), verb)
        return realised(found(**keywords)) if callable(found) else found
    except LanceMemoryError as error:
        return error


@pytest.mark.parametrize(("surface", "verb"), TRIED, ids=[f"{s}.{v}" for s, v in TRIED])
def test_nothing_of_others_is_told_or_changed(surface, verb, built, copied, shared, tmp_path):
    only_reads = reads(surface, verb)
    mine = shared if only_reads else copied(verb if surface == "MemoryStore" else surface)
    store, allowed = mine.store, OF_OWNER if verb in arguments.TOLD else set()
    handles = {level: store.scoped(**levels) for level, levels in HANDLES.items()}
    version = store.version
    for level, scoped in handles.items():
        boundary = mine.bounds[level]
        case = arguments.Case(store=store, handle=scoped, level=level, out=tmp_path / level)
        for keywords in tried(surface, verb, case):
            given = told(list(keywords.values()))
            answer = answer_of(SURFACES[surface][1], scoped, verb, keywords)
            leaks = boundary.leaks([answer, case.out], given) - allowed
            assert leaks == set(), f"{verb}({keywords}) through {scoped.scope} tells of {leaks}"
            if not only_reads:
                boundary.type(given)
            shutil.rmtree(case.out, ignore_errors=True)
    if only_reads:
        assert store.version == version
        return
    before, mine.state = mine.state, state(store)
    scopes = [scoped.scope for scoped in handles.values()]
    for old, new in zip(elsewhere(before, *scopes), elsewhere(mine.state, *scopes), strict=True):
        assert old == new, f"{verb} changes what is others'"
    for level, scoped in handles.items():  # nor does what is written down tell of them
        assert mine.bounds[level].leaks(inside(mine.state[0], scoped.scope), "") == set()
    if surface == "MemoryStore" and verb not in arguments.REWRITES:
        assert table(store.at(f"tag-{secret(TAG)}")) == built[1].world.past


@pytest.mark.parametrize(("surface", "verb"), REFUSED, ids=[f"{s}.{v}" for s, v in REFUSED])
def test_what_concerns_the_whole_store_is_refused(surface, verb, shared):
    for levels in HANDLES.values():
        made = SURFACES[surface][1](shared.store.scoped(**levels))
        with pytest.raises(ScopeError):
            called(made, verb, arguments.entry(arguments.REFUSED, surface, verb))


def called(made, verb, keywords):
    found = getattr(made, verb)
    return found if keywords is None else found(**keywords)


def test_every_public_verb_and_parameter_is_in_the_tables():
    tables = (arguments.PLAIN, arguments.NEEDED, arguments.REFUSED, arguments.ENDS)
    new = {".".join(pair) for pair in VERBS if not any(arguments.known(t, *pair) for t in tables)}
    assert new == set(), "say in isolation_arguments.py what these are to be called with"
    tables = (arguments.PARAMETERS, arguments.TOGETHER, arguments.UNVARIED)
    parameters = {
        f"{surface}.{verb}({name})"
        for surface, verb in TRIED
        for name in parameters_of(inspect.getattr_static(SURFACES[surface][0], verb))
        if not any(arguments.known(table, surface, verb, name) for table in tables)
    }
    assert parameters == set(), "say in isolation_arguments.py which of their values are another's"


def test_nothing_public_hides_in_a_handle_beside_the_verbs_of_its_class(shared):
    """Guards: the desk of a scoped handle had everybody's jobs in an attribute of the instance."""
    handle = shared.store.scoped(**HANDLES[FULL])
    hidden = {
        f"{surface}.{name}"
        for surface, (cls, made) in SURFACES.items()
        for name in vars(made(handle)).keys() - {*dir(cls)}
        if not name.startswith("_") and not arguments.known(arguments.PLAIN, surface, name)
    }
    assert hidden == set(), "say in isolation_arguments.py what these are, or make them private"


def test_what_is_told_to_the_owner_is_seen_as_a_leak_to_others(built, shared):
    """The test would see a leak in whatever form an answer has."""
    boundary, store = shared.bounds[FULL], shared.store
    for answer in (
        store.list(),
        store.search("green tea"),
        store.log(),
        store.tags(),
        store.queries(),
        store.jobs.list(),
        store.to_polars(),
        store.to_arrow(columns=["id"]),
        store.at(f"tag-{secret(TAG)}"),
        store.stats(),
        store.sharing.granted(),
        WorkingMemory(store.scoped(**{**SCOPES[0], "tenant": "t", "agent": "ab"})).recent("s"),
        Scope(tenant="ab"),
        KeyError(f"there is {secret(5)}"),
    ):
        assert boundary.leaks(answer, "") != set(), answer


@pytest.mark.parametrize("level", LEVELS)
def test_a_confusable_name_is_another_name(level, built, shared):
    """Prefixes, cases, look-alikes, normal forms, wildcards, quotes: each holds its own alone."""
    for name in {scope[level] for scope in SCOPES}:
        handle = shared.store.scoped(**{level: name})
        held = {memory.id for memory in handle.iter(states="any")}
        assert held == {row["id"] for row in built[1].world.rows if row[level] == name}
        assert handle.scope == Scope(**{level: name})
