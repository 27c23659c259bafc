"""Killed processes, processes at once, and forgetting while messages become rows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from lance_memory import FunctionEmbedder
from lance_memory.agent.working import WorkingMemory
from lance_memory.ingest.sessions import Settling
from lance_memory.record.times import utc_now
from lance_memory.testing import check

CHILD = Path(__file__).with_name("working_child.py")
COMMAND = [sys.executable, CHILD]


@pytest.fixture
def store(tmp_path, reopen):
    return reopen(tmp_path / "store", clock=utc_now)


@pytest.fixture
def mine(store):
    return WorkingMemory(store.scoped(user="ana"))


def said(memory):
    return [message.content for message in memory.recent("s", 100_000)]


def test_what_a_killed_process_has_said_is_there_in_order_beside_what_others_said(store, mine):
    command = [*COMMAND, "talk", store.uri]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        told = [int(process.stdout.readline())]
        own = {mine.append_message("s", "user", f"parent {n}"): f"parent {n}" for n in range(50)}
        told += [int(process.stdout.readline()) for _ in range(50)]
        process.kill()
        told += map(int, process.stdout.read().split())
    everything = said(mine)
    assert {number: everything[number - 1] for number in own} == own
    by_child = [(n, text) for n, text in enumerate(everything, 1) if text.startswith("child")]
    assert [text for _, text in by_child] == [f"child {n + 1}" for n in range(len(by_child))]
    assert set(told) <= {number for number, _ in by_child}
    assert len(by_child) <= len(told) + 1  # one may have been appended and not told of


@pytest.mark.parametrize("how", ["die_before", "die_after", "die_asleep"])
def test_a_process_killed_on_the_way_into_the_table_loses_and_doubles_nothing(store, mine, how):
    for n in range(4):
        mine.append_message("s", "user", f"word {n}")
    before = mine.recent("s")
    done = subprocess.run([*COMMAND, how, store.uri], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    rows = {"die_before": [], "die_after": ["episodic"] * 4, "die_asleep": ["working"] * 4}[how]
    assert [memory.kind for memory in store.list()] == rows
    assert mine.recent("s") == before
    if how == "die_asleep":
        mine.hibernate(timedelta(0))
        assert (mine.recent("s"), store.count()) == (before, 4)
    mine.append_message("s", "user", "word 4")
    made = mine.flush("s")
    assert (made.inserted, made.updated) == {
        "die_before": (5, 0),
        "die_after": (1, 0),
        "die_asleep": (1, 4),
    }[how]
    episodes = store.list(kinds="episodic")
    assert [memory.content for memory in episodes] == [f"word {n}" for n in range(5)]
    assert (said(mine), store.count(states="any")) == ([], 5)
    check(store, history=False)


# -- forgetting meanwhile -----------------------------------------------------------------


class Slow:
    """An embedder that waits to be let go."""

    def __init__(self):
        self.asked, self.go = threading.Event(), threading.Event()

    def __call__(self, texts):
        self.asked.set()
        assert self.go.wait(60)
        return np.ones((len(texts), 4))


@pytest.fixture
def slow():
    return Slow()


@pytest.fixture
def slow_store(slow, tmp_path, reopen):
    embedder = FunctionEmbedder(slow, name="slow", dimension=4)
    return reopen(tmp_path / "slow", embedder=embedder, clock=utc_now)


def wipe(store, how):
    if how == "forget":
        store.forget(user="ana")
    else:
        WorkingMemory(store.scoped(user="ana")).clear("s")


@pytest.mark.parametrize("how", ["forget", "clear"])
@pytest.mark.parametrize("settle", ["hibernate", "flush"])
def test_what_was_taken_away_while_it_was_embedded_does_not_come(slow, slow_store, how, settle):
    mine = WorkingMemory(slow_store.scoped(user="ana"))
    mine.append_message("s", "user", "off to Zanzibar")
    calls = {"hibernate": lambda: mine.hibernate(timedelta(0)), "flush": lambda: mine.flush("s")}
    with ThreadPoolExecutor(2) as pool:
        settled = pool.submit(calls[settle])
        assert slow.asked.wait(60)
        wiped = pool.submit(wipe, slow_store, how)
        while said(mine):
            assert not wiped.done()
        slow.go.set()
        assert settled.result(60).ids == ()
        wiped.result(60)
    assert slow_store.count(states="any") == 0
    assert (said(mine), mine.sessions()) == ([], [])


@pytest.mark.parametrize("how", ["forget", "clear"])
def test_what_was_about_to_be_committed_is_waited_for_and_taken_away(
    slow, slow_store, how, monkeypatch
):
    slow.go.set()
    mine = WorkingMemory(slow_store.scoped(user="ana"))
    mine.append_message("s", "user", "off to Zanzibar")
    looked, go, still = threading.Event(), threading.Event(), Settling.still

    def slowly(self, numbers):
        found = still(self, numbers)
        looked.set()
        assert go.wait(60)
        return found

    monkeypatch.setattr(Settling, "still", slowly)
    with ThreadPoolExecutor(2) as pool:
        settled = pool.submit(mine.hibernate, timedelta(0))
        assert looked.wait(60)
        wiped = pool.submit(wipe, slow_store, how)
        while said(mine):
            assert not wiped.done()
        go.set()
        assert settled.result(60).inserted == 1
        wiped.result(60)
    assert (slow_store.count(), said(mine)) == (0, [])


def test_who_died_on_the_way_is_not_waited_for_long(store, mine, monkeypatch):
    monkeypatch.setattr("lance_memory.ingest.sessions.settling._LEASE", 0.2)
    mine.append_message("s", "user", "off to Zanzibar")
    session = store.scoped(user="ana", session="s").scope
    Settling(store.ledger, space_of(store, session)).begin()  # and never ends
    store.forget(user="ana")
    assert [*store.ledger.spaces(prefix="working:")] == []


def space_of(store, session):
    (space,) = store.ledger.spaces(prefix="working:")
    assert session.session in space
    return space


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:lance is not fork-safe", "ignore:.*multi-threaded.*fork")
def test_a_fork_goes_on_with_its_parents_sessions(mine):
    mine.append_message("s", "user", "parent")
    said(mine)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            mine.append_message("s", "user", "child")
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert said(mine) == ["parent", "child"]
