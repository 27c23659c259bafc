"""A context pack from a real store: every source, the modes, and what happens when one fails."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lance_memory import (
    Agent,
    ContextOptions,
    ContextShare,
    ContextSource,
    InvalidInputError,
    MemoryMode,
    MemoryStore,
    RedactionPolicy,
    ScopeError,
    Workspace,
    WritePath,
)
from lance_memory.agent.context import sources
from lance_memory.embed.tokens import count_tokens
from lance_memory.ingest import Redact

START = datetime(2025, 1, 1, tzinfo=UTC)
ASKED = "where does ana like to ride her bicycle"


pytestmark = pytest.mark.disk


class Slow:
    """The words-16 embedder, which takes its time for questions of one text, or fails on them."""

    def __init__(self, inner):
        self.inner = inner
        self.name, self.dimension = inner.name, inner.dimension
        self.wait = 0.0
        self.broken = False

    def embed(self, texts):
        if self.broken:
            raise RuntimeError("the model is away")
        time.sleep(self.wait)
        return self.inner.embed(texts)


@pytest.fixture
def slow(embedder):
    return Slow(embedder)


@pytest.fixture(scope="module")
def template(tmp_path_factory, embedder, ticking):
    """A store with something in every layer of one user, and a fact of another."""
    path = tmp_path_factory.mktemp("context") / "store"
    store = MemoryStore.open(path, embedder=embedder, clock=ticking(), upkeep=None)
    agent = Agent(store.scoped(tenant="acme", user="ana"))
    say = agent.working.append_message
    for n, said in enumerate(["i like to ride along the river", "the river is high", "rain again"]):
        say("past", "user", said, actor="Ana", ref=f"past/{n}")
    agent.flush("past")
    say("now", "user", "hello")
    say("now", "assistant", "good morning ana")
    agent.working.set_context("now", {"task": "plan a ride"})
    agent.semantic.add("ana owns a red bicycle")
    agent.procedural.learn("repair", context="the bicycle has a flat tyre", steps=["patch it"])
    agent.profile.set("city", "Porto")
    other = Agent(store.scoped(tenant="acme", user="bob"))
    other.semantic.add("bob likes to ride his bicycle where ana does")
    store.close()
    return path


@pytest.fixture
def ana(template, tmp_path, reopen, slow, ticking):
    """The agent of that user, in a copy of the store, an hour later."""
    path = shutil.copytree(template, tmp_path / "store")
    store = reopen(path, embedder=slow, clock=ticking(START + timedelta(hours=1)))
    return Agent(store.scoped(tenant="acme", user="ana"))


def by_source(pack):
    found = {}
    for item in pack.items:
        found.setdefault(str(item.source), []).append(item.text)
    return found


def test_a_pack_has_every_layer_of_its_user_and_nothing_of_others(ana):
    pack = ana.context("now", ASKED, 400)
    assert {source: len(texts) for source, texts in by_source(pack).items()} == {
        "profile": 1, "semantic": 1, "procedural": 1, "episodic": 3, "working": 3,
    }  # fmt: skip
    assert by_source(pack)["working"][0].endswith("context: task: plan a ride")
    assert [text.split(": ", 1)[1] for text in by_source(pack)["working"][1:]] == [
        "hello",
        "good morning ana",
    ]
    assert "bob" not in pack.text
    assert pack.degraded == ()
    assert pack.tokens == count_tokens(ana.store.embedder, [pack.text])[0] <= 400
    assert pack.version == ana.store.version


def test_items_are_cited_by_number_and_have_the_ids_of_memories(ana):
    pack = ana.context("now", ASKED, 400)
    for item in pack:
        assert pack.cited(item.number) is item
        assert item.text.startswith(f"#{item.number} ")
        assert item.text in pack.text
        assert item.reason
        if item.source is not ContextSource.WORKING:
            memory = ana.store.get(item.id)
            assert (memory.kind, memory.scope, memory.source_ref) == (
                item.kind,
                item.scope,
                item.ref,
            )
    assert pack.cited(0) is pack.cited(len(pack) + 1) is None


def test_the_same_question_gives_the_same_pack_and_no_version(ana):
    before = ana.store.version
    packs = [ana.context("now", ASKED, 120) for _ in range(2)]
    assert packs[0] == packs[1]
    assert packs[0].to_json() | {"seconds": {}} == packs[1].to_json() | {"seconds": {}}
    assert ana.store.version == before


def test_an_event_brings_what_was_said_around_it(ana):
    pack = ana.context("now", "ride along the river", 400)
    reasons = {item.text.split(": ")[1]: item.reason for item in pack if item.ref}
    assert any(reason.startswith("right after ") for reason in reasons.values())
    alone = ana.context("now", "ride", 400, options=ContextOptions(lead=0))
    assert not any(item.reason.startswith("right") for item in alone)


def test_what_says_nothing_is_left_out_though_it_stands_beside_a_hit(ana):
    """Guards: "Noted." and "Sure!" came in as neighbours of the best hit."""
    talk = ["my helmet is in the red bag", "Noted.", "is the helmet in the bag?", "Yes."]
    for n, said in enumerate([*talk, "tell me about the helmet", "Sure!"]):
        ana.working.append_message("bag", "user" if n % 2 == 0 else "assistant", said)
    ana.flush("bag")
    pack = ana.context("now", "where is the helmet", 800)
    said = {item.text.split(": ", 1)[1] for item in pack if item.source == "episodic"}
    assert {*talk} - {"Noted."} <= said
    assert not {"Noted.", "Sure!"} & said
    assert {drop.reason for drop in pack.dropped if drop.source == "episodic"} == {"weak"}


def test_a_message_that_was_flushed_and_said_again_stands_there_once(ana):
    ana.working.append_message("now", "user", "i like to ride along the river")
    pack = ana.context("now", ASKED, 400)
    assert pack.text.count("along the river") == 1
    assert {str(drop.reason) for drop in pack.dropped} == {"duplicate"}


def test_of_very_many_facts_the_surest_come_in_and_what_is_asked_for(ana, monkeypatch):
    """Guards the handle of a tenant: the facts of all of its users took seconds to be left out."""
    monkeypatch.setattr(sources, "_MOST_FACTS", 2)
    for name, sure in (("shoe", 0.9), ("pet", 0.7), ("river", 0.2), ("street", 0.6)):
        ana.profile.set(name, "unknown", confidence=sure)
    made = ana.context("now", "river unknown", 400, options=ContextOptions(k=1))
    told = {text.split("profile: ")[1] for text in by_source(made)["profile"]}
    assert told == {"city: Porto", "shoe: unknown", "river: unknown"}


def test_a_session_has_the_name_that_its_memories_have(reopen, tmp_path):
    """Guards what is told once: by the name as it was asked, a message was not that of its fact."""
    hashing = WritePath(redact=Redact(RedactionPolicy(scope="hash")))
    store = reopen(tmp_path / "hashing", write_path=hashing)
    ana = Agent(store.scoped(tenant="acme", user="ana"))
    ana.observe("call ana@example.com", "I live in Porto, and I work as a nurse there.")
    (fact, *_) = ana.store.list(source="extracted")
    pack = ana.context("call ana@example.com", "where do I live", 400)
    (item,) = pack
    assert (item.source, item.ref) == (ContextSource.WORKING, fact.source_ref)
    assert item.scope == fact.scope
    assert "example.com" not in str(item.scope)


# -- modes ------------------------------------------------------------------------------------


def test_snapshots_are_for_the_mode_that_asks_for_them(ana):
    ids = [item.id for item in ana.context("now", "the river", 400) if item.ref.startswith("past")]
    ana.store.add(
        "ride river high rain the river",
        source="distilled",
        quality=1.0,
        relationships=[{"relation": "derived_from", "target": id, "note": ""} for id in ids],
    )
    for mode in ("vector", "hybrid"):
        pack = ana.context("now", "the river", 400, options=ContextOptions(mode=mode))
        assert (pack.mode, "distilled" in by_source(pack)) == (MemoryMode(mode), False)
    shares = {"distilled": ContextShare(weight=3.0)}
    options = ContextOptions(mode="distilled", shares=shares)
    pack = ana.context("now", "the river", 400, options=options)
    assert "distilled" in by_source(pack)
    assert not {item.id for item in pack} & {*ids}  # its sources are not beside it
    assert {drop.id for drop in pack.dropped if str(drop.reason) == "lineage"} == {*ids}


def test_the_mode_is_the_workspaces_unless_it_is_asked_for(ana):
    assert ana.context("now", ASKED, 400).mode is MemoryMode.HYBRID
    Workspace(whole(ana).scoped(tenant="acme")).set_memory_mode("vector")
    assert ana.context("now", ASKED, 400).mode is MemoryMode.VECTOR
    options = ContextOptions(mode=MemoryMode.HYBRID)
    assert ana.context("now", ASKED, 400, options=options).mode is MemoryMode.HYBRID


def test_each_agent_of_a_tenant_has_the_mode_of_its_own_workspace(ana):
    """Guards the hot tier: the mode was kept by the tenant, so the first to ask spoke for all."""
    handles = [whole(ana).scoped(tenant="acme", **own) for own in ({"agent": "a"}, {"agent": "b"})]
    modes = (MemoryMode.VECTOR, MemoryMode.DISTILLED)
    for handle, mode in zip(handles, modes, strict=True):
        Workspace(handle).set_memory_mode(mode)
    for _ in range(2):
        assert tuple(Agent(one).context("now", ASKED, 400).mode for one in handles) == modes
        assert ana.context("now", ASKED, 400).mode is MemoryMode.HYBRID


def whole(agent):
    """The store's own handle."""
    return MemoryStore.open(agent.store.uri, embedder=agent.store.embedder, upkeep=None)


