"""Forgetting what is beside the table: jobs that run, jobs alone, jobs that are elsewhere."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace

import pytest

from lance_memory import (
    ExtractionError,
    InvalidInputError,
    JobState,
    NotFoundError,
    Rules,
    StorageError,
    WritePath,
    beside,
)
from lance_memory.ingest import Extract

pytestmark = pytest.mark.disk

ANA = {"tenant": "acme", "user": "ana"}
EVA = {"tenant": "acme", "user": "eva"}
OPEN = replace(WritePath(), gate=None)
LIVES, PLAYS = "I live in Paris.", "I play the violin in an orchestra."


class Held:
    """An extractor that says that it was called, and goes on when it is let go."""

    def __init__(self, *, fails=False):
        self.called, self.go, self.fails = threading.Event(), threading.Event(), fails

    def extract(self, conversation, *, reading):
        self.called.set()
        assert self.go.wait(60)
        if self.fails:
            raise ExtractionError("away", reason="away", passing=True)
        return Rules().extract(conversation, reading=reading)


@pytest.fixture
def at_work(store):
    """Ana has a memory, and a job of hers runs until the extractor is let go."""

    def begun(held):
        ana = store.scoped(**ANA)
        ana.ingest([LIVES], path=OPEN)
        job = ana.ingest([PLAYS], wait=False).job
        worker = store.worker(path=replace(OPEN, extract=Extract(extractor=held)))
        thread = threading.Thread(target=worker.work, args=[job])
        thread.start()
        assert held.called.wait(60)
        return job, thread

    return begun


def test_a_job_that_runs_on_is_told_of_and_stores_nothing_that_was_forgotten(
    store, at_work, monkeypatch
):
    monkeypatch.setattr(beside, "_PATIENCE", 0.2)
    held = Held()
    job, thread = at_work(held)
    with pytest.raises(StorageError, match="run it again"):
        store.forget(**ANA)
    held.go.set()
    thread.join()
    store.forget(**ANA)
    store.worker().drain()
    assert store.count(states="any") == 0
    assert store.jobs.get(job).state is not JobState.DONE


def test_a_job_that_fails_meanwhile_is_not_waited_for(store, at_work, monkeypatch):
    monkeypatch.setattr(beside, "_LOOK_AGAIN", 0.01)
    held = Held(fails=True)
    job, thread = at_work(held)
    threading.Timer(0.3, held.go.set).start()
    forgetting = threading.Thread(target=store.forget, kwargs=ANA)
    forgetting.start()
    forgetting.join(30)
    assert not forgetting.is_alive(), "the wait would be a minute"
    thread.join()
    assert store.jobs.get(job).state is JobState.FAILED
    assert store.count(states="any") == 0


def test_a_job_whose_worker_was_killed_stops_no_forgetting(store, clock, monkeypatch):
    monkeypatch.setattr(beside, "_PATIENCE", 0.2)
    ana = store.scoped(**ANA)
    ana.ingest([LIVES], path=OPEN)
    worker, job = store.worker(), ana.ingest([PLAYS], wait=False).job
    assert worker._claimed(job).state is JobState.RUNNING  # and then the process is gone
    clock.forward(hours=1)
    store.forget(**ANA)
    store.worker().drain()
    assert store.count(states="any") == 0


def test_somebody_who_has_jobs_alone_is_forgotten_and_the_plan_tells(store):
    store.scoped(**EVA).ingest([LIVES], path=OPEN)
    store.scoped(**ANA).ingest([PLAYS], wait=False)
    store.proxy_user("acme", "somebody")
    plan = store.forget(**ANA, dry_run=True)
    assert (plan.ids, plan.beside) == ((), {"conversations": 1, "inputs": 1, "jobs": 1})
    assert "jobs: 1" in str(plan)
    assert store.forget(**ANA).plan.beside == plan.beside
    assert store.worker().drain() == 0
    assert [memory.user for memory in store.list()] == ["eva"]
    with pytest.raises(NotFoundError):
        store.forget(**ANA)


def test_to_forget_the_last_memory_by_name_is_not_to_forget_its_person(store):
    ana = store.scoped(**ANA)
    last = ana.add(LIVES)
    queued = ana.ingest([PLAYS], wait=False).job
    store.forget(last.id)
    assert store.jobs.get(queued).state is JobState.QUEUED


def test_of_a_tenant_all_users_go_and_no_other_tenant_is_touched(store):
    store.scoped(**ANA).ingest([LIVES])
    store.scoped(**EVA).ingest(["How are you?"])
    store.proxy_user("acme", "somebody")
    bob = {"tenant": "other", "user": "bob"}
    store.scoped(**bob).ingest([LIVES])
    assert store.forget(tenant="acme").plan.beside["users"] == 1
    with pytest.raises(NotFoundError):
        store.forget(tenant="acme")
    assert store.forget(**bob, dry_run=True).beside == {"inputs": 1}


@pytest.mark.parametrize(
    "verb",
    [
        lambda plain: plain.forget(**ANA),
        lambda plain: plain.forget(**ANA, dry_run=True),
        lambda plain: plain.finish_forgetting(),
        lambda plain: plain.consolidate(dry_run=True),
        lambda plain: plain.scoped(**ANA).ingest([LIVES], wait=False),
        lambda plain: plain.scoped(**ANA).ingest([LIVES], idempotency_key="k"),
    ],
    ids=["forget", "plan", "finish", "consolidate", "queue", "key"],
)
def test_a_handle_that_is_not_told_where_the_jobs_are_says_so(verb, reopen, tmp_path):
    reopen(tmp_path / "store", ledger=tmp_path / "jobs").scoped(**ANA).ingest([LIVES], path=OPEN)
    plain = reopen(tmp_path / "store")
    with pytest.raises(InvalidInputError, match="ledger="):
        verb(plain)
    assert plain.scoped(**ANA).ingest([PLAYS], path=OPEN).status == "done"


def test_what_was_forgotten_before_its_turn_leaves_no_gap(store):
    ana, eva = store.scoped(**ANA), store.scoped(**EVA)

    def event(seq, text):
        return [{"role": "user", "content": text, "seq": seq}]

    ana.ingest(event(0, LIVES), ordered=True, path=OPEN)
    ana.ingest(event(2, PLAYS), ordered=True, wait=False)
    store.forget(**ANA)
    eva.ingest(event(1, "I play the cello in a quartet."), ordered=True, wait=False)
    store.worker().drain()
    store.worker().drain()
    marks = store.order.status("acme")
    assert (marks.contiguous, marks.gaps, marks.buffered) == (2, (), 0)


def test_a_new_branch_knows_nothing_of_a_deleted_one_in_redis(redis_url, reopen, tmp_path):
    store = reopen(tmp_path / "store", ledger=f"{redis_url}?prefix=branches")
    side = store.branch("side")
    said = [{"role": "user", "content": PLAYS, "seq": 0}]
    side.scoped(**ANA).ingest(said, ordered=True, wait=False)
    kept = store.scoped(**ANA).ingest([LIVES], wait=False).job
    store.delete_branch("side")
    new = store.branch("side")
    assert (new.jobs.list(), new.order.status("acme").ingested) == ([], -1)
    assert [job.id for job in store.jobs.list()] == [kept]


def test_a_plan_by_name_counts_the_jobs_that_name_the_memory_or_say_it(store):
    """It counted jobs by scope alone."""
    ana = store.scoped(**ANA)
    done = ana.ingest([PLAYS], path=OPEN, idempotency_key="k")
    ana.ingest([f"As I said: {PLAYS}"], wait=False)
    store.scoped(**EVA).ingest([PLAYS], wait=False)
    plan = store.forget(done.ids[0], dry_run=True)
    assert plan.beside == {"conversations": 1, "jobs": 2}
    assert store.jobs.get(done.job).answer is not None
    assert store.forget(done.ids[0]).plan.beside == plan.beside
    assert store.jobs.get(done.job).answer is None


def test_a_plan_by_filter_counts_each_job_once(store):
    ana = store.scoped(**ANA)
    ana.ingest([PLAYS], path=OPEN, idempotency_key="k")
    ana.ingest([f"As I said: {PLAYS}"], wait=False)
    plan = store.forget(**ANA, dry_run=True)
    assert plan.beside == {"conversations": 1, "inputs": 1, "jobs": 2}
    assert store.forget(**ANA).plan.beside == plan.beside


def ledger_of(store):
    return store._table.place.local / "ingest" / "ledger.sqlite"


def test_the_proof_reads_the_ledger_and_leaves_alone_what_another_person_says(store):
    ana, eva = store.scoped(**ANA), store.scoped(**EVA)
    kept = eva.ingest([PLAYS], wait=False).job
    made = ana.ingest([PLAYS], path=OPEN)
    store.forget(made.ids[0])
    assert PLAYS.encode() in ledger_of(store).read_bytes()
    assert store.jobs.get(kept).state is JobState.QUEUED
    assert store.worker().drain() == 1
    assert [memory.content for memory in eva.list()] == [PLAYS]


@pytest.mark.parametrize("what", ["text", "id"])
def test_what_is_left_in_the_bytes_of_the_ledger_alone_is_found(store, what):
    """A ledger that was written by something else, which does not overwrite what it removes."""
    ana = store.scoped(**ANA)
    ana.ingest([LIVES], wait=False)
    made = ana.ingest([PLAYS], path=OPEN)
    word = PLAYS.encode() if what == "text" else made.ids[0].encode()
    with closing(sqlite3.connect(ledger_of(store))) as other:
        other.execute("PRAGMA secure_delete = OFF")
        other.execute("INSERT INTO entries VALUES (x'00', x'00', ?)", [b"." * 300 + word])
        other.commit()
        other.execute("DELETE FROM entries WHERE space = x'00'")
        other.commit()
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert word in ledger_of(store).read_bytes()
    with pytest.raises(StorageError, match=r"ledger\.sqlite"):
        store.forget(made.ids[0])
    store.close()
    with closing(sqlite3.connect(ledger_of(store))) as other:
        other.execute("VACUUM")
    assert store.finish_forgetting().proof.found == ()
