"""What is accepted is kept, once for each key, and answers for itself."""

from __future__ import annotations

import json
import stat
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from lance_memory import JobState, Scope, ServicePlan, Worker
from lance_memory.errors import (
    AmbiguousError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    ScopeError,
    StorageError,
)
from lance_memory.jobs.job import Job
from lance_memory.jobs.queue import Queue

ANA, BEN = Scope(tenant="acme", user="ana"), Scope(tenant="acme", user="ben")


def accepted(desk, text="hello", scope=ANA, **options):
    return desk.accept([(scope, {"text": text})], tenant=scope.tenant, **options)


def answering(desk, **options):
    """A worker whose answer is the texts of the payload."""

    def run(payload, job):
        return {"texts": [part["text"] for _, part in payload], "ids": ["m"] * len(payload)}

    return Worker(desk, run, **options)


def payloads(desk):
    return dict(desk.records.ledger.items("payloads"))


def test_a_job_goes_from_queued_to_done_and_its_payload_with_it(desk, now):
    job = accepted(desk, plan="growth", priority=3, seqs=(4, 5))
    assert job == Job(
        id=job.id, accepted_at=now.moment, digest=job.digest, tenant="acme", scopes=(ANA,),
        plan=ServicePlan.GROWTH, priority=3, seqs=(4, 5),
    )  # fmt: skip
    assert desk.get(job.id) == job
    assert json.loads(payloads(desk)[job.id]) == [
        [{"tenant": "acme", "user": "ana"}, {"text": "hello"}]
    ]
    assert answering(desk).drain() == 1
    done = desk.get(job.id)
    assert (done.state, done.attempts, done.started_at, done.ended_at, done.memories) == (
        JobState.DONE, 1, now.moment, now.moment, 1,
    )  # fmt: skip
    assert done.answer == {"texts": ["hello"], "ids": ["m"]}
    assert payloads(desk) == {}
    assert list(desk.records.all_open()) == []
    assert answering(desk).drain() == 0


def test_a_job_survives_its_bytes(desk, now):
    job = accepted(desk)
    answering(desk).drain()
    done = desk.get(job.id)
    assert Job.from_bytes(done.to_bytes()) == done
    assert Job.from_json(json.loads(json.dumps(job.to_json()))) == job


def test_a_key_names_one_job_and_one_answer(desk):
    first = accepted(desk, idempotency_key="k")
    assert accepted(desk, idempotency_key="k") == first
    assert accepted(desk, scope=Scope(tenant="other"), idempotency_key="k").id != first.id
    assert len(desk.list()) == 2
    answering(desk).drain()
    done = accepted(desk, idempotency_key="k")
    assert (done.id, done.answer) == (first.id, {"texts": ["hello"], "ids": ["m"]})
    assert payloads(desk) == {}
    with pytest.raises(ConflictError, match="used with another payload") as caught:
        accepted(desk, "something else", idempotency_key="k")
    assert caught.value.ids == (first.id,)


@pytest.mark.parametrize("hostile", ["x' OR '1'='1", "\0", "%", "\ud800", '"]', "é" * 10_000])
def test_a_hostile_key_or_tenant_matches_only_itself(desk, hostile):
    jobs = [
        desk.accept([], tenant=tenant, idempotency_key=key)
        for tenant, key in [
            (hostile, "k"),
            ("t", hostile),
            ("", f"{hostile}k"),
            (f"{hostile}k", "k"),
        ]
    ]
    assert len({job.id for job in jobs}) == 4
    assert desk.accept([], tenant=hostile, idempotency_key="k") == jobs[0]
    assert desk.list(tenant=hostile) == [jobs[0]]


def test_two_threads_with_one_key_have_one_job(desk):
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda n: accepted(desk, idempotency_key=f"{n % 10}"), range(80)))
    assert len({job.id for job in jobs}) == 10
    assert answering(desk).drain() == 10
    assert {job.state for job in desk.list()} == {JobState.DONE}


def test_what_is_no_json_is_refused(desk):
    for part in (b"bytes", float("nan"), {1, 2}):
        with pytest.raises(InvalidInputError, match="must be JSON values"):
            desk.accept([(ANA, part)])
    with pytest.raises(InvalidInputError, match=r"plan='gold'; it is one of enterprise, growth"):
        desk.accept([], plan="gold")
    assert desk.list() == []


