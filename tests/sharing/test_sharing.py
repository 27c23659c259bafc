"""What a grant gives, and all that it does not."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import (
    AmbiguousError,
    ConflictError,
    GrantState,
    InvalidInputError,
    MemoryStore,
    NotFoundError,
    RejectedError,
    Rights,
    Scope,
    ScopeError,
)

BOB = {"user": "bob"}


@pytest.fixture
def team(store):
    """Ana's notes on two projects, and a note of Bob's, in one tenant."""
    ana, bob = (store.scoped(tenant="t", user=user) for user in ("ana", "bob"))
    ana.add_many(
        [
            {
                "content": f"{project} note {place} about tea",
                "tags": [project],
                "actor": "Ana",
                "key": f"{project}-{place}",
                "session": f"s{place}",
                "metadata": {"place": place},
            }
            for project in ("red", "blue")
            for place in range(3)
        ]
    )
    bob.add("bob's own note about tea")
    return ana, bob


def contents(found):
    return [shared.memory.content for shared in found]


REDS = [f"red note {place} about tea" for place in range(3)]


# -- what is given ------------------------------------------------------------------------------


def test_nothing_is_shared_unless_it_is_granted(team):
    _, bob = team
    assert (bob.sharing.received(), bob.sharing.list()) == ([], [])
    found = bob.sharing.search("tea")
    assert (found.hits, found.version) == ((), bob.version)
    with pytest.raises(NotFoundError, match="nothing named 'red-0' is shared with tenant=t/user"):
        bob.sharing.get("red-0")


def test_a_filter_shares_what_passes_now_and_later(team):
    ana, bob = team
    grant = ana.sharing.share(with_=BOB, tags="red", reason="the project")
    assert contents(bob.sharing.list()) == REDS
    ana.add("red note 3 about tea", tags=["red"])
    assert len(bob.sharing.list()) == 4
    ana.update("red-0", tags=["blue"])
    assert contents(bob.sharing.list()) == [*REDS[1:], "red note 3 about tea"]
    assert (grant.where, grant.ids, grant.what) == (
        {"tags": ["red"]},
        None,
        "what passes tags=['red']",
    )


def test_names_share_these_memories_and_no_later_ones(team):
    ana, bob = team
    grant = ana.sharing.share(["red-0", "blue-1"], with_=BOB)
    assert contents(bob.sharing.list()) == [REDS[0], "blue note 1 about tea"]
    assert grant.ids == tuple(ana.get(key).id for key in ("red-0", "blue-1"))
    ana.upsert("red note 0 says coffee", key="red-0", session="s0")
    assert contents(bob.sharing.list()) == ["blue note 1 about tea"]


def test_the_own_scope_as_a_filter_shares_everything(team):
    ana, bob = team
    ana.sharing.share(with_=BOB, user="ana")
    assert len(bob.sharing.list()) == 6


def test_every_filter_is_kept_and_means_the_same(team, clock):
    ana, bob = team
    ana.update("red-1", quality=0.9, importance=0.9, event_at=clock.now, valid_to=clock.now)
    wheres = [
        {"kinds": "episodic"},
        {"kinds": ["episodic", "semantic"], "actor": "Ana"},
        {"tags": ["red"], "session": "s1"},
        {"metadata": {"place": 1}},
        {"role": ""},
        {"source": "user"},
        {"key": "red-1"},
        {"since": clock.now - timedelta(days=1)},
        {"until": clock.now - timedelta(days=1)},
        {"valid_at": clock.now + timedelta(days=1)},
        {"min_quality": 0.5},
        {"min_importance": 0.6},
    ]
    for where in wheres:
        grant = ana.sharing.share(with_=BOB, **where)
        assert contents(bob.sharing.list()) == [m.content for m in ana.list(**where)], where
        assert bob.sharing.received() == [grant]
        ana.sharing.revoke(grant)


def test_hits_say_whose_they_are_and_by_which_grant(team):
    ana, bob = team
    grant = ana.sharing.share(with_=BOB, tags="red")
    found = bob.sharing.search("red note 2")
    assert contents(found)[0] == REDS[2]
    assert [(hit.memory.scope.user, hit.grant) for hit in found] == [("ana", grant)] * 3
    assert found[0].score == 1.0
    assert bob.sharing.get("red-2").memory.content == REDS[2]


def test_in_a_session_of_python_it_is_short_and_has_the_ids(team):
    ana, bob = team
    grant = ana.sharing.share(["red-0"], with_=BOB)
    memory = ana.get("red-0")
    told = f"'red note 0 about tea' shared by tenant=t/user=ana; {memory.scope}, id {memory.id}"
    assert repr(grant) == (
        f"<Grant tenant=t/user=bob may read 1 memory of tenant=t/user=ana; active, id {grant.id}>"
    )
    assert repr(bob.sharing.get("red-0")) == f"<SharedMemory {told}, grant {grant.id}>"
    result = bob.sharing.search("tea")
    hit = f"<SharedHit 1.000 {told}, grant {grant.id}>"
    assert repr(result[0]) == hit
    assert repr(result) == f"<SharedResult [{hit}]; mode hybrid, version {bob.version}>"


def test_all_givers_are_ranked_together(team, store):
    ana, bob = team
    cleo = store.scoped(tenant="t", user="cleo")
    cleo.add_many(["red note 1 about tea and milk", "a bicycle"])
    ana.sharing.share(with_=BOB, tags="red")
    cleo.sharing.share(with_=BOB, user="cleo")
    found = bob.sharing.search("red note about tea and milk", k=2)
    assert (found[0].memory.user, found[0].score) == ("cleo", 1.0)
    assert {hit.memory.user for hit in bob.sharing.search("note", k=9)} == {"ana", "cleo"}
    assert contents(bob.sharing.list(user="cleo")) == ["red note 1 about tea and milk", "a bicycle"]
    assert contents(bob.sharing.search("tea", k=9, user="ana", session="s1")) == [REDS[1]]


def test_pages_of_a_list_and_of_a_search_are_parts_of_one_order(team):
    ana, bob = team
    ana.sharing.share(with_=BOB, user="ana")
    whole = contents(bob.sharing.list())
    assert contents(bob.sharing.list(offset=2, limit=3)) == whole[2:5]
    hits = contents(bob.sharing.search("note", k=6))
    assert contents(bob.sharing.search("note", k=3, offset=3)) == hits[3:]


def test_actors_are_known_of_what_is_shared_alone(team):
    ana, bob = team
    ana.add("a secret", actor="Zoe")
    ana.sharing.share(with_=BOB, tags="red")
    assert bob.sharing.search("what did Zoe say to Ana").understood.actors == ("Ana",)


# -- to whom ------------------------------------------------------------------------------------


def test_a_grant_to_a_user_is_one_to_all_that_is_kept_to_him(team, store):
    ana, _ = team
    ana.sharing.share(with_=BOB, tags="red")
    for levels in ({"agent": "x"}, {"session": "s"}, {"agent": "x", "run": "r"}):
        assert len(store.scoped(tenant="t", user="bob", **levels).sharing.list()) == 3
    for levels in ({"user": "bo"}, {"user": "Bob"}, {"agent": "bob"}, {"session": "bob"}):
        assert store.scoped(tenant="t", **levels).sharing.list() == []


def test_a_grant_to_an_agent_reaches_it_whoever_it_works_for(team, store):
    ana, _ = team
    ana.sharing.share(with_={"agent": "writer"}, tags="red")
    ana.sharing.share(with_={"user": "bob", "agent": "reader"}, tags="blue")
    counts = {
        levels: len(store.scoped(tenant="t", **dict(levels)).sharing.list())
        for levels in (
            (("agent", "writer"),),
            (("user", "cleo"), ("agent", "writer")),
            (("user", "bob"), ("agent", "reader")),
            (("user", "bob"),),
            (("agent", "reader"),),
        )
    }
    assert list(counts.values()) == [3, 3, 3, 0, 0]


@pytest.mark.parametrize("levels", [{}, {"tenant": "t"}, {"tenant": "t", "session": "s1"}], ids=str)
def test_who_is_nobody_receives_nothing(team, store, levels):
    team[0].sharing.share(with_=BOB, tags="red")
    handle = store.scoped(**levels) if levels else store
    assert (handle.sharing.received(), handle.sharing.list()) == ([], [])


def test_a_tenant_is_never_left(team, store):
    ana, _ = team
    for tenant in ("u", "T", "t "):
        with pytest.raises(ScopeError, match="with another tenant"):
            ana.sharing.share(with_={"tenant": tenant, "user": "bob"}, tags="red")
    ana.sharing.share(with_={"tenant": "t", "user": "bob"}, tags="red")
    for handle in (store.scoped(tenant="u", user="bob"), store.scoped(user="bob")):
        assert (handle.sharing.received(), handle.sharing.list()) == ([], [])


def test_without_a_tenant_only_what_is_of_none_is_shared(store):
    ana, bob = store.scoped(user="ana"), store.scoped(user="bob")
    ana.add("of no tenant", tags=["x"])
    ana.add("of a tenant", tags=["x"], tenant="t")
    ana.sharing.share(with_=BOB, tags="x")
    assert contents(bob.sharing.list()) == ["of no tenant"]
    assert store.scoped(tenant="t", user="bob").sharing.list() == []
    with pytest.raises(ScopeError):
        ana.sharing.share(with_={"tenant": "t", "user": "bob"}, tags="x")


def test_a_grant_never_reaches_beyond_the_giver(team, store):
    _, bob = team
    session = store.scoped(tenant="t", user="ana", session="s1")
    session.sharing.share(with_=BOB, user="ana")
    assert contents(bob.sharing.list()) == [REDS[1], "blue note 1 about tea"]
    for reach in ({"user": "bob"}, {"session": "s0"}, {"tenant": "u"}):
        with pytest.raises(ScopeError):
            session.sharing.share(with_=BOB, **reach)
    with pytest.raises(NotFoundError):
        session.sharing.share("red-0", with_=BOB)


def test_what_was_received_cannot_be_shared_on(team, store):
    ana, bob = team
    ana.sharing.share(with_=BOB, tags="red", rights="write")
    with pytest.raises(NotFoundError):
        bob.sharing.share("red-0", with_={"user": "cleo"})
    bob.sharing.share(with_={"user": "cleo"}, tags="red")
    assert store.scoped(tenant="t", user="cleo").sharing.list() == []


def test_a_received_memory_is_in_no_other_read(team):
    ana, bob = team
    ana.sharing.share(with_=BOB, user="ana")
    assert [m.content for m in bob.list(states="any")] == ["bob's own note about tea"]
    assert [hit.memory.user for hit in bob.search("tea", k=20)] == ["bob"]
    assert bob.find("red-0") is None


def test_nobody_can_write_himself_a_grant(team, store):
    """A row's own scope is the giver, whatever it says; and the right to write makes no grants."""
    ana, bob = team
    real = ana.sharing.share(with_={"user": "cleo"}, tags="red")
    stolen = {**ana.get(real.id).metadata, "with_user": "bob", "giver": {"user": "ana"}}
    bob.add("x", id="forged", kind="workspace", key="workspace:grant/forged", metadata=stolen)
    assert bob.sharing.list() == []
    ana.sharing.share(with_=BOB, tags="red", rights="write")
    for change in ({"kind": "workspace"}, {"key": "workspace:grant/x"}, {"relationships": []}):
        with pytest.raises(InvalidInputError, match="what is shared lets"):
            bob.sharing.update("red-0", **change)


