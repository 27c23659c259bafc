"""lmem observe, recent, flush: a turn goes in, is seen, and becomes an episode."""

from __future__ import annotations

import json

import pytest

from lance_memory import Agent, MemoryStore

ANN = ("--tenant", "t", "--user", "ann")
LIVES = "I was born in Porto, and I work as a nurse."


def test_a_turn_is_kept_with_its_facts_and_becomes_episodes(lmem, fresh):
    at = (*ANN, "--store", fresh)
    done = lmem("observe", LIVES, "--answer", "Noted.", "--session", "s", "--ref", "t1", *at)
    assert done.code == 0
    assert "2 messages kept in s" in done.out
    store = MemoryStore.open(fresh, create=False)
    facts = store.list(source="extracted")
    assert {(m.user, m.session, m.source_ref) for m in facts} == {("ann", "s", "t1")}
    again = lmem("observe", LIVES, "--answer", "Noted.", "--session", "s", "--ref", "t1", *at)
    assert (again.code, store.count()) == (0, len(facts))
    shown = lmem("recent", "--session", "s", *at, "--format", "json").json
    assert [(m["role"], m["content"], m.get("ref")) for m in shown] == [
        ("user", LIVES, "t1"),
        ("assistant", "Noted.", "t1#answer"),
    ]
    assert lmem("recent", "1", "--session", "s", *at, "--format", "quiet").out == "t1#answer\n"
    flushed = lmem("flush", "s", *at, "--format", "json").json
    assert (flushed["kept"], flushed["left"]) == (2, {})
    assert [m.content for m in store.list(kinds="episodic")] == [LIVES, "Noted."]
    assert "nothing is to be seen" in lmem("recent", "--session", "s", *at).err


def test_what_is_not_kept_is_told_with_the_reason(lmem, store):
    told = lmem("observe", "ok", "--session", "s", *ANN, "--format", "json").json
    assert told["observed"][0]["messages"] == [1]
    assert (told["facts"]["status"], told["facts"]["kept"]) == ("L2", 0)
    done = lmem("observe", "ok", "--session", "s", *ANN)
    assert "L2 low_quality" in done.out


def test_small_talk_stays_and_the_flush_says_so(lmem, store, version):
    for said in ("thanks", LIVES):
        lmem("observe", said, "--answer", "ok", "--session", "s", *ANN)
    before = version()
    plan = lmem("flush", "s", *ANN, "--dry-run")
    assert (version(), "dry run: nothing was written" in plan.err) == (before, True)
    done = lmem("flush", "s", *ANN)
    assert done.out.splitlines() == [f"version {before + 1}: 2 kept, 2 small talk"]
    assert done.err.startswith("2 messages left: nothing is said in their exchanges; ")
    assert len(lmem("recent", "--session", "s", *ANN, "--format", "json").json) == 2
    assert lmem("flush", "s", *ANN, "--min-importance", "0", "--format", "json").json["kept"] == 2
    assert "the session has nothing to keep" in lmem("flush", "s", *ANN).err


def test_many_turns_come_from_stdin_as_one_version_and_one_job(lmem, store, version):
    lines = [
        {"user": LIVES, "agent": "Noted.", "session": "a", "at": "2025-01-31T12:00:00+01:00"},
        {"user": "My sister Ana likes hiking.", "ref": "t2", "actor": "Ann"},
        {"agent": "Good morning."},
    ]
    text = "\n\n".join(map(json.dumps, lines))
    before = version()
    done = lmem("observe", "-", "--session", "b", *ANN, "--format", "jsonl", stdin=text)
    assert (done.code, version()) == (0, before + 1)
    assert [(one["session"], one["messages"]) for one in done.lines] == [
        ("a", [1, 2]),
        ("b", [1]),
        ("b", [2]),
    ]
    agent = Agent(MemoryStore.open(store).scoped(tenant="t", user="ann"))
    (asked, _) = agent.working.recent("a")
    assert asked.at.isoformat() == "2025-01-31T11:00:00+00:00"
    assert {m.session for m in agent.store.list(source="extracted")} == {"a", "b"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is no turn"),
        ('["user"]', "it takes an object of user, agent, session, at, ref, actor"),
        ('{"content": "x"}', "it takes an object of user"),
        ('{"user": 5}', "user_input is 5"),
        ('{"user": " "}', "blank"),
        ('{"user": "x", "at": "yesterday"}', "is no time"),
        ('{"user": "x", "session": ""}', "session"),
        ("[" * 100_000, "line 2 is no turn"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_kept(lmem, store, line, message):
    text = f'{{"user": "{LIVES}"}}\n{line}\n'
    done = lmem("observe", "-", "--session", "s", *ANN, stdin=text)
    assert (done.code, message in done.err) == (5, True), done.err
    assert lmem("recent", "--session", "s", *ANN, "--format", "quiet").out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["observe", "x", "--session", "s"], "whose agent is it?"),
        (["observe", "x", "--user", "ann"], "names no session; give --session"),
        (["observe", " ", "--session", "s", "--user", "ann"], "blank"),
        (["observe", "-", "--answer", "y", "--user", "ann"], "the lines say all"),
        (["observe", "x", "--session", "s", "--user", "ann", "--at", "noon"], "--at 'noon'"),
        (["flush", "s", "--user", "ann", "--min-importance", "2"], "min-importance"),
        (["recent", "--user", "ann"], "--session"),
        (["flush", "s"], "whose agent is it?"),
    ],
)
def test_what_makes_no_sense_is_said(lmem, store, version, words, message):
    before = version()
    done = lmem(*words)
    assert (done.code, message in done.err, version()) == (2, True, before), done.err


def test_a_turn_may_leave_its_facts_to_a_worker(lmem, store):
    done = lmem("observe", LIVES, "--session", "s", *ANN, "--no-wait", "--format", "quiet")
    opened = MemoryStore.open(store)
    (job,) = done.out.split()
    assert opened.jobs.get(job).state == "queued"
    assert lmem("worker", "--once").code == 0
    assert opened.count(source="extracted") > 0


def test_a_session_that_is_no_text_keeps_none_of_the_turns(lmem, store):
    """The turns before it were kept once, and were there twice when the input was given again."""
    turns = [{"user": LIVES, "session": "good"}, {"user": LIVES, "session": "half \ud800"}]
    done = lmem("observe", "-", *ANN, stdin="\n".join(map(json.dumps, turns)))
    assert done.code == 5
    assert "line 2 is no turn: session holds a lone surrogate" in done.err
    assert lmem("recent", "--session", "good", *ANN, "--format", "json").json == []


def test_a_time_that_is_none_names_the_line_and_its_field(lmem, store):
    turn = json.dumps({"user": LIVES, "session": "s", "at": "yesterday"})
    done = lmem("observe", "-", *ANN, stdin=turn)
    assert done.err.startswith("error: line 1 is no turn: at 'yesterday' is no time")


def test_where_nothing_was_kept_it_does_not_say_that_it_was(lmem, store):
    late = ("--at", "9999-12-31T23:59:59Z")
    done = lmem("observe", LIVES, "--session", "s", *late, *ANN)
    assert done.code == 5
    assert "not kept: " in done.err
    assert "the messages are kept" not in done.err
    assert "no facts were found: refused" in done.err