def test_jobs_are_found_by_the_beginning_of_their_id(desk):
    job = accepted(desk)
    assert desk.get(job.id[:20]) == job
    assert desk.find(job.id[:20]) is None
    other = accepted(desk)
    with pytest.raises(AmbiguousError) as caught:
        desk.get(job.id[:4])
    assert set(caught.value.candidates) == {job.id, other.id}
    for missing in ("", "nothing"):
        with pytest.raises(NotFoundError, match="there is no job"):
            desk.get(missing)


def test_jobs_are_listed_by_state_and_tenant_in_the_order_of_arrival(desk, now):
    jobs = []
    for tenant in ("b", "a", "b"):
        now.moment += timedelta(seconds=1)
        jobs.append(accepted(desk, scope=Scope(tenant=tenant), idempotency_key=f"{len(jobs)}"))
    assert desk.list() == jobs
    assert desk.list(tenant="b") == [jobs[0], jobs[2]]
    assert desk.list(states=["queued"]) == jobs
    assert desk.list(states=["dead", "done"]) == []
    with pytest.raises(InvalidInputError, match="state='lost'; it is one of queued"):
        desk.list(states=["lost"])


def test_the_expected_time_follows_the_queue_and_the_last_jobs(desk):
    assert accepted(desk).eta is None
    answering(desk).drain()
    desk.records.note_pace(ServicePlan.FREE, seconds=11.0, slots=2)
    mean = desk.records.pace(ServicePlan.FREE).seconds
    assert 2.1 < mean < 3.5
    etas = [accepted(desk).eta for _ in range(4)]
    assert etas == pytest.approx([mean, mean, 2 * mean, 2 * mean], abs=0.002)
    assert accepted(desk, plan="enterprise").eta is None


def test_waiting_ends_with_the_job_or_with_its_time(desk):
    job = accepted(desk)
    assert desk.wait(job.id, timeout=0).state is JobState.QUEUED
    later = threading.Timer(0.1, answering(desk).drain)
    later.start()
    assert desk.wait(job.id, timeout=60).state is JobState.DONE
    later.join()


def test_a_job_that_waits_is_not_begun_before_it_is_released(desk):
    job = accepted(desk, waiting=True, idempotency_key="k")
    assert (job.state, answering(desk).drain()) == (JobState.WAITING, 0)
    assert accepted(desk, waiting=True, idempotency_key="k") == job
    assert [one.state for one in desk.release([job.id, "nothing"])] == [JobState.QUEUED]
    assert desk.release([job.id]) == []
    assert answering(desk).drain() == 1


def test_of_a_job_that_waits_the_first_word_counts_and_no_other_is_held_or_settled(desk):
    job, other = (accepted(desk, waiting=True, idempotency_key=key) for key in "ab")
    held = desk.hold(job.id, {"known": 1})
    assert (held.state, held.answer) == (JobState.WAITING, {"known": 1})
    assert desk.hold(job.id, {"known": 2}) is None
    assert desk.get(job.id).answer == {"known": 1}
    settled = desk.settle(other.id, {"status": "L2"})
    assert (settled.state, settled.answer) == (JobState.DONE, {"status": "L2"})
    assert desk.hold(other.id, {}) is None
    assert list(payloads(desk)) == [job.id]
    desk.release([job.id])
    assert desk.settle(job.id, {}) is None
    assert desk.hold("nothing", {}) is None


def test_purging_plans_first_and_leaves_what_runs(desk, now):
    old = accepted(desk)
    answering(desk).drain()
    now.moment += timedelta(days=1)
    queued = accepted(desk)
    old = desk.get(old.id)
    planned = desk.purge(older_than=timedelta(hours=1), dry_run=True)
    assert (planned.jobs, planned.dry_run, len(desk.list())) == ((old,), True, 2)
    assert desk.purge(older_than=timedelta(days=2)).jobs == ()
    assert desk.purge([queued.id]).jobs == ()
    assert desk.purge([old.id]).jobs == (old,)
    assert desk.list() == [queued]
    with pytest.raises(InvalidInputError, match="do not run"):
        desk.purge(states=["running"])
    assert desk.purge(states=["queued"]).jobs == (queued,)
    assert (desk.list(), payloads(desk), answering(desk).drain()) == ([], {}, 0)