def test_a_grant_that_cannot_be_read_gives_nothing(team):
    ana, bob = team
    real = ana.get(ana.sharing.share(with_=BOB, tags="red").id)
    ana.sharing.revoke(real.id)
    for place, broken in enumerate(
        (
            {**real.metadata, "where": {"tags": 5}},
            {**real.metadata, "where": {"nonsense": "x"}},
            {**real.metadata, "where": {"user": "bob"}},
            {**real.metadata, "where": {"since": "yesterday"}},
            {**real.metadata, "where": "all"},
            {**real.metadata, "rights": "own"},
            {**real.metadata, "with_user": None},
            {},
        )
    ):
        key = f"workspace:grant/broken{place}"
        ana.add("x", id=f"broken{place}", kind="workspace", key=key, metadata=broken)
    assert bob.sharing.list() == []
    assert bob.sharing.search("tea").hits == ()


# -- until when ---------------------------------------------------------------------------------


def test_a_revoked_grant_gives_nothing_and_the_log_tells(team):
    ana, bob = team
    grant = ana.sharing.share(with_=BOB, tags="red", reason="the project")
    before = ana.version
    written = ana.sharing.revoke(grant, reason="it is over")
    assert (written.version, written.operation, written.updated) == (before + 1, "revoke", 1)
    assert (bob.sharing.received(), bob.sharing.list(), ana.sharing.granted()) == ([], [], [])
    assert [g.state for g in ana.sharing.granted(ended=True)] == [GrantState.REVOKED]
    told = f"{grant.id}: tenant=t/user=bob may read what passes tags=['red']"
    assert [(e.operation, e.reason, e.manifest) for e in ana.log()][:2] == [
        ("revoke", "it is over", {"grant": told}),
        ("share", "the project", {"grant": told}),
    ]
    assert [entry.operation for entry in bob.log()] == ["add"]
    assert ana.sharing.revoke(grant).updated == 0


