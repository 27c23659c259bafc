"""dream: one pass, a dry run, the status, and the foreground until a signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

LMEM = str(Path(sys.executable).with_name("lmem"))
NEAR = ["--min-similarity", "0.5", "--no-distinct", "--probes", "0"]
SLOW = """
import time
from pathlib import Path

def slowly(members):
    Path("inside").touch()
    time.sleep(30)
    return members[0].content
"""


@pytest.fixture
def slow(tmp_path):
    """A transform that takes its time, by its name, in the directory of the test."""
    (tmp_path / "slow_dream.py").write_text(SLOW, encoding="utf-8")
    return ["--transform", "slow_dream:slowly"]


def process(tmp_path, *words):
    """`lmem dream` on the small store, in a process of its own."""
    return subprocess.Popen(
        [LMEM, "dream", "--store", "memory", *words], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


def until_inside(child, tmp_path, seconds=60.0):
    """Until the slow transform of the process has been called."""
    end = time.monotonic() + seconds
    while not (tmp_path / "inside").exists():
        assert child.poll() is None, child.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)


def last(lmem):
    return lmem("dream", "--status", "--format", "json").json["last"]


# -- one pass -------------------------------------------------------------------------------


def test_once_makes_one_version(lmem, store, version):
    before = version()
    done = lmem("dream", "--once", *NEAR)
    assert (done.code, done.err) == (0, "")
    assert f"  version {before + 1}: " in done.out
    assert " saved (dream: once, " in " ".join(done.out.split())
    assert version() == before + 1
    (entry,) = lmem("log", "--limit", "1", "--format", "json").json
    assert (entry["operation"], entry["reason"]) == ("consolidate", "dream: once")


def test_once_says_the_same_to_a_program(lmem, store, version):
    told = lmem("dream", "--once", *NEAR, "--format", "jsonl").lines
    assert [(t["outcome"], t["version"]) for t in told] == [("consolidated", version())]
    assert last(lmem) == told[0]
    assert lmem("dream", "--once", *NEAR, "--format", "quiet").out.strip() == str(version())


def test_once_with_nothing_to_do_leaves_the_version(lmem, store, version):
    before = version()
    done = lmem("dream", "--once", "--min-similarity", "1")
    assert (done.code, version()) == (0, before)
    assert f"nothing to consolidate, version {before} stays (dream: once, " in done.out


def test_a_dry_run_shows_the_plan_as_consolidate_does(lmem, store, version):
    before = version()
    done = lmem("dream", "--once", "--dry-run", *NEAR)
    assert (done.code, done.err) == (0, "dry run: nothing was written\n")
    assert done.out == lmem("consolidate", "--dry-run", *NEAR).out
    assert version() == before
    assert not list(store.glob("dream*"))
    shown = lmem("dream", "--dry-run", *NEAR, "--format", "json").json
    assert all("embedding" not in (c["derived"] or {}) for c in shown["clusters"])


def test_the_bounds_are_those_of_the_options(lmem, store):
    one = lmem("dream", "--once", *NEAR, "--max-clusters", "1", "--format", "json").json
    assert (one["clusters"], bool(one["cut"])) == (1, True)
    assert lmem("dream", "--status", "--format", "json").json["unfinished"] is True
    assert "passes ended at their bounds" in lmem("dream", "--status").out


def test_a_bound_of_nought_is_none(lmem, store):
    """Also where the dreamer has one by default."""
    found = lmem("dream", "--dry-run", *NEAR, "--max-seconds", "0.000001", "--format", "json").json
    assert found["cut"] == "1e-06 s were over"
    unbounded = ("--max-rows", "0", "--max-clusters", "0", "--max-seconds", "0")
    found = lmem("dream", "--dry-run", *NEAR, *unbounded, "--format", "json").json
    assert (found["cut"], found["selected"], len(found["clusters"])) == ("", 5, 2)


def test_a_scope_keeps_a_pass_to_itself(lmem, store):
    lmem("dream", "--once", *NEAR, "--user", "bob")
    assert lmem("dream", "--status", "--user", "bob", "--format", "json").json["last"] is not None
    assert lmem("dream", "--status", "--format", "json").json["last"] is None
    assert len(lmem("list", "--user", "ann", "--format", "quiet").out.split()) == 4


def test_a_pass_that_fails_is_an_error(lmem, store, version, tmp_path):
    (tmp_path / "broken_dream.py").write_text("def fails(members): 1 / 0", encoding="utf-8")
    before = version()
    done = lmem(
        "dream", "--once", *NEAR, "--transform", "broken_dream:fails",
        "--on-failure", "all_or_nothing",
    )  # fmt: skip
    assert (done.code, done.out) == (1, "")
    assert "all or nothing was asked for" in done.err
    assert version() == before
    assert last(lmem)["outcome"] == "failed"


def test_once_while_another_pass_is_under_way_is_a_conflict(lmem, store, tmp_path, slow):
    with process(tmp_path, "--once", *NEAR, *slow) as first:
        until_inside(first, tmp_path)
        second = lmem("dream", "--once", *NEAR)
        running = lmem("dream", "--status", "--format", "json").json["running"]
        quiet = lmem("dream", "--status", "--format", "quiet").out
        first.kill()
    assert (second.code, second.out) == (4, "")
    assert f"another pass is under way: process {first.pid} on" in second.err
    assert (running["pid"], quiet) == (first.pid, "running\n")
    told = lmem("dream", "--status")
    assert told.out.splitlines()[1].split() == ["running", "no"]
    assert f"killed    process {first.pid} on" in told.out
    assert lmem("dream", "--once", *NEAR).code == 0


# -- the status -----------------------------------------------------------------------------


def test_the_status_of_a_store_that_nobody_dreamt_of(lmem, store):
    done = lmem("dream", "--status", "--cron", "0 3 * * 0", "--format", "json")
    assert {**done.json, "next_cron": None} == {
        "about": "main", "running": None, "lost": None, "last": None, "new_rows": 6,
        "unfinished": False, "next_cron": None, "retry_at": None,
    }  # fmt: skip
    assert done.json["next_cron"].endswith("T03:00:00+00:00")
    assert lmem("dream", "--status", "--format", "quiet").out == "resting\n"
    assert not list(store.glob("dream*"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--status", "--once"], "--status goes with neither"),
        (["--once", "--idle", "soon"], "--idle 'soon' is no duration"),
        (["--once", "--idle", "0s"], "--idle 0:00:00; it takes a positive timedelta"),
        (["--once", "--new-rows", "0"], "new-rows"),
        (["--once", "--cron", "0 3 * *"], "has 4 fields, not 5"),
        (["--once", "--cron", "0 3 30 2 *"], "names a day that never comes"),
        (["--once", "--max-rows", "-1"], "--max-rows -1; it takes a whole number from 1 on"),
        (
            ["--once", "--min-similarity", "2"],
            "--min-similarity 2.0; it takes a number within -1..1",
        ),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(lmem, store, words, said):
    done = lmem("dream", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_there_must_be_a_store(lmem, fresh):
    assert lmem("dream", "--once", "--store", fresh).code == 3
    assert not fresh.exists()


# -- in the foreground ----------------------------------------------------------------------


def test_a_line_is_told_for_each_pass_until_sigterm(lmem, store, version, tmp_path):
    before = version()
    with process(tmp_path, "--idle", "0.3s", *NEAR, "--format", "jsonl") as child:
        told = json.loads(child.stdout.readline())
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=120)
    assert (child.returncode, out, err) == (0, "", "waiting for idle 0.3s; Ctrl-C ends it\n")
    assert (told["outcome"], told["trigger"]) == ("consolidated", "dream: idle 0.3s")
    assert told["version"] == version() == before + 1
    assert last(lmem) == told


def test_sigterm_in_a_pass_stops_it_and_is_a_clean_end(lmem, store, version, tmp_path, slow):
    before = version()
    with process(tmp_path, "--new-rows", "1", *NEAR, *slow) as child:
        until_inside(child, tmp_path)
        began = time.monotonic()
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=120)
        took = time.monotonic() - began
    assert (child.returncode, out, err) == (0, "", "waiting for 1 new row; Ctrl-C ends it\n")
    assert took < 3
    assert version() == before
    assert last(lmem)["outcome"] == "stopped"


def test_ctrl_c_in_a_pass_stops_it_and_says_so(lmem, store, version, tmp_path, slow):
    before = version()
    with process(tmp_path, "--new-rows", "1", *NEAR, *slow) as child:
        until_inside(child, tmp_path)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (130, "")
    assert err.splitlines()[-1] == f"interrupted: the store is unchanged, at version {before}"
    assert (version(), last(lmem)["outcome"]) == (before, "stopped")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_once_is_interrupted_by_either_signal(lmem, store, version, tmp_path, slow, sign):
    before = version()
    with process(tmp_path, "--once", *NEAR, *slow) as child:
        until_inside(child, tmp_path)
        child.send_signal(sign)
        out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (130, "")
    assert err == f"interrupted: the store is unchanged, at version {before}\n"
    assert (version(), last(lmem)["outcome"]) == (before, "stopped")


@pytest.mark.slow
def test_once_killed_at_any_moment_leaves_the_store_whole(lmem, store, version, tmp_path):
    """SIGKILL at 12 moments, from the start of the program to the end of the pass."""
    before, made = version(), 0
    for number in range(12):
        with process(tmp_path, "--once", *NEAR) as child:
            time.sleep(0.1 + number * 0.15)
            child.kill()
        after = version()
        assert after - before in (0, 1)
        if after != before:
            made += 1
            (entry,) = lmem("log", "--limit", "1", "--format", "json").json
            assert entry["operation"] == "consolidate"
            assert lmem("revert", after, "--yes").code == 0
        before = version()
        assert len(lmem("list", "--format", "quiet").out.split()) == 5
    print(f"{made} of 12 passes were made before the kill")  # noqa: T201
    assert lmem("dream", "--once", *NEAR).code == 0
