"""Agent: one interaction goes through the layers, and nothing that fails ends the turn."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lance_memory import (
    Agent,
    ContextOptions,
    ContextShare,
    IngestStatus,
    Interaction,
    InvalidInputError,
    Limit,
    MemoryStore,
    Quota,
    Quotas,
    ScopeError,
    StorageError,
    WritePath,
)

SAID = "I live in Porto and I work as a nurse."
MORNING = datetime(2025, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def ana(store):
    return Agent(store.scoped(tenant="acme", user="ana"))


def told(messages):
    return [(str(m.role), m.actor, m.content, m.ref) for m in messages]


def test_an_interaction_is_two_messages_and_the_facts_in_them(ana):
    made = ana.observe("s1", SAID, "Noted.", at=MORNING, ref="t1", actor="Ana")
    assert told(ana.working.recent("s1")) == [
        ("user", "Ana", SAID, "t1"),
        ("assistant", "", "Noted.", "t1#answer"),
    ]
    assert [m.at for m in ana.working.recent("s1")] == [
        MORNING,
        MORNING.replace(microsecond=1),
    ]
    assert (made.session, made.messages, made.failures) == ("s1", (1, 2), {})
    assert 0.3 < made.importance < 1
    assert made.ingest.status is IngestStatus.DONE
    facts = ana.store.list(source="extracted")
    assert {fact.id for fact in facts} == {*made.ingest.ids}
    assert {(fact.session, fact.source_ref) for fact in facts} == {("s1", "t1")}
    assert made.to_json()["ingest"]["ids"] == [*made.ingest.ids]


def test_what_became_of_a_turn_is_shown_in_a_line(ana):
    made = ana.observe("s1", SAID, "Noted.")
    memories = len(made.ingest.ids)
    assert repr(made) == (
        f"<Observed session s1: 2 messages, importance {made.importance:.2f}, {memories} memories>"
    )
    idle = ana.observe_many([Interaction(session="s1", user_input="ok")])
    assert repr(idle) == "<ObservedMany 1 interaction: 1 message, L2 (low_quality)>"


def test_one_of_the_two_may_be_blank(ana):
    assert ana.observe("s1", SAID).messages == (1,)
    assert ana.observe("s1", "", "Good morning.").messages == (2,)
    assert [m[0] for m in told(ana.working.recent("s1"))] == ["user", "assistant"]


def test_a_time_beyond_all_memories_is_told_and_ends_no_turn(ana):
    """Guards the moment of the answer, which was past the last one that there is."""
    made = ana.observe("s1", SAID, "Noted.", at=datetime.max.replace(tzinfo=UTC))
    assert {*made.failures} == {"working", "ingest"}
    assert "time_out_of_range" in made.failures["ingest"]
    assert ana.working.recent("s1") == ()


def test_the_same_interaction_observed_again_counts_once(ana):
    first = ana.observe("s1", SAID, "Noted.", at=MORNING, ref="t1")
    ana.observe("s1", SAID, "Noted.", at=MORNING, ref="t1")
    assert len(ana.working.recent("s1")) == 2
    assert {m.id for m in ana.store.list(source="extracted")} == {*first.ingest.ids}


def test_what_is_flushed_is_an_episode_under_the_name_of_its_event(ana):
    ana.observe("s1", SAID, "Noted.", ref="t1")
    flushed = ana.flush("s1")
    assert ana.working.recent("s1") == ()
    rows = [ana.store.get(id) for id in flushed.ids]
    assert [(m.source_ref, str(m.kind)) for m in rows] == [
        ("t1", "episodic"),
        ("t1#answer", "episodic"),
    ]


def test_many_interactions_are_one_job_and_one_version(ana, store):
    texts = ["My sister Ana likes hiking.", "I am allergic to peanuts.", "I have two cats."]
    before = store.version
    made = ana.observe_many(
        Interaction(session=f"s{n % 2}", user_input=text, ref=f"t{n}")
        for n, text in enumerate(texts)
    )
    assert [one.messages for one in made.observed] == [(1,), (1,), (2,)]
    assert store.version == before + 1
    assert made.ingest.messages == 3
    assert {m.session for m in store.list(source="extracted")} == {"s0", "s1"}
    assert ana.observe_many([]).observed == ()


def test_a_turn_need_not_wait_for_the_write_path(ana, store):
    made = ana.observe("s1", SAID, wait=False)
    assert made.ingest.status is IngestStatus.QUEUED
    assert store.count() == 0
    store.worker().drain()
    assert store.count() > 0


def test_a_session_is_distilled_and_its_snapshot_stands_for_its_turns(ana):
    for n, said in enumerate(["I moved to Porto.", "I bought a red bicycle.", "I ride it daily."]):
        ana.observe("s1", said, ref=f"t{n}")
    ana.flush("s1")
    (snapshot,) = ana.distill("s1").snapshots
    assert {ana.store.get(id).source_ref for id in snapshot.sources} >= {"t0", "t1", "t2"}
    options = ContextOptions(mode="distilled", shares={"distilled": ContextShare(weight=9.0)})
    pack = ana.context("s2", "which bicycle do I ride", options=options)
    assert [str(item.source) for item in pack][:1] == ["distilled"]
    assert not {item.id for item in pack} & {*snapshot.sources}
    assert ana.distill().unchanged >= 1


# -- what goes wrong --------------------------------------------------------------------------


class Broken:
    """A step of the write path that fails."""

    name = "broken"

    def __call__(self, items, around):
        raise RuntimeError("no such luck")


def test_trouble_in_the_write_path_loses_no_message_and_ends_no_turn(tmp_path, reopen):
    store = reopen(tmp_path / "store", write_path=WritePath(resolve=Broken()))
    made = Agent(store.scoped(user="ana")).observe("s1", SAID, "Noted.")
    assert made.ingest is None
    assert "ingest" in made.failures
    assert made.messages == (1, 2)
    assert len(Agent(store.scoped(user="ana")).working.recent("s1")) == 2


def test_an_assessor_that_fails_is_told_of(store):
    def assess(messages):
        raise ValueError("do not know")

    made = Agent(store.scoped(user="ana"), assessor=assess).observe("s1", SAID)
    assert (made.importance, made.failures) == (0.5, {"importance": "ValueError: do not know"})
    assert made.ingest.status is IngestStatus.DONE


def test_a_used_up_quota_is_an_answer(tmp_path, reopen):
    quotas = Quotas(default=Quota(rows=Limit(hard=0)))
    store = reopen(tmp_path / "store", quotas=quotas)
    made = Agent(store.scoped(tenant="acme", user="ana")).observe("s1", SAID)
    assert made.messages == (1,)
    assert made.ingest.status is IngestStatus.REFUSED
    assert made.failures["ingest"].startswith("refused: quota_exceeded; ")


def test_what_the_gate_blocks_is_no_failure(ana):
    made = ana.observe("s1", "ok")
    assert (made.ingest.status, made.failures) == (IngestStatus.L2, {})


def test_the_handle_of_the_whole_store_is_refused_by_what_to_give_in_its_place(store):
    with pytest.raises(ScopeError, match=r"store\.scoped\(tenant=") as refused:
        Agent(store)
    assert "whole_store" not in str(refused.value)


@pytest.mark.disk
def test_a_message_that_cannot_be_kept_is_an_error(tmp_path, reopen):
    store = reopen(tmp_path / "store", ledger="redis://127.0.0.1:1/0")
    with pytest.raises(StorageError):
        Agent(store.scoped(user="ana")).observe("s1", SAID)


@pytest.mark.parametrize(
    "wrong",
    [
        {"session": ""}, {"session": 5}, {"user_input": None}, {"user_input": " "},
        {"at": datetime(2025, 1, 1)}, {"ref": 5}, {"actor": None},
    ],
)  # fmt: skip
def test_an_interaction_that_makes_no_sense_is_refused_before_anything_is_kept(ana, wrong):
    given = {"session": "s1", "user_input": SAID, **wrong}
    with pytest.raises(InvalidInputError):
        ana.observe(given.pop("session"), given.pop("user_input"), **given)
    assert ana.working.sessions() == []


def test_an_agent_is_somebodys_and_keeps_to_its_session(store):
    with pytest.raises(ScopeError):
        Agent(store)
    bound = Agent(store.scoped(user="ana", session="s1"))
    with pytest.raises(ScopeError):
        bound.observe("s2", SAID)
    with pytest.raises(InvalidInputError, match="an interaction"):
        bound.observe_many(["hello"])
    with pytest.raises(InvalidInputError, match="options"):
        Agent(store.scoped(user="ana"), options={"k": 5})


def test_the_layers_are_of_the_agents_own_scope(ana):
    ana.semantic.add("the sky is blue")
    ana.profile.set("city", "Porto")
    ana.procedural.learn("deploy", context="a release", steps=["build"])
    ana.episodic.add("the build broke")
    ana.workspace.flag("x")
    assert ana.sharing.received() == []
    assert {m.scope.user for m in ana.store.list()} == {"ana"}
    assert isinstance(ana.store, MemoryStore)
    assert repr(ana).endswith("scope tenant=acme/user=ana>")