def test_an_expired_grant_gives_nothing(team, clock):
    ana, bob = team
    end = clock.now + timedelta(hours=1)
    grant = ana.sharing.share(with_=BOB, tags="red", expires_at=end)
    assert (grant.expires_at, len(bob.sharing.list())) == (end, 3)
    clock.forward(hours=1)
    assert (bob.sharing.received(), bob.sharing.list()) == ([], [])
    assert [g.state for g in ana.sharing.granted(ended=True)] == [GrantState.EXPIRED]


@pytest.mark.parametrize(
    "hide",
    [
        lambda ana: ana.retire("red-1"),
        lambda ana: ana.delete("red-1"),
        lambda ana: ana.supersede("red-1", "something else"),
        lambda ana: ana.forget("red-1"),
    ],
    ids=["retire", "delete", "supersede", "forget"],
)
def test_what_the_giver_hides_is_gone(team, hide):
    ana, bob = team
    named = ana.sharing.share(["red-0", "red-1"], with_=BOB)
    filtered = ana.sharing.share(with_=BOB, session="s1", source="user", tags="red")
    hide(ana)
    assert contents(bob.sharing.list()) == [REDS[0]]
    assert [grant.id for grant in bob.sharing.received()] == [named.id, filtered.id]


def test_the_same_terms_are_one_grant(team):
    ana, _ = team
    ids = [ana.get(key).id for key in ("red-0", "red-1")]
    first = ana.sharing.share(ids, with_=BOB)
    version = ana.version
    assert ana.sharing.share(reversed(ids), with_=Scope(user="bob"), reason="again") == first
    assert ana.version == version
    assert ana.sharing.share(ids, with_=BOB, rights="write") != first
    ana.sharing.revoke(first)
    assert ana.sharing.share(ids, with_=BOB).id != first.id


