"""Snapshots: of what, made of whom, when anew, and what never goes in."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import (
    ConflictError,
    ConsolidateOptions,
    Distiller,
    DistillOptions,
    Dreamer,
    DreamOutcome,
    InvalidInputError,
    Kind,
    Limit,
    Quota,
    Quotas,
    RetentionPolicy,
    Scope,
    ScopeError,
    SnapshotOf,
    State,
    Triggers,
)
from lance_memory.agent.distill.shorten import shortened
from lance_memory.facts import sentences, tokens
from lance_memory.testing import check

NEW_YEAR = datetime(2024, 12, 30, 10, tzinfo=UTC)
SAID = [
    "I met Rex at 9 in Porto.",
    "The red kettle cost 40 euros.",
    "My sister Ana does not eat fish.",
]
ANN = Scope(tenant="t", user="ann")
S1 = Scope(tenant="t", user="ann", session="s1")


def say(store, texts=SAID, *, session="s1", user="ann", at=NEW_YEAR, **more):
    """One message a minute; the ids."""
    rows = [
        {
            "content": text,
            "tenant": "t",
            "user": user,
            "session": session,
            "event_at": at + timedelta(minutes=minute),
            **more,
        }
        for minute, text in enumerate(texts)
    ]
    return store.add_many(rows).ids


def snapshots(store):
    return {(m.key, str(m.scope)): m for m in store.list(source="distilled")}


def told(result):
    return [(str(one), one.scope) for one in result.snapshots]


def test_a_session_and_a_day_become_a_snapshot_each_as_one_version(store):
    ids = say(store)
    before = store.version
    result = Distiller(store).distill()
    assert (result.version, told(result)) == (
        before + 1,
        [("session s1", S1), ("day 2024-12-30", ANN)],
    )
    one = snapshots(store)["snapshot:session/s1", str(S1)]
    assert (one.kind, one.source, one.tags) == (Kind.EPISODIC, "distilled", ("snapshot",))
    assert {name: one.metadata["snapshot"][name] for name in ("of", "name", "quality")} == {
        "of": "session",
        "name": "s1",
        "quality": 1.0,
    }
    assert (one.valid_from, one.event_at) == (NEW_YEAR, NEW_YEAR + timedelta(minutes=2))
    assert {e.target for e in one.relationships if e.relation == "derived_from"} == set(ids)
    assert all(text in one.content for text in SAID)
    assert (one.id, one.quality) == (result.snapshots[0].id, 1.0)
    assert [(m.state, m.revision) for m in map(store.get, ids)] == [(State.ACTIVE, 1)] * 3
    (entry, *_) = store.log()
    assert (entry.operation, entry.reason, entry.inserted) == ("upsert", "distill", 2)
    check(store)


def test_what_is_not_new_is_not_made_again(store):
    say(store)
    first = Distiller(store).distill()
    again = Distiller(store).distill()
    assert (again.version, again.snapshots, again.unchanged) == (first.version, (), 2)


def test_news_supersede_the_snapshot_of_that_session_alone(store):
    say(store)
    say(store, session="s2", at=NEW_YEAR - timedelta(days=3))
    Distiller(store).distill()
    old = snapshots(store)
    say(store, ["The train to Faro leaves at 12."], at=NEW_YEAR + timedelta(hours=3))
    result = Distiller(store).distill()
    assert (told(result), result.unchanged) == (
        [("session s1", S1), ("day 2024-12-30", ANN)],
        2,
    )
    new = snapshots(store)["snapshot:session/s1", str(S1)]
    former = store.get(old["snapshot:session/s1", str(S1)].id)
    assert (former.state, former.superseded_by) == (State.SUPERSEDED, new.id)
    assert "train to Faro" in new.content
    assert store.count(source="distilled") == 4
    check(store)


def test_a_session_is_told_in_its_order_with_who_spoke_and_without_small_talk(store):
    talk = [
        ("user", "I'm Noa. I live in Faro"),
        ("assistant", "Noted."),
        ("user", "Great."),
        ("user", "My flight leaves on 12 May. I live in Faro."),
        ("assistant", "Do you fly from Lisbon?"),
        ("user", "Yes."),
        ("assistant", "I will."),
    ]
    for minute, (role, text) in enumerate(talk):
        say(store, [text], role=role, at=NEW_YEAR + timedelta(minutes=minute))
    Distiller(store, options=DistillOptions(of=("session",))).distill()
    (one,) = store.list(source="distilled")
    assert one.content == (
        "user: I'm Noa. I live in Faro. My flight leaves on 12 May.\n"
        "assistant: Do you fly from Lisbon?\n"
        "user: Yes."
    )


def test_small_talk_alone_is_told_as_it_is(store):
    say(store, ["Ok.", "Great."])
    assert Distiller(store).distill().snapshots[0].content == "Great. Ok."


def test_a_dry_run_promises_what_is_made(store):
    say(store)
    before = store.version
    plan = Distiller(store).distill(dry_run=True)
    assert (store.version, plan.planned, {one.id for one in plan.snapshots}) == (before, True, {""})
    done = Distiller(store).distill()
    assert [(str(a), a.content, a.sources) for a in plan.snapshots] == [
        (str(b), b.content, b.sources) for b in done.snapshots
    ]


def test_no_snapshot_crosses_a_user_an_agent_or_a_tenant(store):
    for user in ("ann", "bob"):
        say(store, [f"{text} ({user})" for text in SAID], user=user)
    say(store, ["Secret one.", "Secret two."], user="ann", agent="bot")
    result = Distiller(store).distill()
    for one in result.snapshots:
        sources = [store.get(i) for i in one.sources]
        owners = {(m.tenant, m.user, m.agent) for m in sources}
        assert owners == {(one.scope.tenant, one.scope.user, one.scope.agent)}
    assert len(result.snapshots) == 6
    bob = store.scoped(user="bob")
    assert [m.user for m in bob.list(source="distilled")] == ["bob", "bob"]
    assert all("ann" not in m.content for m in bob.list(source="distilled"))


def test_a_scoped_handle_makes_what_lies_in_its_scope(store):
    for user in ("ann", "bob"):
        say(store, user=user, run="r")
    kept = store.scoped(tenant="t", user="bob", run="r")
    result = Distiller(kept).distill()
    assert {one.scope for one in result.snapshots} == {
        Scope(tenant="t", user="bob", session="s1", run="r"),
        Scope(tenant="t", user="bob", run="r"),
    }
    assert Distiller(kept).distill().snapshots == ()
    with pytest.raises(ScopeError, match="session='s2'"):  # and not an answer that there is none
        Distiller(kept.scoped(session="s1")).snapshot(session="s2")


def test_the_day_that_is_not_over_waits_unless_it_is_asked_for(store, clock):
    say(store, at=clock.now)
    distiller = Distiller(store, options=DistillOptions(of=("day",)))
    assert distiller.distill().snapshots == ()
    assert told(distiller.snapshot(day=clock.now.date())) == [("day 2025-01-01", ANN)]
    clock.forward(days=1)
    assert distiller.distill().unchanged == 1


def test_too_few_memories_are_no_session(store):
    say(store, SAID[:1])
    result = Distiller(store).distill()
    assert (result.snapshots, result.small) == ((), 2)


def test_a_topic_and_a_tag_are_made_when_asked_for(store):
    say(store)
    say(store, ["The kettle is red.", "I like the kettle."], session="s2", tags=["home"])
    distiller = Distiller(store, options=DistillOptions(k=2))
    (topic,) = distiller.snapshot(topic="the kettle").snapshots
    (tag,) = distiller.snapshot(tag="home").snapshots
    assert (topic.of, topic.name, topic.scope, len(topic.sources)) == (
        *(SnapshotOf.TOPIC, "the kettle", ANN, 2),
    )
    assert tag.content == "The kettle is red.\nI like the kettle."
    assert distiller.snapshot(topic="the kettle").unchanged == 1


def test_a_topic_is_of_each_owner_the_nearest_of_its_own(store):
    """Once the nearest were taken over all users, so that most of them got none."""
    near, far = ["the red kettle", "my red kettle"], ["tea in Porto at 9", "a kettle for Rex"]
    say(store, near, user="ann")
    say(store, far, user="bob")
    say(store, far, user="bob", agent="bot")
    store.add_many({"content": text, "tenant": "t"} for text in far)  # of no user
    distiller = Distiller(store, options=DistillOptions(k=2))
    for _ in range(2):  # the second time snapshots are there, which take no place
        made = distiller.snapshot(topic="red kettle")
        if made.snapshots:
            first = made
    assert (made.snapshots, made.unchanged, made.read) == ((), 4, 8)
    told = {
        str(one.scope): sorted(map(store.get, one.sources), key=lambda m: m.content)
        for one in first.snapshots
    }
    assert {scope: [m.content for m in some] for scope, some in told.items()} == {
        "tenant=t/user=ann": sorted(near),
        "tenant=t/user=bob": sorted(far),
        "tenant=t/user=bob/agent=bot": sorted(far),
        "tenant=t": sorted(far),
    }
    for one in first.snapshots:
        assert {(m.user, m.agent) for m in map(store.get, one.sources)} == {
            (one.scope.user, one.scope.agent)
        }


def test_what_a_pass_made_is_shown_in_a_line(store):
    say(store)
    result = Distiller(store, options=DistillOptions(of=("session",))).distill()
    assert repr(result) == f"<DistillResult version {store.version}: 1 snapshot made, 0 unchanged>"
    (one,) = result.snapshots
    assert repr(one) == (
        "<DistilledSnapshot session s1 of tenant=t/user=ann/session=s1, from 3: "
        "'I met Rex at 9 in Porto. The red kettle cost 40 euros. My si…'>"
    )


@pytest.mark.parametrize(
    "asked",
    [
        *({}, {"session": "a", "tag": "b"}, {"topic": " "}, {"topic": "x" * 201}, {"tag": 5}),
        *({"day": "2025-01-01"}, {"day": datetime(2025, 1, 1, tzinfo=UTC)}),
    ],
)
def test_a_snapshot_is_of_one_thing(store, asked):
    with pytest.raises(InvalidInputError):
        Distiller(store).snapshot(**asked)


def test_options_make_sense():
    for wrong in ({"of": ("week",)}, {"of": "day"}, {"kinds": ("workspace",)}, {"max_words": 9}):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            DistillOptions(**wrong)


# -- the transform -------------------------------------------------------------------------------


def test_a_text_that_loses_most_of_the_facts_is_refused_and_the_rest_is_made(store):
    say(store)
    say(store, session="s2", at=NEW_YEAR - timedelta(days=1))

    def careless(cluster):
        first = cluster[0].session == "s1"
        return "Somebody said something." if first else "\n".join(m.content for m in cluster)

    options = DistillOptions(of=("session",))
    result = Distiller(store, careless, options=options).distill()
    assert [str(one) for one in result.snapshots] == ["session s2"]
    (refused,) = result.refused
    assert (refused.name, refused.scope) == ("s1", S1)
    assert refused.reason.startswith("it would drop 100% of the facts of its sources, such as Rex")


@pytest.mark.parametrize(
    ("transform", "reason"),
    [
        (lambda _: "", "empty text"),
        (lambda _: None, "left it alone"),
        (lambda _: 5, "gave 5"),
        (lambda _: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_transform_that_fails_leaves_the_snapshot_that_is_there(store, transform, reason):
    say(store)
    Distiller(store).distill()
    before = snapshots(store)
    say(store, ["The train to Faro leaves at 12."])
    result = Distiller(store, transform).distill()
    assert [reason in str(one) for one in result.refused] == [True, True]
    assert snapshots(store) == before


def test_a_long_text_is_shortened_and_its_quality_says_what_it_lost(store):
    texts = [f"On day {n} I paid {100 + n} euros to Person{chr(65 + n)}." for n in range(20)]
    say(store, texts)
    options = DistillOptions(of=("session",), max_words=40)
    (one,) = Distiller(store, options=options).distill().snapshots
    assert len(tokens(one.content)) <= 40
    assert 0.1 < one.quality < 0.5
    assert all(sentence in texts for sentence in sentences(one.content))


def test_of_very_many_the_most_important_go_in(store):
    ids = say(store, [f"Fact number {n}." for n in range(6)])
    store.update(ids[2], importance=0.9)
    options = DistillOptions(of=("session",), max_sources=3)
    (one,) = Distiller(store, options=options).distill().snapshots
    assert (one.sources, one.left_out) == ((ids[2], ids[4], ids[5]), 3)
    assert Distiller(store, options=options).distill().unchanged == 1


WORDS = st.lists(
    st.sampled_from(["red", "kettle", "9", "40", "Rex", "Porto", "and", "the"]), min_size=1
)
TEXT = st.lists(WORDS.map(lambda w: " ".join(w) + "."), min_size=1, max_size=8).map(" ".join)


@settings(deadline=None, max_examples=60)
@given(TEXT, st.integers(1, 30))
def test_a_shortened_text_has_whole_sentences_in_their_order(text, most):
    short = shortened(text, most)
    assert len(tokens(short)) <= most
    if len(tokens(text)) <= most:
        assert short == text
    elif not short.endswith("…"):
        left = iter(sentences(text))
        assert all(sentence in left for sentence in sentences(short))


# -- what becomes of the sources -----------------------------------------------------------------


def test_what_was_wrong_or_replaced_goes_from_the_snapshot(store):
    ids = say(store)
    only = DistillOptions(of=("session",))
    Distiller(store, options=only).distill()
    store.retire(ids[0], reason="not true")
    store.supersede([ids[1]], "The kettle cost 50 euros.")
    (one,) = Distiller(store, options=only).distill().snapshots
    assert ("Rex" in one.content, "40" in one.content, "50" in one.content) == (False, False, True)
    store.retire([m.id for m in store.list() if m.source != "distilled"][1:], reason="not true")
    (one,) = Distiller(store, options=only).distill().snapshots
    assert len(one.sources) == 1


def test_a_snapshot_goes_when_all_that_it_says_was_deleted_or_taken_back(store):
    first, second = say(store, session="a"), say(store, session="b")
    Distiller(store, options=DistillOptions(of=("session",))).distill()
    store.delete(first)
    store.retire(second, reason="not true")
    result = Distiller(store).distill()
    assert len(result.retired) == 2
    assert snapshots(store) == {}


@pytest.mark.parametrize("end", ["retire", "delete"])
def test_what_was_taken_back_goes_also_where_a_policy_put_the_rest_away(store, clock, end):
    """Guards a snapshot that nothing visible was left of: it went on saying what was taken back."""
    say(store)
    (kept,) = say(store, ["The code is 4711."], tags=["keep"])
    Distiller(store).distill()
    policy = RetentionPolicy(
        ages={"episodic": timedelta(days=90)}, evergreen_tags=("snapshot", "keep")
    )
    clock.forward(days=91)
    assert store.retain(policy, archive=None).retired == 3
    assert Distiller(store).distill().retired == ()
    getattr(store, end)(kept, reason="not true")
    result = Distiller(store).distill()
    assert (len(result.retired), snapshots(store)) == (2, {})


def test_a_memory_of_another_day_by_now_goes_from_the_day_that_it_was_of(store):
    """Guards a day that went on telling what was found to have happened on another one."""
    ids = say(store)
    only = DistillOptions(of=("day",))
    Distiller(store, options=only).distill()
    store.update(ids[2], event_at=NEW_YEAR - timedelta(days=3))
    (one,) = Distiller(store, options=only).distill().snapshots
    assert (one.name, one.sources) == ("2024-12-30", ids[:2])
    (snapshot,) = snapshots(store).values()
    assert "Ana" not in snapshot.content


def test_a_pass_over_other_kinds_leaves_the_snapshots_of_all_kinds(store):
    """Guards two passes that would take turns for ever."""
    say(store, kind="semantic")
    say(store, ["Then 3 guests came.", "They left at 11."], at=NEW_YEAR + timedelta(hours=1))
    Distiller(store).distill()
    before = store.version
    facts = DistillOptions(kinds=("semantic",))
    assert Distiller(store, options=facts).distill().snapshots == ()
    assert (Distiller(store).distill().snapshots, store.version) == ((), before)


def test_what_a_policy_puts_away_stays_in_the_snapshot(store, clock):
    ids = say(store, at=NEW_YEAR)
    Distiller(store).distill()
    before = snapshots(store)
    policy = RetentionPolicy(ages={"episodic": timedelta(days=90)}, evergreen_tags=("snapshot",))
    clock.forward(days=91)
    say(store, ["A later fact: 7."], session="s9", at=clock.now)
    assert store.retain(policy, archive=None).retired == 3
    assert {store.get(i).state for i in ids} == {State.RETIRED}
    result = Distiller(store).distill()
    assert (result.retired, snapshots(store)) == ((), before)


def test_a_snapshot_lasts_no_longer_than_the_first_of_its_sources(store, clock):
    end = clock.now + timedelta(hours=2)
    say(store)
    store.add("The code is 4711.", tenant="t", user="ann", session="s1", expires_at=end)
    only = DistillOptions(of=("session",))
    (one,) = Distiller(store, options=only).distill().snapshots
    assert store.get(one.id).expires_at == end
    clock.forward(hours=3)
    assert snapshots(store) == {}
    (again,) = Distiller(store, options=only).distill().snapshots
    assert "4711" not in again.content


def test_forgetting_a_memory_names_its_snapshots_and_takes_them_along(store):
    ids = say(store, [*SAID, "My number is 4711-0815-2342."])
    Distiller(store).distill()
    plan = store.forget(ids[3], dry_run=True)
    assert set(plan.successors) == {m.id for m in snapshots(store).values()}
    store.forget(ids[3], successors=True)
    assert snapshots(store) == {}
    result = Distiller(store).distill()
    assert len(result.snapshots) == 2
    assert all("4711" not in m.content for m in store.list(states="any"))


def test_what_is_changed_while_the_transform_thinks_waits_and_the_rest_is_made(store):
    ids = say(store)
    say(store, session="s2", at=NEW_YEAR - timedelta(days=1))

    def slow(cluster):
        if cluster[0].session == "s1":
            store.update(ids[0], content="I met Max at 9 in Porto.")
        return "\n".join(m.content for m in cluster)

    only = DistillOptions(of=("session",))
    result = Distiller(store, slow, options=only).distill()
    assert [str(one) for one in result.snapshots] == ["session s2"]
    assert [one.reason for one in result.refused] == [
        "its memories were changed meanwhile; the next time it is made"
    ]
    (one,) = Distiller(store, options=only).distill().snapshots
    assert "Max" in one.content


def test_of_two_at_once_one_gets_a_conflict(store):
    say(store)

    def overtaken(cluster):
        Distiller(store, options=DistillOptions(of=("session",))).distill()
        return "\n".join(m.content for m in cluster)

    with pytest.raises(ConflictError, match="snapshot:session/s1"):
        Distiller(store, overtaken, options=DistillOptions(of=("session",))).distill()
    assert len(snapshots(store)) == 1


def test_a_pass_has_an_end_and_the_next_one_goes_on(store):
    for n in range(5):
        say(store, session=f"s{n}", at=NEW_YEAR - timedelta(days=n))
    options = DistillOptions(of=("session",), max_snapshots=2)
    passes = [Distiller(store, options=options).distill() for _ in range(4)]
    made = [[one.name for one in result.snapshots] for result in passes]
    assert made == [["s0", "s1"], ["s2", "s3"], ["s4"], []]
    assert [result.left for result in passes] == [3, 1, 0, 0]


def test_only_what_was_learned_since_is_looked_at(store, clock):
    say(store, session="old")
    since = clock()
    say(store, session="new")
    result = Distiller(store, options=DistillOptions(of=("session",))).distill(since=since)
    assert [one.name for one in result.snapshots] == ["new"]


# -- events in order -----------------------------------------------------------------------------


@pytest.mark.disk
def test_no_event_goes_in_that_something_is_missing_before_and_the_watermark_follows(store, clock):
    order = store.order
    order.arrived("t", [0, 1, 2], job="a", now=clock())
    order.done("t", "a")
    order.arrived("t", [5], job="b", now=clock())  # 3 and 4 are missing
    for seq in (0, 1, 2, 5):
        say(store, [f"Event {seq}: I paid {seq + 10} euros."], seq=seq)
    result = Distiller(store).distill()
    assert [(one.seq_from, one.seq_to) for one in result.snapshots] == [(0, 2), (0, 2)]
    assert all("15 euros" not in one.content for one in result.snapshots)
    assert (result.watermarks, order.status("t").distilled) == ({"t": 2}, 2)
    order.arrived("t", [3, 4], job="c", now=clock())
    order.done("t", "c")
    order.done("t", "b")
    say(store, ["Event 3: I paid 13 euros."], seq=3)
    again = Distiller(store).distill()
    assert [(one.seq_from, one.seq_to) for one in again.snapshots] == [(0, 5), (0, 5)]
    assert order.status("t").distilled == 5


@pytest.mark.disk
def test_the_watermark_waits_for_what_was_refused_left_or_not_over(store, clock):
    order = store.order
    order.arrived("t", range(9), job="a", now=clock())
    order.done("t", "a")
    for n, session in enumerate(("a", "b", "c")):
        for seq in range(3 * n, 3 * n + 3):
            day = NEW_YEAR + timedelta(days=n)  # that of "c" is not over
            say(store, [f"Event {seq} in Porto."], session=session, seq=seq, at=day)

    def picky(cluster):
        return None if cluster[0].session == "b" else "\n".join(m.content for m in cluster)

    only = DistillOptions(of=("session",))
    assert Distiller(store.scoped(tenant="t", user="ann")).distill(dry_run=True).watermarks == {}
    assert Distiller(store, picky, options=only).distill().watermarks == {"t": 2}
    days = DistillOptions(of=("day",))
    assert Distiller(store, options=days).distill().watermarks == {"t": 5}
    kept = Distiller(store.scoped(tenant="t", user="ann"), options=only).distill()
    assert (len(kept.snapshots), kept.watermarks) == (1, {})  # a user is not all of a tenant
    assert Distiller(store.scoped(tenant="t")).distill().watermarks == {"t": 8}


# -- what else reads memories --------------------------------------------------------------------


def test_a_snapshot_is_no_source_of_another_nor_of_a_consolidation(store):
    say(store, ["The kettle is red.", "The kettle is red today."])
    Distiller(store).distill()
    assert Distiller(store).snapshot(topic="kettle").snapshots[0].left_out == 0
    for where in ({}, {"states": "any"}, {"source": "distilled"}, {"tags": "snapshot"}):
        plan = store.consolidate(ConsolidateOptions(by="tenant"), dry_run=True, **where)
        assert not {i for c in plan.clusters for i in c.sources} & {
            m.id for m in snapshots(store).values()
        }


def test_training_data_has_no_snapshot(store, tmp_path):
    say(store)
    Distiller(store).distill()
    for number, where in enumerate(({}, {"states": "any"}, {"source": "distilled"})):
        manifest = store.export(tmp_path / f"{number}.jsonl", **where)
        assert manifest.counts.examples == (0 if where.get("source") else 3)


def test_what_is_said_again_is_compared_with_memories_and_not_with_their_snapshots(store):
    """Of the few nearest memories that are looked at, ten snapshots had taken every place."""
    said = {"role": "user", "content": "I got married in 2019 in Lisbon."}
    (first,) = store.ingest([said], tenant="t", user="ann").ids
    for n in range(10):
        say(store, ["We talked.", "We talked more."], session=f"s{n}")
    news = "I got married in 2019 in Lisbon to Ana."
    only = DistillOptions(of=("session",))
    result = Distiller(store, lambda c: f"{news} {c[0].session}", options=only).distill()
    assert len(result.snapshots) == 10
    (new,) = store.ingest([{"role": "user", "content": news}], tenant="t", user="ann").ids
    assert store.get(first).superseded_by == new
    assert len(snapshots(store)) == 10


# -- at night ------------------------------------------------------------------------------------


def dreamer(store, also):
    triggers = Triggers(new_rows=1)
    options = ConsolidateOptions(by="session")
    return Dreamer(store, triggers=triggers, options=options, guard=None, also=also)


@pytest.mark.disk
def test_a_dream_distills_before_it_consolidates(store):
    say(store)
    result = dreamer(store, lambda store: Distiller(store).distill()).once()
    assert result.outcome is DreamOutcome.CONSOLIDATED
    assert result.also.endswith("2 snapshots made, 0 unchanged")
    assert [e.operation for e in store.log(limit=2)] == ["consolidate", "upsert"]
    assert dreamer(store, None).status().last.also == result.also
    assert dreamer(store, None).status().new_rows == 0


@pytest.mark.disk
def test_a_dream_goes_on_where_distilling_fails(store):
    say(store)

    def failing(_):
        raise ConflictError("somebody was faster")

    result = dreamer(store, failing).once()
    assert (result.outcome, result.also) == (
        DreamOutcome.CONSOLIDATED,
        "failed: somebody was faster",
    )
    assert dreamer(store, lambda _: 1 / 0).once().also == (
        "failed: ZeroDivisionError('division by zero')"
    )


@pytest.mark.disk
def test_a_dry_dream_distills_nothing(store):
    say(store)
    before = store.version
    result = dreamer(store, lambda store: Distiller(store).distill()).once(dry_run=True)
    assert (result.also, store.version) == ("", before)


def test_a_day_is_one_of_utc(store):
    late = datetime(2024, 12, 30, 23, 30, tzinfo=UTC)
    say(store, ["Late in Porto at 9.", "Later in Faro at 10."], at=late, session="")
    say(store, ["Early in Faro at 8.", "And then 7."], at=late + timedelta(hours=1), session="")
    names = sorted(one.name for one in Distiller(store).distill().snapshots)
    assert names == ["2024-12-30", "2024-12-31"]
    assert told(Distiller(store).snapshot(day=date(2024, 12, 29))) == []


def test_a_snapshots_key_that_is_another_memorys_is_refused_alone(store):
    """A user's own memory under such a key once ended the pass of the whole tenant."""
    say(store)
    say(store, user="bob")
    other = store.add(
        "mine", tenant="t", user="ann", session="s1", key="snapshot:session/s1", kind="procedural"
    ).id
    result = Distiller(store, options=DistillOptions(of=["session"])).distill()
    assert told(result) == [("session s1", Scope(tenant="t", user="bob", session="s1"))]
    assert [(one.scope, one.reason) for one in result.refused] == [
        (S1, f"memory {other} has the key 'snapshot:session/s1'; give it another key")
    ]
    store.update(other, key="mine")
    assert told(Distiller(store, options=DistillOptions(of=["session"])).distill()) == [
        ("session s1", S1)
    ]


def test_a_full_tenant_ends_the_pass_of_no_other(tmp_path, reopen):
    say(reopen(tmp_path / "store"))
    full = Quotas(tenants={name: Quota(rows=Limit(hard=3)) for name in "tuvwx"})
    store = reopen(tmp_path / "store", quotas=full)
    for tenant in "uvwxy":
        say(store, tenant=tenant)
    result = Distiller(store, options=DistillOptions(of=["session"])).distill()
    assert [one.scope.tenant for one in result.snapshots] == ["y"]
    assert sorted((one.scope.tenant, one.reason) for one in result.refused) == [
        (tenant, "its tenant has 3 rows of 3") for tenant in "tuvwx"
    ]
    assert list(snapshots(store)) == [("snapshot:session/s1", "tenant=y/user=ann/session=s1")]
