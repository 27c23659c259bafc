"""What becomes of what is said beside what is there, case by case."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from resolve_kit import ANA, START, Role, Talk, likes, lives, said

from lance_memory import (
    Category,
    InvalidInputError,
    Judgement,
    Kind,
    OnClash,
    Resolution,
    Resolve,
    Routing,
    Statement,
    Whose,
)
from lance_memory.ingest.candidate import Claim
from lance_memory.ingest.resolve import Standard
from lance_memory.record.memory import Scope
from lance_memory.testing import check

UNSURE = {"confidence": 0.5, "pending": "confidence 0.50"}


def edges(memory):
    return {(edge.relation, edge.target) for edge in memory.relationships}


def only(store, content):
    (found,) = [m for m in store.list(states="any") if m.content == content]
    return found


def test_the_same_said_again_is_one_memory_and_its_id_is_told(talk):
    assert talk.put(lives("Lisbon")) == [("new", "new")]
    assert talk.put(lives("Lisbon", day=1)) == [("reject", "duplicate")]
    assert talk.decisions[1].memory == talk.decisions[0].memory == talk.store.list()[0].id
    assert talk.store.count(states="any") == 1


def test_recalled_text_that_is_fed_back_many_times_stays_one_memory(talk):
    talk.put(likes("green tea"))
    for day in range(1, 40):
        assert talk.put(likes("green tea", day=day)) == [("reject", "duplicate")]
    assert talk.store.count(states="any") == 1
    assert len(talk.store.list()[0].metadata["heard"]) == 16
    version = talk.store.version
    for day in range(40):
        assert talk.put(likes("green tea", day=day)) == [("reject", "replayed")]
    assert talk.store.version == version


def test_what_a_memory_of_another_source_says_is_not_stored_again(talk):
    talk.store.add("I keep three bees", kind="semantic", tenant="acme", user="ana")
    version = talk.store.version
    assert talk.put(said("I keep three bees")) == [("reject", "duplicate")]
    assert talk.store.version == version


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.WORKSPACE])
def test_text_of_a_memory_of_any_kind_that_is_fed_back_stays_one_memory(talk, kind):
    """C07."""
    known = talk.store.add("I like green tea", kind=kind, tenant="acme", user="ana")
    before = talk.store.get(known.id)
    assert talk.put(likes("green tea", day=1)) == [("reject", "duplicate")]
    assert talk.put(said("I like green tea", day=-9), vectors=False) == [("reject", "duplicate")]
    assert talk.decisions[0].memory == known.id
    assert talk.store.list(states="any") == [before]


def test_what_the_agent_is_told_is_no_memory_that_says_it_already(talk):
    talk.store.add("I like green tea", kind=Kind.WORKSPACE, tenant="acme", user="ana")
    assert talk.put(likes("green tea", day=1)) == [("new", "new")]


def test_text_that_was_consolidated_or_imported_and_is_fed_back_stays_one_memory(
    talk, reopen, tmp_path
):
    """C07."""
    source = talk.store.add("tea is liked", tenant="acme", user="ana")
    talk.store.supersede([source.id], "I like green tea")
    talk.store.export_store(tmp_path / "archive")
    other = Talk(reopen(tmp_path / "other"))
    other.store.import_store(tmp_path / "archive")
    for one in (talk, other):
        assert one.put(likes("green tea", day=1)) == [("reject", "duplicate")]
        assert one.visible() == ["I like green tea"]
        check(one.store)


def test_a_corrected_fact_is_not_recalled_and_both_stay_linked(talk):
    talk.put(lives("Lisbon"))
    assert talk.put(lives("Porto", day=2, change=True)) == [("update", "changed")]
    old, new = only(talk.store, "I live in Lisbon"), only(talk.store, talk.visible()[0])
    assert talk.visible() == ["I moved and now live in Porto"]
    assert (old.superseded_by, old.state_reason) == (new.id, "resolved: changed")
    assert edges(new) == {("updates", old.id)}
    assert [h.memory.id for h in talk.store.search("Lisbon", states=["active", "superseded"])]
    check(talk.store)


def test_what_is_said_earlier_is_put_in_its_place_in_the_past(talk):
    talk.put(lives("Porto", day=2, change=True))
    assert talk.put(lives("Faro", day=1, change=True)) == [("superseded", "late")]
    assert talk.visible() == ["I moved and now live in Porto"]
    assert only(talk.store, "I moved and now live in Faro").superseded_by == talk.store.list()[0].id
    check(talk.store)


def test_what_is_true_again_stands_again(talk):
    for day, place in enumerate(["Lisbon", "Porto", "Lisbon"]):
        talk.put(lives(place, day=day, change=True))
    assert talk.visible() == ["I moved and now live in Lisbon"]
    assert talk.decisions[-1].reason == "said_again"
    check(talk.store)


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [
        (lives("Porto", day=1), ("pending", "clarify")),
        (lives("Porto", day=1, change=True), ("update", "changed")),
        (lives("Porto", day=1, source="registry"), ("update", "more_authority")),
        (lives("Porto", day=1, role=Role.ASSISTANT), ("superseded", "less_authority")),
        (
            said("I live in Lisbon in Alfama", day=1, claim="residence lisbon alfama!"),
            ("update", "more_detail"),
        ),
        (
            said("I do not live in Lisbon", day=1, claim="residence not lisbon!"),
            ("update", "denied"),
        ),
        (
            said("I do not live in Porto", day=1, claim="residence not porto!"),
            ("superseded", "implied"),
        ),
        (
            lives("Porto", day=1, valid_from=START, valid_to=START + timedelta(days=9)),
            ("pending", "clarify"),
        ),
        (said("My name is Ana", day=1, claim="name ana!"), ("new", "new")),
        (likes("Lisbon", day=1), ("new", "new")),
    ],
)
def test_another_value_of_a_single_attribute(talk, candidate, verdict):
    talk.put(lives("Lisbon"))
    assert talk.put(candidate) == [verdict]
    check(talk.store)


def test_disjoint_validity_is_no_duplicate_and_no_clash(talk):
    end = START + timedelta(days=100)
    talk.put(lives("Lisbon", valid_from=START, valid_to=end))
    assert talk.put(lives("Porto", day=1, valid_from=end)) == [("new", "new")]
    assert talk.put(lives("Lisbon", day=2, valid_from=end + timedelta(days=9))) != [
        ("reject", "duplicate")
    ]
    check(talk.store)


def test_several_values_of_an_attribute_stand_together_and_a_denial_ends_one(talk):
    talk.put(likes("tea"), likes("coffee"))
    assert talk.put(likes("tea", day=1, no=True)) == [("update", "denied")]
    assert talk.visible() == ["I do not like tea", "I like coffee"]
    dislikes = said("I hate coffee", day=2, claim="dislikes coffee")
    assert talk.put(dislikes) == [("update", "denied")]
    assert talk.visible() == ["I do not like tea", "I hate coffee"]
    assert talk.put(likes("juice", day=3)) == [("keep_both", "another_value")]
    check(talk.store)


def test_two_that_say_the_same_with_details_of_their_own_become_one(talk):
    one = said("My sister works in Munich at Siemens", claim="sister_in munich", importance=8.0)
    other = said("My sister works in Munich for 3 years", day=1, claim="sister_in munich")
    talk.put(one)
    assert talk.put(other) == [("merge", "details_of_both")]
    (merged,) = talk.store.list()
    assert merged.content == (
        "My sister works in Munich at Siemens\nMy sister works in Munich for 3 years"
    )
    assert edges(merged) == {("consolidates", one.id), ("consolidates", other.id)}
    assert {m.superseded_by for m in talk.store.list(states="superseded")} == {merged.id}
    assert merged.event_at == other.event_at
    assert merged.importance == pytest.approx(0.8)
    assert talk.store.get(merged.id).embedding is not None
    assert talk.put(one, other) == [("reject", "replayed")] * 2
    check(talk.store)


def test_without_claims_a_change_that_is_announced_replaces_and_another_number_does_not(talk):
    talk.put(said("The deadline is 5 May"))
    assert talk.put(said("The deadline is 9 May", day=1)) == [("keep_both", "distinct")]
    assert talk.put(said("The deadline is now 6 May", day=2)) == [("update", "changed")]
    assert talk.visible() == ["The deadline is now 6 May"]
    assert talk.put(said("The deadline is 5 May", day=1)) == [("reject", "duplicate")]
    check(talk.store)


@pytest.mark.parametrize("vectors", [True, False])
def test_words_stand_in_for_vectors_that_are_missing(talk, vectors):
    talk.put(said("Ana grows tomatoes on her balcony in summer"), vectors=vectors)
    same = said("In summer Ana grows tomatoes on her balcony", day=1)
    assert talk.put(same, vectors=not vectors) == [("reject", "duplicate")]
    assert talk.put(said("The printer is out of ink", day=1), vectors=False) == [("new", "new")]


def test_memories_of_others_and_of_other_kinds_are_not_compared(talk):
    talk.put(lives("Lisbon"))
    for scope in (
        Scope(tenant="acme", user="eva"),
        Scope(tenant="other", user="ana"),
        Scope(tenant="acme", user="ana", agent="helper"),
    ):
        assert talk.put(lives("Porto", day=1, scope=scope)) == [("new", "new")]
    other_session = Scope(tenant="acme", user="ana", session="s2", run="r")
    assert talk.put(lives("Lisbon", day=3, scope=other_session)) == [("reject", "duplicate")]


def test_a_handle_kept_to_a_session_leaves_what_another_session_has_replaced(talk):
    first, second = (replace(ANA, session=name) for name in ("s1", "s2"))
    talk.put(lives("Lisbon", scope=first), said("The deadline is 5 May", scope=first))
    talk.put(
        lives("Porto", day=2, change=True, scope=second),
        said("The deadline is now 6 May", day=2, scope=second),
    )
    before = {memory.id: memory for memory in talk.store.list(states="any")}
    late = lives("Lisbon", day=1, scope=first), said("The deadline is 5 May", day=1, scope=first)
    assert talk.put(*late, within=first) == [("new", "new")] * 2
    assert talk.put(*late, within=first) == [("reject", "replayed")] * 2
    after = {memory.id: memory for memory in talk.store.list(states="any")}
    assert {id: after[id] for id in before} == before
    assert {decision.memory for decision in talk.decisions[4:]} == {one.id for one in late}
    assert talk.put(lives("Faro", day=3, change=True)) == [("update", "changed")]
    standing = [m for m in talk.store.list() if m.metadata.get("claim")]
    assert [m.content for m in standing] == ["I moved and now live in Faro"]
    check(talk.store)


def test_little_confidence_waits_unseen_until_it_is_heard_again(talk):
    assert talk.put(said("I keep bees", **UNSURE)) == [("pending", "low_confidence")]
    (pending,) = talk.store.list(states="pending")
    assert pending.state_reason == "confidence 0.50"
    assert pending.expires_at - pending.created_at == timedelta(days=30)
    assert talk.visible() == []
    assert len(talk.store.search("bees")) == 0
    assert talk.put(said("I keep bees", **UNSURE)) == [("reject", "replayed")]
    assert talk.put(said("I keep bees", day=1, **UNSURE)) == [("promoted", "seen_again")]
    (memory,) = talk.store.list()
    assert (memory.state_reason, memory.expires_at) == ("seen again", None)
    assert memory.confidence == pytest.approx(0.75)
    check(talk.store)


def test_what_clashes_stays_pending_when_it_was_of_little_confidence_first(talk):
    talk.put(lives("Lisbon"))
    talk.put(lives("Porto", day=1, **UNSURE))
    assert talk.put(lives("Porto", day=2, **UNSURE)) == [("promoted", "seen_again")]
    assert talk.visible() == ["I live in Lisbon"]


def test_shared_facts_go_by_recency_unless_much_less_sure(talk):
    routing = Routing(whose={"residence": Whose.SHARED})
    talk.resolve = Resolve(routing=routing)
    talk.put(lives("Lisbon"))
    assert talk.put(lives("Porto", day=1)) == [("update", "another_value")]
    assert talk.put(lives("Faro", day=2, confidence=0.55)) == [("superseded", "less_sure")]
    assert talk.visible() == ["I live in Porto"]


def test_routing_goes_by_domain_subject_attribute_and_category():
    standard = Routing()

    def of(subject, domain, routing=standard):
        claim = Claim(subject=subject, attribute="plan", value="x", single=True)
        candidate = said("It is x", claim=claim, domain=domain, category=Category.FACT)
        return routing.of(Statement.of(candidate))

    assert [of("user", domain) for domain in ("", "education", "support")] == ["clarify"] * 3
    assert [of("school", domain) for domain in ("", "education", "support")] == [
        "recent",
        "review",
        "recent",
    ]
    listed = Routing(whose={"plan": Whose.INSTITUTION, "fact": Whose.SHARED})
    assert of("user", "", listed) is OnClash.REVIEW
    assert of("user", "", Routing(whose={"fact": Whose.SHARED})) is OnClash.RECENT


def test_a_classifier_of_ones_own_decides(talk):
    def newest(earlier, later, *, cosine):
        return Judgement(resolution=Resolution.UPDATE, reason="newest")

    talk.resolve = Resolve(classifier=newest)
    talk.put(lives("Lisbon"))
    assert talk.put(lives("Porto", day=1)) == [("update", "newest")]


def test_values_that_make_no_sense_are_refused():
    for bad in ({"same": 1.2}, {"near": 0.9}, {"same_words": 0.2}):
        with pytest.raises(InvalidInputError):
            Standard(**bad)
    with pytest.raises(InvalidInputError, match="a policy missing"):
        Routing(policies={Whose.SHARED: OnClash.RECENT})
    with pytest.raises(InvalidInputError, match="less_sure"):
        Routing(less_sure=2)
    with pytest.raises(InvalidInputError, match="pending_for"):
        Resolve(pending_for=timedelta(0))


def test_retired_by_hand_is_stored_when_it_is_said_anew_and_not_when_it_is_replayed(talk):
    talk.put(likes("tea"))
    talk.put(likes("tea", day=1))
    talk.store.retire(tenant="acme", user="ana")
    assert talk.put(likes("tea"), likes("tea", day=1)) == [("reject", "replayed")] * 2
    assert talk.visible() == []
    assert talk.put(likes("tea", day=2)) == [("new", "new")]
    check(talk.store)


def test_what_consolidation_has_taken_in_is_known(talk):
    talk.put(likes("tea"))
    (source,) = talk.store.list()
    made = talk.store.supersede([source.id], "Ana likes tea and other drinks")
    assert talk.put(likes("tea", day=1)) == [("reject", "duplicate")]
    assert talk.decisions[-1].memory == made.ids[0]
    assert talk.visible() == ["Ana likes tea and other drinks"]
    check(talk.store)


def test_hostile_values_match_only_themselves(talk):
    nasty = "x' OR '1'='1"
    scope = Scope(tenant=nasty, user='"%_\n')
    talk.put(lives("Lisbon"))
    candidate = said(nasty * 2, claim=f"{nasty.replace(' ', '')} y!", scope=scope)
    assert talk.put(candidate) == [("new", "new")]
    assert talk.put(candidate) == [("reject", "replayed")]
    assert Talk(talk.store).store.count(tenant="acme") == 1
    assert ANA.user == "ana"


def test_of_many_memories_only_what_is_asked_about_is_read_and_the_same_comes_out(
    talk, reopen, tmp_path, monkeypatch
):
    other = Talk(reopen(tmp_path / "other"))
    log = [
        lives("Lisbon"),
        likes("tea", day=1),
        said("The deadline is 5 May", day=2),
        lives("Porto", day=3, change=True),
        likes("tea", day=4, no=True),
        said("The deadline is now 6 May", day=5),
        said("The deadline is now 6 May", day=6),
        lives("Porto", day=7),
    ]
    expected = [talk.put(candidate) for candidate in log]
    monkeypatch.setattr("lance_memory.ingest.resolve.board._READ_ALL", 0)
    assert [other.put(candidate) for candidate in log] == expected
    assert other.states() == talk.states()
    check(other.store)


def test_episodes_that_say_nearly_the_same_leave_room_for_the_fact(talk):
    """Of the few nearest rows that are looked at, ten episodes had taken every place."""
    first = said("I got married in 2019 in Lisbon")
    talk.put(first)
    news = "I got married in 2019 in Lisbon to Ana"
    for n in range(10):
        talk.store.add(f"{news} {n}", kind="episodic", tenant="acme", user="ana")
    assert talk.put(said(news, day=2)) == [("update", "more_detail")]
