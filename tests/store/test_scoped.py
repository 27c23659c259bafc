"""C16: another's memories never come back in a scope that does not hold them."""

from __future__ import annotations

import dataclasses

import pytest

from lance_memory import (
    ConflictError,
    ConsolidateOptions,
    InvalidInputError,
    NotFoundError,
    RejectedError,
    Relationship,
    Scope,
    ScopeError,
)


@pytest.fixture
def both(store):
    """Ana's and Bob's memories, alike in everything but whose they are."""
    store.add_many(
        [
            {
                "content": f"{user} likes tea",
                "user": user,
                "id": f"id-{user}",
                "key": "drink" if user == "ana" else "bobs-drink",
                "tags": ["t"],
                "metadata": {"m": 1},
                "actor": "x",
                "session": "s",
                "relationships": [
                    {"relation": "about", "target": f"id-{'bob' if user == 'ana' else 'ana'}"}
                ],
            }
            for user in ("ana", "bob")
        ]
    )
    return store


@pytest.fixture
def ana(both):
    return both.scoped(user="ana")


def bobs(store):
    return store.get("id-bob")


def test_no_read_leaves_the_scope(ana):
    mine = ["ana likes tea"]
    assert [m.content for m in ana.list(states="any")] == mine
    assert [m.content for m in ana.iter(states="any")] == mine
    assert ana.count(states="any") == 1
    for where in ({}, {"tags": "t"}, {"metadata": {"m": 1}}, {"actor": "x"}, {"session": "s"}):
        assert [m.content for m in ana.list(**where)] == mine
    for mode in ("text", "vector", "hybrid"):
        hits = ana.search("bob likes tea", k=100, mode=mode, states="any")
        assert [h.memory.content for h in hits] == mine
    assert ana.to_arrow()["content"].to_pylist() == mine
    assert ana.to_polars().collect()["content"].to_list() == mine
    assert ana.sql("SELECT content FROM memories")["content"].to_list() == mine
    assert ana.sql("SELECT content FROM memories WHERE \"user\" = 'bob' OR 1 = 1").height == 1
    assert [m.content for m in ana.at(ana.version).list()] == mine


@pytest.mark.parametrize("ref", ["id-bob", "bobs-drink", "id-b", "id-bo"])
def test_no_name_reaches_outside(ana, both, ref):
    for verb in (
        ana.get,
        ana.related,
        ana.retire,
        ana.delete,
        ana.unretire,
        lambda r: ana.update(r, importance=1),
        lambda r: ana.supersede(r, "x"),
        lambda r: ana.supersede(["id-ana", r], "x"),
        ana.at(ana.version).get,
    ):
        with pytest.raises(NotFoundError, match="in user=ana"):
            verb(ref)
    assert ana.find(ref) is None
    assert bobs(both).revision == 1


def test_a_beginning_is_ambiguous_only_inside_the_scope(ana):
    assert ana.get("id-").id == "id-ana"


def test_a_relationship_does_not_lead_outside(ana, both):
    assert ana.related("id-ana", depth=9) == []
    assert {r.memory.id for r in both.related("id-ana")} == {"id-bob"}


@pytest.mark.parametrize("verb", ["list", "count", "to_arrow", "delete", "retire"])
def test_a_filter_for_another_scope_is_refused(ana, both, verb):
    with pytest.raises(
        ScopeError, match="asked for user='bob' through a handle that is scoped to user='ana'"
    ):
        getattr(ana, verb)(user="bob")
    assert both.count() == 2


def test_a_search_and_a_pass_for_another_scope_are_refused(ana):
    with pytest.raises(ScopeError):
        ana.search("tea", user="bob")
    with pytest.raises(ScopeError):
        ana.consolidate(user="bob")


def test_what_is_added_gets_the_scope(ana, both):
    stored = ana.add("ana likes cake", session="s2")
    assert (both.get(stored.id).user, both.get(stored.id).session) == ("ana", "s2")
    ids = ana.add_many(
        ["one", {"content": "two", "user": "ana"}, {"content": "three", "user": None}]
    ).ids
    assert {both.get(i).user for i in ids} == {"ana"}
    assert both.get(ana.upsert("four", key="k").id).user == "ana"


@pytest.mark.parametrize(
    "write",
    [
        lambda h: h.add("x", user="bob"),
        lambda h: h.add_many(["ok", {"content": "x", "user": "bob"}]),
        lambda h: h.upsert("x", key="k", user="bob"),
        lambda h: h.add("x", user=""),
    ],
    ids=["add", "add_many", "upsert", "empty"],
)
def test_what_names_another_scope_is_refused(ana, both, write):
    with pytest.raises((RejectedError, ScopeError), match="user"):
        write(ana)
    assert both.count(states="any") == 2


def test_scope_is_never_taken_from_metadata(ana, both):
    stored = ana.add("x", metadata={"user": "bob", "tenant": "t"})
    assert both.get(stored.id).scope == Scope(user="ana")