def test_forgetting_takes_a_scope_out_of_payloads_and_answers(desk):
    both = desk.accept([(ANA, {"text": "a"}), (BEN, {"text": "b"})])
    of_ana = accepted(desk, "Zanzibar")
    done = accepted(desk, idempotency_key="k")
    assert answering(desk).work(done.id).state is JobState.DONE
    told = desk.forget(Scope(tenant="acme", user="ana"))
    assert (told.jobs, told.parts, told.running) == (3, 2, ())
    assert b"Zanzibar" not in b"".join(payloads(desk).values())
    assert desk.get(of_ana.id).state is JobState.DEAD
    assert (desk.get(of_ana.id).error, desk.get(of_ana.id).scopes) == ("forgotten", ())
    assert accepted(desk, idempotency_key="k").answer is None
    with pytest.raises(ConflictError, match="nothing is left of it"):
        desk.retry([of_ana.id])
    assert answering(desk).drain() == 1
    assert desk.get(both.id).answer["texts"] == ["b"]
    assert desk.forget(Scope(tenant="acme", user="ana")).jobs == 0
    with pytest.raises(ScopeError, match="needs a scope"):
        desk.forget(Scope())


def test_what_is_forgotten_while_it_runs_is_named_and_not_run_again(desk, now):
    def run(payload, job):
        assert desk.forget(ANA).running == (job.id,)
        raise OSError

    job = accepted(desk)
    worker = Worker(desk, run)
    worker.drain()
    now.moment += timedelta(hours=1)
    worker.drain()
    dead = desk.get(job.id)
    assert (dead.state, dead.error, payloads(desk)) == (JobState.DEAD, "forgotten", {})


def test_what_was_forgotten_is_in_no_file(tmp_path, request, now):
    from lance_memory.jobs import open_desk
    from lance_memory.ledger import open_ledger

    ledger = open_ledger(tmp_path / "ledger.sqlite")
    desk = open_desk(ledger, tmp_path / "queue.sqlite", clock=now)
    accepted(desk, "the treasure of Zanzibar")
    assert any(b"Zanzibar" in path.read_bytes() for path in tmp_path.iterdir())
    desk.forget(ANA)
    assert not any(b"Zanzibar" in path.read_bytes() for path in tmp_path.iterdir())
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    desk.queue.close()
    ledger.close()


def test_a_queue_holds_ids_as_json_and_nothing_is_pickled(desk, monkeypatch):
    def never(*_, **__):
        raise AssertionError("pickled")

    monkeypatch.setattr("huey.serializer.pickle.dumps", never)
    monkeypatch.setattr("huey.serializer.pickle.loads", never)
    job = accepted(desk, "a secret of Ana's")
    [task] = desk.queue._of(ServicePlan.FREE).storage.enqueued_items()
    told = json.loads(bytes(task))
    assert [job.id] in told
    assert b"secret" not in bytes(task)
    assert answering(desk).drain() == 1


def test_a_queue_that_fails_does_not_lose_an_accepted_job(where, desk, tmp_path, now):
    (tmp_path / "file").write_text("x")
    broken = type(desk)(desk.records.ledger, Queue(tmp_path / "file" / "queue"), clock=now)
    with pytest.raises(StorageError, match="could not make the queue"):
        broken.queue.length(ServicePlan.FREE)
    job = accepted(broken)
    assert answering(desk).drain() == 1
    assert desk.get(job.id).state is JobState.DONE


def test_a_damaged_queue_is_named_and_may_be_deleted(tmp_path, now):
    from lance_memory.jobs import open_desk
    from lance_memory.ledger import open_ledger

    path = tmp_path / "queue.sqlite"
    path.write_bytes(b"nothing that a queue could be read from" * 100)
    ledger = open_ledger(":memory:")
    desk = open_desk(ledger, path, clock=now)
    job = accepted(desk)
    with pytest.raises(StorageError, match=r"queue\.sqlite could not be read .*not a database"):
        answering(desk).drain()
    path.unlink()
    assert answering(desk).drain() == 1
    assert desk.get(job.id).state is JobState.DONE
    desk.queue.close()
    ledger.close()


def test_accepting_takes_a_few_milliseconds(desk, capsys):
    seconds = []
    for number in range(200):
        begun = time.perf_counter()
        accepted(desk, f"{number} " + "word " * 200, idempotency_key=f"{number}")
        seconds.append(time.perf_counter() - begun)
    median = statistics.median(seconds)
    with capsys.disabled():
        kind = type(desk.records.ledger).__name__
        print(f"\naccept: p50 {1e3 * median:.2f} ms, max {1e3 * max(seconds):.1f} ms ({kind})")  # noqa: T201
    assert answering(desk).drain() == 200
