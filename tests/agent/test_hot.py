"""The hot tier: a value is given from memory as long as it can be no other, and never longer."""

from __future__ import annotations

import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_memory import InvalidInputError
from lance_memory.agent.hot import HotFigures, HotTier, visible


class Counting:
    """Reads the visible memories of a handle through a tier, and counts how often it has to."""

    def __init__(self, tier, handle):
        self.tier, self.handle, self.loads = tier, handle, 0

    def __call__(self):
        def load():
            self.loads += 1
            return tuple(self.handle.list(states="active"))

        found = self.tier.read(self.handle, ("top", 1), load, shown=visible)
        return [memory.content for memory in found]


@pytest.fixture
def tier():
    return HotTier()


@pytest.fixture
def ana(tier, store):
    return Counting(tier, store.scoped(tenant="t", user="ana"))


def test_what_was_read_is_not_read_again_until_it_can_be_another(ana, tier):
    ana.handle.add("one")
    assert [ana() for _ in range(3)] == [["one"]] * 3
    assert ana.loads == 1
    ana.handle.add("two")
    assert (ana(), ana(), ana.loads) == (["one", "two"], ["one", "two"], 2)
    assert tier.figures == HotFigures(hits=3, misses=2, entries=1)
    assert tier.figures.rate == 0.6


def test_what_others_write_costs_a_user_nothing(ana, store):
    ana.handle.add("one")
    ana()
    for number in range(8):
        store.add(f"of bob {number}", tenant="t", user="bob")
    assert (ana(), ana.loads) == (["one"], 1)
    store.add_many([{"content": f"{n}", "tenant": f"t{n}"} for n in range(3)])
    store.optimize()
    assert (ana(), ana.loads) == (["one"], 1)
    for number in range(9):
        store.add(f"more of bob {number}", tenant="t", user="bob")
    assert (ana(), ana.loads) == (["one"], 2)  # too many versions to look at


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.add("two", tenant="t", user="ana"),
        lambda s: s.add("two", tenant="t", user="ana", session="s", run="r"),
        lambda s: s.add_many([{"content": f"{n}", "tenant": "t", "user": u} for n, u in enumerate("abc")] + [{"content": "x", "tenant": "t", "user": "ana"}]),
        lambda s: s.add_many([{"content": f"{n}", "tenant": f"{n}"} for n in range(65)]),  # too many scopes to list
        lambda s: s.update(s.list()[0].id, content="edited"),
        lambda s: s.retire(s.list()[0].id),
        lambda s: s.delete(s.list()[0].id),
        lambda s: s.rollback(1),
        lambda s: s.forget(tenant="t", user="ana"),
        lambda s: s._table.own().dataset.delete("true"),  # past this library
    ],
)  # fmt: skip
def test_whatever_may_change_a_value_has_it_read_again(ana, store, change):
    ana.handle.add("one")
    ana()
    change(store)
    assert ana() == [memory.content for memory in ana.handle.list()]
    assert ana.loads == 2


def test_time_passes_without_a_version(ana, clock):
    ana.handle.add("ends", expires_at=clock.now + timedelta(minutes=5))
    ana.handle.add("stays")
    assert ana() == ["ends", "stays"]
    clock.forward(minutes=6)
    assert (ana(), ana.loads) == (["stays"], 1)


def test_another_process_is_seen_at_once(ana, store, reopen):
    elsewhere = reopen(Path(store.uri))
    ana.handle.add("one")
    ana()
    elsewhere.add("of bob", tenant="t", user="bob")
    assert (ana(), ana.loads) == (["one"], 1)
    elsewhere.add("two", tenant="t", user="ana")
    assert ana() == ["one", "two"]


def test_handles_of_other_scopes_branches_and_stores_have_values_of_their_own(
    tier, store, reopen, tmp_path
):
    store.add("one", tenant="t", user="ana")
    side = store.branch("side")
    handles = [store, store.scoped(tenant="t"), store.scoped(tenant="u"), side]
    handles.append(reopen(tmp_path / "other"))
    readers = [Counting(tier, handle) for handle in handles]
    side.add("two", tenant="t")
    told = [reader() for reader in readers]
    assert told == [["one"], ["one"], [], ["one", "two"], []]
    assert [reader.loads for reader in readers] == [1] * 5
    assert tier.figures.entries == 5