def test_a_filter_reaches_only_into_the_scope(ana, both):
    assert ana.delete(tags="t").ids == ("id-ana",)
    assert [m.id for m in both.list()] == ["id-bob"]
    ana.add("new", tags=["t"])
    assert ana.retire(tags="t").updated == 1
    assert bobs(both).revision == 1


def test_an_upsert_does_not_replace_a_key_outside(ana, both):
    ana.upsert("ana's", key="bobs-drink")
    assert bobs(both).state == "active"


def test_consolidation_keeps_inside(both, ana):
    both.add_many(
        [{"content": "likes tea", "user": u, "actor": a} for u in ("ana", "bob") for a in "xy"]
    )
    result = ana.consolidate(ConsolidateOptions(by="window", across=("user", "session")))
    assert {both.get(i).user for c in result.plan.accepted for i in c.sources} == {"ana"}
    assert {both.get(str(c.derived["id"])).user for c in result.plan.accepted} == {"ana"}
    assert {m.revision for m in both.list(user="bob", states="any")} == {1}


def test_a_plan_from_outside_is_refused(both, ana):
    both.add("bob likes tea", user="bob", session="s", actor="x", role="again")
    plan = both.consolidate(dry_run=True)
    assert plan.accepted
    with pytest.raises(ScopeError, match=r"user=bob.*, outside this handle's user=ana"):
        ana.apply(plan)
    assert bobs(both).revision == 1


def test_a_pass_over_very_many_sessions_of_one_tenant_is_inside_it(store):
    tenant = store.scoped(tenant="t")
    tenant.add_many(
        [{"content": f"says {i}", "session": f"s{s}"} for s in range(70) for i in range(2)]
    )
    result = tenant.consolidate(ConsolidateOptions(by="session"))
    assert (result.write.inserted, result.write.updated) == (70, 140)


def test_a_very_wide_plan_from_outside_is_refused(store):
    store.add_many(
        [
            {"content": f"says {i}", "tenant": "t" if s else "u", "session": f"s{s}"}
            for s in range(70)
            for i in range(2)
        ]
    )
    plan = store.consolidate(ConsolidateOptions(by="session"), dry_run=True)
    with pytest.raises(ScopeError):
        store.scoped(tenant="t").apply(plan)


def test_a_hand_made_plan_cannot_write_outside(both, ana):
    ana.add("ana likes tea", session="s", actor="x", role="again")
    plan = ana.consolidate(dry_run=True)
    cluster = plan.accepted[0]
    forged = dataclasses.replace(cluster, derived={**cluster.derived, "user": "bob"})
    with pytest.raises((ScopeError, RejectedError)):
        ana.apply(dataclasses.replace(plan, clusters=(forged,)))
    assert both.count(user="bob") == 1


def test_a_hand_made_plan_cannot_double_an_id(both, ana):
    ana.add("ana likes tea", session="s", actor="x", role="again")
    plan = ana.consolidate(dry_run=True)
    cluster = plan.accepted[0]
    for taken in (next(iter(cluster.sources)), "id-bob"):
        forged = dataclasses.replace(cluster, derived={**cluster.derived, "id": taken})
        with pytest.raises(ConflictError):
            ana.apply(dataclasses.replace(plan, clusters=(forged,)))
    ids = both.to_arrow()["id"].to_pylist()
    assert len(ids) == len(set(ids))


def test_the_log_shows_only_what_touched_the_scope(both, ana):
    both.update("id-bob", importance=1, reason="bob's secret")
    ana.update("id-ana", importance=1, reason="mine")
    both.retire(["id-ana", "id-bob"], reason="both secret")
    shown = [(e.operation, e.reason, e.updated) for e in ana.log()]
    assert shown == [("retire", "", 0), ("update", "mine", 1), ("add", "", 0)]
    assert "bob" not in repr(ana.log())
    assert [entry.partial for entry in ana.log()] == [True, False, True]
    assert not any(entry.partial for entry in both.log())


def test_a_diff_shows_only_the_scope(both, ana):
    before = both.version
    both.update("id-bob", importance=1)
    assert not ana.diff(before)
    ana.add("more")
    assert [m.content for m in ana.diff(before).inserted] == ["more"]


def test_only_the_scope_goes_back(both, ana):
    before = both.version
    both.update("id-bob", content="bob likes coffee")
    ana.add("ana likes cake")
    ana.delete("id-ana")
    plan = ana.rollback(before, dry_run=True)
    assert (plan.reappear, plan.change, len(plan.disappear)) == (("id-ana",), (), 1)
    ana.rollback(before)
    assert [m.content for m in ana.list()] == ["ana likes tea"]
    assert bobs(both).content == "bob likes coffee"


def test_only_the_scopes_part_of_a_version_is_reverted(both, ana):
    retiring = both.retire(["id-ana", "id-bob"]).version
    ana.revert(retiring)
    assert [m.id for m in both.list()] == ["id-ana"]
    bobs_change = both.unretire("id-bob").version
    told = f"changed no memories here; .* that did is version {ana.version - 1}$"
    with pytest.raises(InvalidInputError, match=told):
        ana.revert(bobs_change)