def test_a_grant_is_in_the_history_and_comes_back_with_a_revert(team):
    ana, bob = team
    grant = ana.sharing.share(with_=BOB, tags="red")
    revoked = ana.sharing.revoke(grant).version
    ana.revert(revoked)
    assert contents(bob.sharing.list()) == REDS


def test_no_grant_of_another_scope_can_be_revoked(team, store):
    ana, bob = team
    grant = ana.sharing.share(with_=BOB, tags="red")
    other = store.scoped(tenant="t", user="ana", session="s1")
    for handle, ref in ((bob, grant), (bob, grant.id), (other, grant), (ana, ana.get("red-0").id)):
        with pytest.raises(NotFoundError, match="there is no grant"):
            handle.sharing.revoke(ref)
    ana.sharing.share(with_=BOB, tags="blue")
    with pytest.raises(AmbiguousError):
        ana.sharing.revoke(grant.id[:8])
    assert bob.sharing.received() == ana.sharing.granted()
    assert len(store.sharing.granted()) == 2


# -- to write -----------------------------------------------------------------------------------


def test_reading_is_what_is_given_by_default(team):
    ana, bob = team
    grant = ana.sharing.share(with_=BOB, tags="red")
    assert grant.rights is Rights.READ
    with pytest.raises(ScopeError, match="to be read, and not to be changed"):
        bob.sharing.update("red-0", content="mine now")
    assert ana.get("red-0").revision == 1