# -- failure and delay ------------------------------------------------------------------------


def test_what_is_late_is_left_out_and_the_pack_is_there_in_time(ana, slow):
    slow.wait = 1.5
    begun = time.perf_counter()
    pack = ana.context("now", "bicycle question one", 400, options=ContextOptions(latency=0.2))
    took = time.perf_counter() - begun
    assert took < 1.0, took
    assert {"vector", "procedural"} == {*pack.degraded}
    assert "no answer in time" in pack.failures["vector"]
    assert {"semantic", "profile", "working"} <= by_source(pack).keys()  # words found the fact
    assert "procedural" not in by_source(pack)


def test_within_the_time_nothing_is_missing(ana):
    pack = ana.context("now", ASKED, 400, options=ContextOptions(latency=30.0))
    assert pack.degraded == ()
    assert pack == ana.context("now", ASKED, 400)


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
@pytest.mark.parametrize("latency", [None, 30.0])
def test_an_embedder_that_fails_leaves_the_words(ana, slow, mode, latency):
    slow.broken = True
    options = ContextOptions(mode=mode, latency=latency)
    pack = ana.context("now", "bicycle anew", 400, options=options)
    assert {"vector", "procedural"} == {*pack.degraded}
    assert "the model is away" in pack.failures["vector"]
    assert "ana owns a red bicycle" in pack.text