def test_a_tag_on_upkeep_reverts_the_scopes_part_of_the_write(both, ana):
    retiring = both.retire(["id-ana", "id-bob"]).version
    both.optimize()
    assert both.tag("tidy") > retiring
    ana.revert("tidy")
    assert [m.id for m in both.list()] == ["id-ana"]


@pytest.mark.parametrize(
    "act",
    [
        lambda h, p: h.tag("t"),
        lambda h, p: h.untag("t"),
        lambda h, p: h.branch("b"),
        lambda h, p: h.delete_branch("b"),
        lambda h, p: h.checkout(1, p),
        lambda h, p: h.optimize(),
        lambda h, p: h.build_index(),
        lambda h, p: h.tags(),
        lambda h, p: h.branches(),
        lambda h, p: h.at(h.version).tags(),
        lambda h, p: h.at(h.version).branches(),
    ],
    ids=[
        *("tag", "untag", "branch", "delete_branch", "checkout", "optimize", "build_index"),
        *("tags", "branches", "past tags", "past branches"),
    ],
)
def test_what_concerns_the_whole_store_is_refused(ana, tmp_path, act):
    with pytest.raises(ScopeError, match="concerns the whole store"):
        act(ana, tmp_path / "clone")


def test_a_query_reads_nothing_but_the_memories_of_the_scope(ana, tmp_path):
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    for query in (
        f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
        f"SELECT m.id, s.a FROM memories m CROSS JOIN read_csv('{tmp_path}/secret.csv') s",
        f"SELECT * FROM (SELECT * FROM read_csv('{tmp_path}/secret.csv')) x",
        f"SELECT * FROM \"read_csv\"('{tmp_path}/secret.csv')",
        f"SELECT * FROM `read_csv`('{tmp_path}/secret.csv')",
        f"SELECT * FROM /* x */ Read_CSV /* y */ ('{tmp_path}/secret.csv')",
        f"WITH m AS (SELECT * FROM read_csv('{tmp_path}/secret.csv')) SELECT * FROM m",
        f"SELECT * FROM '{tmp_path}/secret.csv'",
        f"SELECT $$'$$ AS q, a FROM read_csv('{tmp_path}/secret.csv')",
        f"SELECT 1 AS `'`, a FROM read_csv('{tmp_path}/secret.csv')",
        "SELECT * FROM secrets",
    ):
        with pytest.raises(InvalidInputError):
            ana.sql(query)


def test_scopes_narrow_and_never_widen(store):
    narrow = store.scoped(tenant="t").scoped(user="u")
    assert narrow.scope == Scope(tenant="t", user="u")
    assert narrow.scoped(user="u").scope == narrow.scope
    with pytest.raises(ScopeError):
        narrow.scoped(user="v")
    assert store.scope == Scope()
    assert repr(narrow).endswith("scope tenant=t/user=u>")


@pytest.mark.parametrize("levels", [{}, {"user": ""}, {"team": "x"}, {"user": None}], ids=str)
def test_a_scope_needs_names(store, levels):
    with pytest.raises(InvalidInputError, match="agent, run, session, tenant, user"):
        store.scoped(**levels)


def test_the_numbers_are_the_scopes(ana):
    stats = ana.stats()
    assert (stats.rows, stats.visible, stats.users, stats.scope) == (1, 1, 1, Scope(user="ana"))


def test_names_of_versions_are_the_owners(both, ana):
    """They may be about anybody, so they are not listed; a tag that one was told works."""
    both.tag("before-bob-left")
    both.branch("without-bob")
    both.update("id-ana", content="ana likes coffee")
    assert (ana.stats().tags, ana.stats().branches) == ({}, ())
    assert (both.stats().tags, both.stats().branches) == ({"before-bob-left": 3}, ("without-bob",))
    assert ana.at("before-bob-left").get("id-ana").content == "ana likes tea"
    with pytest.raises(NotFoundError) as error:
        ana.at("nothing")
    assert "bob" not in str(error.value)
    ana.rollback("before-bob-left")
    assert ana.get("id-ana").content == "ana likes tea"


def test_an_id_taken_outside_is_a_conflict(ana):
    with pytest.raises(ConflictError):
        ana.add("something else", id="id-bob")


def test_a_relationship_to_outside_may_be_written_but_not_followed(ana):
    stored = ana.add("x", relationships=[Relationship(relation="about", target="id-bob")])
    assert ana.related(stored.id) == []


def test_a_scoped_rollback_never_brings_back_an_id_that_another_scope_has(store):
    first = store.add("mine", id="x", user="a").version
    store.delete("x")
    store.add("theirs", id="x", user="b")
    with pytest.raises(ConflictError, match="taken outside this scope"):
        store.scoped(user="a").rollback(first)
    assert [m.content for m in store.list(states="any")] == ["theirs"]
