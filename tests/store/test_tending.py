"""Upkeep as part of writing: nobody calls it, no answer changes, what fails is told."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import tending_child
from forked import Forked
from tending_child import EAGER

import lance_memory
from lance_memory import (
    ConsolidateOptions,
    InvalidInputError,
    NotFoundError,
    Retain,
    ScopeError,
    Upkeep,
    UpkeepFailure,
    UpkeepPlan,
    UpkeepStatus,
)
from lance_memory.storage import history, naming
from lance_memory.storage.upkeep import steps as upkeep
from lance_memory.storage.upkeep.state import State

CHILD = Path(tending_child.__file__)


def child(*words):
    """A process that runs `tending_child.py`."""
    return Forked(CHILD, *words)


def worked_on(store):
    """Many writes of every kind, the same ones whenever it is called."""
    for i in range(24):
        store.add(f"apple {i}", id=f"{i:08d}-0000-7000-8000-000000000000", key=f"k{i}", user="ann")
        if i % 5 == 0:
            store.retire(f"k{i}", reason="every fifth")
        if i % 7 == 4:
            store.update(f"k{i}", content=f"pear {i}")
        if i == 4:
            store.tag("early")
        if i == 9:
            store.branch("side").add("a cherry beside", id="side-1", user="ann")
    store.delete("k2")
    store.upsert("apple 11 once more", id="again-11", key="k11", user="ann")
    return store


def answers(store):
    searched = [
        [h.memory.id for h in store.search("apple 7 pear 10", mode=mode, k=9)]
        for mode in ("text", "vector", "hybrid")
    ]
    return store.to_arrow().sort_by("id").to_pylist(), searched, store.count(user="ann")


def told(store):
    """The log without what differs by tending."""
    return [(e.operation, e.reason, e.inserted, e.updated, e.deleted) for e in store.log()]


def test_a_pass_is_reverted_long_after_other_versions_were_removed(tmp_path, reopen):
    store = reopen(tmp_path / "eager", upkeep=EAGER)
    for kettle in ("the blue kettle leaks", "The blue kettle leaks!", "the blue kettle leaks ..."):
        store.add(kettle, user="ann")
    options = ConsolidateOptions(min_similarity=-1.0)
    made = store.consolidate(options, guard=None, user="ann")
    assert made.write.updated == 3
    for i in range(60):
        store.add(f"pear {i}", user="ann")
    store.optimize()
    assert any(not entry.readable for entry in store.log())
    store.revert(made.write.version)
    assert store.count(user="ann") == 63


@pytest.fixture
def eager(tmp_path, reopen):
    return reopen(tmp_path / "eager", upkeep=EAGER)


def test_tending_changes_no_answer_and_loses_no_entry_of_the_log(tmp_path, eager, reopen, ticking):
    plain = worked_on(reopen(tmp_path / "plain", upkeep=None, clock=ticking()))
    tended = worked_on(reopen(tmp_path / "eager", upkeep=EAGER, clock=ticking()))
    rows, (_, by_vector, _), count = answers(tended)
    assert (rows, by_vector, count) == (answers(plain)[0], answers(plain)[1][1], answers(plain)[2])
    assert told(tended) == told(plain)
    assert answers(tended.at("early"))[0] == answers(plain.at("early"))[0]
    assert tended.at("early").count() == 4
    side = reopen(tmp_path / "eager", branch="side", upkeep=EAGER)
    assert (side.count(), side.get("side-1").content) == (9, "a cherry beside")
    assert (len(plain.log(upkeep=True)), plain.stats().fragments) > (30, 20)
    assert tended.stats().versions <= 6 + 4 + 2 + 8
    assert tended.stats().fragments <= 8
    assert tended.upkeep_status().failures == ()
    for store in (plain, tended):  # BM25 weighs words by the rows that are folded
        store.optimize()
    assert answers(tended) == answers(plain)


def test_every_version_that_ever_was_stands_in_the_log_once(eager):
    worked_on(eager)
    entries = eager.log(upkeep=True)
    assert [e.version for e in entries] == list(range(eager.version, 0, -1))
    readable = {e.version for e in entries if e.readable}
    assert readable == set(history.versions(eager._table))
    assert len(readable) < eager.version / 2


def test_without_upkeep_nothing_is_tended(tmp_path, reopen):
    store = reopen(tmp_path / "plain", upkeep=None)
    for i in range(6):
        store.add(f"m {i}")
    assert (store.stats().fragments, len(history.versions(store._table))) == (6, store.version)
    assert store.optimize().versions_removed == 0
    assert store.upkeep_status().failures == ()


def test_the_defaults_tend_in_the_background(tmp_path, reopen):
    store = reopen(tmp_path / "store", upkeep=Upkeep())
    for i in range(40):
        assert store.add(f"m {i}").upkeep == ""
    status = store.wait_for_upkeep()
    assert (status.running, status.failures, status.branch) == (False, (), "main")
    assert 16 <= status.version <= store.version
    assert store.stats().fragments <= 16 + 8
    assert store.count() == 40


def test_one_batch_is_folded_without_being_asked(tmp_path, reopen):
    store = reopen(tmp_path / "store", upkeep=Upkeep())
    store.add_many(f"memory {i}" for i in range(300))
    assert store.wait_for_upkeep().version == store.version
    assert set(store.stats().unindexed_rows.values()) == {0}


def test_the_interpreter_waits_for_a_step_at_its_end(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from tending_child import opened\n"
        "from lance_memory import Upkeep\n"
        "opened(sys.argv[1], Upkeep()).add_many(f'memory {i}' for i in range(400))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "store", CHILD.parent],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert tending_child.opened(tmp_path / "store").count() == 400


@pytest.mark.disk
def test_upkeep_never_runs_twice_at_once(eager):
    with upkeep.alone(eager._table):
        for i in range(12):
            assert eager.add(f"m {i}").upkeep == ""
        assert eager.stats().fragments == 12
    time.sleep(1.1)  # it looks again after a second
    eager.add("one more")
    assert eager.stats().fragments < 6
    assert eager.upkeep_status().failures == ()


@pytest.mark.disk
def test_what_fails_is_told_retried_and_in_the_way_of_nothing(eager, caplog):
    """C34."""
    lock = Path(eager.uri, "upkeep.lock")
    lock.mkdir()
    told = [eager.add(f"m {i}").upkeep for i in range(6)]
    assert told[0] == ""
    assert "lock failed once, and is tried again with a later write: " in told[-1]
    assert eager.retire(eager.list()[0].id).upkeep == told[-1]
    assert eager.add_many(["a", "b"]).upkeep == told[-1]
    assert eager.upsert("c", key="c").upkeep == told[-1]
    (failure,) = eager.upkeep_status().failures
    assert (failure.step, failure.attempts) == ("lock", 1)
    assert failure.again_at - failure.at == timedelta(seconds=1)
    assert "upkeep.lock" in failure.error
    assert ["lock failed" in record.message for record in caplog.records] == [True]
    assert eager.count() == 8
    lock.rmdir()
    time.sleep(1.1)
    assert eager.add("well again").upkeep == ""
    assert eager.upkeep_status().failures == ()
    assert eager.stats().fragments < 6


def test_a_step_that_runs_out_of_room_is_told_by_the_write_and_done_later(tmp_path):
    """C34, in a process whose files may not grow."""
    path = tmp_path / "store"
    tending_child.opened(path)
    with child(path, "grown", 30, 40_000) as process:
        lines = []
        for line in process.stdout:
            lines.append(json.loads(line))
            if lines[-1]["upkeep"] and len(lines) < 30:
                break
        assert "compact failed once" in lines[-1]["upkeep"], (lines, process.stderr.read())
        status = tending_child.opened(path).upkeep_status()  # another process is told too
        assert "compact" in [f.step for f in status.failures]
        time.sleep(1.1)
        process.stdin.write("\n")
        process.stdin.flush()
        lines += map(json.loads, process.stdout)
        assert process.wait() == 0, process.stderr.read()
    assert lines[-1]["upkeep"] == ""
    store = tending_child.opened(path)
    assert store.upkeep_status().failures == ()
    assert sorted(m.content for m in store.list()) == sorted(line["text"] for line in lines)


@pytest.mark.slow
def test_two_processes_that_write_and_tend_lose_nothing(tmp_path):
    path = tmp_path / "store"
    tending_child.opened(path)
    with child(path, "one", 20) as one, child(path, "two", 20) as two:
        lines = [json.loads(line) for process in (one, two) for line in process.stdout]
        assert (one.wait(), two.wait()) == (0, 0), (one.stderr.read(), two.stderr.read())
    store = tending_child.opened(path)
    assert sorted(m.content for m in store.list()) == sorted(line["text"] for line in lines)
    entries = store.log(upkeep=True)
    assert [e.version for e in entries] == list(range(store.version, 0, -1))
    assert len(history.versions(store._table)) < store.version / 2


@pytest.mark.slow
def test_upkeep_that_is_killed_is_gone_on_with(tmp_path):
    path = tmp_path / "store"
    tending_child.opened(path)
    chance, acknowledged = random.Random(20251130), []
    for session in range(3):
        with child(path, f"session {session}", 10_000) as process:
            first = process.stdout.readline()
            killer = threading.Timer(chance.uniform(0.2, 1.2), process.kill)
            killer.start()
            lines = [line for line in [first, *process.stdout] if line.endswith("\n")]
            killer.join()
            assert process.wait() == -9, process.stderr.read()
        acknowledged += [json.loads(line)["text"] for line in lines]
        store = tending_child.opened(path)
        found = {m.content for m in store.list(limit=None)}
        assert set(acknowledged) <= found
        assert len(found) <= len(acknowledged) + session + 1
        versions = [e.version for e in store.log(upkeep=True)]
        assert versions == list(range(store.version, 0, -1))
        assert len(store.search(f"session {session}", k=3)) == 3
        acknowledged = sorted(found)
    for i in range(8):
        assert store.add(f"afterwards {i}").upkeep == ""
    assert store.stats().fragments <= 8


@pytest.mark.slow
def test_a_long_loop_of_adds_leaves_few_files_versions_and_open_files(tmp_path, reopen):
    """C32, C36."""
    store = reopen(tmp_path / "store", upkeep=Upkeep())

    def looked():
        files = [f for f in Path(store.uri).rglob("*") if f.is_file()]
        return (
            len(files),
            sum(f.stat().st_size for f in files),
            len([*Path("/proc/self/fd").iterdir()]),
        )

    def adds(first, last):
        for i in range(first, last):
            assert store.add(f"memory {i} of a long loop").upkeep == ""
        store.wait_for_upkeep()
        return looked()

    adds(0, 200)
    files, size, handles = adds(200, 400)
    files_later, size_later, handles_later = adds(400, 600)
    assert store.count() == 600
    assert store.stats().versions <= 128 + 64 + 64
    assert store.stats().fragments <= 16 + 12
    assert max(files, files_later) <= 1_500
    assert size_later <= 1.5 * size
    assert handles_later <= handles + 16


def test_a_dry_run_says_what_is_done_then(eager):
    for i in range(12):
        eager.add(f"apple {i}")
    plain = eager.optimize(dry_run=True)
    plan = eager.optimize(dry_run=True, clean_older_than=timedelta(0), vector_index_from=999)
    assert isinstance(plan, UpkeepPlan)
    assert plan
    assert set(plain.versions_to_remove) <= set(plan.versions_to_remove)
    version = eager.version
    assert plan.version == version
    assert plan.fragments == eager.stats().fragments
    before = set(history.versions(eager._table))
    result = eager.optimize(clean_older_than=timedelta(0))
    assert set(plan.indices_to_build) == set(result.indices_built)
    gone = {v for v in before - set(history.versions(eager._table)) if v < version}
    assert set(plan.versions_to_remove) == gone
    assert not eager.optimize(dry_run=True)


def test_optimize_keeps_to_the_budget_of_its_handle(tmp_path, reopen):
    store = reopen(tmp_path / "store", upkeep=None)
    for i in range(10):
        store.add(f"m {i}")
    assert store.optimize(dry_run=True).versions_to_remove == ()
    budget = replace(EAGER, versions=99, fragments=99, unindexed_rows=99)
    thrifty = reopen(tmp_path / "store", upkeep=budget)
    expected = thrifty.optimize(dry_run=True).versions_to_remove
    assert len(expected) == thrifty.version - 6
    assert thrifty.optimize().versions_removed >= len(expected)
    assert thrifty.stats().versions == 6


def test_a_version_that_is_read_is_held(eager, tmp_path):
    eager.add("the first")
    version = eager.version
    with naming.holding(eager._table, version):
        for i in range(12):
            eager.add(f"m {i}")
        assert eager.at(version).count() == 1
    assert eager.tags() == {}
    for i in range(12):
        eager.add(f"n {i}")
    with pytest.raises(NotFoundError, match="cleaned up"):
        eager.at(version)
    with pytest.raises(NotFoundError, match="cleaned up"):
        eager.revert(version)


@pytest.mark.disk
def test_the_hold_of_a_killed_reader_ends_after_a_day(eager):
    eager.add("the first")
    holding = naming.holding(eager._table, eager.version)
    holding.__enter__()
    (tag,) = Path(eager.uri, "memories.lance", "_refs", "tags").iterdir()
    written = json.loads(tag.read_text())
    upkeep.clean(eager._table, None)
    assert tag.exists()
    for name in ("createdAt", "updatedAt"):
        written[name] = written[name].replace("20", "19", 1)
    tag.write_text(json.dumps(written))
    upkeep.clean(eager._table, None)
    assert not tag.exists()
    holding.__exit__(None, None, None)


@pytest.mark.disk
def test_what_a_killed_trial_has_left_goes_after_a_week(eager):
    eager.add("the first")
    versions = Path(eager.uri, "memories.lance", "_versions")
    young, old = versions / "d123.manifest", versions / "d456.manifest"
    for manifest in (young, old):
        manifest.write_bytes(b"left")
    week_ago = time.time() - 8 * 86_400
    os.utime(old, (week_ago, week_ago))
    upkeep.clean(eager._table, None)
    assert (young.exists(), old.exists()) == (True, False)


def test_the_status_is_of_the_whole_store_and_its_branch(eager):
    with pytest.raises(ScopeError):
        eager.scoped(user="ann").upkeep_status()
    assert eager.upkeep_status() == UpkeepStatus(
        uri=eager.uri, branch="main", version=0, at=None, running=False
    )
    side = eager.branch("side")
    for i in range(8):
        side.add(f"m {i}")
    assert side.upkeep_status().version > 0
    assert eager.upkeep_status().version == 0


@pytest.mark.disk
def test_what_cannot_be_written_down_is_told_all_the_same(eager):
    Path(eager.uri, "upkeep.json").mkdir()
    told = [eager.add(f"m {i}").upkeep for i in range(6)]
    assert "note failed" in told[-1]
    assert [f.step for f in eager.upkeep_status().failures] == ["note"]


def test_pauses_grow_to_ten_minutes(clock):
    state = State()
    pauses = []
    for _ in range(8):
        state = state.failed("fold", "no room", now=clock.now)
        pauses.append(int((state.again_at - clock.now).total_seconds()))
    assert pauses == [1, 4, 16, 64, 256, 600, 600, 600]
    assert state.failures == (
        UpkeepFailure(
            step="fold",
            error="no room",
            attempts=8,
            at=clock.now,
            again_at=clock.now + timedelta(minutes=10),
        ),
    )
    assert state.succeeded("fold").failures == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "sometimes"},
        {"fragments": 0},
        {"unindexed_rows": 1.5},
        {"versions": True},
        {"bytes": -1},
        {"age": timedelta(0)},
        {"step_rows": 10},
        {"retain": 128},
    ],
    ids=str,
)
def test_options_that_mean_nothing_are_refused(wrong):
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        Upkeep(**wrong)


def test_a_mode_may_be_a_word():
    assert Upkeep(mode="inline").mode is lance_memory.UpkeepMode.INLINE
    assert Upkeep().retain == Retain()


def test_a_store_that_is_closed_is_tended_and_its_directory_can_go(tmp_path, reopen):
    with reopen(tmp_path / "store", upkeep=EAGER) as store:
        for i in range(20):
            store.add(f"pear {i}")
    assert not store.upkeep_status().running
    assert "done at version" in str(store.upkeep_status())
    assert str(reopen(tmp_path / "new").upkeep_status()) == "all is well: nothing was due yet"
    store.add("goes on")
    assert store.count() == 21
