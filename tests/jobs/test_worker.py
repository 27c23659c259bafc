"""A worker does each job once, tries again what may pass, and is held up by none."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest

from lance_memory import JobState, Retry, Scope, ServicePlan, Worker
from lance_memory.errors import InvalidInputError, RejectedError, StorageError

ANA = Scope(tenant="acme", user="ana")
TWICE = Retry(attempts=2, first_wait=10.0, longest_wait=100.0)


def accepted(desk, text="hello", **options):
    return desk.accept([(ANA, text)], tenant="acme", **options)


def failing(error):
    def run(payload, job):
        raise error

    return run


def done(payload, job):
    return {}


def test_a_failed_job_is_tried_again_after_growing_waits_in_bounds(desk, now):
    job = accepted(desk)
    retry = Retry(attempts=6, first_wait=10.0, longest_wait=60.0)
    worker = Worker(desk, failing(OSError("hello is in this message")), retry=retry)
    for attempt, full in enumerate([10, 20, 40, 60, 60], start=1):
        assert worker.drain() == 1
        failed = desk.get(job.id)
        assert (failed.state, failed.attempts) == (JobState.FAILED, attempt)
        wait = (failed.due_at - now.moment).total_seconds()
        assert full / 2 <= wait <= full
        now.moment = failed.due_at - timedelta(milliseconds=5)
        assert worker.drain() == 0
        now.moment = failed.due_at + timedelta(milliseconds=5)
    assert worker.drain() == 1
    dead = desk.get(job.id)
    assert (dead.state, dead.attempts, dead.error) == (
        JobState.DEAD,
        6,
        "OSError at lance_memory/jobs/worker.py:" + dead.error.rpartition(":")[2],
    )


def test_a_dead_job_is_kept_and_retried_until_it_is_done(desk, now):
    job = accepted(desk, idempotency_key="k")
    worker = Worker(desk, failing(StorageError("the disk d1 is full")), retry=Retry(attempts=1))
    assert worker.drain() == 1
    dead = desk.get(job.id)
    assert (dead.state, dead.ended_at) == (JobState.DEAD, now.moment)
    assert dead.error.endswith(": the disk d1 is full")
    assert accepted(desk, idempotency_key="k") == dead
    assert Worker(desk, done).drain() == 0
    [again] = desk.retry([job.id[:30]])
    assert (again.state, again.attempts, again.error) == (JobState.QUEUED, 0, "")
    assert Worker(desk, done).drain() == 1
    assert desk.get(job.id).state is JobState.DONE


def test_a_failed_job_is_retried_at_once_when_asked(desk):
    job = accepted(desk)
    Worker(desk, failing(OSError()), retry=TWICE).drain()
    desk.retry([job.id])
    assert Worker(desk, done).drain() == 1
    assert desk.get(job.id).state is JobState.DONE


@pytest.mark.parametrize("error", [InvalidInputError("hello"), RejectedError("hello", rows=[0])])
def test_what_cannot_pass_dies_at_once_and_its_message_is_not_kept(desk, error):
    job = accepted(desk)
    Worker(desk, failing(error)).drain()
    dead = desk.get(job.id)
    assert (dead.state, dead.attempts) == (JobState.DEAD, 1)
    assert dead.error.startswith(f"{type(error).__name__} at lance_memory/jobs/")
    assert "hello" not in dead.error


def test_an_answer_that_is_no_json_is_a_failure(desk):
    job = accepted(desk)
    Worker(desk, lambda *_: {"at": object()}, retry=Retry(attempts=1)).drain()
    assert desk.get(job.id).error.startswith("TypeError")


def test_a_poison_job_holds_up_no_other(desk):
    def run(payload, job):
        if payload[0][1] == "poison":
            raise ZeroDivisionError
        return {}

    poison = accepted(desk, "poison", priority=100)
    others = [accepted(desk, f"{n}") for n in range(5)]
    worker = Worker(desk, run, retry=TWICE)
    assert worker.drain() == 6
    assert [desk.get(job.id).state for job in others] == [JobState.DONE] * 5
    assert desk.get(poison.id).state is JobState.FAILED


def test_a_job_of_greater_priority_comes_first_and_equals_in_turn(desk):
    seen = []

    def run(payload, job):
        seen.append(payload[0][1])
        return {}

    for text, priority in [("a", 0), ("b", 5), ("c", 0), ("d", -1), ("e", 5)]:
        accepted(desk, text, priority=priority)
    Worker(desk, run).drain()
    assert seen == ["b", "e", "a", "c", "d"]


def test_a_full_queue_of_one_plan_starves_no_other(desk):
    order = []

    def run(payload, job):
        order.append(job.plan)
        return {}

    for plan in (*["enterprise"] * 20, "growth", "free"):
        accepted(desk, plan=plan)
    Worker(desk, run, slots={"enterprise": 4, "growth": 2, "free": 1}).drain()
    assert len(order) == 22
    assert {ServicePlan.GROWTH, ServicePlan.FREE} <= set(order[:6])


def test_a_plan_without_slots_is_left_to_other_workers(desk):
    job = accepted(desk, plan="free")
    assert Worker(desk, done, slots={"growth": 1}).drain() == 0
    assert desk.get(job.id).state is JobState.QUEUED


def test_a_job_whose_worker_is_lost_is_taken_over_and_the_late_answer_is_not_taken(desk, now):
    answers = []

    def slow(payload, job):
        now.moment += timedelta(minutes=2)
        answers.append(Worker(desk, lambda *_: {"by": "the other"}).drain())
        return {"by": "the late one"}

    job = accepted(desk)
    worker = Worker(desk, slow)
    assert worker.work(job.id) is None
    assert answers == [1]
    ended = desk.get(job.id)
    assert (ended.state, ended.attempts, ended.answer) == (JobState.DONE, 2, {"by": "the other"})


def test_a_job_that_kills_its_workers_dies(desk, now):
    class Killed(BaseException):
        pass

    job = accepted(desk)
    for _ in range(2):
        worker = Worker(desk, failing(Killed()), retry=TWICE)
        worker._ended = lambda *_, **__: None  # as if the process were gone
        with pytest.raises(Killed):
            worker.work(job.id)
        now.moment += timedelta(hours=1)
    worker = Worker(desk, done, retry=TWICE)
    assert worker.drain() == 0
    dead = desk.get(job.id)
    assert (dead.state, dead.attempts) == (JobState.DEAD, 2)
    assert "ended without a word" in dead.error
    assert list(desk.records.all_open()) == []


def test_an_interrupted_job_was_not_tried(desk):
    job = accepted(desk)
    with pytest.raises(KeyboardInterrupt):
        Worker(desk, failing(KeyboardInterrupt())).drain()
    assert (desk.get(job.id).state, desk.get(job.id).attempts) == (JobState.QUEUED, 0)
    assert Worker(desk, done).drain() == 1


def test_a_lease_is_prolonged_while_the_job_runs(desk, now):
    job = accepted(desk)

    def run(payload, job):
        now.moment += timedelta(minutes=1)
        end = time.monotonic() + 60
        while desk.get(job.id).lease_until < now.moment and time.monotonic() < end:
            time.sleep(0.01)
        return {"until": desk.get(job.id).lease_until.isoformat()}

    Worker(desk, run, lease=timedelta(seconds=0.1)).drain()
    until = now.moment + timedelta(seconds=0.1)
    assert desk.get(job.id).answer == {"until": until.isoformat()}


def test_a_task_that_is_lost_or_doubled_changes_nothing(desk, now):
    lost, doubled = accepted(desk, "lost"), accepted(desk, "doubled")
    for _ in range(2):
        desk.queue.take(ServicePlan.FREE)
    for _ in range(3):
        desk.queue.put(ServicePlan.FREE, doubled.id)
    desk.queue.put(ServicePlan.FREE, "of no job")
    assert Worker(desk, done).drain() == 2
    assert [(j.state, j.attempts) for j in desk.list()] == [(JobState.DONE, 1)] * 2
    assert desk.get(lost.id).state is JobState.DONE


def test_a_job_that_was_accepted_halfway_is_finished_by_the_next_call_or_removed(desk, now):
    desk.records.put_payload = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    for key in "ab":
        with pytest.raises(KeyboardInterrupt):
            accepted(desk, idempotency_key=key)
    del desk.records.put_payload
    worker = Worker(desk, done)
    worker.drain()
    assert [job.state for job in desk.list()] == [JobState.QUEUED] * 2
    job = accepted(desk, idempotency_key="a")
    assert worker.drain() >= 1
    now.moment += timedelta(hours=1)
    worker.drain()
    assert [(one.id, one.state) for one in desk.list()] == [(job.id, JobState.DONE)]
    assert list(desk.records.all_open()) == []


def test_threads_work_until_they_are_told_to_stop_and_end_what_they_have_begun(desk):
    begun, go, stop = threading.Semaphore(0), threading.Event(), threading.Event()

    def run(payload, job):
        begun.release()
        assert go.wait(60)
        return {}

    jobs = [accepted(desk, f"{n}", plan=plan) for n in range(2) for plan in ("free", "growth")]
    worker = Worker(desk, run, slots={"free": 1, "growth": 1})
    ended = []
    thread = threading.Thread(target=lambda: ended.append(worker.run_until(stop)))
    thread.start()
    assert begun.acquire(timeout=60)
    assert begun.acquire(timeout=60)
    stop.set()
    go.set()
    thread.join(60)
    assert ended == [True]
    # Of each plan the first is done; a second one may have been begun before the word to stop.
    for plan in ServicePlan.FREE, ServicePlan.GROWTH:
        states = sorted(desk.get(job.id).state for job in jobs if job.plan is plan)
        assert states in ([JobState.DONE, JobState.QUEUED], [JobState.DONE] * 2)


def test_two_workers_of_one_desk_do_each_their_own(desk):
    """Each with a plan of its own: what a worker takes is given to that worker's function."""
    ran, stop = [], threading.Event()

    def named(name):
        def run(payload, job):
            ran.append((name, job.plan))
            return {}

        return run

    plans = (ServicePlan.FREE, ServicePlan.GROWTH)
    threads = [
        threading.Thread(target=Worker(desk, named(plan), slots={plan: 1}).run_until, args=(stop,))
        for plan in plans
    ]
    for thread in threads:
        thread.start()
    try:
        jobs = [accepted(desk, f"{n}", plan=plan) for n in range(2) for plan in plans]
        assert [desk.wait(job.id, timeout=60).state for job in jobs] == [JobState.DONE] * 4
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert sorted(ran) == [(plan, plan) for plan in sorted(plans) for _ in range(2)]


def test_nonsense_is_refused(desk):
    for slots in ({}, {"gold": 1}, {"free": 0}, {"free": True}):
        with pytest.raises(InvalidInputError, match="whole number from 1 on"):
            Worker(desk, done, slots=slots)
    with pytest.raises(InvalidInputError, match="a lease takes some time"):
        Worker(desk, done, lease=timedelta(0))
