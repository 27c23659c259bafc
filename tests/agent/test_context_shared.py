"""What others share in a context pack: whose it is, beside one's own, and only while it is granted."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from lance_memory import Agent, ContextOptions, ContextSource, Kind, Rights

BOB = {"user": "bob"}
ASKED = "what is the code of the garden door"
CODE = "the code of the garden door is 4711"


class Choosy:
    """The words-16 embedder, which is slow or fails for texts that some condition holds for."""

    def __init__(self, inner):
        self.inner = inner
        self.name, self.dimension = inner.name, inner.dimension
        self.slow = self.broken = lambda text: False

    def embed(self, texts):
        if any(map(self.broken, texts)):
            raise RuntimeError("the model is away")
        if any(map(self.slow, texts)):
            time.sleep(1.0)
        return self.inner.embed(texts)


@pytest.fixture
def choosy(embedder):
    return Choosy(embedder)


@pytest.fixture
def whole(reopen, tmp_path, choosy):
    return reopen(tmp_path / "store", embedder=choosy)


@pytest.fixture
def ana(whole):
    """Who gives: memories of every kind, one of them about the door."""
    agent = Agent(whole.scoped(tenant="t", user="ana"))
    agent.store.add(CODE, tags=["house"], actor="Zoe", key="door")
    agent.store.add("the garden has figs and the door is green", tags=["house"])
    agent.semantic.add("the river is high in spring")
    agent.profile.set("garden", "large, with a door")
    agent.procedural.learn("lock", context="the garden door is open", steps=["type the code"])
    return agent


@pytest.fixture
def bob(whole):
    """Who receives, and knows little of doors himself."""
    agent = Agent(whole.scoped(tenant="t", user="bob"))
    agent.store.add_many(["the garden door of the shed is never locked", "we sat by the river"])
    return agent


def shared(pack):
    return [item for item in pack if item.source is ContextSource.SHARED]


def contents(agent, pack):
    return {agent.store.get(item.id).content for item in shared(pack)}


def test_what_is_shared_is_in_the_pack_with_who_shares_it(ana, bob):
    ana.sharing.share(with_=BOB, tags="house")
    pack = bob.context("now", ASKED, 400)
    first = max(shared(pack), key=lambda item: item.score)
    assert first.text == f"#{first.number} Zoe (shared by user=ana): {CODE}"
    assert first.text in pack.text
    assert pack.text.count("\n## Shared by others\n") == 1
    assert (first.shared_by, first.scope) == (ana.store.scope, ana.store.scope)
    assert first.reason.startswith("shared by tenant=t/user=ana; ")
    assert pack.cited(first.number) is first
    told = next(item for item in pack.to_json()["items"] if item["number"] == first.number)
    assert (told["source"], told["shared_by"]) == ("shared", {"tenant": "t", "user": "ana"})
    assert {item["source"]: item["shared_by"] for item in pack.to_json()["items"]}[
        "episodic"
    ] is None
    assert pack.degraded == ()
    assert not shared(bob.context("now", ASKED, 400, options=ContextOptions(shared=False)))


def test_without_a_grant_nothing_of_others_is_there_and_nothing_is_read(ana, bob, choosy, clock):
    everything = {"with_": BOB, "user": "ana"}
    plain = bob.context("now", ASKED, 400)
    assert not shared(plain)
    for end in ("revoked", "expired"):
        until = None if end == "revoked" else clock.now + timedelta(hours=1)
        grant = ana.sharing.share(**everything, expires_at=until)
        assert CODE in contents(ana, bob.context("now", ASKED, 400))
        if end == "revoked":
            ana.sharing.revoke(grant)
        else:
            clock.forward(hours=2)
        assert bob.context("now", ASKED, 400).items == plain.items
    ana.sharing.share(with_={"user": "carl"}, tags="house")
    assert bob.context("now", ASKED, 400).items == plain.items
    choosy.broken = lambda text: True
    assert bob.sharing.search("anything at all", mode="vector").hits == ()  # it embeds nothing


def test_a_grant_changes_nothing_about_ones_own(ana, bob):
    """Scores are on one scale: one's own keep theirs, and what others share gets its place."""
    before = {item.id: item.score for item in bob.context("now", ASKED, 400)}
    ana.sharing.share(with_=BOB, user="ana")
    pack = bob.context("now", ASKED, 800)
    after = {item.id: item.score for item in pack if item not in shared(pack)}
    assert after == before
    scores = {ana.store.get(item.id).content: item.score for item in shared(pack)}
    assert scores[CODE] == 1.0  # nearer than the best of one's own, and no more than that one
    assert scores["the garden has figs and the door is green"] < 1.0
    assert "the river is high in spring" not in scores  # though it is shared as well


def test_the_best_of_what_is_shared_is_no_more_than_it_is(ana, bob):
    """Guards: each search gives its best hit 1, whatever it is about."""
    ana.sharing.share(with_=BOB, kinds="semantic")
    asked = "is the garden door of the shed locked"
    options = ContextOptions(min_score=0.0)
    pack = bob.context("now", asked, 400, options=options)
    (river,) = shared(pack)
    alone = bob.sharing.search(asked, kinds="semantic")[0]
    assert (alone.memory.content, alone.score) == ("the river is high in spring", 1.0)
    assert river.score < 0.5 * max(item.score for item in pack)


