"""The working layer: what is said just now, whose it is, and what becomes of it."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from lance_memory import (
    ConsolidateOptions,
    Conversation,
    EmbeddingError,
    FunctionEmbedder,
    InvalidInputError,
    Limit,
    NotFoundError,
    Quota,
    QuotaExceededError,
    Quotas,
    RedactionPolicy,
    RejectedError,
    Role,
    Scope,
    ScopeError,
    WritePath,
)
from lance_memory.agent.flush import LeftOut
from lance_memory.agent.hot import HotTier
from lance_memory.agent.session_state import SessionState
from lance_memory.agent.working import WorkingMemory
from lance_memory.ingest import Message, Redact
from lance_memory.testing import check

DAY = timedelta(hours=24)


@pytest.fixture
def mine(store):
    return WorkingMemory(store.scoped(tenant="t", user="ana"))


def said(memory, session="s", n=100):
    return [message.content for message in memory.recent(session, n)]


def talk(memory, session="s", *contents):
    """User and assistant in turn."""
    roles = ["user", "assistant"]
    for place, content in enumerate(contents):
        memory.append_message(session, roles[place % 2], content)


def ledger_bytes(store):
    place = Path(store.uri) / "ingest"
    return b"".join(path.read_bytes() for path in sorted(place.rglob("ledger*")))


# -- messages -----------------------------------------------------------------------------


def test_the_last_messages_come_oldest_first(mine, clock):
    numbers = [mine.append_message("s", "user", f"word {n}") for n in range(5)]
    assert numbers == [1, 2, 3, 4, 5]
    assert said(mine, n=3) == ["word 2", "word 3", "word 4"]
    assert said(mine, n=0) == []
    assert said(mine, "another") == []
    last = Message(content="x", role=Role.TOOL, actor="shell", at=clock.now, ref="e")
    assert mine.append("s", last) == 6
    assert mine.recent("s", 1) == (last,)


def test_a_session_is_read_back_however_long_it_is(mine):
    mine.append_many("s", [Message(content=f"word {n}") for n in range(300)])
    everything = [f"word {n}" for n in range(300)]
    for n in (1, 10, 64, 65, 256, 257, 300, 1000):
        assert said(mine, n=n) == everything[-n:]
    mine.append_message("s", "user", "one more")
    for n in (1, 64, 300, 301):
        assert said(mine, n=n) == [*everything, "one more"][-n:]


def test_a_session_of_one_name_is_another_one_of_another_person(store):
    owners = [{"tenant": "t"}, {"tenant": "t", "user": "u"}, {"tenant": "t", "user": "U"}]
    owners += [{"user": "t"}, {"agent": "t"}, {"tenant": "t", "user": "u", "agent": "a"}]
    owners += [{"tenant": "t", "user": "u", "run": "r"}, {"tenant": 't","u'}]
    layers = [WorkingMemory(store.scoped(**names)) for names in owners]
    for number, layer in enumerate(layers):
        layer.append_message("s", "user", f"of {number}")
        layer.set_context("s", {"of": number})
    assert [said(layer) for layer in layers] == [[f"of {n}"] for n in range(len(layers))]
    assert [layer.context("s") for layer in layers] == [{"of": n} for n in range(len(layers))]


def test_memory_of_nobody_needs_to_be_meant(store):
    with pytest.raises(ScopeError, match="whole_store=True"):
        WorkingMemory(store)
    with pytest.raises(ScopeError, match="whole_store=True"):
        WorkingMemory(store.scoped(session="s"))
    nobody = WorkingMemory(store, whole_store=True)
    nobody.append_message("s", "user", "alone")
    assert said(nobody) == ["alone"]
    assert said(WorkingMemory(store.scoped(user="u"))) == []


def test_what_says_nothing_is_refused(mine):
    for call in (
        lambda: mine.append_message("s", "user", " \n"),
        lambda: mine.append_many("s", [Message(content=""), Message(content="\t")]),
    ):
        with pytest.raises(RejectedError, match="empty"):
            call()
    kept = mine.append_many(
        "s", [Message(content=""), Message(content="word"), Message(content=" ")]
    )
    assert (kept, said(mine), mine.append_many("s", [])) == ((1,), ["word"], ())


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.append_message("", "user", "x"),
        lambda m: m.append_message("s", "nobody", "x"),
        lambda m: m.append("s", "x"),
        lambda m: m.append_message("\ud800", "user", "x"),
        lambda m: m.recent("s", -1),
        lambda m: m.recent(""),
        lambda m: m.hibernate(timedelta(seconds=-1)),
        lambda m: m.flush("s", 1.5),
        lambda m: WorkingMemory(m._store, ttl=timedelta(0)),
        lambda m: m.set_context("s", {"x": float("nan")}),
        lambda m: m.set_context("s", {"x": {1, 2}}),
        lambda m: m.set_context("s", ["x"]),
        lambda m: m.set_context("s", {"x": "long " * 20_000}),
    ],
)
def test_what_makes_no_sense_is_refused(mine, call):
    with pytest.raises(InvalidInputError):
        call(mine)
    assert mine.sessions() == []


def test_an_event_with_a_name_of_its_own_counts_once(mine, store):
    for _ in range(2):
        mine.append("s", Message(content="booked", ref="event-1"))
        mine.append("s", Message(content="paid", seq=7))
    mine.append("s", Message(content="cancelled", ref="event-1"))
    assert said(mine) == ["booked", "paid", "cancelled"]
    mine.hibernate(timedelta(0))
    mine.append("s", Message(content="booked", ref="event-1"))
    assert said(mine) == ["paid", "cancelled", "booked"]
    assert mine.flush("s").inserted == 0
    assert sorted(memory.content for memory in store.list()) == ["booked", "cancelled", "paid"]


def test_the_same_may_be_said_twice_at_one_moment(mine, store, clock):
    moment = clock.now
    mine.append_many("s", [Message(content="ok", at=moment), Message(content="ok", at=moment)])
    assert said(mine) == ["ok", "ok"]
    mine.hibernate(timedelta(0))
    assert said(mine) == ["ok", "ok"]
    mine.flush("s", 0)
    assert [memory.content for memory in store.list(kinds="episodic")] == ["ok", "ok"]


def test_secrets_are_kept_nowhere(store, mine):
    mine.append_many("s", [Message(content="my password: Zanzibar-77x"), Message(content="ok")])
    mine.set_context("s", {"mail": "ana@example.com", "list": [{"ana@example.com": 1}]})
    assert said(mine) == ["my password: [secret]", "ok"]
    assert mine.context("s") == {"mail": "[email]", "list": [{"[email]": 1}]}
    mine.hibernate(timedelta(0))
    kept = ledger_bytes(store) + repr(store.to_arrow().to_pylist()).encode()
    assert b"Zanzibar" not in kept
    assert b"example.com" not in kept


def test_the_policy_of_the_write_path_is_kept_to(reopen, tmp_path):
    policy = RedactionPolicy(kinds={"card": "refuse", "email": "drop_message"}, scope="hash")
    store = reopen(tmp_path / "strict", write_path=WritePath(redact=Redact(policy)))
    mine = WorkingMemory(store.scoped(tenant="t", user="ana"))
    with pytest.raises(RejectedError, match="sensitive_card"):
        mine.append_message("s", "user", "it is 4111 1111 1111 1111")
    with pytest.raises(RejectedError, match="nothing_left"):
        mine.append_message("s", "user", "write to ana@example.com")
    mine.append_message("ana@example.com", "user", "hello")
    (state,) = mine.sessions()
    assert re.fullmatch(r"\[email:[0-9a-f]{12}\]", state.session)
    assert said(mine, "ana@example.com") == ["hello"] == said(mine, state.session)
    by_mail = WorkingMemory(store.scoped(tenant="t", user="ana@example.com"))
    with pytest.raises(ScopeError, match="outside this handle's"):
        by_mail.append_message("s", "user", "hello")


# -- time ---------------------------------------------------------------------------------


def test_what_has_ended_is_returned_by_nothing(store, clock):
    mine = WorkingMemory(store.scoped(user="u"), ttl=timedelta(minutes=10))
    mine.append_message("s", "user", "first")
    mine.set_context("s", {"topic": "x"})
    clock.forward(minutes=6)
    mine.append_message("s", "user", "second")
    assert said(mine) == ["first", "second"]
    clock.forward(minutes=5)
    assert (said(mine), mine.context("s")) == (["second"], {})
    assert mine.hibernate(timedelta(0)).inserted == 1
    assert said(mine) == ["second"]
    clock.forward(minutes=5)
    assert (said(mine), mine.sessions()) == ([], [])
    assert mine.flush("s").ids == ()
    assert store.list(kinds="working") == []


def test_a_time_of_any_length_is_one(store):
    """Guards sums beyond the year 9999, which ended in an OverflowError."""
    mine = WorkingMemory(store.scoped(user="u"), ttl=timedelta.max)
    mine.append_message("s", "user", "for ever")
    mine.set_context("s", {"topic": "x"})
    assert mine.hibernate(timedelta.max).inserted == 0
    assert mine.hibernate(timedelta(0)).inserted == 1
    assert (said(mine), mine.context("s")) == (["for ever"], {"topic": "x"})


def test_each_message_ends_with_the_time_to_live_that_it_was_appended_with(store, clock):
    short = WorkingMemory(store.scoped(user="u"), ttl=timedelta(minutes=1))
    long = WorkingMemory(store.scoped(user="u"))
    short.append_message("s", "user", "short")
    long.append_message("s", "user", "long")
    assert said(short) == said(long) == ["short", "long"]
    clock.forward(minutes=2)
    assert said(short) == said(long) == ["long"]


def test_a_session_whose_all_has_ended_leaves_no_byte(store, mine, clock):
    mine.append_message("Zanzibar", "user", "word")
    mine.set_context("Zanzibar", {"topic": "x"})
    mine.append_message("woken", "user", "early")
    mine.hibernate(timedelta(0))
    clock.forward(hours=25)
    mine.append_message("woken", "user", "late")
    mine.hibernate(timedelta(minutes=1))
    assert [*store.ledger.spaces(prefix="working:")] == ['working:["t","ana","","woken",""]']
    assert said(mine, "woken") == ["late"]


# -- context ------------------------------------------------------------------------------


def test_context_is_a_few_values_that_are_set_one_by_one_or_all(mine, clock):
    assert mine.context("s") == {}
    assert mine.set_context("s", {"topic": "travel", "step": 1}) == {"topic": "travel", "step": 1}
    assert mine.set_context("s", {"step": 2, "none": None}) == {
        "topic": "travel",
        "step": 2,
        "none": None,
    }
    assert mine.set_context("s", {"new": [True, 0.5, ""]}, replace_all=True) == {
        "new": [True, 0.5, ""]
    }
    assert mine.context("s") == {"new": [True, 0.5, ""]}
    clock.forward(hours=25)
    assert mine.set_context("s", {"later": 1}) == {"later": 1}


def test_threads_that_set_values_lose_none(mine):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: mine.set_context("s", {f"v{n}": n}), range(40)))
    assert mine.context("s") == {f"v{n}": n for n in range(40)}


# -- sessions -----------------------------------------------------------------------------


def test_sessions_are_listed_by_those_whose_they_are_and_those_above(store, mine, clock):
    talk(mine, "s", "one", "two")
    WorkingMemory(store.scoped(tenant="t", user="bob")).append_message("s", "user", "three")
    mine.set_context("only values", {"x": 1})
    first = clock.now
    mine.hibernate(timedelta(seconds=1))
    talk(mine, "s", "four")
    (values, state) = mine.sessions()
    assert (values.session, values.messages, values.last_at) == ("only values", 0, None)
    last = mine.recent("s")[-1].at
    assert state == SessionState(
        session="s",
        scope=Scope(tenant="t", user="ana", session="s"),
        messages=3,
        last_at=last,
        ends_at=last + DAY,
        hibernates=True,
    )
    assert last > first
    everybody = WorkingMemory(store.scoped(tenant="t")).sessions()
    assert [(one.scope.user, one.session) for one in everybody] == [
        ("ana", "only values"),
        ("ana", "s"),
        ("bob", "s"),
    ]
    assert WorkingMemory(store.scoped(tenant="u")).sessions() == []
    assert len(WorkingMemory(store, whole_store=True).sessions()) == 3


def test_clearing_takes_a_session_out_and_numbers_go_on(store, mine):
    talk(mine, "s", "one", "two")
    mine.hibernate(timedelta(0))
    talk(mine, "s", "three")
    talk(mine, "other", "stays")
    mine.set_context("s", {"x": 1})
    assert mine.clear("s") == 3
    assert (said(mine), mine.context("s"), said(mine, "other")) == ([], {}, ["stays"])
    assert mine.append_message("s", "user", "four") == 4
    assert said(mine) == ["four"]
    assert mine.flush("s").inserted == 1
    assert {m.content: m.state.value for m in store.list(states="any")} == {
        "one": "retired",
        "two": "retired",
        "four": "active",
    }
    assert mine.clear("never") == 0


# -- hibernation --------------------------------------------------------------------------


def test_idle_sessions_go_into_the_table_as_one_version_and_read_the_same(store, mine, clock):
    bob = WorkingMemory(store.scoped(tenant="t", user="bob", agent="a"))
    talk(mine, "idle", "I live in Lisbon", "noted")
    talk(bob, "idle too", "hello")
    before = mine.recent("idle"), bob.recent("idle too")
    clock.forward(minutes=10)
    talk(mine, "busy", "wait")
    version = store.version
    made = WorkingMemory(store, whole_store=True).hibernate()
    assert (made.version, made.operation, made.inserted) == (version + 1, "hibernate", 3)
    assert (mine.recent("idle"), bob.recent("idle too")) == before
    (first, _) = rows = store.list(kinds="working", session="idle")
    assert [(m.user, m.role, m.source, m.event_at, m.expires_at - m.created_at) for m in rows] == [
        ("ana", role, "working", message.at, DAY)
        for role, message in zip(["user", "assistant"], before[0], strict=True)
    ]
    assert store.search("I live in Lisbon").hits[0].memory.id == first.id
    spaces = [*store.ledger.spaces(prefix="working:")]
    kept = {space: [key for key, _ in store.ledger.items(space, prefix="0")] for space in spaces}
    assert [len(keys) for _, keys in sorted(kept.items())] == [1, 0, 0]  # "busy" is first
    assert WorkingMemory(store, whole_store=True).hibernate().version == version + 1
    clock.forward(minutes=10)
    assert mine.hibernate().inserted == 1
    check(store, history=False)


def test_a_session_that_wakes_goes_on_after_what_hibernates(store, mine):
    talk(mine, "s", "one", "two")
    mine.hibernate(timedelta(0))
    talk(mine, "s", "three", "four")
    assert said(mine) == ["one", "two", "three", "four"]
    assert said(mine, n=3) == ["two", "three", "four"]
    mine.hibernate(timedelta(0))
    assert said(mine) == ["one", "two", "three", "four"]
    store.retire(store.list(kinds="working")[0].id)
    assert said(mine) == ["two", "three", "four"]


def test_an_embedder_that_fails_leaves_messages_where_they_are(reopen, tmp_path):
    broken = True

    def embed(texts):
        if broken:
            raise RuntimeError("away")
        return np.ones((len(texts), 4))

    store = reopen(tmp_path / "x", embedder=FunctionEmbedder(embed, name="x", dimension=4))
    mine = WorkingMemory(store.scoped(user="u"))
    talk(mine, "s", "one", "two")
    for settle in (lambda: mine.hibernate(timedelta(0)), lambda: mine.flush("s")):
        with pytest.raises(EmbeddingError):
            settle()
    assert (said(mine), store.count(states="any")) == (["one", "two"], 0)
    broken = False
    assert mine.flush("s").inserted == 2


# -- flushing -----------------------------------------------------------------------------


def test_a_flush_makes_episodes_of_a_session_as_one_version_embedded_in_one_call(
    reopen, tmp_path, clock
):
    calls = []

    def embed(texts):
        calls.append(len(texts))
        return np.ones((len(texts), 4))

    store = reopen(tmp_path / "x", embedder=FunctionEmbedder(embed, name="x", dimension=4))
    mine = WorkingMemory(store.scoped(tenant="t", user="ana"), assessor=lambda said: len(said) / 10)
    moment = clock.now
    mine.append("s", Message(content="hello", actor="Ana", at=moment, ref="e-1"))
    mine.append("s", Message(content="hi", role="assistant", at=moment, seq=8))
    mine.append("s", Message(content="bye", at=moment))
    talk(mine, "other", "stays")
    made = mine.flush("s")
    assert (made.operation, made.version, made.inserted) == ("promote", store.version, 3)
    assert calls == [3]
    told = [
        (m.content, m.role, m.actor, m.seq, m.source_ref, round(m.importance, 3), m.expires_at)
        for m in sorted(store.list(kinds="episodic"), key=lambda m: m.created_at)
    ]
    digest = store.list(kinds="episodic", role="user")[-1].source_ref
    assert told == [
        ("hello", "user", "Ana", None, "e-1", 0.2, None),
        ("hi", "assistant", "", 8, "s#8", 0.2, None),
        ("bye", "user", "", None, digest, 0.1, None),
    ]
    assert {(m.session, m.source, m.event_at) for m in store.list(kinds="episodic")} == {
        ("s", "working", moment)
    }
    assert (said(mine), said(mine, "other")) == ([], ["stays"])
    again = mine.flush("s")
    assert (again.version, again.ids) == (made.version, ())


def test_an_episode_has_the_name_that_the_write_path_gives_the_event(store, mine, clock):
    message = Message(content="I live in Lisbon. My mail is ana@example.com", at=clock.now)
    mine.append("s", message)
    mine.flush("s")
    scope = Scope(tenant="t", user="ana", session="s")
    store.ingest(Conversation(messages=(message,), scope=scope))
    episode = store.list(kinds="episodic")[0]
    facts = store.list(source="extracted")
    assert facts
    assert {fact.source_ref for fact in facts} == {episode.source_ref}


def test_what_hibernates_becomes_an_episode_in_its_place(store, mine):
    talk(mine, "s", "one", "two")
    mine.hibernate(timedelta(0))
    talk(mine, "s", "three")
    hibernating = {memory.id for memory in store.list(kinds="working")}
    made = mine.flush("s")
    assert (made.inserted, made.updated) == (1, 2)
    assert hibernating < set(made.ids)
    rows = store.list(kinds="episodic")
    assert [(m.content, m.revision, m.expires_at) for m in rows] == [
        ("one", 2, None),
        ("two", 2, None),
        ("three", 1, None),
    ]
    (_, change) = store.history(rows[0].id)
    assert (change.before.kind, change.after.kind) == ("working", "episodic")
    assert (said(mine), store.list(kinds="working")) == ([], [])
    check(store)


def test_what_matters_little_stays_and_ends_with_its_time(store, mine, clock):
    talk(mine, "s", "remember that I never eat meat", "I will", "ok", "great")
    assert mine.flush("s", 0.5).inserted == 2
    assert said(mine) == ["ok", "great"]
    mine.hibernate(timedelta(0))
    assert said(mine) == ["ok", "great"]
    assert mine.flush("s", 0.5).ids == ()
    clock.forward(hours=25)
    assert (said(mine), mine.flush("s").ids) == ([], ())
    assert [m.content for m in store.list()] == ["remember that I never eat meat", "I will"]


TALK = [
    ("hello", "Hi, welcome!"),  # nothing is said
    ("I live in Porto.", "Noted."),
    ("ok", "Your booking is 4711."),  # the answer says something
    ("thanks", "You're welcome. Shall I book the train?"),
    ("ok", "Great."),  # an answer to a question
    ("thank you so much", "You're welcome!"),  # nothing
    ("no", "ok"),  # takes something back
    ("ok \N{PENSIVE FACE}", "ok"),
    ("gracias", "ok"),  # in words that are not known
    ("ok?", "ok"),
    ("good night", ""),  # nothing
]


def test_small_talk_becomes_no_episode_and_all_that_says_anything_does(store, mine):
    for asked, answered in TALK:
        mine.append_message("s", "user", asked)
        if answered:
            mine.append_message("s", "assistant", answered)
    planned = mine.flush("s", dry_run=True)
    assert (planned.kept, planned.planned, store.count()) == (16, True, 0)
    made = mine.flush("s")
    assert (made.ids, made.left) == (planned.ids, {LeftOut.SMALL_TALK: 5})
    assert repr(made) == f"<Flushed version {store.version}: 16 kept, 5 small talk>"
    assert [m.content for m in store.list(kinds="episodic")] == [
        text for pair in TALK for text in pair if text and pair not in (TALK[0], TALK[5], TALK[-1])
    ]
    assert said(mine) == ["hello", "Hi, welcome!", *TALK[5], "good night"]
    assert mine.flush("s", 0).kept == 5
    assert (said(mine), mine.flush("s").left) == ([], {})


def test_an_answer_is_one_though_its_question_was_flushed_before(store, mine):
    """Guards what is agreed to: the question was no more among the messages that were looked at."""
    talk(mine, "s", "I want the red kettle.")
    mine.append_message("s", "assistant", "Shall I order it for 40 euros?")
    assert mine.flush("s").kept == 2
    talk(mine, "s", "ok")
    assert (mine.flush("s", dry_run=True).kept, mine.flush("s").kept) == (1, 1)
    talk(mine, "s", "ok")  # again, and nobody asks
    assert mine.flush("s").left == {LeftOut.SMALL_TALK: 1}


def test_an_assessor_of_ones_own_decides_alone(store, mine):
    talk(mine, "s", "ok", "ok")
    assert mine.flush("s", assessor=lambda _: 0.0).kept == 2


def test_a_flush_says_of_every_message_why_it_is_no_episode(store, clock):
    mine = WorkingMemory(store.scoped(user="u"), ttl=timedelta(minutes=10))
    talk(mine, "s", "I live in Porto.", "So you say.")
    clock.forward(minutes=6)
    talk(mine, "s", "The kettle is red.", "ok", "I never eat meat", "ok")
    clock.forward(minutes=6)
    made = mine.flush("s", 0.4)
    assert (made.kept, dict(made.left)) == (2, {LeftOut.UNIMPORTANT: 2, LeftOut.ENDED: 2})


def test_the_importance_is_that_of_the_exchange(store, mine):
    told = []

    def assess(messages):
        told.append([message.content for message in messages])
        return 0.5

    for role, content in [
        ("system", "be kind"),
        ("assistant", "welcome"),
        ("user", "a"),
        ("user", "b"),
        ("assistant", "c"),
        ("tool", "d"),
        ("user", "e"),
        ("assistant", "f"),
        ("user", "g"),
    ]:
        mine.append_message("s", role, content)
    mine.flush("s", assessor=assess)
    assert told == [["be kind", "welcome", "a", "b", "c", "d"], ["e", "f"], ["g"]]


def test_an_assessor_that_gives_no_share_is_told_so(mine):
    talk(mine, "s", "one")
    with pytest.raises(InvalidInputError, match="importance=7"):
        mine.flush("s", assessor=lambda _: 7)
    assert said(mine) == ["one"]


# -- several handles ----------------------------------------------------------------------


@pytest.fixture
def two(store, reopen):
    """Two stores on one directory, as two processes have them."""
    stores = store, reopen(Path(store.uri))
    return [WorkingMemory(one.scoped(tenant="t", user="ana")) for one in stores]


def test_what_one_process_does_is_seen_by_another_at_once(two, store):
    one, other = two

    def both():
        assert said(one) == said(other)
        return said(one)

    talk(one, "s", "one")
    assert both() == ["one"]
    talk(other, "s", "two")
    assert both() == ["one", "two"]
    one.hibernate(timedelta(0))
    assert both() == ["one", "two"]
    talk(one, "s", "three")
    assert both() == ["one", "two", "three"]
    store.retire(store.list(kinds="working")[0].id)
    assert both() == ["two", "three"]
    other.flush("s")
    assert both() == []
    talk(one, "s", "four")
    assert both() == ["four"]
    other.clear("s")
    assert both() == []
    talk(one, "s", "five")
    assert both() == ["five"]
    store.forget(tenant="t", user="ana")
    assert both() == []
    assert one.append_message("s", "user", "six") == 1
    assert both() == ["six"]


def test_threads_of_two_handles_that_append_lose_and_double_nothing(two):
    def append(n):
        return n, two[n % 2].append_message("s", "user", f"word {n}")

    with ThreadPoolExecutor(8) as pool:
        given = dict(pool.map(append, range(60)))
    assert sorted(given.values()) == list(range(1, 61))
    in_order = sorted(given, key=given.__getitem__)
    assert said(two[0]) == said(two[1]) == [f"word {n}" for n in in_order]


def test_two_that_hibernate_and_flush_at_once_double_nothing(two, store):
    for n in range(10):
        talk(two[0], f"s{n}", "one", "two")

    def settle(n):
        return two[n % 2].hibernate(timedelta(0)) if n < 4 else two[n % 2].flush(f"s{n}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(settle, range(10)))
    for n in range(10):
        two[0].flush(f"s{n}")
    assert sorted((m.session, m.content) for m in store.list()) == sorted(
        (f"s{n}", content) for n in range(10) for content in ("one", "two")
    )
    assert {m.kind for m in store.list()} == {"episodic"}


def test_reading_makes_no_version_and_asks_little_of_the_ledger(store, mine):
    talk(mine, "s", "one", "two")
    mine.recent("s")
    version, tier = store.version, HotTier.of(store)
    before = tier.figures
    for _ in range(5):
        mine.recent("s", 2)
    assert tier.figures.hits == before.hits + 5
    assert (store.version, tier.figures.misses) == (version, before.misses)


# -- forgetting, branches, durability -----------------------------------------------------


def test_forgetting_a_person_leaves_no_byte_of_their_sessions(store, mine):
    bob = WorkingMemory(store.scoped(tenant="t", user="bob"))
    for layer in (mine, bob):
        talk(layer, "Zanzibar", "off to Zanzibar")
        layer.set_context("Zanzibar", {"to": "Zanzibar"})
    assert store.forget(tenant="t", user="ana", dry_run=True).beside == {
        "messages": 1,
        "sessions": 1,
    }
    store.forget(tenant="t", user="ana")
    assert (said(mine, "Zanzibar"), mine.context("Zanzibar")) == ([], {})
    assert said(bob, "Zanzibar") == ["off to Zanzibar"]
    assert b'"ana"' not in ledger_bytes(store)
    store.forget(tenant="t", user="bob", session="Zanzibar")
    assert b"Zanzibar" not in ledger_bytes(store)
    with pytest.raises(NotFoundError):
        store.forget(tenant="t", user="bob")


def test_forgetting_a_session_takes_its_rows_and_its_messages(store, mine):
    talk(mine, "Zanzibar", "off to Zanzibar", "have fun")
    mine.hibernate(timedelta(0))
    talk(mine, "Zanzibar", "back from Zanzibar")
    talk(mine, "Oslo", "off to Oslo")
    store.forget(session="Zanzibar")
    assert (said(mine, "Zanzibar"), said(mine, "Oslo")) == ([], ["off to Oslo"])
    assert store.count(states="any") == 0
    assert b"Zanzibar" not in ledger_bytes(store)


def test_forgetting_a_memory_takes_what_its_person_said_of_it(store, mine):
    bob = WorkingMemory(store.scoped(tenant="t", user="bob"))
    fact = store.add("The code of the safe is Zanzibar", tenant="t", user="ana").id
    for layer in (mine, bob):
        talk(layer, "s", "The code of the safe is Zanzibar, note it", "noted")
        layer.set_context("s", {"fact": "The code of the safe is Zanzibar"})
    plan = store.forget(fact, dry_run=True)
    assert plan.beside == {"messages": 1, "sessions": 1}
    store.forget(fact)
    assert (said(mine), mine.context("s")) == (["noted"], {})
    assert len(said(bob)) == 2
    assert bob.context("s") == {"fact": "The code of the safe is Zanzibar"}


def test_a_branch_has_sessions_of_its_own_and_takes_them_with_it(store, mine):
    talk(mine, "s", "one")
    mine.hibernate(timedelta(0))
    side = WorkingMemory(store.branch("side").scoped(tenant="t", user="ana"))
    assert said(side) == ["one"]  # it begins with the rows
    talk(side, "s", "of Zanzibar")
    talk(mine, "s", "two")
    assert (said(side), said(mine)) == (["one", "of Zanzibar"], ["one", "two"])
    store.delete_branch("side")
    assert b"Zanzibar" not in ledger_bytes(store)
    assert said(mine) == ["one", "two"]


def test_messages_outlive_the_handle(store, reopen, mine):
    talk(mine, "s", "one")
    store.close()
    again = WorkingMemory(reopen(Path(store.uri)).scoped(tenant="t", user="ana"))
    assert said(again) == ["one"]


def test_a_lost_ledger_costs_what_was_in_it_and_no_more(store, mine):
    talk(mine, "s", "one", "two")
    mine.hibernate(timedelta(0))
    talk(mine, "s", "lost")
    for path in (Path(store.uri) / "ingest").glob("ledger*"):
        path.unlink()
    assert said(mine) == ["one", "two"]
    talk(mine, "s", "three", "four")
    assert said(mine) == ["one", "two", "three", "four"]
    assert mine.flush("s").inserted == 2
    assert [m.content for m in store.list()] == ["one", "two", "three", "four"]


def test_a_redis_server_keeps_sessions_as_a_file_does(reopen, tmp_path, redis_url):
    stores = [reopen(tmp_path / "shared", ledger=f"{redis_url}?prefix=working") for _ in range(2)]
    one, other = (WorkingMemory(store.scoped(tenant="t", user="ana")) for store in stores)
    bob = WorkingMemory(stores[0].scoped(tenant="t", user="bob"))
    talk(bob, "s", "of bob")
    talk(one, "s", "one", "two")
    assert said(other) == ["one", "two"]
    assert one.set_context("s", {"x": 1}) == other.context("s")
    one.hibernate(timedelta(0))
    talk(other, "s", "three")
    assert said(one) == said(other) == ["one", "two", "three"]
    assert other.flush("s").inserted == 1
    assert said(one) == []
    talk(one, "s", "four")
    assert [state.messages for state in one.sessions()] == [1]
    stores[1].forget(tenant="t", user="ana")
    assert (said(one), one.sessions(), said(bob)) == ([], [], ["of bob"])
    assert [*stores[0].ledger.spaces(prefix='working:["t","ana"')] == []


def test_consolidation_leaves_what_hibernates_alone(store, mine):
    for session in "ab":
        talk(mine, session, "the train to Lisbon leaves at nine")
    mine.hibernate(timedelta(0))
    options = ConsolidateOptions(across=("session",))
    assert store.consolidate(options, guard=None, kinds="working").plan.clusters == ()
    assert said(mine, "a") == said(mine, "b") == ["the train to Lisbon leaves at nine"]
    for session in "ab":
        mine.flush(session)
    assert len(store.consolidate(options, guard=None).plan.accepted) == 1


@pytest.mark.parametrize("becomes", ["nothing", "hibernating", "an episode"])
def test_what_was_said_word_for_word_is_in_no_facts_way(store, mine, clock, becomes):
    """A message that became a row was taken for the fact itself, which then ended with it."""
    for content in ("I live in Lisbon.", "I moved to Porto."):
        message = Message(content=content, at=clock.forward(hours=1))
        mine.append("s", message)
        if becomes == "hibernating":
            mine.hibernate(timedelta(0))
        elif becomes == "an episode":
            mine.flush("s")
        scope = Scope(tenant="t", user="ana", session="s")
        store.ingest(Conversation(messages=(message,), scope=scope))
    facts = {m.content: m.state.value for m in store.list(kinds="semantic", states="any")}
    assert facts == {"I live in Lisbon.": "superseded", "I moved to Porto.": "active"}


def test_workers_let_idle_sessions_hibernate(store, mine, clock):
    talk(mine, "s", "one", "two")
    worker = store.worker()
    worker.drain()
    assert store.count() == 0
    clock.forward(minutes=6)
    worker.drain()
    assert store.count(kinds="working") == 2
    assert said(mine) == ["one", "two"]


def test_to_ask_for_idle_sessions_makes_no_ledger(store):
    assert store.hibernate().version == store.version
    assert not (Path(store.uri) / "ingest").exists()


def test_a_tenant_without_room_is_in_nobodys_way(reopen, tmp_path):
    quotas = Quotas(tenants={"full": Quota(rows=Limit(hard=1))})
    store = reopen(tmp_path / "x", quotas=quotas)
    full, free = (WorkingMemory(store.scoped(tenant=name)) for name in ("full", "free"))
    for layer in (full, free):
        talk(layer, "s", "one", "two")
    assert store.hibernate(timedelta(0)).inserted == 2
    assert [memory.tenant for memory in store.list(kinds="working")] == ["free", "free"]
    assert said(full) == said(free) == ["one", "two"]
    with pytest.raises(QuotaExceededError, match="2 more"):
        full.flush("s")
    assert said(full) == ["one", "two"]
