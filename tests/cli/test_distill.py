"""`lmem distill`: of what it makes snapshots, and what it says of those that it does not make."""

from __future__ import annotations

import pytest

from lance_memory import MemoryStore


@pytest.fixture
def talk(lmem, store):
    """A session of ann's on a day long over."""
    rows = "".join(
        f'{{"content": "I paid 4{n} euros for kettle {n} in Porto.", "user": "ann", '
        f'"session": "s1", "event_at": "2025-02-01T10:0{n}:00Z"}}\n'
        for n in range(3)
    )
    assert lmem("import", "-", stdin=rows).code == 0
    return MemoryStore.open(store)


def lines(done):
    return [" ".join(line.split()) for line in done.out.splitlines()]


def test_sessions_and_days_are_shown_first_and_then_made(lmem, talk):
    before = talk.version
    shown = lmem("distill", "--user", "ann", "--dry-run")
    assert ("nothing was written" in shown.err, talk.version) == (True, before)
    assert lines(shown)[:2] == [
        f"version {before}: 2 snapshots to make, 0 unchanged, 4 too small",
        "session s1 (user=ann/session=s1): quality 1.00, from 3",
    ]
    done = lmem("distill", "--user", "ann", "--format", "json")
    assert [one["name"] for one in done.json["snapshots"]] == ["s1", "2025-02-01"]
    assert talk.count(source="distilled") == 2
    again = lmem("distill", "--user", "ann")
    version = before + 1
    assert lines(again) == [f"version {version}: 0 snapshots made, 2 unchanged, 4 too small"]


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["--session", "s1"], "snapshot:session/s1"),
        (["--day", "2025-02-01"], "snapshot:day/2025-02-01"),
        (["--topic", "red kettle", "--user", "ann"], "snapshot:topic/red kettle"),
        (["--tag", "odd", "--user", "ann"], "snapshot:tag/odd"),
        (["--of", "session", "--since", "2025-01-01"], "snapshot:session/s1"),
    ],
)
def test_one_thing_may_be_asked_for(lmem, talk, words, key):
    (id,) = lmem("distill", *words, "--format", "quiet").out.split()
    assert talk.get(id).key == key


def test_a_text_that_loses_most_of_the_facts_is_refused_with_exit_code_1(lmem, talk):
    done = lmem("distill", "--session", "s1", "--transform", "latest")
    assert (done.code, "refused: session s1: it would drop" in done.err) == (1, True)
    assert talk.count(source="distilled") == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--day", "yesterday"], "--day 'yesterday' is no day"),
        (["--day", "2025-02-01", "--topic", "kettle"], "2 of session, day, topic and tag"),
        (["--topic", "kettle", "--since", "2025-01-01"], "--since and --of are for all"),
        (["--max-words", "3"], "--max-words"),
        (["--of", "week"], "--of"),
    ],
)
def test_what_makes_no_sense_is_said(lmem, talk, words, message):
    done = lmem("distill", *words)
    assert (done.code, message in done.err) == (2, True), done.err


def test_a_dream_distills_when_it_is_asked_to(lmem, talk):
    done = lmem("dream", "--once", "--distill", "--user", "ann", "--min-similarity", "0.99")
    assert "distilled: version" in " ".join(done.out.split())
    assert talk.count(source="distilled") == 2
    status = lmem("dream", "--status", "--user", "ann", "--format", "json").json
    assert "2 snapshots made" in status["last"]["also"]