def test_whatever_kind_is_shared_comes_in_but_what_is_just_said_and_told(ana, bob, clock):
    """Messages of a session that hibernates are rows, and a grant of everything names them too."""
    for said in ("the door code again is 4711", "the garden door is open"):
        ana.working.append_message("s", "user", said)
    clock.forward(hours=1)
    ana.store.hibernate()
    told = {"kind": "workspace", "key": "workspace:prompt/tone"}
    ana.store.add("the garden door code is no secret", **told)
    ana.sharing.share(with_=BOB, user="ana")
    options = ContextOptions(min_score=0.0)
    pack = bob.context("now", ASKED, 4_000, options=options)
    assert {item.kind for item in shared(pack)} == {
        Kind.EPISODIC, Kind.SEMANTIC, Kind.PROFILE, Kind.PROCEDURAL,
    }  # fmt: skip
    assert "again" not in pack.text
    assert "secret" not in pack.text


def test_snapshots_are_shared_in_the_mode_that_asks_for_them(ana, bob):
    ana.store.add("the garden door code in short", source="distilled", tags=["house"])
    ana.sharing.share(with_=BOB, tags="house")
    for mode, there in (("hybrid", False), ("vector", False), ("distilled", True)):
        pack = bob.context("now", ASKED, 800, options=ContextOptions(mode=mode))
        assert ("in short" in pack.text) is there, mode


def test_what_is_ones_own_too_stands_there_once(whole, ana):
    """An agent shares what it has of a user with that user, who has it anyway."""
    door = whole.scoped(tenant="t", user="ana", agent="butler")
    own = door.add("the garden door squeaks").id
    whole.scoped(tenant="t", agent="butler").sharing.share(with_={"user": "ana"}, agent="butler")
    pack = ana.context("now", ASKED, 800)
    assert [(item.id, item.source) for item in pack if item.id == own] == [(own, "episodic")]
    assert not shared(pack)


def test_what_follows_a_shared_event_is_not_shared_with_it(ana, bob):
    """Neighbours of a hit are one's own: a grant of one message is none of the next."""
    said = ana.store.add_many(
        [
            {"content": "garden door code please", "session": "s", "tags": ["one"]},
            {"content": "and the safe opens with 9999", "session": "s"},
        ]
    ).ids
    ana.sharing.share([said[0]], with_=BOB)
    pack = bob.context("now", ASKED, 800, options=ContextOptions(min_score=0.0))
    assert [item.id for item in shared(pack)] == [said[0]]


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_a_failure_costs_what_is_shared_alone_and_is_told(ana, bob, choosy, mode):
    """Zoe is known of what is shared alone, so without her name the question is another text."""
    ana.sharing.share(with_=BOB, tags="house", rights=Rights.WRITE)
    asked = "what does Zoe say of the garden door"
    choosy.broken = lambda text: text == "what does say of the garden door"
    pack = bob.context("now", asked, 400, options=ContextOptions(mode=mode))
    assert "never locked" in pack.text
    leg = {"hybrid": "vector", "vector": "shared"}[mode]
    assert pack.degraded == (leg,)
    assert "the model is away" in pack.failures[leg]
    assert bool(shared(pack)) is (mode == "hybrid")  # by words alone


def test_what_is_late_costs_what_is_shared_alone_and_is_told(ana, bob, choosy):
    ana.sharing.share(with_=BOB, tags="house")
    choosy.slow = lambda text: text == "what does say of the garden door"
    options = ContextOptions(latency=0.5)
    begun = time.perf_counter()
    pack = bob.context("now", "what does Zoe say of the garden door", 400, options=options)
    assert time.perf_counter() - begun < 0.95
    assert (pack.degraded, shared(pack)) == (("shared",), [])
    assert pack.failures["shared"] == "no answer in time"
    assert "never locked" in pack.text


def test_what_is_in_a_pack_is_what_is_received(whole, ana, bob, clock):
    """The law, over grants of several forms: never more than `sharing.list` has, never less."""
    options = ContextOptions(min_score=0.0, shares={})
    for terms in (
        {"tags": "house"},
        {"kinds": ["semantic", "profile"]},
        {"key": "door", "expires_at": clock.now + timedelta(days=1)},
        {"user": "ana"},
    ):
        grant = ana.sharing.share(with_=BOB, **terms)
        pack = bob.context("now", ASKED, 8_000, options=options)
        received = {one.memory.id for one in bob.sharing.list()}
        assert {item.id for item in shared(pack)} == received != set(), terms
        ana.sharing.revoke(grant)
    carl = Agent(whole.scoped(tenant="u", user="bob"))  # another tenant's of that name
    ana.sharing.share(with_=BOB, user="ana")
    assert not shared(carl.context("now", ASKED, 8_000, options=options))
