"""What has faded is retired as one version, each memory with its strength as the reason."""

from __future__ import annotations

import json
from datetime import timedelta

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_memory import (
    ConflictError,
    Decay,
    InvalidInputError,
    QueryRecording,
    ScopeError,
    State,
)
from lance_memory.usage import Faded

DAY = timedelta(days=1)
HALF = Decay(half_life=DAY)


@pytest.fixture
def store(tmp_path, reopen, clock):
    """Of ann: one fresh, one two days old, one a day old; evergreen ones; one of bob."""
    store = reopen(tmp_path / "store", record_queries=QueryRecording(redact=None, seconds=600))
    now = clock.now
    store.add_many(
        [
            {"id": "fresh", "content": "a fresh thing", "event_at": now, "user": "ann"},
            {"id": "day", "content": "a thing of a day", "event_at": now - DAY, "user": "ann"},
            {"id": "two", "content": "a thing of two", "event_at": now - 2 * DAY, "user": "ann"},
            {
                "id": "habit",
                "content": "a habit",
                "event_at": now - 9 * DAY,
                "user": "ann",
                "kind": "procedural",
            },
            {
                "id": "pinned",
                "content": "a pinned thing",
                "event_at": now - 9 * DAY,
                "user": "ann",
                "tags": ["evergreen"],
            },
            {"id": "bob", "content": "a thing of bob", "event_at": now - 9 * DAY, "user": "bob"},
        ]
    )
    return store


def visible(store):
    return {memory.id for memory in store.list(user="ann")}


def test_a_dry_run_tells_what_would_go_and_why(store, clock):
    version = store.version
    plan = store.plan_retirement(below=0.3, decay=HALF, user="ann")
    assert plan.memories == (
        Faded(
            id="two",
            strength=pytest.approx(0.125, abs=1e-3),
            age=plan.at - store.get("two").event_at,
            recalls=0,
            last_recalled=None,
            content="a thing of two",
            reason="strength 0.12 below 0.30",
        ),
        Faded(
            id="day",
            strength=pytest.approx(0.25, abs=1e-3),
            age=plan.at - store.get("day").event_at,
            recalls=0,
            last_recalled=None,
            content="a thing of a day",
            reason="strength 0.24 below 0.30",
        ),
    )
    assert (plan.version, plan.considered) == (version, 5)
    assert (store.version, bool(plan)) == (version, True)


def test_what_is_weaker_is_retired_as_one_version_with_its_reason(store):
    before = store.version
    done = store.apply(store.plan_retirement(below=0.2, decay=HALF, user="ann"))
    assert (done.version, done.operation, done.ids, done.updated) == (
        before + 1, "retire", ("two",), 1,
    )  # fmt: skip
    gone = store.get("two")
    assert (gone.state, gone.state_reason) == (State.RETIRED, "strength 0.12 below 0.20")
    entry = store.log(limit=1)[0]
    assert entry.reason == "strength below 0.20, half-life 1 day, 0:00:00"
    assert entry.manifest == {"below": 0.2, "decay": HALF.to_json()}
    json.dumps(entry.manifest)


def test_a_reason_of_the_caller_follows_the_strength(store):
    store.apply(store.plan_retirement(below=0.2, decay=HALF, user="ann"), reason="spring")
    assert store.get("two").state_reason == "strength 0.12 below 0.20: spring"
    assert store.log(limit=1)[0].reason == "spring"


def test_evergreen_memories_are_never_retired(store, clock):
    clock.forward(days=10_000)
    store.apply(store.plan_retirement(below=1.0, decay=HALF, user="ann"))
    assert visible(store) == {"habit", "pinned"}
    none = Decay(half_life=DAY, evergreen_kinds=(), evergreen_tags=())
    store.apply(store.plan_retirement(below=1.0, decay=none, user="ann"))
    assert visible(store) == set()


FIXTURES = [HealthCheck.function_scoped_fixture]  # each example reverts what it did


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=FIXTURES)
@given(below=st.floats(0.0, 1.0), floor=st.floats(0.0, 1.0), days=st.floats(0.1, 20.0))
def test_a_plan_is_what_is_done_and_reverting_it_leaves_nothing(store, below, floor, days):
    decay = Decay(half_life=days * DAY, floor=floor)
    columns = ["id", "state", "state_reason", "importance"]
    before = store.to_arrow(columns=columns).sort_by("id")
    plan = store.plan_retirement(below=below, decay=decay, user="ann")
    done = store.apply(plan)
    assert {m.id for m in store.list(states="retired")} == set(done.ids) == set(plan.ids)
    if plan:
        store.revert(done.version)
    assert store.to_arrow(columns=columns).sort_by("id") == before


