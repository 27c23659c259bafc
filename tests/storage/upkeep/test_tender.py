"""Upkeep after writes goes on, whatever a step raises, clocks do, or becomes of the main thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import lance_memory
from lance_memory import ConflictError, Retain, Upkeep
from lance_memory.storage.upkeep import steps, tender
from lance_memory.storage.upkeep.state import State, read_state, write_state

EAGER = Upkeep(
    mode="inline",
    fragments=3,
    versions=4,
    retain=Retain(last=6, hours=0, days=0, weeks=0, months=0, within=timedelta(0)),
)

SERVICE = """
import sys, threading
from lance_memory import FunctionEmbedder, MemoryStore, Upkeep
import numpy as np
embedder = FunctionEmbedder(lambda texts: np.ones((len(texts), 4)), name="m", dimension=4)
store = MemoryStore.open(sys.argv[1], embedder=embedder, upkeep=Upkeep(fragments=4))
def serve():
    threading.main_thread().join()
    for number in range(12):
        assert store.add(f"memory {number}").upkeep == ""
    print(store.stats().fragments)
threading.Thread(target=serve).start()
"""


@pytest.fixture
def eager(tmp_path, reopen):
    return reopen(tmp_path / "eager", upkeep=EAGER)


def filled(store, count=6):
    return [store.add(f"memory {number}").upkeep for number in range(count)]


def failing(error):
    def step(*_, **__):
        raise error

    return step


def test_an_error_of_a_step_that_is_not_ours_is_told_and_fails_no_write(eager, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(steps, "compact", failing(TypeError("what the engine says")))
        told = filled(eager)
    assert "compact failed once" in told[-1]
    assert told[-1].endswith("TypeError: what the engine says")
    (failure,) = eager.upkeep_status().failures
    monkeypatch.setattr(eager._tender, "_clock", lambda: failure.again_at)
    assert (eager.add("well again").upkeep, eager.upkeep_status().failures) == ("", ())


def test_a_run_that_is_interrupted_is_no_end_of_upkeep(eager, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(steps, "compact", failing(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            filled(eager)
    filled(eager)
    assert eager.upkeep_status().version > 0


def test_how_it_went_is_written_down_under_the_lock(eager, monkeypatch):
    """Else what two branches write down at once would be that of one of them."""
    locked = []

    def written(place, branch, state):
        try:
            with place.alone("upkeep.lock", wait=0):
                locked.append(False)
        except ConflictError:
            locked.append(True)
        write_state(place, branch, state)

    monkeypatch.setattr(tender, "write_state", written)
    filled(eager)
    eager.optimize()
    assert len(locked) > 1
    assert all(locked)


def test_numbers_that_are_used_anew_make_no_pause(eager):
    place, later = eager._table.place, datetime(2100, 1, 1, tzinfo=UTC)
    write_state(place, "main", State(version=999, fragments=99, at=later))
    filled(eager)
    assert 0 < eager.upkeep_status().version <= eager.version


def test_a_branch_that_is_deleted_leaves_nothing_written_down(eager):
    filled(eager.branch("side"))
    assert read_state(eager._table.place, "side").version > 0
    eager.delete_branch("side")
    assert json.loads(Path(eager.uri, "upkeep.json").read_text()).keys() <= {"main"}


def test_a_pause_is_never_longer_than_the_longest_whatever_the_clock_was(clock):
    state = State().failed("fold", "no room", now=clock.now)
    assert [
        state.pauses(clock.now + timedelta(seconds=seconds)) for seconds in (-3_600, -1, 0, 1)
    ] == [False, True, True, False]


def test_a_service_whose_main_thread_has_returned_is_tended(tmp_path):
    folder = Path(lance_memory.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", SERVICE, tmp_path / "store"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) <= 6


@pytest.mark.parametrize(("count", "unfolded", "most"), [(9, 9, 6), (70, 0, 5)])
def test_writers_that_rest_leave_few_fragments_and_nothing_to_fold(
    tmp_path, reopen, count, unfolded, most
):
    """Where they have written enough to make up for it; a few rows are not folded each time.

    Of nine adds, what was compacted last, the lowest fragment, which is spared, and at most as many
    as the policy leaves alone stand.
    """
    upkeep = Upkeep(fragments=4, unindexed_rows=20)
    with reopen(tmp_path / "rests", upkeep=upkeep) as store:
        filled(store, count)
        store.wait_for_upkeep()
        assert steps.unfolded_rows(store._table) == unfolded
        assert store.stats().fragments <= most
        assert store.upkeep_status().failures == ()
