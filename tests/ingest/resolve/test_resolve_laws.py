"""The laws: in whatever order, in one job or many, once or again, the same memories stand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from forked import Forked
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from resolve_kit import START, Role, Talk, likes, lives, said

from lance_memory.ingest.resolve import Resolve, Routing, Whose
from lance_memory.record.memory import Scope, State
from lance_memory.testing import check

SEED = settings(
    max_examples=8,
    phases=[Phase.generate],
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PLACES = st.sampled_from(["Lisbon", "Porto", "Faro"])
THINGS = st.sampled_from(["tea", "coffee"])
USERS = st.sampled_from(["ana", "eva"])


@st.composite
def logs(draw):
    """Things said on days of their own, by two users, in the order of the days."""
    days = draw(st.lists(st.integers(0, 60), min_size=2, max_size=7, unique=True))
    return [draw(one_of(day)) for day in sorted(days)]


def one_of(day):
    where = {"day": day}
    scopes = USERS.map(lambda user: Scope(tenant="acme", user=user))
    roles = st.sampled_from([Role.USER, Role.USER, Role.ASSISTANT])
    return st.one_of(
        st.builds(lives, PLACES, change=st.booleans(), scope=scopes, role=roles, **_just(where)),
        st.builds(likes, THINGS, no=st.booleans(), scope=scopes, **_just(where)),
        st.builds(said, st.just("I keep three bees"), scope=scopes, **_just(where)),
        st.builds(
            lives,
            PLACES,
            scope=scopes,
            confidence=st.just(0.5),
            pending=st.just("confidence 0.50"),
            **_just(where),
        ),
    )


def _just(values):
    return {name: st.just(value) for name, value in values.items()}


def stands(store):
    """Of every user what is visible and what is pending, by what it claims."""

    def told(memory):
        claim = memory.metadata.get("claim")
        stated = (claim["attribute"], claim["value"]) if claim else memory.content
        return memory.user, stated

    return {
        state: sorted(map(repr, map(told, store.list(states=state))))
        for state in ("active", "pending")
    }


def whole(store):
    """Every memory, but for the times and revisions of its writing."""
    return {
        m.id: (m.content, m.state, m.superseded_by, m.state_reason, sorted(map(str, m.metadata)))
        for m in store.list(states="any")
    }


RESOLVES = st.sampled_from([Resolve(), Resolve(routing=Routing(whose={"residence": Whose.SHARED}))])


@SEED
@given(log=logs(), resolve=RESOLVES, vectors=st.booleans())
def test_a_batch_is_the_same_as_one_by_one(log, resolve, vectors, tmp_path_factory, reopen):
    batch, single = (
        Talk(reopen(tmp_path_factory.mktemp("laws") / "store"), resolve) for _ in range(2)
    )
    batch.put(*log, vectors=vectors)
    for candidate in log:
        single.put(candidate, vectors=vectors)
    assert whole(batch.store) == whole(single.store)
    check(single.store)


@SEED
@given(log=logs(), resolve=RESOLVES, data=st.data())
def test_the_order_of_arrival_plays_no_part(log, resolve, data, tmp_path_factory, reopen):
    straight, mixed = (
        Talk(reopen(tmp_path_factory.mktemp("laws") / "store"), resolve) for _ in range(2)
    )
    straight.put(*log)
    for candidate in data.draw(st.permutations(log)):
        mixed.put(candidate)
    assert stands(mixed.store) == stands(straight.store)
    for store in (straight.store, mixed.store):
        check(store)


@SEED
@given(log=logs(), resolve=RESOLVES, data=st.data())
def test_a_log_that_is_played_again_changes_nothing(log, resolve, data, tmp_path_factory, reopen):
    talk = Talk(reopen(tmp_path_factory.mktemp("laws") / "store"), resolve)
    talk.put(*log)
    before, version = whole(talk.store), talk.store.version
    again = data.draw(st.permutations(log))
    for candidate in [*again, *log]:
        assert talk.put(candidate) == [("reject", "replayed")]
    assert talk.put(*log) == [("reject", "replayed")] * len(log)
    assert (whole(talk.store), talk.store.version) == (before, version)


def test_two_handles_that_resolve_at_once_never_leave_two_of_a_single_attribute(
    tmp_path, reopen, ticking
):
    path = tmp_path / "store"
    routing = Routing(whose={"residence": Whose.SHARED})
    talks = [Talk(reopen(path, clock=ticking()), Resolve(routing=routing)) for _ in range(2)]
    sayings = [lives(f"Town{i % 7}", day=i) for i in range(24)]

    def tell(k):
        for candidate in sayings[k::2]:
            talks[k].put(candidate)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(tell, range(2)))
    (visible,) = reopen(path).list()
    assert visible.metadata["claim"]["value"] == "town2"
    check(reopen(path))


@pytest.mark.slow
def test_two_processes_that_resolve_at_once_never_leave_two_of_a_single_attribute(tmp_path, reopen):
    path = tmp_path / "store"
    reopen(path)
    child = Path(__file__).with_name("resolve_child.py")
    children = [Forked(child, path, k) for k in range(2)]
    assert [process.communicate(timeout=300) for process in children] == [("", "")] * 2
    assert [process.returncode for process in children] == [0, 0]
    store = reopen(path)
    (visible,) = store.list()
    assert visible.metadata["claim"]["value"] == "town2"
    assert store.count(states=State.SUPERSEDED) == 6
    check(store)
    assert visible.event_at > START