def test_a_store_that_was_made_anew_is_another_one(tier, store, reopen):
    one = Counting(tier, store)
    store.add("one")
    assert one() == ["one"]
    store.close()
    shutil.rmtree(store.uri)
    again = reopen(Path(store.uri))
    again.add("two")
    assert Counting(tier, again)() == ["two"]


def test_of_a_view_at_a_version_nothing_is_kept(tier, store):
    store.add("one")
    view = Counting(tier, store.at(store.version))
    assert (view(), view(), view.loads, tier.figures.entries) == (["one"], ["one"], 2, 0)


def test_what_was_used_longest_ago_goes_first(store):
    tier = HotTier(max_entries=2)

    def read(what):
        return tier.read(store, what, lambda: what)

    for what in ("a", "b", "a", "c", "a"):
        assert read(what) == what
    assert tier.figures == HotFigures(hits=2, misses=3, entries=2)
    read("b")
    assert tier.figures.misses == 4
    tier.clear()
    assert tier.figures.entries == 0


def test_a_tier_holds_no_more_bytes_than_it_may(store):
    tier = HotTier(max_bytes=5_000)
    store.add("long " * 100)
    for what in range(20):
        tier.read(store, ("some", what), lambda: tuple(store.list()))
    assert 1 <= tier.figures.entries < 4
    assert 1_000 < tier.figures.bytes <= 5_000
    tier.read(store, "too much", lambda: "x" * 6_000)
    assert tier.read(store, "too much", lambda: "read again") == "read again"
    assert tier.figures.bytes <= 5_000


@pytest.mark.parametrize("bounds", [{"max_entries": 0}, {"max_bytes": 0}, {"max_entries": 1.5}])
def test_bounds_that_make_no_sense_are_refused(bounds):
    with pytest.raises(InvalidInputError):
        HotTier(**bounds)


def test_handles_of_an_opened_store_share_its_tier(store, reopen):
    assert HotTier.of(store) is HotTier.of(store.scoped(user="u"))
    assert HotTier.of(store) is not HotTier.of(reopen(Path(store.uri)))


def test_threads_that_read_and_write_never_see_less_than_was_there_before(tier, store):
    ana = Counting(tier, store.scoped(tenant="t", user="ana"))

    def work(n):
        before = store.count(tenant="t", user="ana")
        if n % 4 == 0:
            ana.handle.add(f"word {n}")
        return before <= len(ana())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(60)))
    assert len(ana()) == 15


def test_changed_since_is_true_where_it_cannot_be_told(store):
    handle = store.scoped(user="ana")
    version = store.version
    assert not handle.changed_since(version)
    assert handle.changed_since(version + 1)
    store.add("of bob", user="bob")
    assert not handle.changed_since(version)
    assert handle.changed_since(version, look=0)
    assert store.changed_since(version)


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_read_through_a_tier_is_a_read(store, reopen, clock, data):
    """Whatever is written in between, by whom, and however time passes."""
    tier, elsewhere, tenant = HotTier(max_entries=3), reopen(Path(store.uri)), uuid.uuid4().hex
    handles = {name: store.scoped(tenant=tenant, user=name) for name in ("ana", "bob", "eve")}
    readers = [Counting(tier, handles[name]) for name in ("ana", "bob")]
    for _ in range(data.draw(st.integers(1, 8))):
        name = data.draw(st.sampled_from([*handles]))
        match data.draw(st.sampled_from(["add", "end", "retire", "wait"])):
            case "add":
                elsewhere.add(f"word {clock.now}", tenant=tenant, user=name)
            case "end":
                handles[name].add(f"word {clock.now}", expires_at=clock.now + timedelta(hours=1))
            case "retire":
                handles[name].retire(states="visible")
            case "wait":
                clock.forward(minutes=data.draw(st.integers(1, 90)))
        for reader in data.draw(st.lists(st.sampled_from(readers), max_size=2)):
            assert reader() == [memory.content for memory in reader.handle.list()]
