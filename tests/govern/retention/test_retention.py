"""What has stayed long enough goes, by rules that a plain model of them agrees with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import (
    ConflictError,
    Fields,
    InvalidInputError,
    Limit,
    MemoryStore,
    Quota,
    QuotaExceededError,
    RetentionPolicy,
    RetentionRule,
    ScopeError,
    State,
    Workspace,
    retention_policies,
)

DAY = timedelta(days=1)
CONFUSABLE = (
    "acme",
    "ACME",
    "acme ",
    "acm_",
    "acme%",
    "acme'",
    "\u0430cme",
    "acme/x",
    "acme\u200b",
)


def day(clock, days):
    clock.forward(days=days)
    return clock.now


@pytest.fixture
def lived(store, clock):
    """What was learned on day 0, with a reason for each to go or to stay."""
    said = {
        "raw": {},
        "weak": {"importance": 0.1},
        "at the bound": {"importance": 0.2},
        "semantic": {"kind": "semantic", "importance": 0.0},
        "procedural": {"kind": "procedural"},
        "profile": {"kind": "profile"},
        "told": {"kind": "workspace"},
        "pinned": {"tags": ["x", "pinned"], "importance": 0.0},
        "evergreen": {"tags": ["evergreen"]},
        "near a tag": {"tags": ["pinne", "pinned?"]},
        "made": {"source": "consolidated"},
        "snapshot": {"source": "distilled", "importance": 0.0},
        "chat": {"kind": "working"},
        "stale": {"kind": "working", "expires_at": clock.now + DAY},
        "pinned chat": {"kind": "working", "expires_at": clock.now + DAY, "tags": ["pinned"]},
        "over": {"expires_at": clock.now + DAY},
        "passport": {"kind": "profile", "expires_at": clock.now + DAY},
        "offer": {"kind": "semantic", "source": "consolidated", "expires_at": clock.now + DAY},
        "kept offer": {"kind": "semantic", "expires_at": clock.now + DAY, "tags": ["evergreen"]},
        "lease": {"kind": "semantic", "expires_at": clock.now + 400 * DAY},
        "told for a day": {"kind": "workspace", "expires_at": clock.now + DAY},
        "future": {"event_at": clock.now + 60 * DAY},
        "waits": {"state": "pending"},
    }
    store.add_many([{"id": name, "content": f"about {name}", **f} for name, f in said.items()])
    store.add("hidden", id="hidden")
    store.retire("hidden")
    return store


def due(plan):
    return {one.id: str(one.rule) for one in plan.memories}


EXPIRED = dict.fromkeys(["stale", "over", "passport", "offer"], "expired")


def test_the_default_lets_raw_episodes_go_and_keeps_what_is_evergreen(lived, clock):
    assert due(lived.plan_retention()) == {}
    day(clock, 2)
    assert due(lived.plan_retention()) == EXPIRED
    day(clock, 29)
    assert due(lived.plan_retention()) == {**EXPIRED, "weak": "low_importance"}
    day(clock, 60)
    plan = lived.plan_retention()
    old = dict.fromkeys(["raw", "weak", "at the bound", "near a tag"], "age")
    assert due(plan) == {**EXPIRED, **old}
    assert plan.counts == {RetentionRule.EXPIRED: 4, RetentionRule.AGE: 4}
    assert (plan.considered, plan.version) == (20, lived.version)
    assert (
        str(plan) == f"8 memories of 20 at version {lived.version} to retire: 4 expired, 4 by age"
    )
    day(clock, 60)
    assert due(lived.plan_retention()).keys() - due(plan).keys() == {"future"}


def test_a_policy_sets_ages_by_kind_and_turns_rules_off(lived, clock):
    day(clock, 10)
    week = RetentionPolicy(
        ages={"semantic": 7 * DAY, "working": 7 * DAY},
        expired=False,
        evergreen_tags=(),
        made=(),
    )
    assert due(lived.plan_retention(week)) == dict.fromkeys(
        ["semantic", "chat", "stale", "pinned chat", "offer", "kept offer", "lease"], "age"
    )
    day(clock, 1000)
    nothing = RetentionPolicy(ages={}, expired=False)
    assert due(lived.plan_retention(nothing)) == {}
    lax = RetentionPolicy(low_importance=0, ages={"episodic": 2000 * DAY})
    assert due(lived.plan_retention(lax)) == {**EXPIRED, "lease": "expired"}
    for_good = RetentionPolicy(ages={"episodic": timedelta.max}, low_importance_age=timedelta.max)
    assert due(lived.plan_retention(for_good)) == {**EXPIRED, "lease": "expired"}


def test_what_is_planned_is_what_is_done_as_one_version(lived, clock):
    day(clock, 91)
    plan, before = lived.plan_retention(), lived.version
    done = lived.apply(plan, reason="spring")
    assert (done.version, done.operation, set(done.ids)) == (before + 1, "retain", set(plan.ids))
    assert {m.id: m.state_reason for m in lived.list(states="retired")} == {
        "hidden": "",
        **{one.id: f"{one.reason}: spring" for one in plan.memories},
    }
    assert lived.get("raw").state_reason == "retention: episodic, kept for 90 days: spring"
    assert lived.get("stale").state_reason == "retention: working, expired: spring"
    assert lived.get("passport").state_reason == "retention: profile, expired: spring"
    entry = lived.log(limit=1)[0]
    assert (entry.reason, entry.manifest) == (
        "spring",
        {"rules": {"expired": 4, "age": 4}, "policy": RetentionPolicy().to_json()},
    )
    assert not lived.plan_retention()
    lived.revert(done.version)
    assert lived.plan_retention().ids == plan.ids


def test_reasons_name_the_bound_of_little_importance(lived, clock):
    day(clock, 31)
    lived.apply(lived.plan_retention())
    why = "retention: importance below 0.2, kept for 30 days"
    assert lived.get("weak").state_reason == why
    assert lived.log(limit=1)[0].reason == "4 expired, 1 of low importance"


def test_a_plan_of_a_memory_that_was_changed_since_is_stale(lived, clock):
    day(clock, 91)
    plan = lived.plan_retention()
    version = lived.update("raw", tags=["pinned"]).version
    with pytest.raises(ConflictError) as caught:
        lived.apply(plan)
    assert (caught.value.ids, lived.version) == (("raw",), version)


def test_what_has_expired_makes_room_in_a_quota(tmp_path, reopen, clock):
    """Of any kind but working it counted for ever: no read showed it, and nothing retired it."""
    store = reopen(tmp_path / "store", quotas=Quota(rows=Limit(hard=1)))
    store.add("the offer ends today", kind="semantic", expires_at=clock.now + DAY, id="offer")
    day(clock, 2)
    assert (store.count(), store.quota().of("rows").used) == (0, 1)
    with pytest.raises(QuotaExceededError, match="`lmem retention` for what is old or expired"):
        store.add("another offer")
    assert store.retain(archive=tmp_path / "old.zip").retired == 1
    assert store.quota().of("rows").used == 0
    store.add("another offer")
    assert store.get("offer").state_reason == "retention: semantic, expired"
    other = reopen(tmp_path / "other")
    other.import_store(tmp_path / "old.zip")
    assert other.get("offer").content == "the offer ends today"


def test_what_is_told_to_an_agent_goes_only_where_it_is_asked_about(lived, clock):
    day(clock, 91)
    kinds = ["workspace", "procedural"]
    assert due(lived.plan_retention(kinds=kinds)) == {"told for a day": "expired"}


def test_plans_and_policies_are_readable_where_they_are_printed(lived, clock):
    day(clock, 2)
    plan = lived.plan_retention()
    assert "memories" not in repr(plan)
    assert {str(one) for one in plan.memories} >= {"passport (retention: profile, expired)"}
    assert str(RetentionPolicy()) == (
        "episodic for 90 days, below importance 0.2 for 30 days, what expires until then"
    )
    assert str(RetentionPolicy(ages={"working": 0.5 * DAY}, expired=False)) == (
        "working for 12 hours"
    )
    assert str(RetentionPolicy(ages={}, expired=False)) == "everything stays"
    done = lived.retain(plan, archive=None)
    assert str(done) == f"version {done.version}: retired 4 memories of 20"
    assert str(lived.retain(archive=None)) == f"nothing is due; version {done.version} stays"


def test_a_reason_says_how_long_in_a_unit_that_people_use(store, clock):
    store.add("a thing", id="m")
    clock.forward(days=100)
    told = {
        90 * DAY: "90 days",
        1.5 * DAY: "1.5 days",
        DAY: "1 day",
        DAY / 24: "1 hour",
        DAY / 48: "30 minutes",
        timedelta(milliseconds=1): "0.001 seconds",
    }
    for age, words in told.items():
        plan = store.plan_retention(RetentionPolicy(ages={"episodic": age}))
        assert [one.reason for one in plan.memories] == [f"retention: episodic, kept for {words}"]


def test_age_counts_from_the_last_of_event_learning_and_state(store, clock):
    """A log of last year stays for the whole time after it was imported; so does what came back."""
    store.add("said last year", id="log", event_at=clock.now - 400 * DAY)
    day(clock, 89)
    assert not store.plan_retention()
    day(clock, 2)
    plan = store.plan_retention()
    assert plan.ids == ("log",)
    assert plan.memories[0].age == plan.at - store.get("log").created_at
    store.apply(plan)
    store.unretire("log")
    day(clock, 89)
    assert not store.plan_retention()
    day(clock, 2)
    assert store.plan_retention().ids == ("log",)


def test_what_a_clash_waits_for_is_held(store, clock):
    old, other = store.add("lives in Lisbon").id, store.add("likes tea").id
    edge = {"relation": "contradicts", "target": old}
    store.add("lives in Porto", state="pending", relationships=[edge], id="new")
    day(clock, 91)
    assert store.plan_retention().ids == (other,)
    store.reject("new")
    assert set(store.plan_retention().ids) == {old, other}


def test_each_tenant_has_its_own_policy_however_alike_the_names(store, clock):
    store.add_many(
        [{"content": "a thing", "id": f"{n}", "tenant": t} for n, t in enumerate(CONFUSABLE)]
    )
    store.add("a thing", id="none")
    day(clock, 91)
    keep = RetentionPolicy(ages={"episodic": 365 * DAY})
    for number, tenant in enumerate(CONFUSABLE):
        every = {*map(str, range(len(CONFUSABLE))), "none"}
        plan = store.plan_retention(per_tenant={tenant: keep})
        assert set(plan.ids) == every - {str(number)}
        assert store.plan_retention(keep, per_tenant={tenant: RetentionPolicy()}).ids == (
            str(number),
        )
        mine = store.scoped(tenant=tenant)
        assert mine.plan_retention().ids == (str(number),)
        assert not mine.plan_retention(per_tenant={tenant: keep})
    done = store.apply(store.plan_retention(keep, per_tenant={"acme": RetentionPolicy()}))
    assert done.ids == ("0",)
    told = store.log(limit=1)[0].manifest
    assert told == {"rules": {"age": 1}, "policies": {"acme": RetentionPolicy().to_json()}}


def test_through_the_stores_own_handle_it_is_about_everybody_and_else_about_the_scope(store, clock):
    store.add_many([{"content": f"of {u}", "id": u, "user": u} for u in ("ann", "bob")])
    day(clock, 91)
    assert set(store.plan_retention().ids) == {"ann", "bob"}
    assert store.plan_retention(user="ann").ids == ("ann",)
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    with pytest.raises(ScopeError):
        ann.plan_retention(user="bob")
    with pytest.raises(ScopeError, match="outside this handle"):
        bob.apply(ann.plan_retention())
    assert ann.apply(ann.plan_retention()).ids == ("ann",)
    assert bob.get("bob").state is State.ACTIVE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": 90}, "it takes a RetentionPolicy"),
        ({"per_tenant": {"acme": 90}}, "the policy of 'acme'"),
        ({"per_tenant": "acme"}, "a mapping of tenants"),
        ({"states": "retired"}, "leave states out"),
        ({"nonsense": 1}, "no filter nonsense"),
    ],
)
def test_what_makes_no_sense_is_refused(store, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        store.plan_retention(**arguments)


WRONG = {
    "ages": (90, {"episodic": 90}, {"dream": DAY}, {"workspace": DAY}, {"episodic": -DAY}),
    "low_importance": (-0.1, 1.1, "low", None, True),
    "low_importance_age": (30, timedelta(0), None),
    "expired": (1, None),
    "evergreen_tags": ("pinned", None, (1,)),
    "made": ("consolidated", (None,)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_policy_refuses_what_it_cannot_mean(name):
    for value in WRONG[name]:
        with pytest.raises(InvalidInputError):
            RetentionPolicy(**{name: value})


@pytest.mark.parametrize(
    "values",
    [
        [],
        {"ages": {}},
        {"days": 90},
        {"days": {"episodic": 0}},
        {"days": {"episodic": "90"}},
        {"low_importance_days": 1e300},
        {"evergreen_tags": "pinned"},
        {"expired": "yes"},
    ],
)
def test_json_that_is_no_policy_is_refused(values):
    with pytest.raises(InvalidInputError):
        RetentionPolicy.from_json(values)


def test_json_gives_back_the_policy_it_was_made_of():
    odd = RetentionPolicy(
        ages={"working": DAY, "episodic": 0.5 * DAY},
        low_importance=0.4,
        low_importance_age=3 * DAY,
        expired=False,
        evergreen_tags=("a",),
        made=(),
    )
    for policy in (RetentionPolicy(), odd):
        assert RetentionPolicy.from_json(policy.to_json()) == policy
    assert RetentionPolicy.from_json({}) == RetentionPolicy()


def test_the_workspaces_of_tenants_say_how_long_theirs_stay(store, clock):
    for tenant, days in (("acme", 7), ("beta", 365)):
        workspace = Workspace(store.scoped(tenant=tenant))
        workspace.set_policy("retention", {"days": {"episodic": days}})
    Workspace(store.scoped(tenant="gamma", agent="a")).set_policy("retention", {"days": {}})
    tenants = ("acme", "beta", "gamma")
    store.add_many([{"content": "a thing", "id": t, "tenant": t, "user": "u"} for t in tenants])
    day(clock, 10)
    own = retention_policies(store)
    assert {tenant: policy.ages for tenant, policy in own.items()} == {
        "acme": {"episodic": 7 * DAY},
        "beta": {"episodic": 365 * DAY},
    }
    assert store.plan_retention(per_tenant=own).ids == ("acme",)
    user = store.scoped(tenant="acme", user="u")
    assert retention_policies(user) == {"acme": own["acme"]}
    assert retention_policies(store.scoped(user="u")) == own
    assert retention_policies(store.scoped(user="nobody")) == {}
    agent = store.scoped(tenant="acme", agent="a")
    Workspace(agent).set_policy("retention", {"days": {"episodic": 1}})
    assert retention_policies(agent) == {"acme": own["acme"]}
    Workspace(store.scoped(tenant="acme")).set_policy("retention", {"days": 7})
    with pytest.raises(InvalidInputError, match="of the tenant 'acme'"):
        retention_policies(store)


# -- against a plain model

NOW = datetime(2025, 6, 1, tzinfo=UTC)
AGES = st.integers(-10, 120).map(lambda days: NOW - days * DAY)
MEMORIES = st.lists(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["working", "episodic", "episodic", "semantic", "profile"]),
            "importance": st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 1.0]),
            "created_at": AGES,
            "event_at": st.none() | AGES,
            "expires_at": st.none() | AGES,
            "tags": st.sampled_from([[], ["pinned"], ["x"], ["x", "keep"]]),
            "source": st.sampled_from(["user", "extracted", "consolidated", "distilled"]),
            "state": st.sampled_from(["active", "active", "active", "retired", "pending"]),
            "tenant": st.sampled_from(["", "a", "b"]),
        }
    ),
    min_size=1,
    max_size=25,
)
POLICIES = st.builds(
    RetentionPolicy,
    ages=st.dictionaries(
        st.sampled_from(["working", "episodic", "semantic"]),
        st.integers(1, 90).map(lambda days: days * DAY),
    ),
    low_importance=st.sampled_from([0, 0.1, 0.2, 0.3, 0.7]),
    low_importance_age=st.integers(1, 90).map(lambda days: days * DAY),
    expired=st.booleans(),
    evergreen_tags=st.sampled_from([(), ("pinned",), ("keep", "pinned")]),
    made=st.sampled_from([(), ("consolidated",), ("consolidated", "distilled")]),
)


def rule_of(memory: Fields, policy: RetentionPolicy) -> str | None:
    """The documented rules, one after the other."""
    if memory["state"] != "active" or {*memory["tags"]} & {*policy.evergreen_tags}:
        return None
    over = memory["expires_at"] is not None and memory["expires_at"] <= NOW
    if policy.expired and over:
        return "expired"
    if memory["source"] in policy.made:
        return None
    age = NOW - max(t for t in (memory["created_at"], memory["event_at"]) if t is not None)
    stay = policy.ages.get(memory["kind"])
    if stay is not None and age >= stay:
        return "age"
    weak = memory["importance"] < policy.low_importance and "episodic" in policy.ages
    if memory["kind"] == "episodic" and weak and age >= policy.low_importance_age:
        return "low_importance"
    return None


@settings(max_examples=12, deadline=None, derandomize=True)
@given(memories=MEMORIES, policy=POLICIES, own=POLICIES)
def test_the_rules_are_what_is_written_of_them(tmp_path_factory, embedder, memories, policy, own):
    path = tmp_path_factory.mktemp("model") / "store"
    store = MemoryStore.open(path, embedder=embedder, clock=lambda: NOW, upkeep=None)
    rows = [
        {"id": f"m{n}", "content": f"thing {n}", **memory, "state_at": memory["created_at"]}
        for n, memory in enumerate(memories)
    ]
    store.add_many(rows)
    whose = {"": policy, "a": policy, "b": own}
    expected = {
        row["id"]: rule for row in rows if (rule := rule_of(row, whose[row["tenant"]])) is not None
    }
    plan = store.plan_retention(policy, per_tenant={"b": own})
    assert due(plan) == expected
    ages = [one.age for one in plan.memories]
    assert ages == sorted(ages, reverse=True)
    store.apply(plan)
    gone = {m.id for m in store.list(states="retired")} - {
        row["id"] for row in rows if row["state"] == "retired"
    }
    assert gone == expected.keys()
