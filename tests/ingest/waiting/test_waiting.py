"""What waits is seen by nobody, until it is heard again, answered, approved, or given up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from resolve_kit import ANA, lives, said

from lance_memory import ConflictError, Message, WritePath
from lance_memory.ingest.waiting import Answer, answered, approved, expired, rejected, waiting
from lance_memory.record.memory import Scope
from lance_memory.testing import check

UNSURE = {"confidence": 0.5, "pending": "confidence 0.50"}


def listed(store, scope=ANA):
    return waiting(store._table.latest(), scope, moment=store._moment())


def decide(talk, make, *refs, reason=""):
    """Commit what `make` decides about the memories with these contents."""
    store = talk.store
    ids = [m.id for m in store.list(states="any") if m.content in refs]

    def plan(snapshot):
        return make(snapshot, store._rows(ids, snapshot), store._audit("decide", reason))

    return store._write(plan)


def approve(snapshot, rows, audit, talk):
    return approved(snapshot, rows, resolve=talk.resolve, audit=audit, within=Scope())


def by(answer, talk):
    def make(snapshot, rows, audit):
        return answered(snapshot, rows, answer, resolve=talk.resolve, audit=audit, within=Scope())

    return make


@pytest.fixture
def clash(talk):
    """Lisbon stands, and Porto waits for an answer."""
    talk.put(lives("Lisbon"))
    talk.put(lives("Porto", day=1))
    return talk


def test_what_waits_is_listed_with_what_it_waits_for(clash):
    clash.put(said("I keep bees", day=2, **UNSURE))
    told = [(w.memory.content, str(w.why), w.contradicts) for w in listed(clash.store)]
    lisbon = clash.store.list()[0]
    assert told == [
        ("I live in Porto", "clarify", lisbon),
        ("I keep bees", "confidence", None),
    ]
    assert listed(clash.store, Scope(tenant="acme", user="eva")) == []


def test_a_clash_with_another_session_is_not_shown_to_a_handle_kept_to_one(talk):
    talk.put(lives("Lisbon", scope=replace(ANA, session="s1")))
    talk.put(lives("Porto", day=1, scope=replace(ANA, session="s2")))
    ana = talk.store.scoped(tenant="acme", user="ana")
    lisbon, narrow = talk.store.list()[0], ana.scoped(session="s2")
    assert [w.contradicts for w in ana.clarifications()] == [lisbon]
    for told in (narrow.pending(), narrow.clarifications()):
        assert [(w.memory.content, w.contradicts) for w in told] == [("I live in Porto", None)]
    narrow.approve(told[0].memory.id)
    assert ana.get(lisbon.id) == lisbon
    check(talk.store)


def test_institution_facts_wait_for_a_review(talk):
    school = {"domain": "education"}
    fact = lives("Lisbon", **school)
    about = replace(fact.claim, subject="library")
    talk.put(replace(fact, claim=about))
    other = lives("Porto", day=1, **school)
    assert talk.put(replace(other, claim=replace(other.claim, subject="library"))) == [
        ("pending", "review")
    ]
    assert [str(w.why) for w in listed(talk.store)] == ["review"]


@pytest.mark.parametrize(
    ("answer", "visible"),
    [
        (Answer.NEW, ["I live in Porto"]),
        (Answer.OLD, ["I live in Lisbon"]),
        (Answer.BOTH, ["I live in Lisbon", "I live in Porto"]),
    ],
)
def test_an_answer_settles_a_clash_for_good(clash, answer, visible):
    decide(clash, by(answer, clash), "I live in Porto")
    assert clash.visible() == visible
    assert listed(clash.store) == []
    clash.put(lives("Lisbon"), lives("Porto", day=1))
    assert clash.visible() == visible
    check(clash.store)


def test_approving_a_clash_supersedes_the_other_and_links_it(clash):
    decide(clash, lambda *args: approve(*args, clash), "I live in Porto")
    old = clash.store.list(states="superseded")[0]
    (new,) = clash.store.list()
    assert old.superseded_by == new.id
    assert [(e.relation, e.target) for e in new.relationships] == [("updates", old.id)]
    with pytest.raises(ConflictError, match="not pending"):
        decide(clash, lambda *args: approve(*args, clash), "I live in Porto")


def test_what_is_approved_is_recalled_and_what_is_rejected_is_not(talk):
    talk.put(said("I keep bees", **UNSURE), said("I sell honey", **UNSURE))
    decide(talk, lambda *args: approve(*args, talk), "I keep bees")
    decide(talk, lambda s, rows, audit: rejected(rows, audit=audit), "I sell honey", reason="no")
    assert talk.visible() == ["I keep bees"]
    assert talk.store.list()[0].expires_at is None
    assert [m.state_reason for m in talk.store.list(states="retired")] == ["no"]
    with pytest.raises(ConflictError, match="approve or reject"):
        decide(talk, by(Answer.NEW, talk), "I keep bees")


def test_what_is_not_heard_again_in_time_is_given_up_in_one_version(talk, clock):
    talk.put(said("I keep bees", **UNSURE), said("I sell honey", day=1, **UNSURE))
    talk.put(lives("Lisbon"))
    clock.forward(days=29)
    assert not expired(talk.store._table.latest(), ANA, audit=talk.store._audit("expire"))
    clock.forward(days=2)
    assert listed(talk.store) == []
    done = talk.store._write(lambda s: expired(s, ANA, audit=talk.store._audit("expire")))
    assert done.updated == 2
    assert {m.state_reason for m in talk.store.list(states="retired")} == {"expired"}
    check(talk.store)


def test_no_read_nor_consolidation_nor_export_shows_what_waits(clash, tmp_path):
    clash.put(said("I keep bees", **UNSURE))
    store = clash.store
    assert [h.memory.content for h in store.search("live Porto bees")] == ["I live in Lisbon"]
    plan = store.consolidate(dry_run=True, tenant="acme", user="ana")
    pending = {m.id for m in store.list(states="pending")}
    assert not pending & {i for cluster in plan.clusters for i in cluster.source_ids}


def test_the_history_tells_every_change_of_a_memory_and_of_what_it_replaced(talk):
    talk.put(lives("Lisbon"))
    talk.put(lives("Porto", day=1, change=True))
    (new,) = talk.store.list()
    for _ in range(20):
        talk.store.add("something else", key=None, event_at=talk.store._moment())
    talk.store.retire([new.id], reason="moved abroad")
    told = [
        (c.operation, c.reason, c.after.content.split()[-1], str(c.after.state), c.lost)
        for c in talk.store.history(new.id)
    ]
    assert told == [
        ("ingest", "", "Lisbon", "active", 0),
        ("ingest", "", "Porto", "active", 0),
        ("ingest", "", "Lisbon", "superseded", 0),
        ("retire", "moved abroad", "Porto", "retired", 0),
    ] or told[1:3] == [
        ("ingest", "", "Lisbon", "superseded", 0),
        ("ingest", "", "Porto", "active", 0),
    ]
    last = talk.store.history(new.id)[-1]
    assert {"state", "state_reason"} <= set(last.columns)
    assert len(talk.store.history(talk.store.list(states="superseded")[0].id)) == 4


def test_what_a_named_speaker_says_of_herself_is_as_personal_as_what_a_user_does(store):
    path = replace(WritePath(), gate=None)
    mara = store.scoped(user="mara")
    mara.ingest([Message(content="I live in Porto.", actor="Mara")], path=path)
    mara.ingest([Message(content="I live in Braga.", actor="Mara")], path=path)
    [clash] = mara.clarifications()
    assert (clash.memory.content, clash.contradicts.content) == (
        "I live in Braga.",
        "I live in Porto.",
    )
