"""Searches are recorded beside the store: off their path, redacted, and never at their cost."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import lancedb
import pytest
from forked import Forked

from lance_memory import (
    InvalidInputError,
    QueryRecording,
    RecordedQuery,
    Redacted,
    Scope,
    StandardRedactor,
    StorageError,
)
from lance_memory.storage import Table
from lance_memory.usage import QueryLog, RecordingStatus

CHILD = str(Path(__file__).with_name("recording_child.py"))
TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA2bC4"


def files_with(path, text):
    return [f for f in path.rglob("*") if f.is_file() and text.encode() in f.read_bytes()]


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


class By:
    """A redactor that is a function of the text."""

    def __init__(self, function):
        self._function = function

    def redact(self, text):
        return Redacted(text=self._function(text))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def recorded(path, reopen):
    """A store that records; what is said to it is kept as it is."""

    def open_store(**options):
        recording = QueryRecording(**{"redact": None, "seconds": 600.0, **options})
        return reopen(path, record_queries=recording)

    return open_store


@pytest.fixture
def store(recorded):
    store = recorded()
    store.add_many(
        [
            {"id": "pear", "content": "bob likes pears", "user": "bob"},
            {"id": "kettle", "content": "the kettle is red", "user": "ann"},
        ]
    )
    return store


def asked(store, **where):
    return [query.query for query in store.queries(**where)]


def test_a_recorded_query_says_what_was_asked_and_what_answered(store, clock):
    found = store.search("kettle", mode="text", k=3, user="ann")
    (query,) = store.queries()
    assert query == RecordedQuery(
        id=query.id,
        at=clock.now,
        query="kettle",
        mode="text",
        scope=Scope(user="ann"),
        branch="main",
        version=store.version,
        k=3,
        offset=0,
        memory_ids=("kettle",),
        scores=(pytest.approx(found[0].score),),
    )


def test_what_is_found_is_the_same_with_and_without_recording(store, reopen, path):
    plain = reopen(path)
    asked = ["kettle", "who likes pears", "nothing of it"]
    version = store.version
    for mode in ("hybrid", "vector", "text"):
        assert store.search_many(asked, mode=mode) == plain.search_many(asked, mode=mode)
    assert len(store.queries()) == 9
    assert (store.version, len(store.log(upkeep=True))) == (version, version)


def test_nothing_is_recorded_unless_asked_for(path, reopen):
    store = reopen(path)
    store.add("kettle")
    store.search("kettle")
    assert (store.queries(), store.query_log.status) == ([], None)
    store.query_log.flush()
    store.query_log.close()
    assert sorted(p.name for p in path.iterdir()) == ["memories.lance"]


def test_of_many_questions_each_is_recorded(store):
    store.search_many(["kettle", "pears"], mode="text")
    assert asked(store) == ["pears", "kettle"]


def test_a_vector_alone_has_no_text(store, embedder):
    store.search(vector=embedder.embed(["kettle"])[0], k=1)
    (query,) = store.queries()
    assert (query.query, query.mode, len(query.memory_ids)) == ("", "vector", 1)


def test_a_page_of_no_hits_asks_nothing(store):
    store.search("kettle", k=0)
    assert store.queries() == []


def test_only_the_live_store_records(store):
    store.at(store.version).search("kettle")
    store.at(store.version).scoped(user="ann").search("kettle")
    assert store.queries() == []


def test_a_scoped_handle_records_and_sees_its_scope(store):
    store.search("pears")
    store.scoped(user="ann").search("kettle")
    store.scoped(user="ann").search("kettle", session="s1")
    store.scoped(user="bob").search("pears and plums")
    ann = store.scoped(user="ann")
    assert [(q.query, q.scope) for q in ann.queries()] == [
        ("kettle", Scope(user="ann", session="s1")),
        ("kettle", Scope(user="ann")),
    ]
    assert len(store.queries()) == 4
    assert asked(store, user="bob") == ["pears and plums"]


def test_a_handle_gives_out_no_way_to_the_queries_of_other_scopes(store):
    """It flushes and ends the recording of all, and tells how many there were."""
    store.scoped(user="ann").search("kettle", mode="text")
    log = store.scoped(user="bob").query_log
    assert {name for name in dir(log) if not name.startswith("_")} == {"close", "flush", "status"}
    assert log.status == RecordingStatus(pending=1)
    log.flush()
    assert log.status == store.query_log.status == RecordingStatus(written=1)
    log.close()
    store.search("pears", mode="text")
    assert asked(store) == ["kettle"]


def test_a_branch_records_under_its_name(store):
    store.branch("side").search("kettle")
    assert [query.branch for query in store.queries()] == ["side"]


def test_a_checkout_does_not_record_into_its_origin(store, tmp_path):
    copy = store.checkout(store.version, tmp_path / "copy")
    copy.search("kettle")
    assert (store.queries(), copy.queries(), copy.query_log.status) == ([], [], None)


def test_lists_are_newest_first_by_time_and_limited(store, clock):
    store.search("one", mode="text")
    middle = clock.forward(hours=1)
    store.search("two", mode="text")
    store.search("three", mode="text")
    assert asked(store) == ["three", "two", "one"]
    assert asked(store, limit=1) == ["three"]
    assert asked(store, until=middle) == ["one"]
    assert asked(store, since=middle, limit=5) == ["three", "two"]
    assert asked(store, memory="kettle") == []
    assert asked(store.at(middle)) == ["one"]
    assert asked(store.at(middle), until=clock.now) == ["one"]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"limit": -1}, "cannot be negative"),
        ({"users": "ann"}, "no filter users of queries"),
        ({"user": ""}, "user is an empty name"),
        ({"memory": 7}, "it takes a text"),
        ({"since": "yesterday"}, "it takes an aware datetime"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(store, where, message):
    with pytest.raises(InvalidInputError, match=message):
        store.queries(**where)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_rows": 0}, "max_rows=0"),
        ({"batch": 1.5}, "batch=1.5"),
        ({"batch": True}, "batch=True"),
        ({"seconds": 0}, "seconds=0"),
        ({"seconds": float("nan")}, "seconds=nan"),
        ({"redact": "yes"}, "redact='yes'; it takes a Redactor"),
        ({"redact": str}, "None: nothing is removed"),
        ({"redact": lambda text: text}, "it takes a Redactor"),
        ({"redact": StandardRedactor}, "such as StandardRedactor\\(\\)"),
    ],
)
def test_a_recording_that_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(InvalidInputError, match=message):
        QueryRecording(**wrong)


def test_the_argument_of_open_is_checked(path, reopen):
    with pytest.raises(InvalidInputError, match="True, False or a QueryRecording"):
        reopen(path, record_queries="yes")


# -- when it is written


def test_a_full_batch_is_written_without_being_told(path, recorded):
    store = recorded(batch=3)
    for n in range(3):
        store.search(f"question {n}", mode="text")
    until(lambda: store.query_log.status.written == 3)
    assert store.query_log.status == RecordingStatus(pending=0, written=3)
    assert (path / "queries.lance").is_dir()


def test_a_lone_query_is_written_after_a_while(recorded):
    store = recorded(seconds=0.05)
    store.search("alone", mode="text")
    assert store.query_log.status.written == 0
    until(lambda: store.query_log.status.written == 1)
    store.search("alone again", mode="text")
    until(lambda: store.query_log.status.written == 2)


def test_a_search_does_not_wait_until_it_is_recorded(recorded):
    """Here the writer hangs in the redactor: searches go on, and what waits is bounded."""
    allowed = threading.Event()

    def slow(text):
        assert allowed.wait(30)
        return text

    store = recorded(batch=2, redact=By(slow))
    try:
        for n in range(40):
            store.search(f"question {n}", mode="text")
        status = store.query_log.status
        assert (status.written, status.pending <= 32, status.lost >= 4) == (0, True, True)
        assert status.warning == "1 query came faster than it could be written"
    finally:
        allowed.set()
    found = asked(store)
    assert found[0] == "question 39"
    assert len(found) + store.query_log.status.lost == 40


def test_a_recorder_that_ends_in_its_own_writer_does_not_hang(recorded):
    """As when garbage is collected there; here the redactor stands in for the collector."""
    store = recorded(batch=1, redact=By(lambda text: store.query_log.close() or text))
    store.search("once", mode="text")
    until(lambda: store.query_log.status.written == 1)
    assert asked(store) == ["once"]


def test_a_closed_log_is_written_and_records_no_more(recorded):
    store = recorded()
    store.search("before", mode="text")
    store.query_log.close()
    store.search("after", mode="text")
    assert asked(store) == ["before"]


def test_what_waits_is_written_when_the_handle_goes(path, recorded, reopen):
    store = recorded()
    store.search("the last word", mode="text")
    del store
    assert asked(reopen(path)) == ["the last word"]


def test_what_waits_is_written_when_the_program_ends(path, store):
    command = [sys.executable, CHILD, "leave", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert asked(store) == ["asked before the end"]


def test_a_killed_process_loses_its_buffer_and_nothing_else(path, store):
    store.search("of another", mode="text")
    store.query_log.flush()
    with Forked(CHILD, "die", path) as process:
        assert process.wait(60) == -9
    assert sorted(asked(store)) == ["in time 0", "in time 1", "in time 2", "of another"]
    store.search("and on", mode="text")
    assert len(store.queries()) == 5


def test_processes_record_at_once(path, store):
    names, count = ("ann", "bob"), 20
    processes = [Forked(CHILD, "ask", path, name, count) for name in names]
    until(lambda: all((path / f"ready-{name}").exists() for name in names), seconds=60)
    (path / "go").touch()
    assert [(p.communicate(timeout=60), p.returncode) for p in processes] == [(("", ""), 0)] * 2
    for name in names:
        wanted = {f"{name} asks {n}" for n in range(count)}
        assert set(asked(store, user=name)) == wanted
    assert len(store.queries()) == 2 * count


# -- what is kept


def test_secrets_and_addresses_are_in_no_file(path, reopen):
    store = reopen(path, record_queries=True)
    store.search(f"why does {TOKEN} not work for joe.bloggs@example.com", mode="text")
    assert asked(store) == ["why does [secret] not work for [email]"]
    assert files_with(path, TOKEN) == []
    assert files_with(path, "joe.bloggs") == []


def test_a_redactor_of_some_kinds_leaves_the_others(recorded):
    store = recorded(redact=StandardRedactor(kinds=["email"]))
    store.search("joe.bloggs@example.com, password: hunter2", mode="text")
    assert asked(store) == ["[email], password: hunter2"]


def test_without_a_redactor_all_is_kept(recorded):
    store = recorded(redact=None)
    store.search("joe.bloggs@example.com, password: hunter2", mode="text")
    assert asked(store) == ["joe.bloggs@example.com, password: hunter2"]


def test_recordings_are_equal_by_their_options():
    assert QueryRecording() == QueryRecording(redact=QueryRecording().redact)
    assert QueryRecording() != QueryRecording(redact=None)


def test_the_caller_may_say_what_is_kept(recorded):
    store = recorded(redact=By(lambda text: text.upper()))
    store.search("kettle", mode="text")
    assert asked(store) == ["KETTLE"]


@pytest.mark.parametrize("answer", [None, 7, ValueError("no idea")])
def test_what_cannot_be_redacted_is_not_written(path, recorded, answer):
    def fussy(text):
        if "secret" in text:
            if isinstance(answer, Exception):
                raise answer
            return answer
        return text

    store = recorded(redact=By(fussy))
    store.search("a secret thing", mode="text")
    store.search("a plain thing", mode="text")
    assert asked(store) == ["a plain thing"]
    status = store.query_log.status
    assert (status.written, status.lost) == (1, 1)
    assert "the redactor raised" in status.warning
    assert "no idea" not in status.warning
    assert files_with(path, "a secret thing") == []


def test_a_log_that_cannot_be_written_fails_no_search(path, store):
    lancedb.connect(path).create_table("queries", [{"other": 1}])
    found = store.search("kettle", mode="text")
    store.query_log.flush()
    assert len(found) == 1
    status = store.query_log.status
    assert (status.pending, status.written, status.lost) == (0, 0, 1)
    assert status.warning.startswith("queries were not recorded: could not append to the journal")
    shutil.rmtree(path / "queries.lance")
    store.search("kettle", mode="text")
    assert asked(store) == ["kettle"]


def test_the_oldest_queries_go(recorded, path):
    store = recorded(max_rows=5, batch=2)
    for n in range(12):
        store.search(f"question number {n:02}.", mode="text")
        store.query_log.flush()
    assert asked(store) == [f"question number {n:02}." for n in range(11, 6, -1)]


def test_a_log_that_cannot_be_read_is_an_error(path, store):
    (path / "queries.lance").mkdir()
    (path / "queries.lance" / "_versions").mkdir()
    manifest = path / "queries.lance" / "_versions" / f"{2**64 - 2}.manifest"
    manifest.mkdir()
    with pytest.raises(StorageError):
        store.queries()


def test_a_log_that_a_power_cut_has_torn_begins_anew_and_is_kept_aside(path, store):
    versions = path / "queries.lance" / "_versions"
    versions.mkdir(parents=True)
    (versions / f"{2**64 - 2}.manifest").write_text("no manifest")
    assert store.queries() == []
    aside = path / "torn" / "queries.lance" / "_versions" / f"{2**64 - 2}.manifest"
    assert aside.read_text() == "no manifest"


# -- forgetting


@pytest.fixture
def talked(store, clock):
    """Five queries: of nobody, two of ann's, two of bob's; an hour lies before the last."""
    store.search("kettle of nobody", mode="text")
    store.scoped(user="ann").search("kettle of ann", mode="text")
    store.search("pears of ann", mode="text", user="ann")
    store.search("pears of bob", mode="text", user="bob")
    clock.forward(hours=1)
    store.search("late words of bob", mode="text", user="bob")
    store.query_log.flush()
    return store


def test_queries_are_forgotten_by_scope(talked, path):
    assert talked.forget_queries(user="ann") == 2
    assert asked(talked) == ["late words of bob", "pears of bob", "kettle of nobody"]
    assert files_with(path, "of ann") == []
    assert talked.count(states="any") == 2


def test_queries_are_forgotten_by_time(talked, path, clock):
    assert talked.forget_queries(until=clock.now - timedelta(minutes=30)) == 4
    assert asked(talked) == ["late words of bob"]
    assert files_with(path, "pears of") == []


def test_queries_are_forgotten_by_what_answered(talked, path):
    assert talked.forget_queries(memory="kettle") == 2
    assert asked(talked) == ["late words of bob", "pears of bob", "pears of ann"]
    assert files_with(path / "queries.lance", "kettle") == []


def test_all_queries_are_forgotten(talked, path):
    assert talked.forget_queries() == 5
    assert (talked.queries(), talked.forget_queries()) == ([], 0)
    assert files_with(path / "queries.lance", " of ") == []


def test_a_scoped_handle_forgets_its_own_only(talked):
    assert talked.scoped(user="ann").forget_queries() == 2
    assert len(talked.queries()) == 3


def test_what_is_not_written_yet_is_forgotten_too(store, path):
    store.search("just now", mode="text")
    assert store.forget_queries() == 1
    assert store.queries() == []
    assert files_with(path, "just now") == []


def test_what_answered_memories_is_told_for_probes(talked, path):
    log = QueryLog.of(Table.open(str(path)))
    assert list(log.answered(["kettle"], within=Scope())) == [
        ("kettle of ann", ("kettle",)),
        ("kettle of nobody", ("kettle",)),
    ]
    assert list(log.answered(["kettle", "pear"], within=Scope(user="bob"))) == [
        ("late words of bob", ("pear",)),
        ("pears of bob", ("pear",)),
    ]
    assert list(log.answered(["none"], within=Scope())) == []
