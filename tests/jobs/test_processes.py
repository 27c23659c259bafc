"""Killed processes lose and double nothing."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest
from forked import Forked

from lance_memory import JobState, Scope, Worker
from lance_memory.jobs import open_desk
from lance_memory.ledger import open_ledger

CHILD = Path(__file__).with_name("jobs_child.py")
SCOPE = Scope(tenant="t", user="u")


@pytest.fixture
def desk(where):
    """With the real time, as the processes have it."""
    ledger = open_ledger(where[0])
    opened = open_desk(ledger, where[1])
    yield opened
    opened.queue.close()
    ledger.close()


@pytest.fixture
def start(where, tmp_path):
    started = []

    def started_one(what):
        started.append(Forked(CHILD, what, *where, tmp_path))
        return started[-1]

    yield started_one
    for process in started:
        with process:
            process.kill()


def until(true, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


@pytest.mark.slow
def test_two_processes_that_accept_one_key_at_once_have_one_job(desk, start, tmp_path):
    processes = [start("accept") for _ in range(2)]
    until(lambda: len(list(tmp_path.glob("ready-*"))) == 2)
    (tmp_path / "go").touch()
    one, other = (process.communicate(timeout=120)[0].split() for process in processes)
    assert one == other
    assert [job.state for job in desk.list()] == [JobState.QUEUED] * 30
    assert Worker(desk, lambda *_: {}).drain() == 30
    assert [job.attempts for job in desk.list()] == [1] * 30


@pytest.mark.slow
def test_a_job_whose_task_never_reached_the_queue_is_put_there_again(desk, start):
    assert start("accept_and_die").wait(120) == -signal.SIGKILL
    [job] = desk.list()
    assert (job.state, desk.queue.length(job.plan)) == (JobState.QUEUED, 0)
    assert Worker(desk, lambda *_: {}).drain() == 1
    assert desk.get(job.id).state is JobState.DONE


@pytest.mark.slow
def test_killed_workers_lose_and_double_nothing(desk, start, tmp_path):
    jobs = [
        desk.accept([(SCOPE, f"{n}")], plan=("free", "growth")[n % 2], idempotency_key=f"{n}")
        for n in range(60)
    ]
    chance = random.Random(6)
    for _ in range(2):
        process = start("work")
        already = len(list(tmp_path.glob("*.done")))
        until(lambda n=already: len(list(tmp_path.glob("*.done"))) >= n + 5)
        time.sleep(chance.uniform(0, 0.05))
        process.kill()
        process.wait(60)
    process = start("work")
    until(lambda: all(desk.get(job.id).state is JobState.DONE for job in jobs))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    begun = {n: (tmp_path / f"{n}.begun").stat().st_size for n in range(60)}
    ended = {n: (tmp_path / f"{n}.done").stat().st_size for n in range(60)}
    attempts = {n: desk.get(job.id).attempts for n, job in enumerate(jobs)}
    assert min(ended.values()) == 1
    # Two kills, of at most five jobs each: those alone were begun again.
    assert sum(begun.values()) <= sum(attempts.values()) <= 60 + 10
    assert sum(ended.values()) <= sum(begun.values())
    assert all(ended[n] == 1 for n in range(60) if attempts[n] == 1)
    assert dict(desk.records.ledger.items("payloads")) == {}


@pytest.mark.slow
def test_a_worker_that_is_told_to_end_finishes_what_runs(desk, start, tmp_path):
    jobs = [desk.accept([(SCOPE, f"{n}")]) for n in range(200)]
    process = start("work")
    until(lambda: list(tmp_path.glob("*.begun")))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    begun, ended = (sorted(p.stem for p in tmp_path.glob(f"*.{k}")) for k in ("begun", "done"))
    assert begun == ended
    states = [desk.get(job.id).state for job in jobs]
    assert states.count(JobState.DONE) == len(ended)
    assert set(states) <= {JobState.DONE, JobState.QUEUED}