def test_the_right_to_write_changes_in_place_and_is_audited(store, team):
    ana, _ = team
    bob = MemoryStore.open(store.uri, embedder=store.embedder, clock=store.clock, author="bob")
    bob = bob.scoped(tenant="t", user="bob")
    grant = ana.sharing.share(with_=BOB, tags="red", rights=Rights.WRITE)
    before = ana.get("red-0")
    bob.sharing.update("red-0", content="red coffee", metadata={"a": 1}, reason="a typo")
    after = ana.get("red-0")
    assert (after.id, after.scope, after.content) == (before.id, before.scope, "red coffee")
    assert (after.revision, after.metadata) == (2, {"a": 1})
    entry = ana.log()[0]
    assert (entry.operation, entry.actor, entry.reason) == ("update", "bob", "a typo")
    assert entry.manifest == {"grant": f"{grant.id}: {grant.receiver} may write {grant.what}"}
    assert ana.search("red coffee", mode="vector")[0].similarity == pytest.approx(1.0)


def test_of_several_grants_the_one_with_more_rights_counts(team):
    ana, bob = team
    read = ana.sharing.share(with_=BOB, user="ana")
    write = ana.sharing.share(with_=BOB, tags="red", rights="write")
    named = ana.sharing.share("blue-0", with_=BOB, rights="write")
    by = {shared.memory.key: shared.grant.id for shared in bob.sharing.list()}
    assert by == {
        **{f"red-{place}": write.id for place in range(3)},
        **{f"blue-{place}": read.id for place in (1, 2)},
        "blue-0": named.id,
    }
    bob.sharing.update("red-1", importance=0.9)
    with pytest.raises(ScopeError):
        bob.sharing.update("blue-1", importance=0.9)
    ana.sharing.revoke(write)
    with pytest.raises(ScopeError):
        bob.sharing.update("red-1", importance=0.8)


def test_a_revision_that_was_read_is_checked(team):
    ana, bob = team
    ana.sharing.share(with_=BOB, tags="red", rights="write")
    ana.update("red-0", importance=0.9)
    with pytest.raises(ConflictError, match="has revision 2 by now, not 1"):
        bob.sharing.update("red-0", content="late", revision=1)
    with pytest.raises(RejectedError):
        bob.sharing.update("red-0", content=" ")
    with pytest.raises(RejectedError):
        bob.sharing.update("red-0", importance=7)
    with pytest.raises(InvalidInputError, match="changes nothing"):
        bob.sharing.update("red-0")


def test_two_writers_at_once_lose_nothing(team):
    ana, bob = team
    ana.sharing.share(with_=BOB, tags="red", rights="write")
    jobs = [
        threading.Thread(target=handle, args=("red-0",), kwargs=change)
        for handle, change in (
            (ana.update, {"importance": 0.9}),
            (bob.sharing.update, {"confidence": 0.4}),
        )
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    found = ana.get("red-0")
    assert (found.importance, found.confidence) == (pytest.approx(0.9), pytest.approx(0.4))
    assert found.revision == 3


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({}, InvalidInputError),
        ({"refs": []}, InvalidInputError),
        ({"refs": ["red-0"], "tags": "red"}, InvalidInputError),
        ({"tags": []}, InvalidInputError),  # else it would be everything
        ({"metadata": {}}, InvalidInputError),
        ({"tags": (), "metadata": {}}, InvalidInputError),
        ({"tags": "red", "with_": {}}, InvalidInputError),
        ({"tags": "red", "with_": Scope(session="s")}, InvalidInputError),
        ({"tags": "red", "with_": {"team": "x"}}, InvalidInputError),
        ({"tags": "red", "with_": "bob"}, InvalidInputError),
        ({"tags": "red", "with_": {"user": 5}}, InvalidInputError),
        ({"tags": "red", "with_": {"user": "ana"}}, InvalidInputError),
        ({"tags": "red", "rights": "own"}, InvalidInputError),
        ({"tags": "red", "states": "any"}, InvalidInputError),
        ({"tags": "red", "kinds": "workspace"}, InvalidInputError),
        ({"tags": "red", "kinds": ["episodic", "workspace"]}, InvalidInputError),
        ({"tags": "red", "min_quality": 7}, InvalidInputError),
        ({"tags": "red", "expires_at": "soon"}, InvalidInputError),
        ({"refs": "nobody's"}, NotFoundError),
        ({"tags": "red", "reason": 5}, InvalidInputError),
    ],
    ids=str,
)
def test_terms_that_make_no_sense_are_refused(team, asked, error):
    ana, _ = team
    version = ana.version
    with pytest.raises(error):
        ana.sharing.share(**{"with_": BOB, **asked})
    assert ana.version == version


