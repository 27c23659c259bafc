"""`lmem jobs`, `lmem worker` and `lmem watermarks`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.request import urlopen

import pytest

from lance_memory import MemoryStore

LMEM = str(Path(sys.executable).with_name("lmem"))
SAID = "Mara: My name is Mara, and I live in Lisbon since I was born there.\n"
TOLD = SAID[6:-1]
SHORT_LEASE = """
import sys, threading
from datetime import timedelta
from lance_memory import MemoryStore
store = MemoryStore.open(sys.argv[1])
told = lambda job: print(job.id, flush=True)
store.worker(lease=timedelta(seconds=2), told=told).run_until(threading.Event())
"""


@pytest.fixture
def queue(lmem):
    """Hands in a conversation for later, and gives the id of the job."""

    def queued(user="mara", plan="free", text=SAID):
        asked = ("ingest", "-", "--no-wait", "--tenant", "acme", "--user", user, "--plan", plan)
        return lmem(*asked, "--format", "quiet", stdin=text).out.strip()

    return queued


@pytest.fixture
def dead(queue):
    """The id of a job whose payload is none that can be worked off."""
    identifier = queue(user="ill")
    desk = MemoryStore.open(os.environ["LMEM_STORE"]).jobs
    (scope,) = desk.get(identifier).scopes
    none = {"messages": [{"content": 7}], "scope": {}, "source": "", "domain": ""}
    desk.records.put_payload(identifier, [(scope, none)])
    return identifier


def states(lmem):
    return {job["id"]: job["state"] for job in lmem("jobs", "list", "--format", "jsonl").lines}


def test_a_worker_does_what_is_queued_and_tells_a_line_a_job(lmem, queue):
    ids = [queue(user=user, plan=plan) for user, plan in (("a", "free"), ("b", "enterprise"))]
    assert states(lmem) == dict.fromkeys(ids, "queued")
    done = lmem("worker", "--once", "--format", "jsonl")
    assert {(job["id"], job["state"]) for job in done.lines} == {(one, "done") for one in ids}
    assert all(job["memories"] == 2 for job in done.lines)
    human = lmem("jobs", "list")
    assert max(map(len, human.out.splitlines())) <= 80
    again = lmem("ingest", "-", "--no-wait", "--user", "c", "--format", "quiet", stdin=SAID)
    assert f"  {again.out[:13]}  plan free  done, " in lmem("worker", "--once").out
    shown = lmem("jobs", "show", ids[0]).out
    assert "came of it" in shown
    assert "Lisbon" not in shown + lmem("jobs", "show", ids[0], "--format", "json").out
    assert lmem("worker", "--once").out == ""


def test_jobs_are_filtered_newest_first(lmem, queue):
    first, second = queue(user="a"), queue(user="b")
    assert lmem("jobs", "list", "--format", "quiet").out.split() == [second, first]
    assert lmem("jobs", "list", "--limit", "1", "--format", "quiet").out.split() == [second]
    assert lmem("jobs", "list", "--tenant", "other").err == "there is no such job\n"
    lmem("worker", "--once")
    assert lmem("jobs", "list", "--state", "queued", "--format", "quiet").out == ""
    assert len(lmem("jobs", "list", "--state", "done", "--format", "jsonl").lines) == 2


def test_a_job_that_is_not_there_is_not_found(lmem):
    lmem("init")
    assert lmem("jobs", "show", "nothing").code == 3
    assert lmem("jobs", "retry", "nothing").code == 3
    assert lmem("jobs", "list").err == "there is no job\n"


def test_a_poisoned_job_dies_is_told_of_and_blocks_no_other(lmem, queue, dead):
    other = queue(user="well")
    lmem("worker", "--once")
    assert states(lmem) == {dead: "dead", other: "done"}
    found = lmem("doctor", "--format", "json")
    codes = {one["code"]: one for one in found.json["findings"]}
    assert codes["dead_jobs"]["count"] == 1
    assert lmem("jobs", "retry", dead, "--format", "quiet").out.split() == [dead]
    assert states(lmem)[dead] == "queued"
    assert lmem("jobs", "retry", other).code == 4


def test_purge_shows_and_asks(lmem, queue, dead):
    other = queue(user="well")
    lmem("worker", "--once")
    waiting = queue(user="later")
    assert lmem("jobs", "purge").code == 2
    dry = lmem("jobs", "purge", "--dry-run", "--format", "json")
    assert {job["id"] for job in dry.json} == {dead, other}
    only = lmem("jobs", "purge", "--state", "dead", "--yes", "--format", "json")
    assert only.json == {"removed": [dead]}
    assert lmem("jobs", "purge", "--older-than", "7d", "--yes", "--format", "json").json == {
        "removed": []
    }
    assert lmem("jobs", "purge", "--yes", "--format", "quiet").out.split() == [other]
    assert states(lmem) == {waiting: "queued"}
    assert lmem("jobs", "purge", "--state", "running", "--yes").code == 2


@pytest.mark.parametrize("slots", ["enterprise", "free=x", "gold=1", "free=0"])
def test_slots_that_make_no_sense_are_refused(slots, lmem):
    lmem("init")
    done = lmem("worker", "--once", "--slots", slots)
    assert (done.code, done.out) == (2, "")


def test_a_worker_without_slots_for_a_plan_leaves_it_to_others(lmem, queue):
    identifier = queue(plan="growth")
    lmem("worker", "--once", "--slots", "free=2,enterprise=1")
    assert states(lmem) == {identifier: "queued"}


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_ends_well_when_it_is_told_to(ending, lmem, queue):
    store = os.environ["LMEM_STORE"]
    first = queue(user="a")
    with subprocess.Popen(
        [LMEM, "worker", "--store", store, "--format", "quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdout
        assert child.stdout.readline() == f"{first}\n"
        second = queue(user="b")
        assert child.stdout.readline() == f"{second}\n"
        child.send_signal(ending)
        _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, "")
    assert states(lmem) == {first: "done", second: "done"}


@pytest.mark.slow
def test_a_worker_killed_amid_twenty_jobs_loses_and_doubles_nothing(lmem):
    """What it had begun is taken over when its lease is over, or was done; here soon."""
    store = os.environ["LMEM_STORE"]
    users = [f"u{n}" for n in range(20)]
    with MemoryStore.open(store) as opened:
        ids = [opened.ingest(TOLD, tenant="acme", user=u, wait=False).job for u in users]
    with subprocess.Popen(
        [sys.executable, "-c", SHORT_LEASE, store], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        child.stdout.readline()
        child.kill()
    killed_amid = set(states(lmem).values())
    assert killed_amid != {"done"}, "all was done before the kill"
    begun = time.monotonic()
    while set(states(lmem).values()) != {"done"} and time.monotonic() - begun < 90:
        lmem("worker", "--once")
        time.sleep(0.5)
    assert states(lmem) == dict.fromkeys(ids, "done")
    listed = lmem("list", "--tenant", "acme", "--state", "any", "--format", "jsonl").lines
    assert Counter(memory["user"] for memory in listed) == dict.fromkeys(users, 2)


@pytest.mark.slow
def test_a_worker_serves_its_figures_to_prometheus(lmem, queue):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    first = queue(user="a")
    with subprocess.Popen(
        [LMEM, "worker", "--store", os.environ["LMEM_STORE"], "--format", "quiet",
         "--metrics-port", str(port)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdout
        assert child.stdout.readline() == f"{first}\n"
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            served = answer.read().decode()
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, "")
    assert "lance_memory_ingest_decisions_total" in served
    assert 'tenant="acme"' in served
    assert "Lisbon" not in served


def test_watermarks_show_what_is_missing_and_skip_it(lmem):
    def numbered(seq):
        line = f'{{"role": "user", "content": "{SAID[6:-1]}", "seq": {seq}}}\n'
        asked = ("ingest", "-", "--tenant", "acme", "--user", "m", "--ordered", "--format", "json")
        return lmem(*asked, stdin=line).json["status"]

    lmem("init")
    assert lmem("watermarks").err == "no numbered event has arrived\n"
    assert (numbered(0), numbered(3)) == ("done", "buffered")
    (found,) = lmem("watermarks", "--format", "json").json
    shown = (found["tenant"], found["contiguous"], found["ingested"], found["gaps"])
    assert shown == ("acme", 0, 3, [[1, 2]])
    assert "1-2" in lmem("watermarks").out
    assert lmem("watermarks", "--skip", "1-2").code == 2
    assert lmem("watermarks", "--skip", "x", "--tenant", "acme").code == 2
    asked = ("watermarks", "--skip", "1-2", "--tenant", "acme")
    assert (lmem(*asked).code, lmem(*asked, "--dry-run").code) == (2, 0)
    assert lmem(*asked, "--yes").code == 0
    lmem("worker", "--once")
    (found,) = lmem("watermarks", "--format", "json").json
    assert (found["contiguous"], found["gaps"], found["buffered"]) == (3, [], 0)