def test_a_plan_is_carried_out_with_its_own_strengths(store, clock):
    plan = store.plan_retirement(below=0.3, decay=HALF, user="ann")
    clock.forward(days=30)
    store.add("came later", user="ann")
    store.apply(plan, reason="agreed")
    assert store.get("two").state_reason == "strength 0.12 below 0.30: agreed"
    assert {"fresh", "habit", "pinned"} < visible(store)
    assert len(visible(store)) == 4


def test_a_plan_whose_memory_was_changed_is_stale(store):
    plan = store.plan_retirement(below=0.3, decay=HALF, user="ann")
    version = store.update("two", importance=1.0).version
    with pytest.raises(ConflictError) as caught:
        store.apply(plan)
    assert (caught.value.ids, store.version) == (("two",), version)


def test_unretire_and_revert_bring_them_back(store):
    first = store.apply(store.plan_retirement(below=0.2, decay=HALF, user="ann"))
    store.unretire(first.ids)
    assert "two" in visible(store)
    second = store.apply(store.plan_retirement(below=0.2, decay=HALF, user="ann"))
    store.revert(second.version)
    assert "two" in visible(store)


def test_recalls_keep_a_memory(store):
    decay = Decay(half_life=DAY, use=1.0)
    for _ in range(3):
        store.search("two", mode="text", user="ann")
    plan = store.plan_retirement(below=0.3, decay=decay, user="ann")
    assert [(m.id, m.recalls) for m in plan.memories] == [("day", 0)]
    later = store.plan_retirement(below=0.6, decay=decay, user="ann")
    two = next(m for m in later.memories if m.id == "two")
    assert (two.recalls, two.strength > 0.499) == (3, True)
    assert two.last_recalled == store.queries(limit=1)[0].at


def test_nothing_that_is_weak_writes_nothing(store):
    version = store.version
    done = store.apply(store.plan_retirement(below=0.0, decay=HALF, user="ann"))
    assert (done.version, done.updated, store.version) == (version, 0, version)


def test_a_memory_that_expired_or_is_hidden_is_not_looked_at(store, clock):
    store.retire("two", reason="by hand")
    store.update("day", expires_at=clock.now)
    plan = store.plan_retirement(below=1.0, decay=HALF, user="ann")
    assert (plan.ids, plan.considered) == (("fresh",), 3)


def test_a_scope_is_needed_and_kept(store):
    with pytest.raises(ScopeError, match="without a scope"):
        store.apply(store.plan_retirement(below=0.5, decay=HALF))
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    plan = ann.plan_retirement(below=1.0, decay=HALF)
    assert "bob" not in plan.ids
    with pytest.raises(ScopeError, match="outside this handle"):
        bob.apply(plan)
    assert bob.apply(bob.plan_retirement(below=1.0, decay=HALF)).ids == ("bob",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"below": 0.5, "decay": HALF, "states": "any"}, "leave states out"),
        ({"below": 1.5, "decay": HALF}, "below=1.5"),
        ({"below": "much", "decay": HALF}, "below='much'"),
        ({"below": 0.5, "decay": DAY}, "needs a Decay"),
        ({"below": 0.5, "decay": None}, "needs a Decay"),
        ({"below": 0.5, "decay": HALF, "refs": "two"}, "no filter refs"),
    ],
)
def test_what_makes_no_sense_is_refused(store, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        store.plan_retirement(**arguments, user="ann")


def test_retiring_takes_names_or_a_filter_and_no_strength(store):
    version = store.version
    with pytest.raises(InvalidInputError, match="no filter below"):
        store.retire(below=0.5, user="ann")
    with pytest.raises(InvalidInputError, match="not both"):
        store.retire("two", user="ann")
    assert store.version == version


def test_memories_without_tags_fade_however_that_is_written(store):
    """Null, as an Arrow table may have it, or empty."""
    tags = {"null": None, "empty": [], "other": ["pinned"], "kept": ["pinned", "evergreen"]}
    rows = pa.table(
        {
            "id": list(tags),
            "content": [f"a thing of {name}" for name in tags],
            "tags": pa.array(tags.values(), pa.list_(pa.string())),
            "event_at": [store.get("fresh").event_at - 9 * DAY] * 4,
            "user": ["eve"] * 4,
        }
    )
    store.add_many(rows)
    plan = store.plan_retirement(below=0.5, decay=HALF, user="eve")
    assert store.to_arrow(columns=["tags"], user="eve")["tags"].null_count == 1
    assert (set(plan.ids), plan.considered) == ({"null", "empty", "other"}, 4)