def test_an_end_that_is_past_is_refused(team, clock):
    for end in (clock.now, clock.now.replace(year=9999)):
        with pytest.raises(InvalidInputError, match="is past, or beyond"):
            team[0].sharing.share(with_=BOB, tags="red", expires_at=end)


def test_what_is_hidden_or_told_cannot_be_named(team):
    ana, _ = team
    ana.retire("red-0")
    prompt = ana.add("be brief", kind="workspace", key="workspace:prompt/x").id
    for ref in (ana.list(states="retired")[0].id, prompt):
        with pytest.raises(NotFoundError, match="only visible memories are"):
            ana.sharing.share([ref, "red-1"], with_=BOB)
    ana.sharing.share(with_=BOB, user="ana")
    assert prompt not in {shared.memory.id for shared in team[1].sharing.list()}


@pytest.mark.parametrize("levels", [{}, {"tenant": "t"}, {"session": "s1"}], ids=str)
def test_only_a_user_or_an_agent_shares(team, store, levels):
    handle = store.scoped(**levels) if levels else store
    with pytest.raises(ScopeError, match="only a user or an agent shares"):
        handle.sharing.share(with_=BOB, tags="red")


def test_reads_of_what_is_shared_take_no_states(team):
    ana, bob = team
    ana.sharing.share(with_=BOB, tags="red")
    for read in (bob.sharing.list, lambda **w: bob.sharing.search("tea", **w)):
        with pytest.raises(InvalidInputError, match="leave out states"):
            read(states="any")
        with pytest.raises(ScopeError):
            read(tenant="u")
    with pytest.raises(InvalidInputError):
        bob.sharing.search(" ")
    with pytest.raises(InvalidInputError):
        bob.sharing.list(limit=-1)
    with pytest.raises(AmbiguousError):
        bob.sharing.get(bob.sharing.list()[0].memory.id[:8])


def test_reading_what_is_shared_makes_no_version_and_records_no_query(store, team):
    ana, _ = team
    ana.sharing.share(with_=BOB, tags="red")
    recording = MemoryStore.open(
        store.uri, embedder=store.embedder, clock=store.clock, record_queries=True
    )
    bob = recording.scoped(tenant="t", user="bob")
    before = recording.version
    bob.sharing.search("tea")
    bob.sharing.list()
    bob.sharing.received()
    recording.query_log.flush()
    assert (recording.version, recording.queries()) == (before, [])


# -- forgetting ---------------------------------------------------------------------------------


def test_forgetting_either_side_removes_the_grants(team, store):
    ana, bob = team
    kept = ana.sharing.share(with_={"user": "cleo"}, tags="blue")
    to_bob = ana.sharing.share(with_=BOB, tags="red", reason="for bob")
    ended = ana.sharing.share(with_={"user": "bob", "agent": "x"}, tags="red")
    ana.sharing.revoke(ended)
    own = bob.sharing.share(with_={"user": "ana"}, user="bob")
    forgotten = store.forget(tenant="t", user="bob")
    assert {to_bob.id, ended.id, own.id} < set(forgotten.plan.ids)
    assert ana.sharing.granted(ended=True) == [kept]
    assert len(ana.list()) == 6
    told = str([(entry.reason, entry.manifest) for entry in store.log()])
    assert all(grant.id not in told for grant in (to_bob, ended, own))
    assert "user=bob" not in told
    store.forget(tenant="t", user="ana")
    assert store.count(states="any") == 0