def test_a_source_that_fails_costs_the_others_nothing(ana):
    ana.store._whole_ledger().close()
    for file in Path(ana.store.uri).rglob("*ledger*"):
        file.write_bytes(b"no database") if file.is_file() else None
    pack = ana.context("now", ASKED, 400)
    assert pack.degraded == ("working",)
    assert {"semantic", "episodic"} <= by_source(pack).keys()


# -- arguments --------------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused(ana):
    for session, query, budget in (("now", " ", 9), ("", "x", 9), ("now", "x", 0), ("now", 5, 9)):
        with pytest.raises(InvalidInputError):
            ana.context(session, query, budget)
    with pytest.raises(ScopeError):
        Agent(ana.store.scoped(session="now")).context("other", "x")


def test_an_own_tokenizer_counts(ana):
    asked = []

    def letters(texts):
        asked.append(len(texts))
        return [len(text) for text in texts]

    pack = ana.context("now", ASKED, 300, options=ContextOptions(tokenizer=letters))
    assert asked
    assert pack.tokens == len(pack.text) <= 300


def test_a_fact_that_is_no_longer_true_says_until_when(ana):
    end = datetime(2020, 2, 3, tzinfo=UTC)
    ana.semantic.add("ana likes to ride in Lisbon", valid_to=end)
    assert "fact (until 3 Feb 2020): ana likes to ride in Lisbon" in ana.context("now", ASKED).text


def test_what_was_corrected_is_told_by_its_message_beside_the_correction_alone(store):
    """Guards: the fact was hidden, and the episode that it came from told it as if it still held."""
    agent = Agent(store.scoped(user="noa"))
    agent.observe("s", "I live in Lisbon.", ref="t1")
    agent.flush("s")
    old = agent.store.list(kinds="semantic")[0]
    assert old.source_ref == "t1"
    agent.semantic.correct(old.id, "The user lives in Porto.")
    pack = agent.context("t", "do I live in Lisbon", 300)
    told = {item.text.split(" ", 1)[1]: item for item in pack}
    assert [*told] == ["user: The user lives in Porto.", "user (outdated): I live in Lisbon."]
    new, said = told.values()
    assert said.score < new.score
    assert said.reason.endswith(f"outdated by {new.id}")
    assert agent.context("t", "do I live in Lisbon", 300) == pack


def test_a_summary_of_a_fact_makes_its_message_no_older(store):
    agent = Agent(store.scoped(user="noa"))
    agent.observe("s", "I live in Lisbon.", ref="t1")
    agent.flush("s")
    (old,) = agent.store.list(kinds="semantic")
    agent.store.supersede(old.id, "Noa lives in Lisbon.", relation="consolidates")
    assert "outdated" not in agent.context("t", "do I live in Lisbon", 300).text


def test_a_budget_with_no_room_beside_the_frame_is_told(ana):
    pack = ana.context("now", ASKED, 20)
    assert (pack.text, pack.degraded) == ("", ("budget",))
    assert pack.failures["budget"].startswith("of a budget of 20 tokens the frame alone takes ")


def test_an_empty_store_gives_an_empty_pack(tmp_path, reopen):
    agent = Agent(reopen(tmp_path / "store").scoped(user="nobody"))
    pack = agent.context("s", "anything")
    assert (pack.text, pack.tokens, pack.items, pack.degraded) == ("", 0, (), ())
    assert repr(pack).startswith("<ContextPack 0 of 2000 tokens: nothing; mode hybrid")
