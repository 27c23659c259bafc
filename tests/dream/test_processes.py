"""What only real processes show: kills, two at a time, an end that nobody asked for."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forked import Forked

HERE = Path(__file__).parent
CHILD = str(HERE / "dream_child.py")
if str(HERE) not in sys.path:
    sys.path.append(str(HERE))

from dream_child import dreamer, opened, slowly  # noqa: E402

from lance_memory import DreamOutcome  # noqa: E402
from lance_memory.dream.lock import is_held  # noqa: E402


@pytest.fixture
def place(tmp_path):
    """A store of twelve memories, and a summary's worth of time between them."""
    opened(tmp_path / "store").add_many([f"turn {n}" for n in range(12)])
    return tmp_path / "store"


def child(*words):
    return subprocess.Popen(
        [sys.executable, CHILD, *map(str, words)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def contents(store):
    return sorted((m.id, m.state, m.content) for m in store.list(states="any"))


def whole_after_a_kill(place, delay, *, call=0.01):
    """Whether the pass was made, when it was killed so long after it began."""
    store = opened(place)
    before, version = contents(store), store.version
    with Forked(CHILD, "once", place, call) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.kill()
        out, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    after = contents(store)
    made = store.version - version
    assert made in (0, 1)
    if made:
        (entry,) = store.log(limit=1)
        assert (entry.operation, entry.inserted, entry.updated) == ("consolidate", 6, 12)
        assert [state for _, state, _ in after].count("superseded") == 12
    else:
        assert after == before
        assert out == ""
    assert is_held(place / "dream.lock") is False
    return bool(made)


def test_a_pass_that_is_killed_in_a_call_is_not_made_and_its_place_is_free(place):
    assert not whole_after_a_kill(place, 0.2, call=60)
    assert dreamer(place, slowly(0)).status().running is None
    result = dreamer(place, slowly(0)).once()
    assert (result.outcome, result.clusters) == (DreamOutcome.CONSOLIDATED, 6)


@pytest.mark.slow
def test_passes_killed_at_random_moments_are_made_or_not(tmp_path):
    """From the beginning of a pass to a little after its end, whatever that takes here."""
    seed = 20250305
    moments = random.Random(seed)
    places = [tmp_path / f"store {number}" for number in range(26)]
    for place in places:
        opened(place).add_many([f"turn {n}" for n in range(12)])
    with Forked(CHILD, "once", places.pop(), 0.01) as process:
        process.stdout.readline()
        began = time.monotonic()
        assert process.stdout.readline() == "consolidated\n"
        whole = time.monotonic() - began
    made = 0
    for place in places:
        made += whole_after_a_kill(place, moments.uniform(0.0, 1.5 * whole))
        assert dreamer(place, slowly(0)).once().outcome is DreamOutcome.CONSOLIDATED
    print(f"seed {seed}: of 25 passes {made} were made before the kill")  # noqa: T201
    assert 0 < made < 25


def test_a_pass_that_was_killed_is_told_until_the_next_one(place):
    with Forked(CHILD, "once", place, 60) as process:
        assert process.stdout.readline() == "ready\n"
        one, end = dreamer(place, slowly(0)), time.monotonic() + 60
        while one.status().running is None:
            assert time.monotonic() < end
            time.sleep(0.01)
        running = one.status().running
        assert (running.pid, running.trigger) == (process.pid, "dream: once")
        assert one.once().outcome is DreamOutcome.BUSY
        process.kill()
    assert (one.status().running, one.status().lost) == (None, running)
    assert one.once().outcome is DreamOutcome.CONSOLIDATED
    assert one.status().lost is None


def test_of_two_processes_one_makes_the_pass(place, tmp_path):
    both = [Forked(CHILD, "meeting", place, tmp_path, name) for name in "ab"]
    with both[0] as a, both[1] as b:
        for process in (a, b):
            assert process.stdout.readline() == "ready\n"
        for process in (a, b):
            process.stdin.write("go\n")
            process.stdin.flush()
        said = sorted(process.communicate(timeout=120)[0].split()[1] for process in (a, b))
    assert said == ["busy", "consolidated"]
    assert [e.operation for e in opened(place).log()].count("consolidate") == 1


@pytest.mark.parametrize("state", ["rests", "short", "workers"])
def test_a_program_ends_although_its_dreamer_was_never_stopped(place, state):
    before = contents(opened(place))
    with child("forgets", place, state) as process:
        assert process.stdout.readline() == "end\n"
        began = time.monotonic()
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (0, "", "")
    assert time.monotonic() - began < 8
    assert contents(opened(place)) == before
    assert is_held(place / "dream.lock") is False
    last = json.loads((place / "dream.json").read_text())["passes"] if state != "rests" else {}
    assert [p["last"]["outcome"] for p in last.values()] == ["stopped"] * len(last)


@pytest.mark.slow
def test_a_program_ends_although_a_call_of_its_dreamer_never_does(place):
    """The pass is given 5 s to stop; then the program ends without it."""
    with child("forgets", place, "never") as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (0, "end\n", "")
    assert opened(place).count() == 12
    assert dreamer(place, slowly(0)).status().lost is not None


def test_ctrl_c_in_a_pass_leaves_the_store_and_the_place_free(place):
    before = contents(opened(place))
    with Forked(CHILD, "once", place, 0.2) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode != 0
    assert contents(opened(place)) == before
    status = dreamer(place, slowly(0)).status()
    assert (status.running, status.lost) == (None, None)
    assert status.last.outcome is DreamOutcome.STOPPED
