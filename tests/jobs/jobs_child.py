"""A process that accepts jobs or does them; the files it leaves show what was begun and done."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

from lance_memory import Retry, Scope, Worker
from lance_memory.jobs import open_desk
from lance_memory.ledger import open_ledger

SCOPE = Scope(tenant="t", user="u")


def accept(desk, place):
    """Accepts 30 keys at the same moment as others, and tells the ids."""
    (place / f"ready-{os.getpid()}").touch()
    while not (place / "go").exists():
        time.sleep(0.001)
    for number in range(30):
        job = desk.accept([(SCOPE, {"n": number})], tenant="t", idempotency_key=f"{number}")
        sys.stdout.write(f"{job.id}\n")


def accept_and_die(desk, place):
    """Is killed after the job is in the ledger, and before its task is on the queue."""
    desk.queue.put = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
    desk.accept([(SCOPE, "lost?")], idempotency_key="lost?")


def work(desk, place):
    """Works until SIGTERM. A byte at the beginning of a job, and one at its end."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def run(payload, job):
        note(place / f"{payload[0][1]}.begun")
        time.sleep(0.02)
        note(place / f"{payload[0][1]}.done")
        return {"ids": [job.id]}

    worker = Worker(
        desk,
        run,
        slots={"free": 3, "growth": 2},
        lease=timedelta(seconds=0.6),
        retry=Retry(attempts=50, first_wait=0.01, longest_wait=0.1),
    )
    (place / f"ready-{os.getpid()}").touch()
    sys.exit(0 if worker.run_until(stop) else 3)


def note(path):
    with path.open("ab") as file:
        file.write(b"x")


if __name__ == "__main__":
    what, ledger, queue, place = sys.argv[1:]
    globals()[what](open_desk(open_ledger(ledger), queue), Path(place))