def test_forgetting_part_of_a_scope_leaves_the_grants(team, store):
    ana, bob = team
    grant = ana.sharing.share(with_=BOB, tags="red")
    for where in ({"tags": "blue"}, {"session": "s0"}, {"user": "bob", "source": "user"}):
        assert grant.id not in store.forget(tenant="t", dry_run=True, **where).ids
    assert grant.id in store.forget(tenant="t", user="bob", dry_run=True).ids
    assert grant.id in bob.forget(user="bob", dry_run=True).ids


def test_forgetting_a_named_memory_takes_it_out_of_the_grant(team):
    ana, bob = team
    gone = ana.get("red-0").id
    grant = ana.sharing.share(["red-0", "red-1"], with_=BOB)
    done = ana.forget("red-0")
    assert (done.proof.found, done.proof.mentioned) == ((), ())
    [left] = ana.sharing.granted()
    assert (left.id, left.ids) == (grant.id, (ana.get("red-1").id,))
    ana.forget("red-1")
    assert ([g.ids for g in bob.sharing.received()], bob.sharing.list()) == ([()], [])
    assert gone not in str(ana.to_arrow().to_pylist())


# -- moving -------------------------------------------------------------------------------------


def test_a_grant_moves_with_its_id_and_with_no_other(team, store, tmp_path, embedder, clock):
    ana, _ = team
    grant = ana.sharing.share(with_=BOB, tags="red")
    store.export_store(tmp_path / "archive")
    moved, clashing = (
        MemoryStore.open(tmp_path / name, embedder=embedder, clock=clock) for name in ("a", "b")
    )
    clashing.add("something else", id=grant.id)
    for other in (moved, clashing):
        other.import_store(tmp_path / "archive", on_conflict="fresh")
    received = moved.scoped(tenant="t", user="bob").sharing
    assert (contents(received.list()), received.received()) == (REDS, [grant])
    assert clashing.scoped(tenant="t", user="bob").sharing.received() == []


# -- a law --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(tmp_path_factory, embedder, ticking):
    store = MemoryStore.open(
        tmp_path_factory.mktemp("law") / "store", embedder=embedder, clock=ticking(), upkeep=None
    )
    store.add_many(
        [
            {"content": f"{tenant} {user} {tag} {n}", "tenant": tenant, "user": user, "tags": [tag]}
            for tenant in ("", "t", "u")
            for user in ("ana", "bob", "cleo")
            for tag in ("x", "y")
            for n in range(2)
        ]
    )
    return store


GIVEN = st.lists(
    st.tuples(
        st.sampled_from(["", "t", "u"]),
        st.sampled_from(["ana", "bob", "cleo"]),
        st.sampled_from(["ana", "bob", "cleo"]),
        st.sampled_from(["x", "y", None]),
        st.booleans(),
    ),
    max_size=5,
)


@settings(max_examples=6, deadline=None)
@given(GIVEN)
def test_what_is_received_is_what_was_granted_and_not_revoked(world, given):
    def handle(tenant, user):
        levels = {"tenant": tenant, "user": user}
        return world.scoped(**{name: value for name, value in levels.items() if value})

    standing = {}
    for tenant, giver, receiver, tag, revoked in given:
        if giver == receiver:
            continue
        where = {"tags": tag} if tag else {"user": giver}
        grant = handle(tenant, giver).sharing.share(with_={"user": receiver}, **where)
        standing[grant.id] = (tenant, giver, receiver, tag)
        if revoked:
            handle(tenant, giver).sharing.revoke(grant)
            del standing[grant.id]
    rows = world.list()
    for tenant in ("", "t", "u"):
        for user in ("ana", "bob", "cleo"):
            allowed = {
                m.id
                for m in rows
                for of, giver, receiver, tag in standing.values()
                if (of, receiver) == (tenant, user) and (m.tenant, m.user) == (of, giver)
                if tag is None or tag in m.tags
            }
            sharing = handle(tenant, user).sharing
            assert {shared.memory.id for shared in sharing.list()} == allowed
            assert {hit.memory.id for hit in sharing.search("x y", k=99)} == allowed
    for id, (tenant, giver, *_) in standing.items():
        handle(tenant, giver).sharing.revoke(id)
